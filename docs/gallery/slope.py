"""
A regression slope from noisy moments
=====================================

In each of 3,000 schools the covariance of hours studied and test score, and the variance of hours,
are published with Laplace noise. The slope of a regression through a school is their quotient.
"""

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
tu.plots.risk(est, over="v", at={"c": 12.0}, q=np.linspace(4, 12, 30))
