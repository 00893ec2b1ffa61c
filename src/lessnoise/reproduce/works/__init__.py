"""The computations of the report, each with its pictures."""
