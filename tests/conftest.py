"""Make Hypothesis deterministic: the same cases on every machine."""

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "trueup",
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("trueup")
