"""Pictures of results: the released numbers at their places, hostile names as text, only given axes are used."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure

import lessnoise as ln
from lessnoise import claims, learn
from lessnoise.mechanism.least.objective import Design
from lessnoise.report import FrontierPoint

HOSTILE = "<script>$x_{ & \\$y^{$\n"


def drawn(result):
    """The axes of its picture: on a figure of its own, which can be saved, and on given axes."""
    figure = result.plot()
    assert figure._repr_png_().startswith(b"\x89PNG")
    mine = Figure().subplots(1, 2)
    assert result.plot(ax=mine[0]) is mine[0].get_figure()
    assert not mine[1].lines
    axes = figure.axes[0]
    assert axes.get_title(loc="left")
    assert axes.get_xlabel() or axes.get_xticklabels()
    return axes


def ticks(axes, which):
    return [label.get_text() for label in (axes.get_xticklabels() if which == "x" else axes.get_yticklabels())]


def audited(**changes):
    noise = ln.laplace(epsilon=1, sensitivity=1, shape=3)
    found = ln.audit(noise, np.zeros(3), samples=2000, rng=np.random.default_rng(0))
    return replace(found, **changes)


def test_an_audit_draws_its_bounds_beside_the_claim():
    report = audited(mechanism=HOSTILE)
    axes = drawn(report)
    lines = {line.get_label(): line for line in axes.lines}
    assert lines["claim"].get_xdata()[0] == report.claim.epsilon
    assert any(np.isclose(line.get_xdata()[-1], report.epsilon) and len(line.get_xdata()) == 2 for line in axes.lines)
    assert "not refuted" in axes.get_title(loc="left")
    assert not is_math_text(axes.get_title(loc="left"))


def test_a_refuted_claim_lies_behind_the_bounds():
    report = audited()
    report = replace(report, claim=ln.Claim(0.2, 1e-6, source="nobody"))
    assert report.refuted
    axes = drawn(report)
    assert "REFUTED" in axes.get_title(loc="left")
    claim = next(line for line in axes.lines if line.get_label() == "claim")
    assert [float(end[0]) for end in claim.get_data()] == [0.2, 1e-6]
    assert axes.get_xlim()[1] > report.epsilon > 0.2


def test_a_stream_draws_what_it_released_with_its_band():
    with ln.Stream(periods=8, epsilon=1, rng=np.random.default_rng(0)) as stream:
        assert "0 of 8" in drawn(stream).get_title(loc="left")
        given = [stream.push(100) for _ in range(5)]
        axes = drawn(stream)
        np.testing.assert_array_equal(axes.lines[0].get_ydata(), given)
        assert "seeded, NOT private" in axes.get_title(loc="left")
        ends = axes.collections[0].get_paths()[0].vertices[:, 1]
        assert ends.max() == pytest.approx(max(g + 1.96 * stream.standard_error(k + 1) for k, g in enumerate(given)))
        axes = drawn(stream.plan)
        np.testing.assert_allclose(axes.lines[0].get_ydata() ** 2, stream.plan.variances())


def test_training_plans_draw_epsilon_over_epochs():
    arguments = {"clip_norm": 1.0, "parameters": 10, "steps": 40, "records": 1000, "epsilon": 2.0, "delta": 1e-5}
    across = learn.plan_across_steps(bands=4, batches=20, **arguments)
    axes = drawn(across)
    epochs, spent = axes.lines[0].get_data()
    assert (epochs[0], spent[0]) == (0.0, 0.0)
    assert epochs[-1] == 2.0
    assert spent[-1] == across.epsilon(1e-5).upper <= 2.0
    assert (np.diff(spent) >= 0.0).all()
    assert axes.lines[1].get_ydata()[0] == 2.0
    plan = learn.TrainingPlan(learn.gaussian(noise_multiplier=2, clip_norm=1, parameters=3), 0.25, 2, 1000)
    axes = drawn(plan)
    expected = [0.0, plan.epsilon(1e-6, 1).upper, plan.epsilon(1e-6).upper]
    np.testing.assert_array_equal(axes.lines[0].get_data(), [[0.0, 0.25, 0.5], expected])
    assert axes.get_ylabel() == "ε at δ = 1e-06"
    assert len(axes.lines) == 1


def test_an_infinite_epsilon_is_said_in_words(monkeypatch):
    plan = learn.TrainingPlan(learn.gaussian(noise_multiplier=2, clip_norm=1, parameters=3), 0.25, 2, 1000)
    ends = {0: ln.Bracket(0.0, 0.0), 1: ln.Bracket(0.5, np.inf), 2: ln.Bracket(0.75, np.inf)}
    monkeypatch.setattr(learn.TrainingPlan, "epsilon", lambda _, delta, steps: ends[steps])
    axes = drawn(plan)
    (note,) = axes.texts
    assert note.get_text() == "exact ε, upper end: infinite from 0.25 epochs on"
    assert list(axes.lines[1].get_ydata()) == [0.0, 0.5, 0.75]


def test_noise_is_compared_over_bands():
    rows = tuple(
        learn.NoiseRow(kind, bands, 1, 1.0, 1.0 / bands, 1.0, 1)
        for kind, bands in (("gaussian", 1), ("banded-inverse", 4), ("banded-inverse", 16), ("banded", 4))
    )
    axes = drawn(learn.NoiseComparison(8.0, 1e-5, 20, 2, rows))
    np.testing.assert_array_equal(axes.lines[0].get_data(), [[4, 16], [0.25, 0.0625]])
    assert axes.lines[-1].get_ydata()[0] == 1.0
    assert ticks(axes, "x") == ["4", "16"]


def test_a_frontier_point_and_a_finding():
    axes = drawn(FrontierPoint(5, 1.0, 1e-6, 0.4, None, 0.35, HOSTILE, 0.3))
    assert [bar.get_width() for bar in axes.patches] == [1.0, 0.4, 0.35]
    assert axes.lines[0].get_xdata()[0] == 0.3
    assert not any(map(is_math_text, ticks(axes, "y")))
    case = next(one for one in claims.CASES if "r1smg" in one.name)
    finding = case.evaluate()
    axes = drawn(finding)
    assert axes.lines[0].get_xdata()[0] == finding.claimed.delta
    assert finding.name in axes.get_title(loc="left")


def test_the_plan_of_a_table_draws_how_its_budget_is_split():
    table = ln.Table({HOSTILE: np.array([1.0, 2.0]), "y": np.array([0.5, 0.7])})
    asked = table.aggregate(ln.mean(HOSTILE, bounds=(0, 9)), ln.mean("y", bounds=(0, 1)))
    plan = asked.plan(epsilon=1, delta=1e-6)
    axes = drawn(plan)
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == [row["epsilon"] for row in plan.rows()]
    assert len(widths) == 2
    assert not any(map(is_math_text, ticks(axes, "y")))


def test_a_design_draws_what_was_compared():
    tried = tuple((f"way {k}", float(k)) for k in (3, 1, 2))
    axes = drawn(Design("squared", "Gaussian", compared=tried))
    assert [bar.get_width() for bar in axes.patches] == [1.0, 2.0, 3.0]
    assert ticks(axes, "y") == ["way 1", "way 2", "way 3"]
    with pytest.raises(ln.InvalidInput, match="nothing to draw"):
        Design("squared", "Gaussian").plot()


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(3000, 3)) * [3.0, 2.0, 1.0]


def test_components_and_covariances_draw_what_they_released(rows):
    pca = ln.PrivatePCA(epsilon=1, delta=1e-6, clip_norm=9).fit(rows)
    axes = drawn(pca)
    np.testing.assert_array_equal([bar.get_height() for bar in axes.patches], pca.explained_variance_)
    assert axes.lines[0].get_ydata()[0] == pca.noise_floor_
    assert "NOT private" not in axes.get_title(loc="left")
    seeded = ln.PrivateCovariance(epsilon=1, delta=1e-6, clip_norm=9, random_state=0).fit(rows)
    axes = drawn(seeded)
    np.testing.assert_array_equal(axes.images[0].get_array(), seeded.covariance_)
    assert "seeded, NOT private" in axes.get_title(loc="left")
    sampled = ln.PrivatePCA(1, epsilon=1, clip_norm=9, mechanism="ppca").fit(rows)
    np.testing.assert_array_equal(drawn(sampled).images[0].get_array(), sampled.components_)


def test_an_estimator_is_drawn_after_its_fit():
    from sklearn.exceptions import NotFittedError

    for private in (
        ln.PrivatePCA(epsilon=1, clip_norm=1),
        ln.PrivateCovariance(epsilon=1, clip_norm=1),
        ln.PrivateLinearRegression(epsilon=1, clip_norm=1),
    ):
        with pytest.raises(NotFittedError, match="not fitted"):
            private.plot()


def test_coefficients_are_drawn_over_the_width_of_their_columns():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    x = rng.uniform([0, 0], [1, 500], size=(20000, 2))
    y = 3 * x[:, 0] - 0.01 * x[:, 1] + rng.normal(size=20000)
    bounds = {"bounds": ([0, 0], [1, 500]), "target_bounds": (-10, 10), "delta": 1e-6}
    line = ln.PrivateLinearRegression(epsilon=1, **bounds).fit(pandas.DataFrame(x, columns=[HOSTILE, "b"]), y)
    axes = drawn(line)
    np.testing.assert_allclose(axes.lines[0].get_xdata(), line.coef_ * [1, 500])
    ends = np.array([segment[:, 0] for segment in axes.collections[0].get_segments()])
    np.testing.assert_allclose(ends, line.confidence_intervals().coef * [[1], [500]])
    assert ticks(axes, "y")[1] == "b"
    assert not any(map(is_math_text, ticks(axes, "y")))
    own = ln.PrivateLinearRegression(epsilon=1, delta=1e-6, clip_norm=600).fit(x, y)
    assert "one unit of the column" in drawn(own).get_xlabel()
    hidden = ln.PrivateLinearRegression(epsilon=1e-3, random_state=0, **bounds).fit(x[:200], y[:200])
    assert hidden.ridge_ > 0.0
    assert "too large for intervals" in drawn(hidden).get_title(loc="left")


def test_many_names_are_thinned_and_long_ones_wrapped():
    many = tuple((f"way {k}", float(k)) for k in range(1, 101))
    assert len(ticks(drawn(Design("squared", "Gaussian", compared=many)), "y")) <= 25
    axes = drawn(Design("squared", "Gaussian", compared=(("laplace on blocks " * 9, 1.0),)))
    (label,) = ticks(axes, "y")
    assert label.count("\n") == 1
    assert label.endswith("…")
