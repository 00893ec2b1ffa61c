"""The computations of the report at small settings: their numbers by other routes, and the page that shows them."""

import hashlib
import io
import json
import math
import platform
import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import imread

import lessnoise as ln
from lessnoise import text
from lessnoise.mechanism.least.bound import scalar_bound
from lessnoise.report.inline import night
from lessnoise_paper import Settings, registry, reproduce
from lessnoise_paper import sections as words
from lessnoise_paper.experiments.common import COUNT_QUERY
from lessnoise_paper.experiments.drawing import VERDICT_COLOURS
from lessnoise_paper.model import Outcome, Page
from lessnoise_paper.render import PAPER_FULL, PAPER_PAGE, page_html
from lessnoise_paper.sections import wording
from tests.helpers import browser, oracles
from tests.helpers.colours import contrast
from tests.helpers.outline import Outline
from tests.helpers.screens import assert_fits

pytestmark = pytest.mark.filterwarnings("ignore::lessnoise.ClaimWarning")

EXPERIMENTS = dict(registry.EXPERIMENTS)  # a test replaces them
SMALL = {
    "pca": {"table": "digits", "epsilons": [1.6], "repetitions": 1, "sweeps": 1},
    "counts": {"repetitions": 2, "attack_releases": 400},
    "frontier": {"epsilons": [1.0], "dimensions": [2, 10]},
    "learning": {"samples": 400},
    "demo": {"dimensions": [1, 2], "attacked": 1000, "maps": True},
    "null-space": {"shape": [10, 10], "epsilon": 1e-3, "delta": 1e-5, "sensitivity": 1.0, "samples": 8000},
    "attacks": {"samples": 8000, "rows": 2},
    "claims": {"cases": 7},
    "loss-against-dimension": {"dimensions": [100, 10_000], "epsilons": [1e-7, 1e-9]},
    "range-of-epsilon": {"dimension": 100, "sensitivity": 1.0, "epsilons": [1e-3, 1.0]},
    "angle": {"draws": 20_000},
    "covariance": {"draws": 20_000, "points": 3},
    "loss-against-rank": {"ranks": [1, 2, 10], "draws": 50_000},
    "dependent-queries": {"types": 5, "counts": [3, 5, 40], "draws": 500},
    "moments": {"ranks": [1, 3, 7921]},
    "mvg-chain": {"shape": [8, 5], "draws": 20},
}


@pytest.fixture(scope="module")
def made():
    """Every computation once, when it is first asked for."""
    found = {}

    def get(name):
        if name not in found:
            work = EXPERIMENTS[name]
            parameters = {**work.parameters(Settings(quick=True)), **SMALL.get(name, {})}
            found[name] = work.run(None, None, **parameters)
            json.dumps(found[name].numbers, allow_nan=False)  # plain values only
        return found[name]

    return get


def r1smg_case(dimension, epsilon, delta, sensitivity, at=None):
    scale = math.sqrt(2.0 * oracles.r1smg_eigenvalue(dimension, epsilon, delta, sensitivity))
    return oracles.Case(dimension, 1.0, 2.0, scale, sensitivity, epsilon if at is None else at)


def assert_upper_end(upper, exact):
    """The upper end of a bracket lies above the exact value, closely."""
    assert exact * (1 - 1e-9) <= upper <= exact * (1 + 1e-3)


# What every section must have.


@pytest.mark.slow
@pytest.mark.parametrize("section", registry.SECTIONS, ids=lambda section: section.name)
def test_every_section_has_words_numbers_pictures_and_exact_privacy(section, made):
    work = made(section.experiment)
    said = section.write(json.loads(json.dumps(work.numbers)))
    assert said.setting
    assert said.ours
    assert said.shows
    assert bool(said.paper) == (not section.ours)
    assert re.search(r"delta|exactly|proved", said.privacy)
    assert said.pictures or said.tables
    for picture in said.pictures:
        assert picture.file in work.files, "every picture shown was made"
        assert re.search(r"\d", picture.alt), "the alternative text has the main number"
        assert len(picture.alt) > 20
        assert picture.caption
    if any(picture.failing for picture in said.pictures) or any(fact.verdict == "fails" for fact in said.facts):
        assert said.fails
    everything = " ".join([said.setting, said.paper, said.ours, said.privacy, said.shows, *said.tables])
    assert not re.search(r"\bnan\b|None|Bracket\(", everything)


