"""Print what the adapter makes of real measurements on Polars frames."""

import json

import opendp.prelude as dp
import polars as pl

import trueup as tu

dp.enable_features("contrib")
DATA = pl.LazyFrame(schema={"g": pl.String, "x": pl.Int64, "y": pl.Float64})
LENGTH = dp.len(signed=True)
X, Y = pl.col("x").fill_null(0), pl.col("y").fill_null(0.0).fill_nan(0.0)
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
PLANS = {
    "counts and sums": (PURE, DATA.select(LENGTH, X.dp.sum((0, 10)), Y.dp.sum((0.0, 1.0)))),
    "zCDP": (ZCDP, DATA.select(LENGTH, Y.dp.sum((0.0, 1.0)))),
    "mean": (PURE, DATA.select(X.dp.mean((0, 10)))),
    "median": (PURE, DATA.select(X.dp.median(list(range(0, 100, 10))))),
    "private keys": (dp.approximate(PURE), DATA.group_by("g").agg(LENGTH)),
}


def measurement(measure, plan):
    """Return a plan's measurement, with a threshold where its keys are private."""
    columns = [("g", str, {}), ("x", "i64", {}), ("y", "f64", {"nan": True})]
    series = [dp.series_domain(name, dp.atom_domain(T=t, **more)) for name, t, more in columns]
    domain = dp.with_margin(dp.lazyframe_domain(series), dp.polars.Margin(by=[], max_length=1000))
    keys = dp.polars.Margin(by=["g"], max_length=1000, max_groups=10)
    threshold = 27 if str(measure).startswith("Approximate") else None
    return dp.m.make_private_lazyframe(
        dp.with_margin(domain, keys),
        dp.symmetric_distance(),
        measure,
        plan,
        global_scale=2.0,
        threshold=threshold,
    )


def answer(measure, plan):
    """Return {column: [family, scale]}, or the reason of a refusal."""
    made = measurement(measure, plan)
    try:
        noises = tu.from_opendp(made, signed=True)
        assert noises == tu.from_opendp(dp.summarize_polars_measurement(made), signed=True)
    except tu.TrueupError as error:
        return str(error)
    return {name: (type(noise).__name__, round(noise.scale, 6)) for name, noise in noises.items()}


if __name__ == "__main__":
    print(json.dumps({name: answer(*plan) for name, plan in PLANS.items()}))
