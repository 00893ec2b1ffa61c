"""Every result of a public function shows itself in a notebook, escaped, and keeps to itself what is private."""

import importlib
import inspect

import numpy as np
import pytest
from matplotlib.figure import Figure

import lessnoise as ln
import lessnoise_verify
from lessnoise import changes, claims, learn, ledger, mechanism, planning, query, strategy, streams, table
from lessnoise.report import FrontierPoint, frontier

audit = importlib.import_module("lessnoise.audit")  # ln.audit is the function
HOSTILE = "<script>alert('x')</script>&\"_$"
PACKAGES = (
    "lessnoise",
    "lessnoise_verify",
    *(
        f"lessnoise.{name}"
        for name in (
            *("audit", "changes", "claims", "composition", "learn", "ledger", "mechanism", "pca", "planning"),
            *("postprocess", "query", "release", "report", "streams", "table", "tasks", "workload"),
        )
    ),
)
DESCRIPTIONS = (query.Query, strategy.Strategy, changes.Changes, learn.Factorisation)
"""What a caller asks for or of: its repr is the call that makes it."""
ASKED = {
    *("Axis", "Gram", "Histogram", "Mean", "Planned", "Request", "Sum", "Unit", "Table", "Neighbours", "Case", "Goal"),
    *("Moves", "Block", "Factor", "Part", "ReservedItem", "Measure", "Asked", "FoundKeys", "Presence", "CellCounts"),
    *("TableGroups", "TableQuestion", "MarginalsQuestion"),
}
PARTS = {
    *("Signer", "Payment", "CertifiedFolder", "HistogramFolder", "TableFolder", "Job", "Drawing", "Private"),  # handles
    *("Coins", "Deviations", "FrozenMatrix", "Layout", "Moments", "RowBound", "Products"),  # steps on the way
}

WITHOUT_PICTURE = {
    *("Answer", "Bracket", "Guarantee", "Claim"),  # a value that stays hidden; one or two numbers
    *("Certificate", "Receipt", "Record", "Reservation", "PlanItem"),  # words; the ledger and the plan are drawn
    *("AttackResult", "Evidence", "Comparison", "NoiseRow"),  # a row of what is drawn, or of a list
    *("HowOften", "MvgConstants", "Workload"),  # a whole number; constants; questions that were not answered yet
    ("lessnoise_verify.verdict", "Verdict"),  # words
}
"""Results whose picture would show nothing that their table does not."""


def public_classes():
    for name in PACKAGES:
        package = importlib.import_module(name)
        for word in package.__all__:
            found = getattr(package, word)
            if inspect.isclass(found):
                yield found


def is_law(found):
    return found is mechanism.Law or (hasattr(found, "kind") and hasattr(found, "norm"))


def test_every_result_shows_itself():
    bare = {
        found.__name__
        for found in public_classes()
        if not hasattr(found, "_repr_html_")
        and not issubclass(found, (BaseException, *DESCRIPTIONS))
        and not (is_law(found) or found is table.Aggregate)
        and found.__name__ not in ASKED | PARTS
    }
    assert bare == set(), "give them a table: Listed or Shown in _display.py"
    assert len({found for found in public_classes() if hasattr(found, "_repr_html_")}) > 30


def test_every_result_draws_itself_or_is_exempt():
    shown = {found for found in public_classes() if hasattr(found, "_repr_html_")}
    bare = [found for found in shown if not hasattr(found, "plot")]
    missing = {
        f"{found.__module__}.{found.__name__}"
        for found in bare
        if found.__name__ not in WITHOUT_PICTURE and (found.__module__, found.__name__) not in WITHOUT_PICTURE
    }
    assert missing == set(), "give them a picture, Charted in _display.py, or exempt them with a reason"
    names = {found.__name__ for found in bare} | {(found.__module__, found.__name__) for found in bare}
    assert names >= WITHOUT_PICTURE, "these have a picture now, or are gone"
    assert len(shown) - len(bare) > 15


@pytest.fixture(scope="module")
def counts():
    axes = [ln.Axis(HOSTILE, keys=(HOSTILE, "b")), ln.Axis("y", bins=3, bounds=(0, 3))]
    data = {HOSTILE: np.array([HOSTILE, "b", "b"]), "y": np.array([0.5, 1.5, 2.5])}
    return ln.private_histogram(data, axes, epsilon=1, delta=1e-6, rng=np.random.default_rng(0))


def shown(result):
    text = result._repr_html_()
    assert "<script>" not in text
    assert text.count("<table") == text.count("</table>")
    return text


