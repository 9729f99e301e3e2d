"""Rules for what is written with digits or Roman numerals and read as words."""
