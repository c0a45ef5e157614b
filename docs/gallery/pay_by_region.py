"""
Pay per head, with small and empty cells
========================================

An agency publishes payroll and employment of 120,000 cells, towns by industries in 12 regions. Half
of the cells have fewer than ten employees and one in six has none, as in real tables. Payroll
carries Laplace noise, employment discrete Laplace noise. What does a cell pay per head, on average?
"""

import warnings

import numpy as np
import polars as pl
from matplotlib import pyplot

import trueup as tu

rng = np.random.default_rng(7)
region = np.repeat(np.arange(1, 13), 10_000)
emp = rng.negative_binomial(0.5, 0.025, 120_000)
pay = emp * rng.lognormal(3.6, 0.3, 120_000) * (1 + region / 40)  # thousand a year
print(
    f"{np.median(emp):.0f} employees in the middle cell, {np.mean(emp == 0):.0%} of the cells empty"
)

# %%
# The release, as the agency states it: ε is 1 for payrolls, to which one person adds at most 60,
# and ½ for employment. This is a simulation; a real release draws its noise from a secure sampler.
noise = {"s": tu.Laplace(epsilon=1, sensitivity=60), "n": tu.DiscreteLaplace(epsilon=0.5)}
release = pl.DataFrame({
    "region": region,
    "payroll": pay + noise["s"].sample(120_000, rng),
    "employment": emp + noise["n"].sample(120_000, rng),
})  # fmt: skip
print(release.head(4))

# %%
# It is tempting to say that every cell has an employee. The table contradicts that:
columns = {"s": "payroll", "n": "employment"}
careless = tu.unbiased("s/n", noise, "n >= 1")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    tu.debias(release, columns, pay=careless)
print(caught[-1].message)

# %%
# So empty cells get a value: 0, which counts the others only when cells are added up. One row for
# each region, with its standard error.
each = tu.unbiased("s/n", noise, "n >= 0", empty=0)
regions = tu.total(release, by="region", columns=columns, average=True, pay=each)
print(regions.head(4))

# %%
# The nation beside what analysts do instead: divide by the noisy count, or by 1 where that is less.
nation = tu.total(release, columns=columns, average=True, pay=each)
debiased, stderr = nation["pay"].item(), nation["pay_stderr"].item()
cells = np.where(emp > 0, pay / np.maximum(emp, 1), 0)
clipped = release["payroll"].to_numpy() / np.maximum(release["employment"].to_numpy(), 1)
truth, plug_in = cells.mean(), clipped.mean()

print(f"truth     {truth:.2f}")
print(f"plug-in   {plug_in:.2f}")
print(f"debiased  {debiased:.2f} ± {stderr:.2f}")

# %%
# Region by region the clipped quotient is off in the same direction; the debiased one lies around
# the truth, as far as its standard error says.
figure, axes = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
x = np.arange(1, 13)
axes.plot(x, cells.reshape(12, -1).mean(axis=1), "_", color="black", ms=18, label="truth")
axes.plot(x, clipped.reshape(12, -1).mean(axis=1), "s", color="#D55E00", label="x/max(y, 1)")
axes.errorbar(
    x, regions["pay"], 2 * regions["pay_stderr"], fmt="o", color="#0072B2", label="debiased, ± 2 se"
)
axes.set(xlabel="region", ylabel="pay per head, average of the cells", xticks=x)
axes.legend(frameon=False)
