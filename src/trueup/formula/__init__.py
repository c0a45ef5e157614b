"""Formulas: read safely, written down again, bounded rigorously.

::

    grammar     parse: text to sympy        admission   admit: the user's sympy
    text        text: sympy to text         enclosure   enclose, sign, zeros on boxes
    limits      how large a formula may be

    tokens, nodes, arithmetic, conditions, settling, words, needs, refusal      parts of the grammar
    intervals, waves, entropy, ranges, signs                             parts of enclosure
    factors, slopes, domains, cells, search, roots                       the zeros
"""
