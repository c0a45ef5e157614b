"""
A meta-analysis of 10,000 small means
=====================================

Ten thousand clinics each publish a private mean of a dozen outcomes, and somebody averages
them. Averaging removes noise; it does not remove bias.
"""

import numpy as np
from matplotlib import pyplot

import trueup as tu

rng = np.random.default_rng(6)
patients = rng.integers(8, 20, 10_000)
outcome = rng.beta(8, 2, 10_000)
truth = outcome.mean()

# %%
# Each clinic publishes a noisy sum and a noisy count.
noise = {"s": tu.Laplace(2), "n": tu.DiscreteLaplace(2)}
s = patients * outcome + noise["s"].sample(10_000, rng)
n = patients + noise["n"].sample(10_000, rng)

naive = np.clip(s / np.maximum(n, 1), 0, 1)  # what most libraries return
plug_in = naive.mean()

# %%
# Every clinic has at least eight patients.
mean = tu.unbiased("s/n", noise, {"n": (8, None)})
ours = mean(s=s, n=n)
debiased = ours.mean()
stderr = np.sqrt(mean.variance(s=s, n=n).sum()) / 10_000

print(f"truth     {truth:.4f}")
print(f"plug-in   {plug_in:.4f}")
print(f"debiased  {debiased:.4f} ± {stderr:.4f}")

# %%
# The error of the average as clinics are added: one curve settles on zero, the other does not.
count = np.arange(1, 10_001)
figure, axes = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
for cells, label, color, line in (
    (naive, "clipped plug-in", "#D55E00", "--"),
    (ours, "unbiased", "#0072B2", "-"),
):
    axes.plot(count, np.cumsum(cells - outcome) / count, line, color=color, label=label)
axes.axhline(0, color="#595959", linewidth=0.8)
axes.set(xscale="log", ylim=(-0.2, 0.2), xlabel="clinics averaged", ylabel="error of the average")
axes.legend(frameon=False)
