"""Tables in files: read, debiased by an engine, written whole or not at all."""
