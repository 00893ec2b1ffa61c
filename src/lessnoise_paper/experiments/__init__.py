"""The computations of all pages, each with its pictures."""

from lessnoise_paper.experiments import counts, demo, geometry, learning, mvg, ours, pca, ranks, remarks, theory

__all__ = ["counts", "demo", "geometry", "learning", "mvg", "ours", "pca", "ranks", "remarks", "theory"]
