"""Tables and pictures for notebooks: right numbers, escaped, nothing of the true value, no global state."""

import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.report import curves
from lessnoise.report.notebook import to_html

GOAL = {"epsilon": 1.0, "delta": 1e-6, "sensitivity": 1.0}
SHAPED = {**GOAL, "shape": (4, 5)}


class Reader(HTMLParser):
    """Checks that every element is closed, in order, and keeps the texts of the cells."""

    def __init__(self):
        super().__init__()
        self.open, self.cells, self.tags, self.attributes = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        self.attributes += attrs
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def read(shown):
    reader = Reader()
    reader.feed(shown._repr_html_())
    reader.close()
    assert reader.open == []
    assert set(reader.tags) <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}
    assert {name for name, _ in reader.attributes} <= {"class", "style", "scope"}  # nothing is fetched or run
    return reader.cells


def value_of(cells, name):
    return cells[cells.index(name) + 1]


def r1smg():
    with pytest.warns(ln.ClaimWarning):
        return ln.r1smg(**SHAPED, calibration="published")


@pytest.fixture
def ledger(tmp_path):
    with_records = ln.Ledger.open(tmp_path / "l", epsilon=2, delta=1e-5)
    for day in range(7):
        with_records.spend(ln.laplace(epsilon=0.1, sensitivity=1, shape=3), note=f"<b>day {day}</b>", partition="a & b")
    return with_records


def test_a_mechanism_shows_its_claim_beside_the_exact_delta():
    mechanism = ln.analytic_gaussian(**SHAPED)
    cells = read(mechanism)
    assert value_of(cells, "shape") == "4 by 5, M = 20"
    assert value_of(cells, "claimed delta at epsilon = 1") == "1e-06 (Balle & Wang 2018, Theorem 9)"
    assert value_of(cells, "exact delta at epsilon = 1") == str(mechanism.check().exact)
    assert value_of(cells, "noise").startswith(f"{mechanism.standard_deviation:.5g} ")
    assert value_of(cells, "the claim") == "holds"


def test_a_failing_claim_says_so_in_words():
    mechanism = r1smg()
    assert value_of(read(mechanism), "the claim") == "FAILS"
    assert "The claim FAILS" in mechanism.check()._repr_html_()


def test_shown_privacy_is_never_below_the_truth():
    mechanism = ln.l2_mechanism(epsilon=0.7, delta=3e-7, sensitivity=1.0, shape=7)
    low, high = re.findall(r"[\d.e-]+", value_of(read(mechanism.check()), "exact delta at epsilon = 0.7"))
    exact = mechanism.check().exact
    assert float(low) <= exact.lower <= exact.upper <= float(high)
    cells = read(ln.Guarantee(1.0000001, 1.0000001e-6))
    assert float(value_of(cells, "epsilon")) >= 1.0000001
    assert float(value_of(cells, "delta")) >= 1.0000001e-6
    cells = read(ln.Bracket(0.12345678, 0.12345679))
    assert float(value_of(cells, "at least")) <= 0.12345678
    assert float(value_of(cells, "at most")) >= 0.12345679


def test_a_mechanism_without_a_claim_and_one_whose_noise_depends_on_the_data():
    shells = ln.shells(edges=[0, 1, 2, 3], probabilities=[0.6, 0.3, 0.1], sensitivity=1, shape=1)
    assert value_of(read(shells), "claim") == "none"
    dawa = ln.dawa(epsilon=1, l1_sensitivity=1, shape=8)
    assert value_of(read(dawa), "noise") == "depends on the data"
    assert read(dawa.release(np.arange(8.0)))


def test_a_release_shows_the_noisy_value_and_never_the_true_one():
    true = np.sqrt(np.arange(2.0, 22.0)).reshape(4, 5) * 0.777
    release = ln.analytic_gaussian(**SHAPED).release(true)
    cells = read(release)
    assert f"{release.value[1, 2]:.6g}" in cells
    assert value_of(cells, "private") == "yes"
    assert value_of(cells, "guarantee, computed") == str(release.certificate.guarantee)
    seeded = ln.analytic_gaussian(**SHAPED).release(true, np.random.default_rng(1))
    assert not {f"{number:.6g}" for number in true.ravel()} & set(read(seeded))
    assert value_of(read(seeded), "private").startswith("NO")
    assert value_of(read(seeded.certificate), "private").startswith("NO")


@pytest.mark.parametrize("shape", [(), (1,), (9,), (3, 100), (2, 3, 4)])
def test_releases_of_every_shape_have_a_table_and_a_picture(shape):
    release = ln.laplace(epsilon=1, sensitivity=1, shape=shape).release(np.zeros(shape))
    assert f"{np.ravel(release.value)[0]:.6g}" in read(release)
    assert release.plot().axes


