"""Formulas: safe reading and writing, rigorous enclosures."""
