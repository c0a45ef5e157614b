"""
A check by simulation
=====================

An unbiased estimator hits the truth on average, and its intervals cover it as often as they say.
Here 4,000 releases of a count of 9 are simulated, and of some other counts, and 1/n is estimated.
"""

import matplotlib.pyplot as plt
import numpy as np

import trueup as tu

rng, draws = np.random.default_rng(1), 4000
noise = tu.DiscreteLaplace(2)
est = tu.unbiased("1/n", noise, domain=(1, None))

# %%
# The plug-in leaves releases out that are 0, and is far off all the same.
published = 9 + noise.sample(draws, rng)
truth = 1 / 9
plug_in = np.mean(1 / published[published != 0])
debiased = est(published).mean()
stderr = est(published).std() / np.sqrt(draws)

print(f"truth     {truth:.4f}")
print(f"plug-in   {plug_in:.4f}")
print(f"debiased  {debiased:.4f} ± {stderr:.4f}")

# %%
# Average errors with two standard errors, and the coverage of 95 % intervals, count by count:
counts = np.arange(2, 20)
values = counts[:, None] + noise.sample((len(counts), draws), rng)
low, high = est.interval(values)
covered = ((low <= 1 / counts[:, None]) & (1 / counts[:, None] <= high)).mean(axis=1)
off = est(values) - 1 / counts[:, None]
_, (error, cover) = plt.subplots(2, 1, figsize=(6.4, 6.4), sharex=True, layout="constrained")
error.errorbar(counts, off.mean(axis=1), 2 * off.std(axis=1) / np.sqrt(draws), fmt="o", capsize=2)
error.axhline(0, color="grey", linewidth=0.8)
error.set_ylabel("average error")
cover.plot(counts, covered, "o")
cover.axhline(0.95, color="grey", linewidth=0.8)
cover.set(xlabel="true n", ylabel="coverage of 95 % intervals")
