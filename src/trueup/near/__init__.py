"""Estimators with a certified small bias, for noise under which no unbiased one exists.

::

    nearly      nearly_unbiased(): what the user asks for, checked, and who answers it
    estimator   NearlyUnbiased: an ordinary estimator with a bias bound
    frontier    frontier(): standard deviation against bias bound

    question    f, noise, domain, tolerance and prior of one statistic
    series      (1/M)(D) f cut off: where it is accurate, and a bound on what is cut off
    zone        free values near a bound: a table on the integers, a cubic spline on the line
    curve       the estimator: zones joined to the series
    smoothing   x = q + Z as nodes and weights
    programme   the convex programme, and the smallest bias that can be reached
    certificate the largest bias over the whole domain, whatever the solver did
    construct   all of these put together
    spread      the estimator of the variance, by the same programme
    polynomial  the best polynomial where only moments are known
    products    several statistics: sums of products of exact and nearly unbiased factors
"""
