"""What the report says: every number comes from the stored results; the paper's own are constants with their place."""

from lessnoise_paper.sections import counts, learning, ours, pca, theory

__all__ = ["counts", "learning", "ours", "pca", "theory"]
