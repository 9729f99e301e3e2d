"""From the codec's samples to those of a take: its ends, its tempo."""
