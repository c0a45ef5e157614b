"""
A regression slope from noisy moments
=====================================

In each of 3,000 schools the covariance of hours studied and test score, and the variance of hours,
are published with Laplace noise. The slope of a regression through a school is their quotient.
"""

import matplotlib.pyplot as plt
import numpy as np

import trueup as tu

rng = np.random.default_rng(2)
variance = rng.uniform(4.0, 12.0, 3000)
slope = rng.normal(1.5, 0.4, 3000)
truth = slope.mean()

# %%
# Noise on the denominator does not average out: by Jensen's inequality the plug-in is too large.
noise = tu.Laplace(1)
v = variance + noise.sample(3000, rng)
c = slope * variance + noise.sample(3000, rng)
plug_in = np.mean(c / v)

# %%
# A variance of at least 4 is known from the design of the study. The quotient is linear in the
# covariance, so only the denominator needs the inverse operator of the noise.
est = tu.unbiased("c/v", {"c": noise, "v": noise}, {"v": (4, None)})
print(est.explain())

# %%
debiased = est(c=c, v=v).mean()
stderr = np.sqrt(est.variance(c=c, v=v).sum()) / 3000

print(f"truth     {truth:.4f}")
print(f"plug-in   {plug_in:.4f}")
print(f"debiased  {debiased:.4f} ± {stderr:.4f}")

# %%
# The exact standard deviation in one school, and what the delta method would report for it:
v, c = np.linspace(4, 12, 30), np.full(30, 12.0)
_, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
axes.plot(v, est.sd(v=v, c=c), label="unbiased estimate, exact")
axes.plot(v, np.sqrt(float(noise.variance)) * np.hypot(1 / v, c / v**2), "--", label="delta method")
axes.set(xlabel="true v", ylabel="standard deviation")
axes.legend(frameon=False)
