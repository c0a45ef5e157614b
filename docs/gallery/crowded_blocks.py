"""
How crowded is the block of a person?
=====================================

A state's 20,000 blocks, in 16 counties, are published with discrete Gaussian noise, as the 2020
Census does. Half of the blocks have fewer than ten people, and one in six has nobody. The block of
the average *person* is larger than the average block: its size is Σn²/Σn, and squares of noisy
numbers are too large.
"""

import numpy as np
import polars as pl
from matplotlib import pyplot

import trueup as tu

rng = np.random.default_rng(20)
county = np.repeat(np.arange(1, 17), 1250)
people = rng.negative_binomial(0.5, 0.025, 20_000)
population = int(people.sum())  # of a state, published without noise
print(f"{np.median(people):.0f} people in the middle block, {np.mean(people == 0):.0%} empty")

# %%
# The noise follows from the budget, ρ = 0.02 of zero-concentrated privacy. Some counts come out
# negative. They are left as they are: what is clamped to 0 has lost its noise.
noise = tu.DiscreteGaussian(rho=0.02)
release = pl.DataFrame({"county": county, "n": people + noise.sample(20_000, rng)})
print(noise, release["n"].min())

# %%
# n² is a polynomial: under any noise it has an unbiased estimator, for empty blocks as for others,
# and no bound is needed.
square = tu.unbiased("n**2", noise)
print(square.explain())

# %%
# One row for each county, and the state.
counties = tu.total(release, by="county", squares=square)
state = tu.total(release, squares=square)
print(counties.head(4))

truth = np.sum(people.astype(float) ** 2) / population
plug_in = np.sum(release["n"].to_numpy().astype(float) ** 2) / population
debiased = state["squares"].item() / population
stderr = state["squares_stderr"].item() / population

print(f"truth     {truth:.2f}")
print(f"plug-in   {plug_in:.2f}")
print(f"debiased  {debiased:.2f} ± {stderr:.2f}")

# %%
# What each county's figure is off by. The plug-in adds the variance of the noise for every block,
# also for those where nobody lives.
right = np.sum(people.reshape(16, -1).astype(float) ** 2, axis=1)
naive = np.sum(release["n"].to_numpy().reshape(16, -1).astype(float) ** 2, axis=1)
living = people.reshape(16, -1).sum(axis=1)
figure, axes = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
x = np.arange(1, 17)
axes.axhline(0, color="#595959", linewidth=0.8)
axes.plot(x, (naive - right) / living, "s", color="#D55E00", label="squares of noisy counts")
axes.errorbar(
    x, (counties["squares"].to_numpy() - right) / living,
    2 * counties["squares_stderr"].to_numpy() / living,
    fmt="o", color="#0072B2", label="debiased, ± 2 se",
)  # fmt: skip
axes.set(xlabel="county", ylabel="error, in people", xticks=x, ylim=(-2, 3.4))
axes.legend(frameon=False, loc="upper left", ncols=2)
