"""
Log growth rates
================

Employment of 5,000 small industries is published in two years. The growth rate is a difference of
logarithms, and the logarithm of a noisy small count is too low on average, or not defined at all.
"""

import numpy as np

import trueup as tu

rng = np.random.default_rng(5)
before = rng.integers(3, 25, 5000)
after = np.maximum(np.rint(before * rng.lognormal(0.9, 0.3, 5000)), 1).astype(int)
truth = np.mean(np.log(after / before))

# %%
# The second year has less noise than the first, so the two errors of the plug-in do not cancel.
noisy = {"a": tu.DiscreteLaplace(3), "b": tu.DiscreteLaplace(1)}
a = before + noisy["a"].sample(5000, rng)
b = after + noisy["b"].sample(5000, rng)

plug_in = np.mean(np.log(np.maximum(b, 1)) - np.log(np.maximum(a, 1)))

# %%
growth = tu.unbiased("log(b) - log(a)", noisy, {"a": (1, None), "b": (1, None)})
debiased = growth(a=a, b=b).mean()
stderr = np.sqrt(growth.variance(a=a, b=b).sum()) / 5000

print(f"{np.sum((a < 1) | (b < 1))} cells have no logarithm; the plug-in takes log 1 there")
print(f"truth     {truth:.4f}")
print(f"plug-in   {plug_in:.4f}")
print(f"debiased  {debiased:.4f} ± {stderr:.4f}")

# %%
# What one cell gets: below a published count of ten or so the logarithm has to be corrected.
tu.plots.estimate(growth, over="a", at={"b": 20})