def test_a_ledger_shows_what_is_left_and_escapes_notes(ledger):
    cells = read(ledger)
    assert value_of(cells, "records") == "7"
    assert float(value_of(cells, "remaining epsilon").removeprefix("at least ")) <= ledger.remaining()
    assert "<b>day 6</b>" in cells  # the text of a cell, not an element
    assert "a & b" in cells
    assert "<b>" not in ledger._repr_html_()


def test_names_are_escaped():
    claim = ln.Claim(1, 0, source='<script>alert("x")</script>')
    assert "<script" not in claim._repr_html_()
    assert value_of(read(claim), "source") == claim.source


def test_a_composition_and_an_audit():
    year = ln.laplace(epsilon=0.1, sensitivity=1, shape=1).repeat(365)
    assert value_of(read(year), "exact epsilon at delta = 1e-06") == str(year.epsilon(1e-6))
    report = ln.audit(r1smg(), np.zeros((4, 5)), samples=2000, rng=np.random.default_rng(0))
    cells = read(report)
    assert value_of(cells, "the claim") == "is REFUTED"
    assert {attack.name for attack in report.attacks} <= set(cells)


def test_nothing_is_known_of_other_objects():
    with pytest.raises(TypeError, match="str"):
        to_html("words")
    with pytest.raises(TypeError, match="str"):
        curves.draw("words", None)


# Pictures.


@pytest.mark.slow
def test_the_curve_is_the_exact_one_with_the_claim_on_it():
    mechanism = ln.analytic_gaussian(**SHAPED)
    (axes,) = mechanism.plot().axes
    line, point = axes.lines
    for epsilon, delta in zip(*line.get_data(), strict=True):
        assert delta == mechanism.delta(epsilon).upper
    assert line.get_xdata()[-1] == 2.0
    assert [float(end[0]) for end in point.get_data()] == [1.0, 1e-6]
    assert point.get_label() == "claim, holds"
    assert axes.get_yscale() == "log"


@pytest.mark.slow
def test_a_pure_mechanism_and_a_failing_claim():
    (axes,) = ln.laplace(epsilon=1, sensitivity=1, shape=3).plot().axes
    assert axes.lines[1].get_label() == "claim of pure privacy, holds"
    assert max(axes.lines[0].get_xdata()) < 1.0
    (axes,) = r1smg().plot().axes
    assert axes.lines[1].get_label() == "claim, fails"


def test_a_composition_is_drawn_up_to_where_it_matters():
    year = ln.analytic_gaussian(**SHAPED).repeat(10)
    (axes,) = year.plot().axes
    epsilons, deltas = axes.lines[0].get_data()
    assert epsilons[-1] > year.epsilon(1e-6).upper
    assert deltas[0] == year.delta(0.0).upper


def test_a_verdict_draws_both_ends_and_the_claim():
    verdict = r1smg().check()
    (axes,) = verdict.plot().axes
    claimed, exact = axes.lines
    assert claimed.get_xdata()[0] == 1e-6
    assert list(exact.get_xdata()) == [verdict.exact.lower, verdict.exact.upper]
    assert axes.get_title(loc="left") == "The claim fails"


def test_a_release_draws_the_noisy_value():
    matrix = ln.analytic_gaussian(**SHAPED).release(np.zeros((4, 5)))
    image = matrix.plot().axes[0].images[0]
    assert np.array_equal(image.get_array(), matrix.value)
    mechanism = ln.laplace(epsilon=1, sensitivity=1, shape=9)
    vector = mechanism.release(np.zeros(9), np.random.default_rng(0))
    (axes,) = vector.plot().axes
    assert np.array_equal(axes.lines[0].get_ydata(), vector.value)
    assert "1.414" in axes.get_title(loc="left")
    assert "NOT private" in axes.get_title(loc="left")


def test_a_ledger_draws_its_spending(ledger):
    (axes,) = ledger.plot().axes
    counts, epsilons = axes.lines[0].get_data()
    assert counts[-1] == 7
    assert epsilons[-1] == ledger.spent().upper


def test_given_axes_are_drawn_on_and_pyplot_is_left_alone():
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    mechanism = ln.laplace(epsilon=1, sensitivity=1, shape=3)
    assert mechanism.plot(right) is figure
    assert right.lines
    assert not left.lines
    loaded = sys.modules.get("matplotlib.pyplot")
    assert loaded is None or loaded.get_fignums() == []


def test_a_new_figure_shows_itself():
    assert ln.laplace(epsilon=1, sensitivity=1, shape=3).plot()._repr_png_().startswith(b"\x89PNG")
