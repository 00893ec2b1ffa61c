"""Every figure and table of the R1SMG paper and ours beside them, made by one command into one report."""
