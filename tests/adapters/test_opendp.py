"""OpenDP's measurements, their serialized form and Polars summaries: what is read, what refused."""

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import trueup as tu
from adapters.environment import run
from extras import needs


@pytest.fixture(scope="module")
def dp():
    library = needs("opendp.prelude", "OpenDP is not installed")
    library.enable_features("contrib", "honest-but-curious")
    return library


def space(dp, kind, vector=False):
    extra = {"nan": False} if kind in (float, "f32") else {}
    atom = dp.atom_domain(T=kind, **extra)
    if vector:
        return dp.vector_domain(atom), dp.l1_distance(T=kind)
    return atom, dp.absolute_distance(T=kind)


def count(dp, kind="i32"):
    return dp.t.make_count(
        dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance(), TO=kind
    )


READ = {
    "integers": (
        lambda dp: dp.m.make_laplace(*space(dp, int), scale=2.0),
        tu.DiscreteLaplace(2),
    ),
    "floats": (lambda dp: dp.m.make_laplace(*space(dp, float), scale=2.5), tu.Laplace(2.5)),
    "short floats": (lambda dp: dp.m.make_laplace(*space(dp, "f32"), scale=2.5), tu.Laplace(2.5)),
    "vector": (
        lambda dp: dp.m.make_laplace(*space(dp, int, True), scale=3.0),
        tu.DiscreteLaplace(3),
    ),
    "gaussian": (lambda dp: dp.m.make_gaussian(*space(dp, int), scale=2.0), tu.DiscreteGaussian(2)),
    "float gaussian": (lambda dp: dp.m.make_gaussian(*space(dp, float), scale=2.0), tu.Gaussian(2)),
    "geometric": (
        lambda dp: dp.m.make_geometric(*space(dp, int), scale=2.0),
        tu.DiscreteLaplace(2),
    ),
    "noise": (
        lambda dp: dp.m.make_noise(*space(dp, int), dp.max_divergence(), 2.0),
        tu.DiscreteLaplace(2),
    ),
    "noise, zCDP": (
        lambda dp: dp.m.make_noise(*space(dp, float), dp.zero_concentrated_divergence(), 2.0),
        tu.Gaussian(2),
    ),
    "fine grid": (lambda dp: dp.m.make_laplace(*space(dp, float), scale=2.0, k=-30), tu.Laplace(2)),
    "nothing": (lambda dp: dp.m.make_laplace(*space(dp, float), scale=0.0), tu.Noiseless()),
    "chain": (lambda dp: count(dp) >> dp.m.then_laplace(2.0), tu.DiscreteLaplace(2)),
    "float count": (lambda dp: count(dp, "f64") >> dp.m.then_laplace(2.0), tu.Laplace(2)),
    "sum": (
        lambda dp: (
            (dp.vector_domain(dp.atom_domain(bounds=(0, 9))), dp.symmetric_distance())
            >> dp.t.then_sum()
            >> dp.m.then_laplace(2.0)
        ),
        tu.DiscreteLaplace(2),
    ),
    "float mean": (
        lambda dp: (
            (
                dp.vector_domain(dp.atom_domain(bounds=(0.0, 9.0)), size=10),
                dp.symmetric_distance(),
            )
            >> dp.t.then_mean()
            >> dp.m.then_gaussian(2.0)
        ),
        tu.Gaussian(2),
    ),
    "cast and sum": (
        lambda dp: (
            (dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance())
            >> dp.t.then_cast_default(TOA=int)
            >> dp.t.then_clamp((0, 9))
            >> dp.t.then_resize(size=10, constant=1)
            >> dp.t.then_sum()
            >> dp.m.then_laplace(2.0)
        ),
        tu.DiscreteLaplace(2),
    ),
    "(ε, δ)": (
        lambda dp: dp.c.make_fix_delta(
            dp.c.make_zCDP_to_approxDP(count(dp) >> dp.m.then_gaussian(2.0)), 1e-6
        ),
        tu.DiscreteGaussian(2),
    ),
    "pure to zCDP": (
        lambda dp: dp.c.make_pureDP_to_zCDP(count(dp) >> dp.m.then_laplace(2.0)),
        tu.DiscreteLaplace(2),
    ),
    "approximate": (
        lambda dp: dp.c.make_approximate(count(dp) >> dp.m.then_laplace(2.0)),
        tu.DiscreteLaplace(2),
    ),
    "composition": (
        lambda dp: dp.c.make_composition(
            [
                count(dp) >> dp.m.then_laplace(2.0),
                dp.c.make_composition([count(dp, "f64") >> dp.m.then_laplace(3.0)]),
            ]
        ),
        [tu.DiscreteLaplace(2), [tu.Laplace(3)]],
    ),
}


