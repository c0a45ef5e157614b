"""Evaluation: a formula lowered once, and the targets that run it."""