def test_every_table_and_figure_of_the_paper_is_there():
    places = [section.place for section in registry.SECTIONS if not section.ours]
    assert [place for place in places if place.startswith(("Table", "Figure"))] == [
        "Table 1",
        *(f"Figure {number}" for number in range(1, 12)),
    ]
    assert {"Section 4", "Property 1", "Remark 2", "Appendix A"} <= set(places)
    assert {section.experiment for section in registry.SECTIONS} == set(registry.EXPERIMENTS)
    names = [section.name for section in registry.SECTIONS]
    assert len(set(names)) == len(names)


@pytest.mark.slow
def test_no_picture_is_made_for_nothing(made):
    for name in registry.EXPERIMENTS:
        if name in ("counts", "pca"):
            continue  # their sheets and panels exist for readers of the folder too
        shown = {
            picture.file
            for section in (*registry.SECTIONS, *registry.STUDY_SECTIONS)
            if section.experiment == name
            for picture in section.write(made(name).numbers).pictures
        }
        assert shown | {f"{file[:-4]}.png" for file in shown} == set(made(name).files)


@pytest.mark.slow
def test_the_report_does_not_compute_what_only_the_page_of_the_demonstration_shows(made):
    work = registry.EXPERIMENTS["demo"]
    brief, whole = work.run(None, None, **work.parameters(Settings())), made("demo")
    shown = {picture.file for picture in registry.chosen(["curves"])[0].write(brief.numbers).pictures}
    assert set(brief.files) == shown | {f"{file[:-4]}.png" for file in shown} < set(whole.files)
    assert all(brief.files[file] == whole.files[file] for file in brief.files)
    assert (brief.numbers["reconstructions"], brief.numbers["frontier"]) == ([], [])
    assert brief.numbers["rows"] == whole.numbers["rows"]


