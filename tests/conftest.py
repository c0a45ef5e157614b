"""Make Hypothesis deterministic: the same cases on every machine."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "trueup",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("trueup")
