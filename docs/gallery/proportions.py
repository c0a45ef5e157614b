"""
Proportions of small areas
==========================

An agency publishes, for each of 4,000 tracts, the number of unemployed and of employed persons with
integer noise. What is the average unemployment rate of a tract?
"""

import numpy as np

import trueup as tu

rng = np.random.default_rng(1)
workers = rng.integers(4, 40, 4000)
unemployed = rng.binomial(workers, 0.12)
employed = np.maximum(workers - unemployed, 1)
truth = np.mean(unemployed / (unemployed + employed))

# %%
# The release: both counts carry discrete Laplace noise (ε = 0.5 each). This is a simulation; a real
# release draws its noise from a secure sampler.
noise = tu.DiscreteLaplace(2)
u = unemployed + noise.sample(4000, rng)
e = employed + noise.sample(4000, rng)

# %%
# The plug-in divides by a noisy total that may be zero or negative. Nobody publishes infinities, so
# analysts drop such tracts, or replace the total by one.
total = np.maximum(u + e, 1)
plug_in = np.mean(u / total)

# %%
# The unbiased estimator needs to know only what is certain: counts are not negative, and a
# tract has at least one employed person.
share = tu.unbiased("u/(u + e)", {"u": noise, "e": noise}, {"u": (0, None), "e": (1, None)})
cells = share(u=u, e=e)
debiased = cells.mean()
stderr = np.sqrt(share.variance(u=u, e=e).sum()) / len(cells)

print(f"truth     {truth:.4f}")
print(f"plug-in   {plug_in:.4f}")
print(f"debiased  {debiased:.4f} ± {stderr:.4f}")

# %%
# What one tract adds if three persons are published as unemployed:
tu.plots.estimate(share, over="e", at={"u": 3})
