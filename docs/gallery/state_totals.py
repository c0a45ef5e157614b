"""
State totals from small cells
=============================

Payrolls are so unequal that no bound on one record is acceptable. A per-record mechanism publishes
the square root of each cell's payroll with Laplace noise: small firms are well protected, large
ones less, and nothing is clipped. The state's total is the sum of 3,000 cells.
"""

import matplotlib.pyplot as plt
import numpy as np

from trueup.mechanisms import PerRecordSum

rng = np.random.default_rng(4)
cells = [rng.lognormal(2.0, 1.2, rng.integers(1, 12)) for _ in range(3000)]
truth = float(sum(c.sum() for c in cells))

# %%
# One release per cell. ``rng`` makes this a simulation; without it the noise is drawn securely.
mechanism = PerRecordSum("root:2", scale=3)
releases = [mechanism.release(c, rng=rng) for c in cells]

# %%
# Squaring what was published adds the noise's variance, 2b² = 18, to every cell, and the state adds
# them all up. The unbiased totals can be summed freely.
plug_in = float(sum(r.published**2 for r in releases))
debiased = float(sum(r.total for r in releases))
stderr = float(np.sqrt(sum(r.stderr**2 for r in releases)))

print(f"truth     {truth:>10,.0f}")
print(f"plug-in   {plug_in:>10,.0f}")
print(f"debiased  {debiased:>10,.0f} ± {stderr:,.0f}")

# %%
# What it costs a record, and what the total of one cell is worth:
sizes, totals = np.geomspace(1, 1e6, 200), np.geomspace(1, 1e8, 40)
_, (loss, error) = plt.subplots(2, 1, figsize=(6.4, 6.4), layout="constrained")
loss.loglog(sizes, mechanism.policy(sizes))
loss.set(xlabel="record (thousand dollars)", ylabel="privacy loss ε")
error.loglog(totals, [mechanism.sd(t) / t for t in totals])
error.set(xlabel="true total (thousand dollars)", ylabel="standard deviation / total")