def test_private_counts(counts):
    text = shown(counts)
    assert "Private counts, 2 by 3" in text
    assert "NO: the noise came from a seeded generator" in text
    figure = counts.plot()
    assert isinstance(figure, Figure)
    np.testing.assert_array_equal(figure.axes[0].collections[0].get_array(), np.maximum(counts.value.T, 1.0))
    mine = Figure().subplots()
    assert counts.plot(ax=mine) is mine.get_figure()


def test_counts_of_one_axis_are_bars():
    result = ln.private_histogram({"x": [1.0, 2.0]}, ["x"], bins=[4], bounds=[(0, 4)], epsilon=1, delta=1e-6)
    (bars,) = result.plot().axes[0].patches
    np.testing.assert_array_equal(bars.get_data().values, result.value)


def test_an_answer_goes_on_hiding_its_value():
    secret = 7654321.0
    answer = ln.Sum(["pay"], bounds=[(0, 1e7)]).answer({"pay": np.array([secret])})
    assert answer.value.tolist() == [secret]
    for words in (answer._repr_html_(), repr(answer), str(answer)):
        assert "7654321" not in words.replace(",", "")


def test_hostile_words_are_escaped(tmp_path):
    book = ln.Ledger.open(tmp_path / "a.ledger", epsilon=5, delta=1e-5)
    noise = ln.laplace(epsilon=1, sensitivity=1, shape=1)
    receipt = book.spend(noise, note=HOSTILE, partition=HOSTILE)
    (record,) = book.records()
    plan = ln.plan_releases([ln.Planned(noise, times=2, name=HOSTILE)], epsilon=3, delta=1e-6)
    item = planning.PlanItem(HOSTILE, noise, 1, 1.0)
    verdict = lessnoise_verify.Verdict("refuted", HOSTILE, (HOSTILE,))
    held = ledger.Reservation(HOSTILE, 0.0, HOSTILE, ())
    design = mechanism.least_noise(epsilon=1, delta=1e-6, sensitivity=1, shape=1).design
    row = learn.NoiseRow(HOSTILE, 1, 1, 1.0, 1.0, 1.0, 1)
    found = audit.AttackResult(HOSTILE, *[audit.Evidence(0.1, 3, 1, 10, None)] * 2)
    for one in (book, receipt, record, plan, item, verdict, held, design, row, found):
        shown(one)
    for one in (record, item, verdict, held, row, found):
        assert "&lt;script&gt;" in one._repr_html_()


def test_numbers_of_plans_and_findings():
    often = ln.most_releases(ln.laplace(epsilon=0.1, sensitivity=1, shape=1), epsilon=1, delta=1e-6)
    assert f"{int(often):,} releases fit" in shown(often)
    [point] = frontier(epsilons=[1.0], dimensions=[2], bounds=False, radial=False)
    assert isinstance(point, FrontierPoint)
    assert f"{point.least:.4f}" in shown(point)
    with ln.Stream(periods=8, epsilon=1, rng=np.random.default_rng(0)) as stream:
        stream.push(3)
        assert "periods over</th>" in shown(stream)
        assert isinstance(stream.plan, streams.Plan)
        shown(stream.plan)
    shown(ln.workload.prefixes(4))
    shown(mechanism.mvg_constants(shape=(3, 4), epsilon=1, delta=1e-5, bound=1.0, sensitivity=1.0))


def test_the_finding_of_a_false_claim_says_so():
    case = next(one for one in claims.CASES if "r1smg" in one.name)
    finding = case.evaluate()
    assert f"{case.name}: the claim {'holds' if finding.verdict.holds else 'is not proved to hold'}" in shown(finding)


def test_training_plans():
    arguments = {"clip_norm": 1.0, "steps": 20, "records": 1000}
    plan = learn.TrainingPlan(
        learn.gaussian(noise_multiplier=2.0, clip_norm=1.0, parameters=10), rate=0.01, steps=20, records=1000
    )
    assert str(plan.epsilon(1e-6)) in shown(plan)
    across = learn.AcrossPlan(
        learn.BandedInverse((1.0, -0.5)), noise_multiplier=3.0, parameters=10, batches=20, **arguments
    )
    assert "banded-inverse, 2 bands" in shown(across)


def test_estimators_show_what_a_fit_guarantees():
    rows = np.random.default_rng(0).normal(size=(200, 3))
    for private in (
        ln.PrivateCovariance(epsilon=1, delta=1e-6, clip_norm=3),
        ln.PrivatePCA(2, epsilon=1, clip_norm=3, mechanism="ppca"),
    ):
        assert "guarantee, computed" not in private._repr_html_()
        fitted = private.fit(rows)
        assert "guarantee, computed" in shown(fitted)
        assert "guarantee, computed" in fitted._repr_mimebundle_()["text/html"]
