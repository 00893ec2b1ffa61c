import json
import re

import numpy as np
import pytest

import lessnoise as ln
from lessnoise import InvalidInput, text
from lessnoise.report import canvas
from lessnoise_paper import Settings, single_page
from lessnoise_paper.experiments import demo_pictures as plots
from lessnoise_paper.experiments.demo import OWN_PAGE, PAPER_DELTA, PAPER_EPSILON, QUANTILES, run_demo
from lessnoise_paper.registry import DEMO
from lessnoise_paper.render import PAPER_FULL, PAPER_PAGE
from tests.helpers.outline import Outline

KEYS = {
    "least-noise",
    "laplace",
    "geometric",
    "l2",
    "analytic-gaussian",
    "zhao-gaussian-1",
    "zhao-gaussian-2",
    "classic-gaussian",
    "discrete-gaussian",
    "product-noise",
    "r1smg",
    "r1smg-published",
    "r1smg-published-paper",
}


@pytest.fixture(scope="module")
def steps():
    return []


@pytest.fixture(scope="module")
def result(steps):
    return run_demo(progress=lambda *step: steps.append(step))


def page(**options):
    parameters = {"epsilon": 0.5, "delta": 1e-7, "seed": 0, **OWN_PAGE, **options}
    return single_page(DEMO, Settings(options={"demo": parameters}))["index.html"].decode()


@pytest.fixture(scope="module")
def html():
    return page()


@pytest.mark.slow
def test_every_mechanism_takes_part_and_has_its_colour(result):
    assert {row.key for row in result.rows} == KEYS <= set(canvas.COLOURS) == set(canvas.LINES)
    assert len(set(canvas.COLOURS.values())) == len(canvas.COLOURS)


@pytest.mark.slow
def test_progress_counts_up_to_the_end(result, steps):
    total = steps[0][2]
    assert [done for _, done, _ in steps] == list(range(total + 1))
    assert steps[-1] == ("done", total, total)


@pytest.mark.slow
def test_those_that_keep_the_promise_come_first_by_expected_loss(result):
    order = [(not row.holds, row.expected_loss) for row in result.rows]
    assert order == sorted(order)
    assert [row.holds for row in result.rows] == [True] * 10 + [False] * 3


@pytest.mark.slow
def test_the_least_noise_is_the_least_for_counts_of_which_one_row_is_moved(result):
    best, control = result.rows[0], result.row("least-noise")
    assert best is control
    assert control.mechanism.changes == ln.changes.counts(neighbours="replace")
    assert (control.released == np.rint(control.released)).all()
    # Of geometric noise of rate 1/4, pure for two counts that change by 1 each.
    pure = 89 * 89 / (2 * np.sinh(0.125) ** 2)
    assert result.row("geometric").expected_loss == pytest.approx(pure, rel=1e-9)
    assert 0.999 * pure < control.expected_loss < pure < result.row("laplace").expected_loss


@pytest.mark.slow
def test_noise_for_a_length_is_that_of_the_papers_sensitivity(result):
    target = {"epsilon": 0.5, "delta": 1e-7, "sensitivity": 2**0.5, "shape": (89, 89), "neighbours": "replace"}
    with pytest.warns(ln.ClaimWarning, match="1/M"):
        published = ln.r1smg(**target, calibration="published")
    built = {
        "analytic-gaussian": ln.analytic_gaussian(**target),
        "l2": ln.l2_mechanism(**target),
        "r1smg": ln.r1smg(**target, calibration="exact"),
        "r1smg-published": published,
    }
    for key, mechanism in built.items():
        assert result.row(key).mechanism.law == mechanism.law


@pytest.mark.slow
def test_certified_rows_keep_the_one_target(result):
    for row in result.rows:
        if row.holds:
            assert row.verdict.claimed.epsilon == result.target.epsilon == 0.5
            assert row.verdict.exact.upper <= row.verdict.claimed.delta <= result.target.delta == 1e-7
            assert row.target_delta.lower <= result.target.delta


@pytest.mark.slow
def test_published_r1smg_fails_by_the_known_amount(result):
    row = result.row("r1smg-published-paper")
    assert (row.verdict.claimed.epsilon, row.verdict.claimed.delta) == (PAPER_EPSILON, PAPER_DELTA)
    assert not row.holds
    assert row.verdict.refuted
    assert row.verdict.exact.middle == pytest.approx(0.216642, abs=5e-6)
    assert row.target_delta.middle == pytest.approx(0.123132, abs=5e-6)
    assert row.expected_loss == pytest.approx(402110.0976, rel=1e-8)
    assert result.row("r1smg-published").verdict.exact.lower > 0.999


@pytest.mark.slow
def test_observed_losses_are_those_of_the_maps_and_plausible(result):
    for row in result.rows:
        noise = row.released - result.counts.value
        assert row.observed_loss == pytest.approx(float((noise**2).sum()))
        low, high = row.mechanism.loss_quantile(1e-6), row.mechanism.loss_quantile(1 - 1e-6)
        assert low <= row.observed_loss <= high
        assert list(row.loss_quantiles) == sorted(row.loss_quantiles)
        assert row.loss_quantiles[1] == row.mechanism.loss_quantile(QUANTILES[1])


@pytest.mark.slow
def test_curves_fall_and_agree_with_the_verdicts(result):
    for row in result.rows:
        epsilons, deltas = np.array(row.curve).T
        assert (np.diff(epsilons) > 0).all()
        assert (np.diff(deltas) <= 1e-4 * deltas[:-1]).all()
        if result.target.epsilon in epsilons:
            at = deltas[list(epsilons).index(result.target.epsilon)]
            assert at == pytest.approx(row.target_delta.upper, rel=1e-4)


