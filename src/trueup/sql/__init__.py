"""Estimators as SQL: one expression for a SELECT, in the dialect of the engine.

The expression is CASE WHEN <every input within its limits> THEN <the plain formula> END. The rules,
in every dialect:

- the limits are in the first condition: ±1e100 for most inputs, less where a step on the way would
  leave the range of doubles, NULL beyond. PostgreSQL and Redshift stop at underflow too: there a
  statistic may have to be zero or at least 1e-15 in size. Exponents have a limit of their own;
- the result is a finite double or NULL. It is NULL where an input is NULL, NaN or beyond its
  limits, where an integer statistic is not whole, where a noise scale is below 1e-15 or too large,
  where a standard error is the root of a negative number, and where a step is undefined;
- nothing stops a query;
- columns of any numeric type are read as doubles, so integers neither divide as integers nor
  overflow: every operation has an operand that is a double. Identifiers are quoted: a name is one
  identifier whatever it holds.

SQLite needs its mathematical functions, which nearly every build has since 3.35 (only products,
quotients and tables do without), MySQL 8.0.17, PostgreSQL 12 and, for GREATEST, SQL Server 2022.
SQLite and MySQL read text as numbers, "abc" as 0: columns of text are for the caller to refuse.
"""
