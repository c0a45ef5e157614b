"""From microdata to a published table: private, unbiased and documented."""