@pytest.mark.parametrize("case", READ)
def test_a_measurement_and_its_serialized_form_say_the_same(dp, case):
    make, noise = READ[case]
    measurement = make(dp)
    assert tu.from_opendp(measurement) == noise
    assert tu.from_opendp(dp.serialize(measurement)) == noise
    assert tu.from_opendp(json.loads(dp.serialize(measurement))) == noise


def test_a_query_of_a_context(dp):
    context = dp.Context.compositor(
        data=[1, 2, 3],
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=1e-6),
        split_evenly_over=2,
        domain=dp.vector_domain(dp.atom_domain(T=int)),
    )
    assert tu.from_opendp(context.query().count().laplace()) == tu.DiscreteLaplace(2)
    noise = tu.from_opendp(context.query().count().gaussian())
    assert isinstance(noise, tu.DiscreteGaussian)


REFUSED = {
    "make_chain_pm": (
        lambda dp: count(dp) >> dp.m.then_laplace(2.0) >> (lambda x: max(x, 0)),
        "unknown function is applied after the noise",
    ),
    "make_geometric": (
        lambda dp: dp.m.make_geometric(*space(dp, int), scale=2.0, bounds=(0, 100)),
        r"clamped to \[0, 100\]",
    ),
    "unsigned integers": (
        lambda dp: dp.m.make_laplace(*space(dp, "u32"), scale=2.0),
        r" \(u32\): its values are clamped to \[0, ∞\)",
    ),
    "make_laplace": (
        lambda dp: dp.m.make_laplace(*space(dp, float), scale=2.0, k=-3),
        r"\(k=-3\).*multiples of 2\^-3 = 0.125, coarse for noise of scale 2",
    ),
    "make_laplace_threshold": (
        lambda dp: (
            dp.t.make_count_by(dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance())
            >> dp.m.then_laplace_threshold(2.0, 10)
        ),
        "below a threshold are dropped",
    ),
    "make_randomized_response_bool": (
        lambda dp: dp.m.make_randomized_response_bool(prob=0.75),
        "does not add noise",
    ),
    "make_user_measurement": (
        lambda dp: dp.m.make_user_measurement(
            *space(dp, int), dp.max_divergence(), lambda x: x, lambda d: 1.0
        ),
        "does not say what noise",
    ),
    "make_canonical_noise": (
        lambda dp: dp.m.make_canonical_noise(*space(dp, float), d_in=1.0, d_out=(1.0, 1e-6)),
        "not among trueup's families",
    ),
    "make_adaptive_composition": (
        lambda dp: dp.c.make_adaptive_composition(*space(dp, int), dp.max_divergence(), 1, [1.0]),
        "not known until they are asked",
    ),
    "then_laplace": (lambda dp: dp.m.then_laplace(2.0), "integers and floats cannot be told apart"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_be_wrong_is_refused_by_name(dp, case):
    make, reason = REFUSED[case]
    with pytest.raises(tu.TrueupError, match=f"(?s){case}.*{reason}.*\nHint: "):
        tu.from_opendp(make(dp))


def test_a_composition_with_a_post_processed_part_is_refused(dp):
    good = count(dp) >> dp.m.then_laplace(2.0)
    both = dp.c.make_composition([good, good >> (lambda x: x)])
    with pytest.raises(tu.TrueupError, match="make_chain_pm"):
        tu.from_opendp(both)


def test_a_clamp_outside_the_domain_is_harmless(dp):
    m = dp.m.make_geometric(*space(dp, int), scale=2.0, bounds=(0, 100))
    assert tu.from_opendp(m, domain=(1, 100)) == tu.DiscreteLaplace(2)
    assert tu.from_opendp(dp.serialize(m), domain=tu.Integers(0, 99)) == tu.DiscreteLaplace(2)
    for domain in [(-1, 100), (1, 101), (1, None), (None, 50)]:
        with pytest.raises(tu.TrueupError, match="inside the domain"):
            tu.from_opendp(m, domain=domain)


def test_an_unsigned_count_needs_a_domain_above_zero(dp):
    m = dp.m.make_laplace(*space(dp, "u32"), scale=2.0)
    assert tu.from_opendp(m, domain=(0, None)) == tu.DiscreteLaplace(2)
    with pytest.raises(tu.TrueupError, match="inside the domain"):
        tu.from_opendp(m, domain=(-1, None))


def test_under_gaussian_noise_a_clamp_must_be_out_of_reach(dp):
    m = dp.m.make_gaussian(*space(dp, "u32"), scale=2.0)
    assert tu.from_opendp(m, domain=(20, None)) == tu.DiscreteGaussian(2)
    with pytest.raises(tu.TrueupError, match="within reach of DiscreteGaussian"):
        tu.from_opendp(m, domain=(19, None))


def made(function, **arguments):
    return {"__function__": function, "__module__": "m", "__kwargs__": arguments}


INT = made("atom_domain", T="i32")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (made("make_quantum_noise", input_domain=INT, scale=1.0), "make_quantum_noise.*not known"),
        (
            made("make_laplace", input_domain=made("atom_domain", T="bool"), scale=1.0),
            "acts on bool",
        ),
        (
            made(
                "make_laplace",
                scale=1.0,
                input_domain=made("transformation_output_domain", this=made("make_mystery")),
            ),
            "type of its numbers is not stated",
        ),
        (made("make_laplace", input_domain=INT, scale=-1.0), "scale must not be negative, got -1"),
        (made("make_laplace", input_domain=INT, scale=None), "scale must be a number, got None"),
        (
            made("make_noise", input_domain=INT, scale=1.0, output_measure=made("renyi")),
            "make_noise",
        ),
        (made("make_private_lazyframe", lazyframe="..."), "a serialized query does not say"),
        ("not json", "not a serialized measurement"),
        ("[1, 2]", "list is no OpenDP measurement"),
        (7, "int is no OpenDP measurement, got 7"),
        (None, "NoneType is no OpenDP measurement"),
    ],
    ids=lambda value: value if isinstance(value, str) else "record",
)
def test_records_that_cannot_be_read_are_refused(record, reason):
    with pytest.raises(tu.TrueupError, match=f"(?s){reason}.*\nHint: "):
        tu.from_opendp(record)


