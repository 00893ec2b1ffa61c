"""The computations of the report, each with its pictures."""

from lessnoise_paper.experiments import attacks, claims, counts, curves, frontier, geometry, learning, pca, theory

__all__ = ["attacks", "claims", "counts", "curves", "frontier", "geometry", "learning", "pca", "theory"]