@pytest.mark.slow
def test_every_drawing_has_a_twin_of_pixels(made):
    for name in ("table-1", "angle", "attacks"):
        files = made(name).files
        for file in [file for file in files if file.endswith(".svg")]:
            high, wide = imread(io.BytesIO(files[file[:-4] + ".png"])).shape[:2]
            across, up = map(float, re.search(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"', files[file]).groups())
            assert (wide, high) == pytest.approx((150 / 72 * across, 150 / 72 * up), abs=1.5)


# Numbers by other routes.


@pytest.mark.slow
def test_table_1_has_the_papers_constants_and_the_exact_delta(made):
    rows = {row["key"]: row for row in made("table-1").numbers["rows"]}
    cells, epsilon, delta, squared = 89 * 89, 1e-5, 1e-7, 2.0
    assert rows["classic-gaussian"]["constant"] == pytest.approx(
        2 * math.log(1.25 / delta) / epsilon**2 * cells * squared
    )
    assert rows["r1smg"]["constant"] == pytest.approx(oracles.r1smg_eigenvalue(cells, epsilon, delta, math.sqrt(2.0)))
    assert rows["r1smg"]["expected_loss"] == pytest.approx(rows["r1smg"]["constant"])
    sigma = float(oracles.gaussian_sigma(epsilon, delta)) * math.sqrt(2.0)
    assert rows["analytic-gaussian"]["exact_loss"] == pytest.approx(cells * sigma**2, rel=1e-6)
    exact = oracles.delta_positive(r1smg_case(cells, epsilon, delta, math.sqrt(2.0)))
    assert rows["r1smg"]["exact"]["lower"] * (1 - 1e-9) <= exact <= rows["r1smg"]["exact"]["upper"] * (1 + 1e-9)
    assert exact == pytest.approx(0.2166, abs=5e-5)
    assert [rows[key]["verdict"] for key in rows] == ["holds", "holds", "holds", "fails"]
    assert rows["r1smg"]["kurtosis"] == pytest.approx(35 / 3)
    assert rows["r1smg"]["skewness"] == pytest.approx(5 / math.sqrt(3.0))
    assert rows["r1smg"]["tail"] == pytest.approx(3.2905267314918945**2)  # the square of a normal's 99.95% quantile
    # One entry alone is private noise against a change of full length, so M times the scalar bound holds for any rank.
    bound = made("table-1").numbers["bound"]
    alone = cells * squared * scalar_bound(epsilon, delta)
    assert alone < bound < rows["analytic-gaussian"]["exact_loss"] < 1.05 * bound
    assert rows["r1smg"]["expected_loss"] < 1e-8 * alone


@pytest.mark.slow
def test_loss_against_dimension_is_the_papers_formula_and_the_exact_delta(made):
    for row in made("loss-against-dimension").numbers["rows"]:
        setting = (row["dimension"], row["epsilon"], 1e-10, 1.0)
        assert row["r1smg"] == pytest.approx(oracles.r1smg_eigenvalue(*setting))
        assert_upper_end(row["r1smg_delta"], oracles.delta_positive(r1smg_case(*setting)))
        sigma = float(oracles.gaussian_sigma(row["epsilon"], 1e-10))
        assert row["analytic_exact"] == pytest.approx(row["dimension"] * sigma**2, rel=1e-5)
        assert row["dimension"] * scalar_bound(row["epsilon"], 1e-10) < row["any_rank"] < row["analytic_exact"]
        assert row["r1smg"] < 1e-8 * row["any_rank"]


@pytest.mark.slow
def test_the_range_of_epsilon_has_exact_deltas_on_both_sides_of_its_limit(made):
    numbers = made("range-of-epsilon").numbers
    inside, outside = numbers["rows"]
    assert inside["epsilon"] < numbers["limit"] == 0.01 < outside["epsilon"]
    for row in numbers["rows"]:
        exact = oracles.delta_positive(r1smg_case(100, row["epsilon"], 1e-7, 1.0))
        assert row["exact"]["lower"] * (1 - 1e-9) <= exact <= row["exact"]["upper"] * (1 + 1e-9)
        assert exact > 1e-7 >= row["gaussian_exact"]["upper"]


@pytest.mark.slow
def test_an_observer_of_r1smg_sees_a_covariance_of_full_rank(made):
    numbers = made("covariance").numbers
    eigenvalue = oracles.r1smg_eigenvalue(100, 1e-3, 1e-5, 1.0)
    assert numbers["eigenvalue"] == pytest.approx(eigenvalue)
    assert numbers["rank"] == len(numbers["eigenvalues"]) == 100
    # The trace is the mean of 20,000 losses, each eigenvalue times a squared normal variable.
    assert numbers["trace"] == pytest.approx(eigenvalue, rel=6.5 * math.sqrt(2.0 / 20_000))
    assert sum(numbers["eigenvalues"]) == pytest.approx(numbers["trace"])
    assert 0.5 * eigenvalue / 100 < min(numbers["eigenvalues"]) < max(numbers["eigenvalues"]) < 2.0 * eigenvalue / 100
    # One coefficient of a Gaussian's variance along a random direction.
    variance = float(oracles.gaussian_sigma(1e-3, 1e-5)) ** 2
    exact = oracles.delta_positive(oracles.Case(100, 1.0, 2.0, math.sqrt(2.0 * variance), 1.0, 1e-3))
    assert exact == pytest.approx(numbers["random_direction"]["upper"], rel=1e-3)
    assert exact > 1000 * 1e-5


@pytest.mark.slow
def test_noise_in_the_span_of_dependent_queries_is_enough(made):
    numbers = made("dependent-queries").numbers
    variance = float(oracles.gaussian_sigma(1e-3, 1e-5)) ** 2
    for row in numbers["rows"]:
        rank = row["rank"]
        assert rank == 5 if row["queries"] == 40 else rank <= min(row["queries"], 5)
        assert row["span"] == pytest.approx(rank * variance, rel=1e-6)
        assert row["simulated"] == pytest.approx(row["span"], rel=6.5 * math.sqrt(2.0 / (500 * rank)))
        assert row["gaussian"] == pytest.approx(row["queries"] * variance, rel=1e-6)
        exact = oracles.delta_positive(r1smg_case(row["queries"], 1e-3, 1e-5, 1.0))
        assert_upper_end(row["exact"]["upper"], exact)


def test_the_angle_of_the_proof_is_seldom_where_it_must_be(made):
    numbers = made("angle").numbers
    assert numbers["event_bound"] == pytest.approx(math.erf(math.sqrt(1e-5) / 2.0))
    chance, draws = numbers["event_draws"] / numbers["draws"], numbers["draws"]
    assert chance <= numbers["event_bound"] + 6.5 * math.sqrt(numbers["event_bound"] / draws)
    # Half of |z| is below 0.6745; a long side and a short shift at a right angle meet at about atan(1/length).
    length = 0.6744897501960817 * math.sqrt(oracles.r1smg_eigenvalue(7921, 1e-5, 1e-7, math.sqrt(2.0)) / 2.0)
    assert numbers["median_length"] == pytest.approx(length, rel=0.05)
    assert numbers["median_angle"] == pytest.approx(math.atan(1.0 / length), rel=0.05)


@pytest.mark.slow
def test_the_attack_without_the_null_space_stays_below_the_exact_delta_and_refutes(made):
    numbers = made("null-space").numbers
    exact = oracles.delta_positive(r1smg_case(100, 1e-3, 1e-5, 1.0))
    assert numbers["exact"]["lower"] * (1 - 1e-9) <= exact <= numbers["exact"]["upper"] * (1 + 1e-9)
    assert 0.1 < numbers["audit"]["delta"] < exact
    assert numbers["guesses_in_null_space"] == 0
    # P(nearer to its own) = (1 + total variation)/2, and delta(epsilon) is nearly that at so small an epsilon.
    trials = 8000
    assert numbers["nearer_to_its_own"] == pytest.approx(0.5 + 0.5 * exact, abs=6.5 * 0.5 / math.sqrt(trials) + 1e-3)
    assert sum(numbers["of_value"]) > sum(numbers["of_value"][:20]) * 2, "releases of the value lie to the right"


@pytest.mark.slow
def test_attacks_prove_no_more_than_is_true(made):
    for row in made("attacks").numbers["rows"]:
        assert row["audit"]["delta"] <= row["exact"]["upper"]
        assert row["audit"]["refuted"]
        assert row["verdict"] == "fails"


@pytest.mark.slow
def test_claims_are_those_of_the_record(made):
    rows = made("claims").numbers["rows"]
    assert [row["mechanism"] for row in rows] == ["r1smg-published"] * 5 + ["classic-gaussian"] * 2
    assert [row["verdict_word"] for row in rows] == ["fails"] * 5 + ["holds", "fails"]
    classic = rows[6]
    sigma = math.sqrt(2.0 * math.log(1.25 / 1e-5)) / 10.0
    assert classic["exact"]["upper"] == pytest.approx(float(oracles.gaussian_delta(1.0 / sigma, 10.0)), rel=1e-6)
    assert rows[0]["exact"]["upper"] == pytest.approx(0.2166, abs=5e-5)


@pytest.mark.slow
def test_the_frontier_is_bounded_and_exact(made):
    for point in made("frontier").numbers["points"]:
        assert 0.0 < point["bound"] <= point["least"] <= min(point["l2"], 1.0)
        target = {"epsilon": point["epsilon"], "delta": 1e-6, "sensitivity": 1, "shape": point["dimension"]}
        sigma = float(oracles.gaussian_sigma(point["epsilon"], 1e-6))
        least = ln.least_noise(**target)
        assert least.delta(point["epsilon"]).upper <= 1e-6
        assert point["least"] == pytest.approx(least.expected_loss / (point["dimension"] * sigma**2), rel=1e-6)


@pytest.mark.slow
def test_counts_have_the_losses_that_theory_expects(made):
    numbers = made("counts").numbers
    share = numbers["occupied_cells"] / 7921
    by_key = {row["key"]: row for row in numbers["paper_settings"]}
    sigma = float(oracles.gaussian_sigma(0.5, 1e-7)) * math.sqrt(2.0)
    gaussian = by_key["analytic-gaussian"]["losses"]
    assert gaussian["expected_valid"] == pytest.approx(share * 7921 * sigma**2, rel=1e-6)
    published = by_key["r1smg-published"]
    eigenvalue = oracles.r1smg_eigenvalue(7921, 1e-5, 1e-7, math.sqrt(2.0))
    assert published["losses"]["expected_whole"] == pytest.approx(eigenvalue)
    # Rounding returns the table if and only if no cell's noise reaches 1/2.
    attack = next(row for row in numbers["reconstruction"] if row["key"] == "r1smg-published")
    assert attack["releases"] == 400
    assert attack["exact_tables"] == pytest.approx(400 * 0.014, abs=6.5 * math.sqrt(400 * 0.014))
    assert {row["verdict_word"] for row in numbers["honest"]} == {"holds"}
    for row in numbers["honest"]:
        exact = row["verdict"]["exact"]["upper"]
        assert exact <= 1e-7
    exact = oracles.delta_positive(r1smg_case(7921, 1e-5, 1e-7, math.sqrt(2.0)))
    assert_upper_end(numbers["true_r1smg_target"]["delta"], exact)


@pytest.mark.slow
def test_curves_are_the_exact_ones(made):
    numbers = made("demo").numbers
    row = next(row for row in numbers["rows"] if row["key"] == "r1smg-published-paper")
    for epsilon, upper in row["curve"][:: max(1, len(row["curve"]) // 4)]:
        case = r1smg_case(7921, 1e-5, 1e-7, math.sqrt(2.0), at=epsilon)
        assert upper == pytest.approx(oracles.delta_positive(case), rel=1e-4)
    said = words.demo.curves(numbers)
    assert "0.2166" in said.privacy


def test_what_mvg_needs_beside_what_the_paper_prints(made):
    numbers = made("mvg").numbers
    rows = {(row["query"], row["key"]): row for row in numbers["rows"]}
    assert all(row["verdict"] == "holds" for row in rows.values())
    assert rows["covariance", "published"]["product"] == pytest.approx(2.287e-17, rel=3e-4)  # the paper: 0.011
    sigma = {name: rows["counts", name]["standard_deviation"] for name in ("published", "code", "exact")}
    assert sigma["published"] == pytest.approx(1.107e7, rel=1e-3)
    assert sigma["code"] == pytest.approx(2.409e5, rel=1e-3)
    assert sigma["exact"] == pytest.approx(float(oracles.gaussian_sigma(0.5, 1e-7)) * math.sqrt(2.0), rel=1e-6)
    assert numbers["paper"]["standard_deviation"] == pytest.approx(math.sqrt(2400 / 0.011))
    said = words.mvg.needed(numbers)
    assert re.search(r"≤ 0\.011\$? to achieve the desired privacy guarantee", said.setting)
    assert "gives 2.29e-17, not 0.011" in said.ours


@pytest.mark.slow
def test_components_have_known_exact_deltas(made):
    pytest.importorskip("sklearn")
    numbers = made("pca").numbers
    wishart = next(p for p in numbers["points"] if p["key"] == "wishart" and p["part"] == "published")
    assert wishart["exact_delta"]["lower"] == pytest.approx(1.0 - math.exp(-1.6 / 3.0), rel=1e-6)
    published = next(p for p in numbers["points"] if p["key"] == "r1smg-published" and p["part"] == "published")
    sensitivity = math.sqrt(2.0) * 64 / 1797
    exact = oracles.delta_positive(r1smg_case(64 * 64, 1.6e-7, 1e-7, sensitivity))
    assert_upper_end(published["exact_delta"]["upper"], exact)
    for point in numbers["points"]:
        if point["part"].startswith("equal"):
            assert point["exact_delta"]["upper"] <= 1e-7


@pytest.mark.slow
def test_learning_shows_the_stored_runs(made):
    numbers = made("learning").numbers
    from lessnoise_paper.training import results

    stored = results.read("mnist")
    runs = [run for run in stored["runs"] if run["method"] == "r1smg-published" and run["epsilon"] == 1.795]
    row = next(
        row
        for row in numbers["rows"]
        if (row["data"], row["method"], row["claimed_epsilon"]) == ("mnist", "r1smg-published", 1.795)
    )
    assert row["test_accuracy"] == pytest.approx(np.mean([run["test"][-1] for run in runs]))
    said = words.learning.figure_7(numbers)
    assert "delta above 0.999999" in said.facts[0].exact
    assert "16.983" in said.setting
    assert words.learning.figure_8(numbers).headline == ""
    assert "too small for its claim too" not in said.shows, "the noise multiplier for MNIST gives what the paper says"
    cifar = words.learning.figure_8(numbers).shows
    assert "it gives (3.5112, 1e-5)-DP at claimed ε = 2.673 and (30.841, 1e-5)-DP at claimed ε = 20.713" in cifar


@pytest.mark.slow
def test_learning_words_tell_what_an_attack_on_one_step_proves(made):
    numbers = json.loads(json.dumps(made("learning").numbers))
    shares = {"right_guesses_proved": 0.96999, "right_guesses_claimed": 0.67101, "right_guesses_limit": 0.67501}
    numbers["membership"] = [
        {"method": method, **shares, "training_claimed_epsilon": 1.795, "audit": {"confidence": 0.999}}
        for method in ("r1smg-published", "dpsgd")
    ]
    said = words.learning.membership(numbers)
    assert "99.9% confidence" in said.setting
    assert "at least 96.9% right" in said.ours, "what is proved is rounded down"
    assert "allows 67.2%" in said.ours, "what is possible is rounded up"
    assert "exceed 67.6%" in said.privacy


# Words follow numbers.


def test_words_change_with_the_numbers(made):
    numbers = json.loads(json.dumps(made("table-1").numbers))
    row = next(row for row in numbers["rows"] if row["key"] == "r1smg")
    row["exact"] = {"lower": 0.123449, "upper": 0.12345}
    said = words.theory.table_1(numbers)
    assert "0.1234" in said.privacy
    assert "0.2166" not in said.privacy
    assert said.facts[0].exact == "delta from 0.1234 to 0.1235"


def test_table_1_names_every_constant_below_what_the_gaussian_needs(made):
    numbers = json.loads(json.dumps(made("table-1").numbers))
    rows = {row["key"]: row for row in numbers["rows"]}
    needed = rows["analytic-gaussian"]["exact_loss"]
    assert [key for key, row in rows.items() if row["constant"] < needed] == ["mvg", "r1smg"]
    assert "needs, 4.71e14: C_M and C_R." in words.theory.table_1(numbers).shows
    rows["mvg"]["constant"] = 2.0 * needed
    assert "only C_R promises less" in words.theory.table_1(numbers).shows


def test_columns_without_content_are_left_out():
    made = wording.rows_table(("M", "first", "second"), [("x", None, ("", "1")), ("y", None, ("", ""))], "a table")
    assert "first" not in made
    assert made.count("<td>") == 2


def test_words_name_every_value_and_get_every_value():
    with pytest.raises(KeyError, match="no part names other"):
        wording.Wording("counts", "pieces", names="DAWA", other=1)
    with pytest.raises(KeyError, match="names"):
        wording.Wording("counts", "pieces")("flat")
    say = wording.Wording("counts", "fig-5", repetitions=3, occupied_cells=2, shape=[4, 5])
    assert say("setting").startswith("3 releases of each mechanism")
    assert "over the 2 occupied cells of 4 x 5." in say("setting")
    assert "even with ε = 0.5”. R1SMG's" in say("paper", where=""), "what is empty takes the space before it along"
    assert say("headline") == ""


def test_every_file_of_words_is_shipped_and_used():
    place = wording.resources.files(words) / "words"
    assert {entry.name for entry in place.iterdir()} == {
        *("common.md", "counts.md", "demo.md", "learning.md", "mvg.md", "ours.md", "pca.md", "remarks.md"),
        "theory.md",
    }


@pytest.mark.slow
def test_words_on_components_follow_the_numbers(made):
    numbers = json.loads(json.dumps(made("pca").numbers))
    assert "Accuracy says little" in words.pca.figure_11(numbers).shows
    for point in numbers["points"]:
        if point["part"] == "small":
            point["accuracies"] = [0.1 for _ in point["accuracies"]]
        if point["key"] == "r1smg-published":
            point["deviations"] = [1.0, 2.5] if point["part"] == "small" else [0.5]
    assert "Accuracy says little" not in words.pca.figure_11(numbers).shows
    assert (
        "the deviations of 3 releases, those of figures 6 and 11, lie between 0.5 and 2.5"
        in words.pca.figure_6(numbers).ours
    )
    assert "does well at an epsilon ten million times smaller" in words.pca.figure_6(numbers).shows
    small = [point for point in numbers["points"] if point["part"] == "small"]
    right = max(point["epsilon"] for point in small)
    assert f"Deviation at {text.number(right)}" in re.sub("<[^>]*>", "", words.pca.figure_11(numbers).tables[0])
    several = [{**point, "deviations": [1.0, 2.0, 3.0], "accuracies": [0.5, 0.5, 0.8]} for point in numbers["points"]]
    assert "2 ± 1</td>" in words.pca.equal({**numbers, "points": several}).tables[0]
    assert "60 ± 17%</td>" in words.pca.equal({**numbers, "points": several}).tables[0]
    assert "R1SMG, published, at 1e-7 of it" in re.sub("<[^>]*>", "", words.pca.figure_6(numbers).tables[0])


def test_a_verdict_is_judged_again_from_the_bracket():
    values = {
        "claimed": {"epsilon": 1.0, "delta": 0.1, "neighbours": "replace"},
        "exact": {"lower": 0.05, "upper": 0.2},
        "verdict": "holds",
    }
    assert wording.verdict_of(values).word == "not proved"
    values["exact"] = {"lower": 0.15, "upper": 0.2}
    assert wording.verdict_of(values).word == "fails"


def test_cells_are_escaped_and_long_ones_may_break():
    table = wording.rows_table("abcd", [("x < y", "#CC6677", ["R & D", "word " * 9, wording.chip("fails")])], "t & u")
    assert "x &lt; y" in table
    assert "R &amp; D" in table
    assert '<td class="text wide">' in table
    assert 'aria-label="t &amp; u"' in table
    assert "var(--c-cc6677)" in table
    assert '<span class="verdict fails">fails</span>' in table


def test_the_count_query_is_the_papers():
    assert (COUNT_QUERY["epsilon"], COUNT_QUERY["delta"]) == (1e-5, 1e-7)
    assert COUNT_QUERY["sensitivity"] ** 2 == pytest.approx(2.0)
    assert COUNT_QUERY["shape"] == [89, 89]


# The page.


@pytest.mark.parametrize("verdict", ["holds", "fails"])
def test_colours_of_verdicts_follow_the_page_and_stay_readable(verdict):
    assert contrast(night(VERDICT_COLOURS[verdict]), night("#ffffff")) > 4.5


@pytest.fixture(scope="module")
def run(made, tmp_path_factory):
    """A whole report of the small computations."""
    works = {
        name: replace(work, run=lambda _folder, _progress, name=name, **_: made(name))
        for name, work in EXPERIMENTS.items()
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "EXPERIMENTS", works)
        return reproduce(tmp_path_factory.mktemp("report"), Settings(quick=True), jobs=1)


@pytest.fixture(scope="module")
def page(run):
    return (run.out / "index.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_is_well_formed_and_every_id_is_its_own(page):
    outline = Outline(page)
    assert outline.unbalanced == []
    assert outline.open == []
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    wanted = {a["href"][1:] for a in outline.all("a") if a["href"].startswith("#")}
    assert wanted <= set(ids), "every link of the contents leads somewhere"


@pytest.mark.slow
def test_links_lead_to_the_paper_and_to_files_beside_the_page(page, run):
    links = {a["href"] for a in Outline(page).all("a") if not a["href"].startswith("#")}
    assert {link for link in links if link.startswith("https:")} == {PAPER_PAGE, PAPER_FULL}
    beside = {link for link in links if not link.startswith("https:")}
    assert all((run.out / link).is_file() for link in beside)
    assert {f"data/{section.experiment}.json" for section in run.sections} | {"manifest.json"} <= beside
    drawings = {f"figures/{path.name}" for path in (run.out / "figures").glob("*.svg")}
    assert len(drawings & beside) > 15
    assert all(link[:-4] + ".png" in beside for link in drawings & beside)


@pytest.mark.slow
def test_the_page_needs_nothing_from_elsewhere(page):
    outline = Outline(page)
    assert not outline.all("link")
    assert not [a for a in outline.all("script") if "src" in a]
    for _, attributes in outline.tags:
        for name in ("src", "xlink:href", "action"):
            assert str(attributes.get(name, "#")).startswith(("#", "data:"))
    assert {tag for tag, attributes in outline.tags if "href" in attributes} == {"a"}, "links wait for a click"
    assert "@import" not in page
    assert not re.search(r"url\((?!#|.?data:)", page)


@pytest.mark.slow
def test_every_figure_has_alternative_text_with_a_number_and_a_caption(page, run):
    outline = Outline(page)
    figures = re.findall(r"<figure.*?</figure>", page, flags=re.DOTALL)
    shown = sum(len(section.write(run.outcomes[section.experiment].numbers).pictures) for section in run.sections)
    assert len(figures) == shown == len(outline.all("figure")) > 30
    for one in figures:
        label = re.search(r'(?:<svg [^>]*aria-label|<img [^>]*alt)="([^"]{20,})"', one)
        assert label is not None
        assert re.search(r"\d", label.group(1))
        assert re.search(r"<figcaption>.{20,}</figcaption>", one, flags=re.DOTALL)
    assert all("tabindex" in a for a in outline.all("div") if a.get("class") in ("card", "scroll")), "keys can scroll"


@pytest.mark.slow
def test_no_formula_is_left_as_it_is_typed(page):
    report = page[page.index("<header>") : page.index('id="explorer"')]
    assert report.count("<math>") > 30
    words = re.sub(r"<svg.*?</svg>|<math>.*?</math>|<a [^>]*>.*?</a>|<[^>]*>", " ", report, flags=re.DOTALL)
    assert re.findall(r".{0,30}(?:\b[^\W\d]_\w|\^|\$).{0,30}", words) == []


@pytest.mark.slow
def test_every_section_of_the_page_states_its_exact_privacy(page, run):
    parts = page.split('<section id="')[1:]
    named = {part.split('"', 1)[0]: part for part in parts}
    for section in run.sections:
        exact = re.search(r"<dt>Exact privacy</dt><dd[^>]*>(.+?)</dd>", named[section.name], flags=re.DOTALL)
        assert exact is not None
        assert len(exact.group(1)) > 30
    assert page.count("Seeded releases are not private") == 1


@pytest.mark.slow
def test_the_summary_has_claims_beside_exact_values(page):
    summary = re.search(r'<section class="summary".*?</section>', page, flags=re.DOTALL).group(0)
    assert 4 <= summary.count("<li>") <= 7
    assert "R1SMG, 89 x 89 counts (Figure 4)" in summary
    assert summary.count("89 x 89 counts (Figure 4)") == 1
    assert "delta 0.2166" in summary
    assert "delta above 0.999999" in summary


@pytest.mark.slow
def test_the_manifest_describes_every_file(run):
    manifest = json.loads((run.out / "manifest.json").read_text(encoding="utf-8"))
    there = {str(path.relative_to(run.out)) for path in run.out.rglob("*") if path.is_file()}
    assert set(manifest["files"]) == there - {"manifest.json"}
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((run.out / name).read_bytes()).hexdigest() == digest
    assert manifest["versions"]["lessnoise"] == ln.__version__
    assert manifest["versions"]["numpy"] == np.__version__
    assert manifest["versions"]["python"] == platform.python_version()
    assert manifest["private"] is False
    assert {work["status"] for work in manifest["experiments"].values()} == {"made"}
    assert manifest["experiments"]["angle"]["parameters"]["seed"] == 0
    assert {path.split(".")[-1] for path in there} == {"html", "json", "svg", "png", "csv"}


@pytest.mark.slow
@pytest.mark.skipif(browser.CHROMIUM is None, reason="needs Chromium: install chromium or google-chrome")
def test_a_browser_shows_the_page_without_complaints_on_any_screen(run):
    with browser.browser() as tab:
        white, dark = "rgb(255, 255, 255)", "rgb(31, 31, 31)"
        for width, scheme, paper in ((1400, "light", white), (1200, "light", white), (390, "dark", dark)):
            tab.scheme(scheme)
            assert_fits(tab, (run.out / "index.html").as_uri(), [width])
            drawn = "getComputedStyle(document.querySelector('.card svg path[style*=\\'--c-ffffff\\']')).fill"
            assert tab.run(drawn) == paper, "pictures follow the page"
        assert tab.complaints == []


@pytest.mark.slow
@pytest.mark.skipif(browser.CHROMIUM is None, reason="needs Chromium: install chromium or google-chrome")
def test_the_page_works_by_keyboard_and_keeps_its_explorer(run):
    with browser.browser() as tab:
        tab.resize(1200, 900)
        tab.open((run.out / "index.html").as_uri() + "#fig-9")
        tab.press("Tab")
        assert tab.run("location.hash") == "#fig-9", "the explorer leaves the reader's place alone"
        focusable = tab.run("document.querySelectorAll('nav a').length")
        assert focusable == len(run.sections) + 1
        tab.run("document.querySelector('nav a[href=\"#fig-4\"]').focus()")
        tab.press("Enter")
        assert tab.run("location.hash") == "#fig-4"
        assert abs(tab.run("document.querySelector('#fig-4').getBoundingClientRect().top")) < 200
        assert tab.run("document.querySelectorAll('section.lnx').length") == 1
        assert tab.complaints == []


@pytest.mark.slow
@pytest.mark.skipif(browser.CHROMIUM is None, reason="needs Chromium: install chromium or google-chrome")
def test_pages_of_single_studies_fit_a_phone_and_a_desk(made, tmp_path):
    with browser.browser() as tab:
        for selection in (registry.DEMO, registry.COUNTS, registry.COMPONENTS, registry.TRAINING_ATTACKED):
            name = selection.sections[0].experiment
            numbers = json.loads(json.dumps(made(name).numbers))
            outcomes = {name: Outcome(name, "made", 1.0, numbers=numbers)}
            shown = Page(selection, Settings(), outcomes, made(name).files.__getitem__, "numbers.json")
            file = tmp_path / f"{name}.html"
            file.write_text(page_html(shown), encoding="utf-8")
            assert_fits(tab, file.as_uri())
        assert tab.complaints == []


@pytest.mark.slow
@pytest.mark.skipif(browser.CHROMIUM is None, reason="needs Chromium: install chromium or google-chrome")
def test_a_browser_typesets_formulas_and_finds_values_under_the_pointer(run):
    with browser.browser() as tab:
        tab.resize(1400, 900)
        tab.open((run.out / "index.html").as_uri())
        index = "document.querySelector('#table-1 msub > :nth-child(2)')"
        assert tab.run(f"{index}.getBoundingClientRect().top > {index}.previousSibling.getBoundingClientRect().top")
        found = tab.run(
            """(() => {
              const spot = document.querySelector('#table-1 .value');
              spot.scrollIntoView({block: 'center'});
              const box = spot.getBoundingClientRect();
              const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
              return top.querySelector('title').textContent;
            })()"""
        )
        assert re.fullmatch(r"(classic Gaussian|analytic Gaussian|MVG|R1SMG): expected loss [\d.,e]+", found)
