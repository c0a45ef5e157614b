"""Estimators with a certified small bias, for noise under which no unbiased one exists.

::

    estimator    nearly_unbiased(), NearlyUnbiased: an ordinary estimator with a bias bound
    frontier     frontier(): standard deviation against bias bound

    question     f, noise, domain, tolerance and prior of one statistic; kinks rounded off
    series       (1/M)(D) f cut off: where it is accurate, and a bound on what is cut off
    curve        the estimator: zones of free values near a bound, joined to the series
    spline       piecewise polynomials on even pieces
    smoothing    x = q + Z as nodes and weights
    programme    the convex programme, and the smallest bias that can be reached
    plan         where the zones lie, where the series takes over
    certificate  the largest bias over the whole domain, whatever the solver did
    construct    all of these put together
    spread       the estimator of the variance, by the same programme; its profile over the domain
    polynomial   the best polynomial where only moments are known
    products     several statistics: sums of products of exact and nearly unbiased factors
    component    such products region by region, as kernels and SQL take them; their law
    method       who answers: programme, products or polynomial; in words
"""
