"""Estimators with a certified small bias, for noise under which no unbiased one exists.

::

    estimator    nearly_unbiased(), NearlyUnbiased: an ordinary estimator with a bias bound
    frontier     frontier(): standard deviation against bias bound

    question     f, noise, domain, tolerance and prior of one statistic
    nodes        x = q + Z as nodes and weights
    curve        the estimator: one cubic spline, f itself far from the bounds
    spline       piecewise polynomials, as sympy and the kernels see them
    programme    the convex programme, and the smallest bias that can be reached
    certificate  the largest bias over the whole domain, whatever the solver did
    solve        all of these put together, or the unbiased estimator; the estimate of the variance
    products     several statistics: sums of products of exact and nearly unbiased factors
    answer       such products region by region, as kernels and SQL take them; their law
    words        all of it in words
"""
