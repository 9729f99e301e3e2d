"""What all rows have in common, of whatever family."""
