"""The computations of all pages, each with its pictures."""

from lessnoise_paper.experiments import attacks, claims, counts, demo, frontier, geometry, learning, pca, theory

__all__ = ["attacks", "claims", "counts", "demo", "frontier", "geometry", "learning", "pca", "theory"]
