"""Products with packed weights: the linears, and the microkernels that they are made of."""
