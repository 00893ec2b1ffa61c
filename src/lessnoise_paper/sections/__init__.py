"""What pages say: every number comes from the stored results; the paper's own are constants with their place."""

from collections.abc import Callable, Mapping

from lessnoise_paper.model import Numbers, Settings
from lessnoise_paper.sections import counts, demo, learning, mvg, ours, pca, remarks, theory

Introduce = Callable[[Settings, Mapping[str, Numbers | None]], tuple[str, str]]

__all__ = ["Introduce", "counts", "demo", "learning", "mvg", "ours", "pca", "remarks", "theory"]
