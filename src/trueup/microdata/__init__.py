"""From microdata to a published table: private, unbiased and documented.

::

    release                     release(): all of the below, in order
    design, measures            the table before any data · what it says of every group
    public_keys                 the groups, which must be public
    noisy_totals, expected      noisy totals and formulas in them · errors to expect
    selection, engines          which rows are read · DuckDB, Spark
    totals                      exact totals of the groups, from Arrow batches
    ledger                      how much of the budget is spent
    private_table, writing      the table · as a file, with its sidecar
    privacy_notice              what is said of its privacy, in words and in TOML
    report_text, page           the report · with pictures
"""
