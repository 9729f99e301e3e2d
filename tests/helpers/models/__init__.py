"""Small models and codecs in every layout, and what ours are compared with."""
