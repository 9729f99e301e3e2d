"""What formats are made of: lines, time stamps, and names of speakers."""
