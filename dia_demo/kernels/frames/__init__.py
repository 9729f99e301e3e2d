"""A frame of Dia2 in two calls of the pool: the temporal step, and all stages of the depth."""
