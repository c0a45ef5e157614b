"""The limit: how good an unbiased ε-DP release can be, by linear programming.

::

    optimal      OptimalRelease: the unbiased release of f(q) of least variance
    few_records  OptimalMean: the same for the mean of few 0/1 records
    programme    the programme on a grid of labels, its bound for all labels, exact tables
    table        exact probabilities, exact draws
"""
