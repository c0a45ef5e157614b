"""Formulas as data: read safely, written down again, and what is known of them without a noise.

::

    source              what may be given as f: text, sympy, polynomials, tables, functions
    grammar             parse: text to sympy by Python's syntax tree
    build               expressions part by part: values, conditions, and what makes one unfit
    text                text: sympy to text

    operations          every elementary operation once, for every target
    linear              conditions between statistics
    opaque              functions known by values, as sympy sees them
    given_derivatives   do those that came with a function fit it?

    substitution        values in place of symbols · what a formula divides by
"""
