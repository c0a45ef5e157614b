"""Every dataframe library: noisy columns in, debiased columns beside them."""
