"""
Counting k-stars under local privacy
====================================

Every person in a network reports the number of friends with noise of their own. A node of degree d
is the centre of d(d−1)/2 two-stars and of d(d−1)(d−2)/6 three-stars. How many are there?
"""

import numpy as np

import trueup as tu

rng = np.random.default_rng(3)
degree = rng.poisson(6, 20_000)
noise = tu.DiscreteLaplace(3)
reported = degree + noise.sample(len(degree), rng)

# %%
# A polynomial of degree k needs only the first k moments of the noise (Section 7 of the paper), so
# this works for any noise at all; here is the formula for three-stars.
three = tu.unbiased("d*(d - 1)*(d - 2)/6", noise)
three.formula

# %%
truth = float(np.sum(degree * (degree - 1) * (degree - 2) / 6))
plug_in = float(np.sum(reported * (reported - 1) * (reported - 2) / 6))
debiased = three(reported).sum()
stderr = np.sqrt(three.variance(reported).sum())

print(f"truth     {truth:>12,.0f}")
print(f"plug-in   {plug_in:>12,.0f}")
print(f"debiased  {debiased:>12,.0f} ± {stderr:,.0f}")

# %%
# What one person adds: the noise makes the plug-in too large for most degrees.
tu.plots.estimate(three, x=np.arange(-5, 21))
