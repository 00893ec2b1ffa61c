"""Delta of several releases together."""
