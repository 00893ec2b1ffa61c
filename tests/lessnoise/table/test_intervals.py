"""Intervals from draws of the noise: against a search over all places, without noise, and by coverage."""

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.table.intervals import _first_crossing, _quantile


def searched(noisy, noise, p, level, steps=4000):
    """The hull of all places on a fine grid at which the test does not refuse, one by one."""
    places = np.linspace(0.0, noisy.shape[-1], steps + 1)
    edges = np.arange(noisy.shape[-1] + 1.0)

    def at(cells):
        sums = np.concatenate([[0.0], np.cumsum(cells)]) - p * cells.sum()
        return np.interp(places, edges, sums)

    draws = np.array([np.concatenate([[0.0], np.cumsum(one)]) - p * one.sum() for one in noise])
    tail = 0.5 * (1.0 - level)
    least, most = np.quantile(draws, [tail, 1.0 - tail], axis=0, method="inverted_cdf")
    statistic = at(noisy)
    lower = places[statistic >= np.interp(places, edges, least)]
    upper = places[statistic <= np.interp(places, edges, most)]
    return lower.min() / noisy.shape[-1], upper.max() / noisy.shape[-1]


def test_the_ends_are_those_of_a_search():
    rng = np.random.default_rng(0)
    for _ in range(40):
        size = int(rng.integers(2, 30))
        noisy = rng.poisson(20.0, size) + rng.normal(0.0, 8.0, size)
        noise = rng.normal(0.0, 8.0, (101, size))
        p = float(rng.uniform(0.05, 0.95))
        low, high = _quantile(noisy[np.newaxis], noise[:, np.newaxis], p, 0.9)
        expected = searched(noisy, noise, p, 0.9)
        assert [low[0], high[0]] == pytest.approx(expected, abs=2e-3)


def test_without_noise_the_ends_are_the_quantile():
    cells = np.array([[10.0, 10.0, 20.0]])
    low, high = _quantile(cells, np.zeros((5, 1, 3)), 0.25, 0.95)
    assert [low[0], high[0]] == pytest.approx([1.0 / 3.0, 1.0 / 3.0])
    assert _first_crossing(np.array([[-3.0, -1.0, 1.0], [-3.0, -2.0, -1.0], [0.0, 1.0, 2.0]])).tolist() == [
        1.5,
        2.0,
        0.0,
    ]


@pytest.mark.slow
def test_quantiles_under_heavy_noise_are_covered_and_in_order():
    rng = np.random.default_rng(1)
    data = {"age": rng.normal(45, 15, 1000).clip(0, 120), "city": rng.choice(["a", "b"], 1000)}
    shares = (0.1, 0.5, 0.75)
    asked = ln.quantiles("age", shares, bounds=(0, 120), bins=480)
    job = ln.Table(data).group_by("city", keys=["a", "b"]).aggregate(asked).prepare(epsilon=0.25, delta=1e-6)
    answer, hits = job.answer(), {name: [] for name in asked.names}
    truth = {
        (city, name): np.quantile(data["age"][data["city"] == city], share)
        for city in "ab"
        for name, share in zip(asked.names, shares, strict=True)
    }
    for _ in range(120):
        for row in job.release(answer).rows:
            hits[row["statistic"]].append(row["lower"] <= truth[row["city"], row["statistic"]] <= row["upper"])
            assert 0.0 <= row["lower"] <= row["value"] <= row["upper"] <= 120.0
    for name, found in hits.items():  # 240 each: six deviations below 0.95 are 0.865
        assert np.mean(found) >= 0.865, name
