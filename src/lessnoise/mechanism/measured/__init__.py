"""Noise on the answers to a strategy, and the table that fits them: the least error for a workload."""
