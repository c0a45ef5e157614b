"""The inverse of a noise applied to a formula."""
