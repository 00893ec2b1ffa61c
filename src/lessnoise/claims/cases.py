"""The record itself: one line a claim and setting. New mechanisms add their lines here."""

from __future__ import annotations

from lessnoise import mechanism as mechanisms
from lessnoise.claims.record import Case

_ROOT2 = 2.0**0.5


def _r1smg(epsilon: float, delta: float, sensitivity: float, shape: int, setting: str, remark: str = "") -> Case:
    return Case.of(
        "r1smg",
        f"{setting}: M={shape}, D={sensitivity:.6g}",
        lambda: mechanisms.r1smg(
            epsilon=epsilon, delta=delta, sensitivity=sensitivity, shape=shape, calibration="published"
        ),
        remark,
    )


def _classic(epsilon: float, remark: str = "") -> Case:
    return Case.of(
        "classic-gaussian",
        "D=1, any M",
        lambda: mechanisms.classic_gaussian(epsilon=epsilon, delta=1e-5, sensitivity=1.0, shape=10),
        remark,
    )


def _zhao(variant: int, epsilon: float) -> Case:
    return Case.of(
        f"zhao-gaussian-{variant}",
        "D=1, any M",
        lambda: mechanisms.zhao_gaussian(
            epsilon=epsilon, delta=1e-5, sensitivity=1.0, shape=10, variant=1 if variant == 1 else 2
        ),
    )


def _mvg(epsilon: float, delta: float, shape: tuple[int, int], bound: float, setting: str, remark: str = "") -> Case:
    return Case.of(
        "mvg",
        f"{setting}: {shape[0]} x {shape[1]}, s2=1, gamma={bound:g}",
        lambda: mechanisms.mvg(
            epsilon=epsilon, delta=delta, sensitivity=1.0, shape=shape, bound=bound, calibration="published"
        ),
        remark,
    )


def _product(epsilon: float, dimension: int) -> Case:
    return Case.of(
        "product-noise",
        f"k=1000, M={dimension}, D=1",
        lambda: mechanisms.product_noise(epsilon=epsilon, sensitivity=1.0, shape=dimension, k=1000.0),
    )


def _mod_sulq(epsilon: float, delta: float, features: int, records: int, setting: str) -> Case:
    return Case.of(
        "mod-sulq",
        f"{setting}: d={features}, n={records}",
        lambda: mechanisms.mod_sulq(epsilon=epsilon, delta=delta, features=features, records=records),
    )


def _wishart(epsilon: float, features: int, records: int, setting: str) -> Case:
    return Case.of(
        "wishart",
        f"{setting}: d={features}, n={records}",
        lambda: mechanisms.wishart(epsilon=epsilon, features=features, records=records),
        "delta is 1 - exp(-epsilon/3)",
    )


CASES: tuple[Case, ...] = (
    _r1smg(1e-5, 1e-7, _ROOT2, 7921, "the paper's count query"),
    _r1smg(1.6e-7, 1e-7, 1.0, 2400 * 2400, "the size of the paper's PCA query"),
    _r1smg(0.71, 3.33e-7, 1.0, 26010, "one step of the paper's MNIST training", "epsilon is above 1/M"),
    _r1smg(1e-3, 1e-5, 1.0, 100, "a small vector"),
    _r1smg(1.0, 1e-5, 1.0, 10, "a short vector", "epsilon is above 1/M"),
    _classic(0.5),
    _classic(10.0, "the theorem is stated for epsilon < 1"),
    Case.of(
        "analytic-gaussian",
        "D=1, any M",
        lambda: mechanisms.analytic_gaussian(epsilon=1.0, delta=1e-5, sensitivity=1.0, shape=10),
    ),
    _zhao(1, 1.0),
    _zhao(2, 1.0),
    Case.of(
        "laplace", "D1=2, any M", lambda: mechanisms.laplace(epsilon=0.5, sensitivity=2.0, shape=7921), "pure privacy"
    ),
    _product(1.0, 1000),
    _product(0.1, 1000),
    _mvg(1.0, 1e-5, (4, 4), 1.0, "a small matrix"),
    _mvg(0.5, 1e-7, (89, 89), 1.0, "the shape of the paper's count query"),
    Case.of(
        "mgm",
        "89 x 89, D=1",
        lambda: mechanisms.mgm(epsilon=0.5, delta=1e-7, sensitivity=1.0, shape=(89, 89)),
        "equal to the analytic Gaussian",
    ),
    Case.of(
        "correlated-gaussian",
        "1000 statistics in [0, 1]",
        lambda: mechanisms.correlated_gaussian(epsilon=1.0, delta=1e-5, shape=1000),
    ),
    Case.of(
        "discrete-gaussian",
        "D=1, any M",
        lambda: mechanisms.discrete_gaussian(epsilon=1.0, delta=1e-5, sensitivity=1, shape=10),
    ),
    Case.of(
        "generalized-gaussian",
        "p=4, one number, D=1",
        lambda: mechanisms.generalized_gaussian(epsilon=1.0, delta=1e-5, sensitivity=1.0, shape=1, p=4.0),
    ),
    Case.of(
        "generalized-gaussian",
        "p=4, M=10, l4 sensitivity 1",
        lambda: mechanisms.generalized_gaussian(epsilon=1.0, delta=1e-5, sensitivity=1.0, shape=10, p=4.0),
        "bounded, not exact",
    ),
    Case.of("hb", "89 x 89 counts", lambda: mechanisms.hb(epsilon=0.5, shape=(89, 89)), "pure privacy"),
    Case.of(
        "hb-gaussian",
        "89 x 89 counts",
        lambda: mechanisms.hb(epsilon=0.5, delta=1e-7, shape=(89, 89), noise="gaussian"),
        "ours",
    ),
    Case.of(
        "dawa", "89 x 89 counts, safe stage 1", lambda: mechanisms.dawa(epsilon=0.5, shape=(89, 89)), "pure privacy"
    ),
    Case.of(
        "dawa-dpcomp",
        "89 x 89 counts, published stage 1",
        lambda: mechanisms.dawa(epsilon=0.75, shape=(89, 89), noise="dpcomp"),
        "single cells have no noise",
    ),
    Case.of(
        "dawa-doubled",
        "4 counts, twice the published noise",
        lambda: mechanisms.dawa(epsilon=1.5, shape=4, ratio=2 / 3, noise="doubled"),
        "single cells have no noise",
    ),
    _mod_sulq(1.0, 0.01, 10, 1000, "a small table"),
    _mod_sulq(1.0, 1e-7, 2400, 24016, "the size of the paper's PCA query"),
    _wishart(1.0, 10, 1000, "a small table"),
    _wishart(0.2, 2400, 24016, "the size of the paper's PCA query"),
)
