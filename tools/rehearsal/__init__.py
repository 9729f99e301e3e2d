"""The parts of tools.rehearse_space: a copy of this machine, limits, a proxy, a visitor."""
