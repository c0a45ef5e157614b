"""Formulas: read safely, and written down again.

::

    grammar     parse: text to sympy        admission   admit: the user's sympy
    text        text: sympy to text         limits      how large a formula may be

    tokens, nodes, arithmetic, conditions, needs, refusal       parts of the grammar
"""
