"""Mechanisms of PyDP, PipelineDP and diffprivlib: the real ones, and records of them."""

from types import SimpleNamespace

import pytest

import trueup as tu
from adapters.environment import run


def mechanism(name, **attributes):
    """Return an object of a class of this name: what an adapter sees of a library."""
    return type(name, (SimpleNamespace,), {})(**attributes)


READ = {
    "pydp": {
        "laplace": "RoundedLaplace(6)",
        "gaussian": "RoundedGaussian(7.46484375)",
        "count": "RoundedLaplace(12)",
    },
    "pipelinedp": {
        "laplace": "Laplace(12)",
        "gaussian": "Gaussian(29.84764014649154)",
        "mean": "{'count': Laplace(12), 'normalized_sum': Gaussian(29.84764014649154)}",
        "from a deviation": "Gaussian(3)",
    },
    "diffprivlib": {
        "laplace": "Laplace(2)",
        "geometric": "DiscreteLaplace(2)",
        "insensitive": "Noiseless()",
    },
}
REFUSED = {
    "pydp": {
        "BoundedSum": "does not keep its bounds",
        "BoundedMean": "clamped to the bounds",
        "BoundedVariance": "several noisy sums",
        "BoundedStandardDeviation": "several noisy sums",
        "Max": "selects a value",
    },
    "pipelinedp": {"threshold": "only counts above a threshold"},
    "diffprivlib": {
        "LaplaceTruncated": "clamped to [0, 10]",
        "GeometricTruncated": "clamped to [0, 10]",
        "LaplaceFolded": "folded back",
        "GeometricFolded": "folded back",
        "Snapping": "rounded to a coarse grid",
        "LaplaceBoundedDomain": "drawn again",
        "LaplaceBoundedNoise": "not among trueup's families",
        "Binary": "does not add noise",
    },
}


def test_real_mechanisms():
    found = run("objects.py")
    assert {library: set(answers) for library, answers in found.items()} == {
        library: set(READ[library]) | set(REFUSED[library]) for library in READ
    }
    for library, answers in found.items():
        for name, noise in READ[library].items():
            assert answers[name] == noise, (library, name)
        for name, reason in REFUSED[library].items():
            assert reason in answers[name], (library, name)
            assert "\nHint: " in answers[name], (library, name)


def test_pydp_records():
    laplace = mechanism("LaplaceMechanism", diversity=2.0, epsilon=0.5, sensitivity=1.0)
    gaussian = mechanism("GaussianMechanism", std=1.5)
    assert tu.from_pydp(laplace) == tu.RoundedLaplace(2)
    assert tu.from_pydp(laplace, integers=False) == tu.Laplace(2)
    assert tu.from_pydp(gaussian) == tu.RoundedGaussian(1.5)
    assert tu.from_pydp(gaussian, integers=False) == tu.Gaussian(1.5)


def test_a_float_is_noticed_where_integers_were_read():
    noise = tu.from_pydp(mechanism("LaplaceMechanism", diversity=2.0))
    with pytest.raises(tu.TrueupError, match=r"whole numbers, got 3\.25"):
        tu.unbiased("n**2", noise)(3.25)


def test_pipelinedp_records():
    laplace = mechanism("LaplaceMechanism", noise_kind="LAPLACE", noise_parameter=2.0)
    gaussian = mechanism(
        "GaussianMechanism", noise_kind=SimpleNamespace(name="GAUSSIAN"), noise_parameter=1.5
    )
    assert tu.from_pipelinedp(laplace) == tu.Laplace(2)
    assert tu.from_pipelinedp(gaussian) == tu.Gaussian(1.5)


def test_diffprivlib_truncated_mechanisms_need_a_domain_inside():
    bounds = {"epsilon": 0.5, "delta": 0.0, "sensitivity": 1, "lower": 0, "upper": 10}
    for name, noise in [
        ("LaplaceTruncated", tu.Laplace(2)),
        ("GeometricTruncated", tu.DiscreteLaplace(2)),
    ]:
        truncated = mechanism(name, **bounds)
        assert tu.from_diffprivlib(truncated, domain=(1, 10)) == noise
        with pytest.raises(tu.TrueupError, match=r"\[0, 10\], inside the domain \[1, ∞\)"):
            tu.from_diffprivlib(truncated, domain=(1, None))


@pytest.mark.parametrize(
    ("adapter", "source", "reason"),
    [
        (
            tu.from_pydp,
            mechanism("LaplaceMechanism"),
            "LaplaceMechanism has no attribute diversity",
        ),
        (tu.from_pydp, mechanism("LaplaceMechanism", diversity=-1.0), "must not be negative"),
        (tu.from_pydp, mechanism("LaplaceMechanism", diversity=float("nan")), "must be finite"),
        (
            tu.from_pydp,
            mechanism("Count", epsilon=0.0, l0_sensitivity=1, linf_sensitivity=1),
            "its budget is 0",
        ),
        (
            tu.from_pydp,
            mechanism("Count", epsilon=1.0, l0_sensitivity="Not set", linf_sensitivity=1),
            "l0_sensitivity must be a number, got 'Not set'",
        ),
        (tu.from_pydp, 3, "no noise to read from int"),
        (tu.from_pipelinedp, mechanism("MeanMechanism"), "no noise to read from NoneType"),
        (tu.from_pipelinedp, mechanism("LaplaceMechanism"), "not one of its additive mechanisms"),
        (tu.from_diffprivlib, mechanism("Laplace"), "no attribute epsilon"),
        (
            tu.from_diffprivlib,
            mechanism("Geometric", epsilon=0, sensitivity=1),
            "its budget is 0",
        ),
        (tu.from_diffprivlib, None, "does not add noise to a number"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_mechanism_is_refused(adapter, source, reason):
    with pytest.raises(tu.TrueupError, match=f"(?s){reason}.*\nHint: "):
        adapter(source)


def test_integers_is_a_choice():
    with pytest.raises(tu.TrueupError, match="integers must be True or False, got 'yes'"):
        tu.from_pydp(mechanism("LaplaceMechanism", diversity=1.0), integers="yes")