SUMMARY = {
    "column": ["len", "x", "y", "z"],
    "aggregate": ["Frame Length", "Sum", "Sum", "Sum"],
    "distribution": ["Integer Laplace", "Integer Gaussian", "Float Laplace", "Float Gaussian"],
    "scale": [4.0, 2.5, 0.5, 0.0],
}
NOISES = {
    "len": tu.DiscreteLaplace(4),
    "x": tu.DiscreteGaussian(2.5),
    "y": tu.Laplace(Fraction(1, 2)),
    "z": tu.Noiseless(),
}


@pytest.mark.parametrize(
    "frame", [dict, pd.DataFrame, pl.DataFrame], ids=["dict", "pandas", "polars"]
)
def test_a_summary_of_any_frame_library(frame):
    found = tu.from_opendp(frame(SUMMARY), signed=True)
    assert {k: (type(n), float(n.variance)) for k, n in found.items()} == {
        k: (type(n), float(n.variance)) for k, n in NOISES.items()
    }


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"threshold": [27, None, None, None]}, "column len: groups with len below 27 are dropped"),
        ({"distribution": ["GumbelMin", *["Float Laplace"] * 3]}, "column len.*GumbelMin.*selects"),
        (
            {
                "column": ["len", "x", "x", "z"],
                "aggregate": ["Frame Length", "Sum", "Length", "Sum"],
            },
            "column x: it is computed from several noisy numbers: Sum and Length",
        ),
        ({"scale": [4.0, None, 1.0, 1.0]}, "the scale of x must be a number"),
    ],
    ids=["threshold", "quantile", "mean", "no scale"],
)
@pytest.mark.parametrize("frame", [dict, pl.DataFrame], ids=["dict", "polars"])
def test_a_summary_that_would_mislead_is_refused(frame, change, reason):
    with pytest.raises(tu.TrueupError, match=f"(?s){reason}.*\nHint: "):
        tu.from_opendp(frame(SUMMARY | change), signed=True)


