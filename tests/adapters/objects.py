"""Print what the adapters make of real mechanisms: a noise, or the reason of a refusal."""

import json

import trueup as tu


def pydp():
    from pydp.algorithms import laplacian
    from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism

    yield "laplace", tu.from_pydp, LaplaceMechanism(epsilon=0.5, sensitivity=3.0)
    yield "gaussian", tu.from_pydp, GaussianMechanism(epsilon=1.0, delta=1e-5, sensitivity=2.0)
    count = laplacian.Count(epsilon=0.5, l0_sensitivity=2, linf_sensitivity=3)
    yield "count", tu.from_pydp, count
    bounds = {"epsilon": 1.0, "lower_bound": 0, "upper_bound": 5}
    for name in ("BoundedSum", "BoundedMean", "BoundedVariance", "BoundedStandardDeviation"):
        yield name, tu.from_pydp, getattr(laplacian, name)(**bounds)
    yield "Max", tu.from_pydp, laplacian.Max(**bounds)


def pipelinedp():
    from pipeline_dp import NaiveBudgetAccountant
    from pipeline_dp import dp_computations as dp
    from pipeline_dp.aggregate_params import MechanismType, PartitionSelectionStrategy

    accountant = NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-5)
    laplace, gaussian = (
        accountant.request_budget(kind) for kind in (MechanismType.LAPLACE, MechanismType.GAUSSIAN)
    )
    accountant.compute_budgets()
    two = dp.Sensitivities(l0=2, linf=3)
    yield "laplace", tu.from_pipelinedp, dp.create_additive_mechanism(laplace, two)
    yield "gaussian", tu.from_pipelinedp, dp.create_additive_mechanism(gaussian, two)
    mean = dp.create_mean_mechanism(0.5, laplace, two, gaussian, two)
    yield "mean", tu.from_pipelinedp, mean
    threshold = dp.ThresholdingMechanism(
        1.0, 1e-5, PartitionSelectionStrategy.LAPLACE_THRESHOLDING, 1, None
    )
    yield "threshold", tu.from_pipelinedp, threshold
    deviation = dp.GaussianMechanism.create_from_std_deviation(1.5, 2.0)
    yield "from a deviation", tu.from_pipelinedp, deviation


def diffprivlib():
    from diffprivlib import mechanisms as dp

    budget = {"epsilon": 0.5, "sensitivity": 1}
    yield "laplace", tu.from_diffprivlib, dp.Laplace(**budget)
    yield "geometric", tu.from_diffprivlib, dp.Geometric(**budget)
    yield "insensitive", tu.from_diffprivlib, dp.Laplace(epsilon=1, sensitivity=0)
    bounds = {"lower": 0, "upper": 10}
    for name in ("LaplaceTruncated", "GeometricTruncated", "LaplaceFolded", "GeometricFolded"):
        yield name, tu.from_diffprivlib, getattr(dp, name)(**budget, **bounds)
    yield "Snapping", tu.from_diffprivlib, dp.Snapping(**budget, **bounds)
    yield "LaplaceBoundedDomain", tu.from_diffprivlib, dp.LaplaceBoundedDomain(**budget, **bounds)
    yield "LaplaceBoundedNoise", tu.from_diffprivlib, dp.LaplaceBoundedNoise(**budget, delta=0.1)
    yield "Binary", tu.from_diffprivlib, dp.Binary(epsilon=1, value0="a", value1="b")


def answer(adapter, mechanism):
    try:
        return repr(adapter(mechanism))
    except tu.TrueupError as error:
        return str(error)


if __name__ == "__main__":
    found = {
        library.__name__: {name: answer(adapter, made) for name, adapter, made in library()}
        for library in (pydp, pipelinedp, diffprivlib)
    }
    print(json.dumps(found))
