"""The limit: how good an unbiased ε-DP release can be, by linear programming.

::

    optimal             OptimalRelease: the unbiased release of f(q) of least variance
    few_records         OptimalMean: the same for the mean of few 0/1 records
    graph               the programme on any graph of databases
    column_generation   the programme on a line, solved label by label
    rays                the cheapest new label: the cone of private columns
    interior            an interior-point method for a running start
    bound               a bound proved for all releases
    table               exact probabilities, exact draws
"""
