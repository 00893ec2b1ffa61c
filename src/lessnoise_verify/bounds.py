"""Lower bounds on the noise of every mechanism, proved from multipliers and tests."""
