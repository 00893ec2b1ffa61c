"""The record itself: one line a claim and setting, by the catalogue's names. New mechanisms add their lines here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lessnoise import mechanism as mechanisms
from lessnoise.changes import counts
from lessnoise.claims.record import Case
from lessnoise.mechanism import Request, find_mechanism

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.mechanism import Mechanism

_ANY_SIZE = "D=1, any M"
_MAP = {"shape": (89, 89), "l1_sensitivity": 1.0, "counts": True}
_PCA = "the size of the paper's PCA query"


def _case(name: str, setting: str, epsilon: float, remark: str = "", **asked: Any) -> Case:  # noqa: ANN401
    """A claim of a mechanism of the catalogue; ``asked`` are fields of a request that are not the usual ones."""
    request = Request(**{"epsilon": epsilon, "delta": 1e-5, "sensitivity": 1.0, "shape": 10, **asked})
    return Case.of(name, setting, lambda: find_mechanism(name).build(request), remark)


def _counted(neighbours: str = "add/remove") -> dict[str, Any]:
    """Counts of which one individual changes one by 1, or two where its row is replaced."""
    return {"sensitivity": None, "neighbours": neighbours, "changes": counts(neighbours=neighbours), "shape": 100}


def _r1smg(epsilon: float, delta: float, sensitivity: float, shape: int, setting: str, remark: str = "") -> Case:
    words = f"{setting}: M={shape}, D={sensitivity:.6g}"
    return _case("r1smg-published", words, epsilon, remark, delta=delta, sensitivity=sensitivity, shape=shape)


def _mvg(name: str, epsilon: float, delta: float, shape: tuple[int, int], setting: str) -> Case:
    words = f"{setting}: {shape[0]} x {shape[1]}, s2=1, gamma=1"
    return _case(name, words, epsilon, delta=delta, shape=shape, bound=1.0)


def _product(epsilon: float, dimension: int) -> Case:
    return _case("product-noise", f"k=1000, M={dimension}, D=1", epsilon, shape=dimension, k=1000.0)


def _generalized(setting: str, shape: int, remark: str = "") -> Case:
    """The catalogue's, for a sensitivity in the norm of its own p."""
    target: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "sensitivity": 1.0, "shape": shape, "p": 4.0}
    return Case.of("generalized-gaussian", setting, lambda: mechanisms.generalized_gaussian(**target), remark)


def _table(
    name: str,
    build: Callable[..., Mechanism],
    features: int,
    records: int,
    setting: str,
    remark: str = "",
    **target: float,
) -> Case:
    """A claim about the second moments of a table."""
    words = f"{setting}: d={features}, n={records}"
    return Case.of(name, words, lambda: build(**target, features=features, records=records), remark)


def _mod_sulq(epsilon: float, delta: float, features: int, records: int, setting: str) -> Case:
    return _table("mod-sulq", mechanisms.mod_sulq, features, records, setting, epsilon=epsilon, delta=delta)


def _wishart(epsilon: float, features: int, records: int, setting: str) -> Case:
    remark = "delta is 1 - exp(-epsilon/3)"
    return _table("wishart", mechanisms.wishart, features, records, setting, remark, epsilon=epsilon)


CASES: tuple[Case, ...] = (
    _r1smg(1e-5, 1e-7, 2.0**0.5, 7921, "the paper's count query"),
    _r1smg(1.6e-7, 1e-7, 1.0, 2400 * 2400, _PCA),
    _r1smg(0.71, 3.33e-7, 1.0, 26010, "one step of the paper's MNIST training", "epsilon is above 1/M"),
    _r1smg(1e-3, 1e-5, 1.0, 100, "a small vector"),
    _r1smg(1.0, 1e-5, 1.0, 10, "a short vector", "epsilon is above 1/M"),
    _case("classic-gaussian", _ANY_SIZE, 0.5),
    _case("classic-gaussian", _ANY_SIZE, 10.0, "the theorem is stated for epsilon < 1"),
    _case("analytic-gaussian", _ANY_SIZE, 1.0),
    _case("zhao-gaussian-1", _ANY_SIZE, 1.0),
    _case("zhao-gaussian-2", _ANY_SIZE, 1.0),
    _case("laplace", "D1=2, any M", 0.5, "pure privacy", l1_sensitivity=2.0, shape=7921),
    _product(1.0, 1000),
    _product(0.1, 1000),
    _mvg("mvg-published", 1.0, 1e-5, (4, 4), "a small matrix"),
    _mvg("mvg-published", 0.5, 1e-7, (89, 89), "the shape of the paper's count query"),
    _mvg("mvg-code", 1.0, 1e-5, (4, 4), "a small matrix"),
    _mvg("mvg-code", 0.5, 1e-7, (89, 89), "the shape of the paper's count query"),
    _case("mgm", "89 x 89, D=1", 0.5, "equal to the analytic Gaussian", delta=1e-7, shape=(89, 89)),
    _case("correlated-gaussian", "1000 statistics in [0, 1]", 1.0, shape=1000, entry_bound=1.0),
    _case("discrete-gaussian", _ANY_SIZE, 1.0, integer=True),
    _case("geometric", "counts, one row replaced, any M", 0.5, "pure privacy", **_counted("replace")),
    _case("least-count-noise", "counts, one row, any M", 1.0, "the least of any integer noise", **_counted()),
    _generalized("p=4, one number, D=1", 1),
    _generalized("p=4, M=10, l4 sensitivity 1", 10, "bounded, not exact"),
    _case("hb", "89 x 89 counts", 0.5, "pure privacy", **_MAP),
    _case("hb-gaussian", "89 x 89 counts", 0.5, "ours", **_MAP, delta=1e-7),
    _case("dawa", "89 x 89 counts, safe stage 1", 0.5, "pure privacy", **_MAP),
    _case("dawa-dpcomp", "89 x 89 counts, published stage 1", 0.75, "single cells have no noise", **_MAP),
    Case.of(
        "dawa-doubled",
        "4 counts, twice the published noise",
        lambda: mechanisms.dawa(epsilon=1.5, shape=4, ratio=2 / 3, noise="doubled"),
        "single cells have no noise",
    ),
    _mod_sulq(1.0, 0.01, 10, 1000, "a small table"),
    _mod_sulq(1.0, 1e-7, 2400, 24016, _PCA),
    _wishart(1.0, 10, 1000, "a small table"),
    _wishart(0.2, 2400, 24016, _PCA),
)
