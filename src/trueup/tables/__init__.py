"""What tables in memory, in engines and in files share."""