GAUSSIAN_COUNT = {
    "column": ["len"],
    "aggregate": ["Frame Length"],
    "distribution": ["Integer Gaussian"],
    "scale": [3.0],
}


def test_a_count_that_may_stop_at_zero_is_refused_under_gaussian_noise():
    for domain in (None, (0, None), (29, None)):
        with pytest.raises(tu.TrueupError, match=r"(?s)stop at 0.*\nHint: .*signed=True"):
            tu.from_opendp(GAUSSIAN_COUNT, domain=domain)
    expected = {"len": tu.DiscreteGaussian(3)}
    assert tu.from_opendp(GAUSSIAN_COUNT, signed=True) == expected
    assert tu.from_opendp(GAUSSIAN_COUNT, domain=(30, None)) == expected


def test_what_a_clamp_costs_under_each_noise():
    """The mean of the estimate of n = 2 from max(0, 2 + Z), by exact sums over the law of Z."""
    k = np.arange(-400, 401)
    for noise, off in ((tu.DiscreteLaplace(3), False), (tu.DiscreteGaussian(3), True)):
        domain = None if off else (0, None)
        est = tu.unbiased("n", noise, domain)
        mean = float(np.dot(noise.pmf(k), est(np.maximum(0, 2 + k))))
        assert (abs(mean - 2) > 0.4) == off
        assert off or abs(mean - 2) < 1e-9


def test_real_summaries():
    """What OpenDP's own summaries say, in the environment that has its Polars."""
    found = run("summaries.py")
    assert found["counts and sums"] == {
        "len": ["DiscreteLaplace", 2],
        "x": ["DiscreteLaplace", 20],
        "y": ["Laplace", 2],
    }
    assert found["zCDP"] == {"len": ["DiscreteGaussian", 2], "y": ["Gaussian", 2]}
    assert "several noisy numbers: Sum and Length" in found["mean"]
    assert "it selects a value" in found["median"]
    assert "are dropped" in found["private keys"]


TWO = {
    "column": ["len", "income"],
    "aggregate": ["Frame Length", "Sum"],
    "distribution": ["Integer Gaussian", "Float Gaussian"],
    "scale": [2.0, 5.0],
}


def test_each_column_of_a_summary_may_have_its_domain():
    noises = {"len": tu.DiscreteGaussian(2), "income": tu.Gaussian(5)}
    assert tu.from_opendp(TWO, domain={"len": (30, None)}) == noises
    with pytest.raises(tu.TrueupError, match="within reach"):
        tu.from_opendp(TWO, domain={"len": (3, None)})
    with pytest.raises(tu.TrueupError, match="'n', which is no column"):
        tu.from_opendp(TWO, domain={"n": (30, None)})


def test_the_hint_for_a_sum_is_not_about_lengths():
    row = {**TWO, "distribution": ["Integer Gaussian", "Integer Gaussian"]}
    with pytest.raises(tu.TrueupError, match="column income") as refusal:
        tu.from_opendp(row, domain={"len": (30, None)})
    assert "dp.len" not in str(refusal.value)
    with pytest.raises(tu.TrueupError, match=r"dp\.len\(signed=True\)"):
        tu.from_opendp(TWO)


def test_the_hint_for_clamped_gaussian_noise_is_true():
    atom = {"__function__": "atom_domain", "__kwargs__": {"T": "u32"}}
    count = {
        "__function__": "make_gaussian",
        "__kwargs__": {"scale": 2.0, "k": None, "input_domain": atom},
    }
    with pytest.raises(tu.TrueupError, match=r"10 standard deviations \(20\) inside"):
        tu.from_opendp(count)
    assert tu.from_opendp(count, domain=(20, 2**31)) == tu.DiscreteGaussian(2)
