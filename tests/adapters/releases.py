"""Draw releases from the real libraries and read their noise.

The tests run it in the libraries' own environment: ``python releases.py LIBRARY DRAWS FILE`` saves
the draws and prints the noises.
"""

import json
import sys
import warnings

import numpy as np

import trueup as tu

warnings.filterwarnings("ignore", category=FutureWarning)


def opendp(draws):
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib", "honest-but-curious")
    integers = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    unsigned = dp.vector_domain(dp.atom_domain(T="u32")), dp.l1_distance(T="u32")
    floats = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    far = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    pair = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    one = dp.atom_domain(T=int), dp.absolute_distance(T=int)

    m = dp.m.make_laplace(*integers, scale=0.7)
    yield "laplace", tu.from_opendp(m), m([2] * draws)
    m = dp.m.make_geometric(*one, scale=0.7, bounds=(0, 50))
    few = [m(2) for _ in range(draws // 4)]
    yield "geometric", tu.from_opendp(m, domain=(1, 50)), few
    m = unsigned >> dp.m.then_laplace(scale=1.0)
    yield "unsigned", tu.from_opendp(m, domain=(1, None)), m([2] * draws)
    m = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*pair, scale=0.5))
    yield "gaussian", tu.from_opendp(dp.serialize(m)), m([0] * draws)
    m = dp.m.make_laplace(*floats, scale=1.5)
    yield "float laplace", tu.from_opendp(m), m([0.0] * draws)
    m = dp.m.make_noise(*far, dp.zero_concentrated_divergence(), scale=1.5)
    yield "float gaussian", tu.from_opendp(m), m([0.0] * draws)

    count = dp.t.make_count(dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance())
    both = dp.c.make_composition([count >> dp.m.then_laplace(s) for s in (0.7, 1.2)])
    noises = tu.from_opendp(dp.serialize(both))
    pairs = np.array([both([0] * 2) for _ in range(draws // 4)])
    yield "composed first", noises[0], pairs[:, 0]
    yield "composed second", noises[1], pairs[:, 1]

    groups = draws // 2  # one release with many groups, each of two records
    keys = np.repeat(np.arange(groups), 2)
    context = dp.Context.compositor(
        data=pl.LazyFrame({"g": keys, "x": np.full(keys.size, 1.0)}),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=4.0),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["g"], max_length=9, max_groups=groups, invariant="keys")],
    )
    total = pl.col("x").fill_null(0.0).fill_nan(0.0).dp.sum((0.0, 1.0)).alias("total")
    query = context.query().group_by("g").agg(dp.len(signed=True), total)
    noises = tu.from_opendp(query)
    frame = query.release().collect()
    yield "polars length", noises["len"], frame["len"].to_numpy()
    yield "polars sum", noises["total"], frame["total"].to_numpy()


def pydp(draws):
    from pydp.algorithms.laplacian import Count
    from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism

    m = LaplaceMechanism(epsilon=2.0, sensitivity=1.0)
    yield "laplace", tu.from_pydp(m), [m.add_noise(0) for _ in range(draws)]
    floats = [m.add_noise(2.0) for _ in range(draws // 3)]
    yield "float laplace", tu.from_pydp(m, integers=False), floats
    m = GaussianMechanism.create_from_standard_deviation(0.6)
    yield "gaussian", tu.from_pydp(m), [m.add_noise(0) for _ in range(draws)]
    floats = [m.add_noise(0.0) for _ in range(draws // 3)]
    yield "float gaussian", tu.from_pydp(m, integers=False), floats
    m = Count(epsilon=2.0, l0_sensitivity=1, linf_sensitivity=1)
    yield "count", tu.from_pydp(m), [m.quick_result([1, 1]) for _ in range(draws)]


def pipelinedp(draws):
    from pipeline_dp import NaiveBudgetAccountant
    from pipeline_dp import dp_computations as dp
    from pipeline_dp.aggregate_params import MechanismType

    accountant = NaiveBudgetAccountant(total_epsilon=3, total_delta=1e-5)
    kinds = [MechanismType.LAPLACE, MechanismType.GAUSSIAN, MechanismType.LAPLACE]
    kinds = [accountant.request_budget(kind) for kind in kinds]
    accountant.compute_budgets()
    one = dp.Sensitivities(l0=1, linf=1)
    m = dp.create_additive_mechanism(kinds[0], one)
    yield "laplace", tu.from_pipelinedp(m), m.add_noise(np.full(draws, 2))
    m = dp.create_additive_mechanism(kinds[1], one)
    yield "gaussian", tu.from_pipelinedp(m), m.add_noise(np.zeros(draws))
    m = dp.create_mean_mechanism(0.5, kinds[0], one, kinds[2], dp.Sensitivities(l0=1, linf=0.5))
    noises = tu.from_pipelinedp(m)
    rows = np.array([m.compute_mean(2, 2 * 0.4) for _ in range(draws)])  # two records of 0.9
    yield "mean: count", noises["count"], rows[:, 0]
    yield "mean: sum", noises["normalized_sum"], (rows[:, 2] - 0.5) * np.maximum(1, rows[:, 0])
    yield "mean: mean", noises["count"], rows[:, 2]


def diffprivlib(draws):
    from diffprivlib import mechanisms as dp

    made = {
        "laplace": (dp.Laplace(epsilon=1, delta=0.2, sensitivity=1, random_state=1), 2.0),
        "geometric": (dp.Geometric(epsilon=1.5, sensitivity=1, random_state=2), 2),
        "gaussian": (dp.Gaussian(epsilon=1, delta=0.1, sensitivity=1, random_state=3), 0.0),
        "analytic": (dp.GaussianAnalytic(epsilon=2, delta=0.1, sensitivity=1, random_state=4), 0.0),
        "discrete": (dp.GaussianDiscrete(epsilon=3.5, delta=0.1, random_state=5), 0),
        "staircase": (dp.Staircase(epsilon=4, sensitivity=1, gamma=0.6, random_state=6), 0.0),
        "uniform": (dp.Uniform(delta=0.4, sensitivity=1, random_state=7), 0.0),
    }
    for name, (m, truth) in made.items():
        yield name, tu.from_diffprivlib(m), [m.randomise(truth) for _ in range(draws)]
    m = dp.LaplaceTruncated(epsilon=1, sensitivity=1, lower=1, upper=60, random_state=8)
    truncated = [m.randomise(2.0) for _ in range(draws)]
    yield "truncated", tu.from_diffprivlib(m, domain=(1, 60)), truncated


if __name__ == "__main__":
    library, draws, path = sys.argv[1:]
    rows = list(globals()[library](int(draws)))
    np.savez(path, **{name: np.asarray(values) for name, _, values in rows})
    print(json.dumps({name: repr(noise) for name, noise, _ in rows}))
