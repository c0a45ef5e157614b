"""The limit: how good an unbiased ε-DP release can be, by linear programming."""
