"""What the paper prints, and the setting it prints it for.

Section 5, "Numerical Results: Application to Mean Queries". Everything else is computed when it
runs, but for what ``newton_step.txt`` and ``misprints.txt`` tell, which the tests compute.
"""

from fractions import Fraction

# The setting: ε₁ = ε₂ = m = 0.5, n ≥ L = 1, an extension of degree k = 10.
EPSILON_COUNT = Fraction(1, 2)
EPSILON_MEAN = Fraction(1, 2)
MEAN = 0.5
LEAST_COUNT = 1
DEGREE = 10

# The numbers of its text.
AHEAD_FROM = 13  # M_U has the smaller sd from this n on
BOTH_ABOVE_ONE_UP_TO = 19  # both sds exceed 1 up to this n
PEAK_RATIO = 15  # "near" it
SETTLED_RATIO = 1.9  # "about" it,
SETTLED_FROM = 115  # from this n on