@pytest.mark.slow
def test_rounding_returns_the_raw_table_as_often_as_expected(result):
    found = {item.key: item for item in result.reconstructions}
    assert set(found) == {"least-noise", "product-noise", "r1smg-published", "r1smg-published-paper"}
    assert found["least-noise"].exact_tables == 0
    assert found["r1smg-published"].share > 0.99
    assert 0.003 < found["r1smg-published-paper"].share < 0.03


@pytest.mark.slow
def test_rounding_is_the_same_as_noise_below_one_half(result):
    mechanism, rng = result.row("r1smg-published-paper").mechanism, np.random.default_rng(5)
    agreed = set()
    for _ in range(400):
        noise = mechanism.noise(rng)
        returned = np.array_equal(np.rint(result.counts.value + noise), result.counts.value)
        assert returned == (np.abs(noise).max() < 0.5)
        agreed.add(returned)
    assert agreed == {True, False}


@pytest.mark.slow
def test_same_seed_same_releases_another_seed_others(result):
    again, other = run_demo(seed=0), run_demo(seed=1)
    for row in result.rows:
        assert np.array_equal(row.released, again.row(row.key).released)
        assert not np.array_equal(row.released, other.row(row.key).released)
    assert np.array_equal(result.counts.value, other.counts.value)


@pytest.mark.slow
def test_no_two_mechanisms_share_a_stream(result):
    directions = [row.released - result.counts.value for row in result.rows]
    for i, first in enumerate(directions):
        for second in directions[:i]:
            assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.1


@pytest.mark.slow
def test_to_dict_is_json_and_says_what_it_is(result):
    values = json.loads(json.dumps(result.to_dict()))
    assert values["data"] == "synthetic city"
    assert values["private"] is False
    assert [row["key"] for row in values["rows"]] == [row.key for row in result.rows]
    assert values["rows"][0]["verdict"]["holds"] is True
    assert values["target"] == {"epsilon": 0.5, "delta": 1e-7, "neighbours": "replace"}


@pytest.mark.slow
def test_the_papers_setting_as_target_is_not_listed_twice():
    keys = [row.key for row in run_demo(PAPER_EPSILON, PAPER_DELTA).rows]
    assert sorted(keys) == sorted(KEYS - {"r1smg-published-paper"})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"epsilon": 0}, "epsilon=0"),
        ({"delta": 0.9}, "delta=0.9 exceeds 0.5"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_errors_name_the_argument(arguments, words):
    with pytest.raises(InvalidInput, match=words):
        run_demo(**arguments)


@pytest.mark.slow
def test_page_is_well_formed_self_contained_and_described(html, result):
    outline = Outline(html)
    assert outline.unbalanced == outline.open == []
    assert next(tag for tag, _ in outline.tags if tag in {"h1", "h2"}) == "h1"
    assert len(outline.all("h1")) == 1
    images = [*(image["alt"] for image in outline.all("img")), *(a["aria-label"] for a in outline.all("svg"))]
    assert len(images) == len(result.rows) + 6  # the maps, the truth, the scale, four pictures
    assert all(len(label) > 20 for label in images)
    assert all(reference.startswith(("data:image/", "#")) for reference in outline.fetched)
    assert {link for link in outline.followed if link.startswith("http")} == {PAPER_PAGE, PAPER_FULL}
    assert len(re.findall(r"https?://", re.sub(r"base64,[^\"]*", "", html))) == 3, "links to the paper alone"
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)
    assert len(html.encode()) < 3_000_000


@pytest.mark.slow
def test_page_tells_the_truth(html, result):
    words = Outline(html).words
    paper = result.row("r1smg-published-paper")
    assert text.exact(paper.verdict.exact) == "0.2166"
    assert "claims (1e-5, 1e-7); the exact delta at that epsilon is 0.2166" in words
    assert "synthetic" in words
    assert "seeded, so not private" in words
    assert "prefers-color-scheme: dark" in html
    for found in result.reconstructions:
        assert f"{found.exact_tables:,} of {found.releases:,} releases" in words
    for row in result.rows:
        assert text.number(row.standard_deviation) in words


@pytest.mark.slow
def test_page_and_pictures_are_reproducible(html):
    def timeless(text):
        return re.sub(r"computed in \d+ s", "", text)

    assert timeless(page()) == timeless(html)


@pytest.mark.slow
def test_numbers_on_the_page_follow_the_result(html):
    other = Outline(page(epsilon=2.0, delta=1e-5, seed=4)).words
    assert "epsilon = 2 and delta = 1e-5" in other
    assert "releases use seed 4" in other
    assert "(0.5, 1e-7)" not in other
    assert "(0.5, 1e-7)" in Outline(html).words


@pytest.mark.slow
def test_maps_share_one_scale_and_show_negatives_as_zero(result):
    from io import BytesIO

    from matplotlib.image import imread

    truth = imread(BytesIO(plots.map_png(result)))
    side = truth.shape[0] // 89
    assert truth.shape[:2] == (89 * side, 89 * side)
    cells = truth[::-side][:, ::side, :3]
    released = result.row("analytic-gaussian").released
    shown = imread(BytesIO(plots.map_png(result, "analytic-gaussian")))[::-side][:, ::side, :3]
    water = cells[result.counts.value == 0]
    assert (water == water[0]).all()
    assert (shown[released < 0] == water[0]).all()
    assert np.array_equal(cells[result.counts.value == 1], shown[released < 0][: (result.counts.value == 1).sum()])


@pytest.mark.slow
def test_headline_is_a_wide_small_png(result):
    from io import BytesIO

    from matplotlib.image import imread

    image = plots.headline_figure(result)
    assert imread(BytesIO(image)).shape[:2] == (700, 1600)
    assert len(image) < 250_000
