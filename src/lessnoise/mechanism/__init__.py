"""Mechanisms: frozen descriptions, and the functions over them (curves, calibration, losses, sampling)."""
