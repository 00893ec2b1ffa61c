"""The explorer in a real browser: its numbers against the library, its controls by hand and by keyboard."""

import json
import math
import random
import re
import shlex
import warnings
from fractions import Fraction

import pytest
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise import Request, explorer
from lessnoise.cli import app
from lessnoise.explorer import html_page
from lessnoise.explorer.html_page import contrast, legible
from lessnoise.mechanism.catalogue import find_mechanism
from lessnoise.mechanism.curve import delta_of
from lessnoise.report.canvas import COLOURS
from tests.helpers.browser import CHROMIUM, browser

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: install chromium or google-chrome")
CLOSED = ("analytic-gaussian", "laplace", "zhao-gaussian-1", "classic-gaussian", "r1smg-published")
CALIBRATED = ("l2", "r1smg")
BALL = "#explore?M=7921&epsilon=1e-5&delta=1e-7&sensitivity=1.41421356"
SETS = ("ball", "counts", "moved", "entries", "corner")


def _settings(count, seed):
    """Random settings over the sliders' whole ranges, logarithmically."""
    draw = random.Random(seed)

    def between(low, high):
        return float(f"{math.exp(draw.uniform(math.log(low), math.log(high))):.4g}")

    return [
        {
            "dimension": round(between(1, 1e6)),
            "epsilon": between(1e-5, 20),
            "delta": between(1e-12, 0.1),
            "sensitivity": between(1e-3, 1e3),
        }
        for _ in range(count)
    ]


CORNERS = [
    {"dimension": m, "epsilon": e, "delta": d, "sensitivity": 1.0}
    for m in (1, 2, 3, 10**6)
    for e, d in ((1e-5, 1e-12), (20.0, 1e-12), (1e-5, 0.1), (20.0, 0.1))
]


def _build(name, setting):
    target, size = (setting["epsilon"], setting["delta"]), setting["sensitivity"]
    shape, kind = (setting["dimension"],), setting.get("changes", "ball")
    if kind == "ball":
        request = Request(*target, size, shape)
    else:
        found = {
            "counts": ln.changes.counts(),
            "moved": ln.changes.counts(neighbours="replace"),
            "entries": ln.changes.ball(size, norm=math.inf),
            "corner": ln.changes.corner(size),
        }[kind]
        request = Request(*target, None, shape, found.relation or ln.Neighbours.ADD_REMOVE, changes=found)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ln.ClaimWarning)
        return find_mechanism(name).build(request)


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    """One browser for all tests; the page and its numerical functions are both at hand."""
    folder = tmp_path_factory.mktemp("explorer")
    (folder / "page.html").write_text(explorer.page(), encoding="utf-8")
    with browser() as opened:
        opened.page = (folder / "page.html").as_uri()
        yield opened


@pytest.fixture
def page(tab):
    """The page, freshly loaded at its first setting."""
    tab.complaints.clear()
    tab.resize(1200, 1000)
    tab.scheme("light")
    tab.open("about:blank")
    tab.open(tab.page)
    _settle(tab)
    yield tab
    assert tab.complaints == []


def _settle(tab):
    """Wait until numbers and curves are those of the controls, which the address names."""
    settled = tab.run(
        """new Promise(done => {
          const end = performance.now() + 60000;
          const look = () => {
            const { drawn } = document.querySelector('.lnx').dataset;
            const ready = drawn && ['', drawn].includes(location.hash);
            if (ready || performance.now() > end) done(ready);
            else setTimeout(look, 5);
          };
          requestAnimationFrame(() => setTimeout(look, 0));
        })"""
    )
    assert settled


def _functions(tab, *names):
    """The page's own functions, made visible."""
    tab.open("about:blank")
    tab.run(html_page.program(f"globalThis.lnx = {{ {', '.join(names)} }};") + "true")


def _rows(tab):
    """The table as shown: name -> cells."""
    script = (
        "Object.fromEntries([...document.querySelectorAll('.lnx-table tbody tr')]"
        ".map(row => [row.dataset.m, [...row.cells].slice(1).map(cell => cell.textContent)]))"
    )
    return tab.run(script)


# Numbers.


@pytest.mark.slow
@needs_chromium
def test_closed_forms_and_published_calibrations_agree_with_the_library(tab):
    _functions(tab, "mechanismsAt")
    settings = CORNERS + _settings(60, seed=1)
    found = tab.run(f"{json.dumps(settings)}.map(setting => lnx.mechanismsAt(setting))")
    verdicts = set()
    for setting, rows in zip(settings, found, strict=True):
        by_name = {row["name"]: row for row in rows}
        for name in CLOSED:
            if name == "r1smg-published" and setting["dimension"] <= 2:
                assert name not in by_name
                continue
            row, mechanism = by_name[name], _build(name, setting)
            assert row["loss"] == pytest.approx(mechanism.expected_loss, rel=1e-6), (name, setting)
            verdict = mechanism.check()
            # What the library calibrates leaves room for the finite machine: up to 3e-6 of these deltas.
            exact, slack = verdict.exact, 1e-5 if name == "analytic-gaussian" else 1e-6
            assert exact.lower * (1 - slack) <= row["exact"] <= exact.upper * (1 + slack), (name, setting)
            assert row["holds"] == verdict.holds, (name, setting)
            verdicts.add((name, row["holds"]))
    # Both verdicts occur where both are possible, so that the comparison says something.
    assert {("r1smg-published", True), ("r1smg-published", False)} <= verdicts
    assert {("classic-gaussian", True), ("classic-gaussian", False)} <= verdicts


@pytest.mark.slow
@needs_chromium
def test_exact_calibrations_agree_with_the_library(tab):
    _functions(tab, "mechanismsAt")
    settings = CORNERS[::3] + _settings(14, seed=2)
    found = tab.run(f"{json.dumps(settings)}.map(setting => lnx.mechanismsAt(setting))")
    for setting, rows in zip(settings, found, strict=True):
        by_name = {row["name"]: row for row in rows}
        for name in CALIBRATED:
            mechanism = _build(name, setting)
            # The library stops within 1e-4 of the tightest scale.
            assert by_name[name]["loss"] == pytest.approx(mechanism.expected_loss, rel=3e-4), (name, setting)
            assert by_name[name]["holds"]


@pytest.mark.slow
@needs_chromium
def test_curves_agree_with_the_library_to_six_digits(tab):
    _functions(tab, "radialDelta", "unitBall")
    cases, expected = [], []
    for setting in _settings(7, seed=3):
        for name in CALIBRATED:
            mechanism = _build(name, {**setting, "sensitivity": 1.0})
            for factor in (1.0, 0.2):
                epsilon = factor * setting["epsilon"]
                bracket = delta_of(mechanism.law, mechanism.dimension, 1.0, epsilon, 1e-7)
                if 1e-60 < bracket.upper < 1.0:
                    law = mechanism.law
                    slack = float(1 - Fraction(epsilon) * Fraction(law.scale))
                    cases.append([mechanism.dimension, law.k, law.p, law.scale, epsilon, slack])
                    # The bracket is widened by the same share on both sides.
                    expected.append(bracket.middle)
    assert len(cases) > 20
    found = tab.run(
        f"{json.dumps(cases)}.map(([dimension, k, p, scale, epsilon, slack]) => "
        "lnx.radialDelta({ ball: lnx.unitBall(dimension), k, p, scale, epsilon, slack }))"
    )
    for case, value, truth in zip(cases, found, expected, strict=True):
        assert value == pytest.approx(truth, rel=1e-6), case


@pytest.mark.slow
@needs_chromium
def test_special_functions_agree_with_scipy(tab):
    from scipy import special

    _functions(tab, "erfcx", "erfcInverse", "logGamma")
    draw = random.Random(5)
    x = [draw.uniform(-5, 30) for _ in range(200)]
    a = [10 ** draw.uniform(-2, 6) for _ in range(200)]
    value = [10 ** draw.uniform(-30, -0.01) for _ in range(200)]
    found = tab.run(f"[{x}.map(lnx.erfcx), {a}.map(lnx.logGamma), {value}.map(lnx.erfcInverse)]")
    assert found[0] == pytest.approx(special.erfcx(x).tolist(), rel=1e-12)
    assert found[1] == pytest.approx(special.gammaln(a).tolist(), rel=1e-13, abs=1e-13)
    assert found[2] == pytest.approx(special.erfcinv(value).tolist(), rel=1e-11)


@needs_chromium
def test_shown_deltas_are_rounded_to_the_safe_side(tab):
    _functions(tab, "upwards", "nearest")
    draw = random.Random(6)
    values = [10 ** draw.uniform(-20, 0) for _ in range(300)]
    for value, text in zip(values, tab.run(f"{values}.map(value => lnx.upwards(value))"), strict=True):
        assert value * (1 - 2e-9) <= float(text) <= value * 1.0011
    assert tab.run("[lnx.upwards(1e-7), lnx.upwards(0.21661), lnx.upwards(0)]") == ["1e-7", "0.2167", "0"]


def _with_sets(settings):
    return [{**setting, "changes": SETS[i % len(SETS)]} for i, setting in enumerate(settings)]


@pytest.mark.slow
@needs_chromium
def test_noise_against_a_set_of_changes_agrees_with_the_library(tab):
    """Losses and verdicts of every closed form, for each of the five sets."""
    _functions(tab, "mechanismsAt")
    settings = _with_sets(CORNERS + CORNERS[1:] + _settings(40, seed=7))
    found = tab.run(f"{json.dumps(settings)}.map(setting => lnx.mechanismsAt(setting))")
    seen = set()
    for setting, rows in zip(settings, found, strict=True):
        by_name = {row["name"]: row for row in rows}
        counts = setting["changes"] in ("counts", "moved")
        one = setting["changes"] == "counts" or (counts and setting["dimension"] == 1)
        assert ("geometric" in by_name, "least-count-noise" in by_name) == (counts, one)
        names = [*CLOSED, *(["geometric"] if counts else []), *(["least-count-noise"] if one else [])]
        for name in names:
            if name == "r1smg-published" and setting["dimension"] <= 2:
                continue
            row, mechanism = by_name[name], _build(name, setting)
            assert row["loss"] == pytest.approx(mechanism.expected_loss, rel=3e-6), (name, setting)
            verdict = mechanism.check()
            assert verdict.exact.lower * (1 - 1e-5) <= row["exact"] <= verdict.exact.upper * (1 + 1e-5), (name, setting)
            assert row["holds"] == verdict.holds, (name, setting)
            seen.add((name, setting["changes"]))
    assert {(name, kind) for name in CLOSED for kind in SETS} <= seen
    assert {("least-count-noise", "counts"), ("geometric", "counts"), ("geometric", "moved")} <= seen


@pytest.mark.slow
@needs_chromium
def test_curves_of_integer_noise_agree_with_the_library(tab):
    _functions(tab, "pureGeometric", "leastCountNoise")
    cases = [(e, d) for e in (1e-5, 0.01, 0.3, 1.0, 5.0, 20.0) for d in (1e-12, 1e-6, 0.1)]
    factors = (0.0, 0.01, 0.5, 0.99, 1.0, 1.001, 1.5, 3.0)
    found = tab.run(
        f"{json.dumps(cases)}.map(([epsilon, delta]) => [lnx.leastCountNoise(epsilon, delta), "
        "lnx.pureGeometric(epsilon, 1), lnx.pureGeometric(epsilon, 2)].map(({ delta: at }) => "
        f"{json.dumps(factors)}.map(factor => at(factor * epsilon))))"
    )
    moved = ln.changes.counts(neighbours="replace")
    for (epsilon, delta), curves in zip(cases, found, strict=True):
        exact = [
            ln.geometric(epsilon=epsilon, delta=delta, shape=3),
            ln.geometric(epsilon=epsilon, shape=3),
            ln.geometric(epsilon=epsilon, shape=3, sensitivity=2, neighbours="replace").against(moved),
        ]
        for mechanism, curve in zip(exact, curves, strict=True):
            for factor, value in zip(factors, curve, strict=True):
                truth = mechanism.delta(factor * epsilon)
                # The page ends the optimum at delta itself, the library at what the finite machine leaves of it.
                assert truth.lower * (1 - 1e-5) - 1e-9 * delta <= value, (epsilon, delta, factor)
                assert value <= truth.upper * (1 + 1e-5) + 1e-5 * delta, (epsilon, delta, factor)


# The page.


def _shown_setting(tab):
    """The numbers in the boxes."""
    names = ("dimension", "epsilon", "delta", "sensitivity")
    return {name: float(tab.run(f"document.querySelector('[data-box={name}]').value")) for name in names}


def _chosen_set(tab):
    return tab.run("document.querySelector('[data-changes]').value")


def _go(tab, address):
    tab.run(f"location.hash = {json.dumps(address)}")
    _settle(tab)


def _compare_with_library(tab):
    """Shown numbers and verdicts of the mechanisms whose scale is in closed form."""
    setting = _shown_setting(tab)
    setting.update(dimension=int(setting["dimension"]), changes=_chosen_set(tab))
    rows = _rows(tab)
    for name in CLOSED:
        if name == "r1smg-published" and setting["dimension"] <= 2:
            continue
        mechanism = _build(name, setting)
        claimed, exact, verdict, _, loss, spread, _ = rows[name]
        assert float(claimed) == mechanism.claim.delta
        assert float(exact) == pytest.approx(mechanism.delta(setting["epsilon"]).upper, rel=1.1e-3, abs=0)
        assert verdict == ("holds" if mechanism.check().holds else "fails")
        assert float(loss) == pytest.approx(mechanism.expected_loss, rel=1e-3)
        assert float(spread) == pytest.approx(mechanism.standard_deviation, rel=1e-3)
    return setting


@pytest.mark.slow
@needs_chromium
def test_first_setting_is_the_papers(page):
    rows = _rows(page)
    assert rows["r1smg-published"][1:3] == ["0.2167", "fails"]
    assert "2.2 million times" in page.run("document.querySelector('.lnx-summary').textContent")
    found = _compare_with_library(page)
    assert (found["dimension"], found["changes"]) == (7921, "moved")


@pytest.mark.slow
@needs_chromium
def test_the_preset_of_a_histogram_is_of_counts(page):
    page.run("[...document.querySelectorAll('[data-preset]')].find(e => e.textContent === 'A histogram').click()")
    _settle(page)
    assert _compare_with_library(page)["changes"] == "counts"
    assert page.run("location.hash") == "#explore?M=100&epsilon=1&delta=1e-6&changes=counts"
    # 1.357 an entry, where noise for any change of length 1 loses 4.07.
    best = ln.least_noise(epsilon=1, delta=1e-6, shape=100, changes=ln.changes.counts())
    assert float(_rows(page)["least-count-noise"][5]) == pytest.approx(best.standard_deviation, rel=1e-3)
    summary = page.run("document.querySelector('.lnx-summary').textContent")
    assert "one count changes by 1" in summary
    assert "Least count noise has the smallest loss: 1.357 per entry" in summary
    assert page.run("document.querySelector('[data-box=sensitivity]').offsetParent") is None
    assert page.run("document.querySelector('.lnx-plot [data-m=least-count-noise]') !== null")


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("ball", "sensitivity=3"),
        ("counts", "changes=counts"),
        ("moved", "changes=counts&neighbours=replace"),
        ("entries", "changes=ball:3,norm=inf"),
        ("corner", "changes=corner:3"),
    ],
)
def test_a_set_of_changes_can_be_chosen_and_shared(tab, page, kind, words):
    target = "#explore?M=20&epsilon=1&delta=1e-6"
    _go(page, f"{target}&sensitivity=3")
    page.run(
        f"(() => {{ const choice = document.querySelector('[data-changes]'); choice.value = '{kind}';"
        "choice.dispatchEvent(new Event('change')); })()"
    )
    _settle(page)
    assert page.run("location.hash") == f"{target}&{words}"
    assert _compare_with_library(page)["changes"] == kind
    shown = _rows(page)
    # The command is for the same set, and certifies the number shown.
    for name in ("analytic-gaussian", *(["geometric"] if kind in ("counts", "moved") else [])):
        page.run(f"document.querySelector('.lnx-choice').value = '{name}'")
        page.run("document.querySelector('.lnx-choice').dispatchEvent(new Event('change'))")
        command = shlex.split(page.run("document.querySelector('.lnx-command').textContent"))
        result = CliRunner().invoke(app, [*command[1:], "--json"])
        assert result.exit_code == 0, result.output
        assert float(shown[name][1]) == pytest.approx(json.loads(result.stdout)["exact"]["upper"], rel=1.1e-3, abs=0)
    offered = page.run("[...document.querySelector('.lnx-choice').options].filter(e => !e.disabled).map(e => e.value)")
    assert ("least-count-noise" in offered, "geometric" in offered) == (kind == "counts", kind in ("counts", "moved"))
    page.open("about:blank")
    page.open(tab.page + f"{target}&{words}")
    _settle(page)
    assert (_chosen_set(page), _rows(page)) == (kind, shown)


@needs_chromium
@pytest.mark.parametrize(
    "words", ["changes=nonsense", "changes=corner:-1", "changes=ball:1", "changes=counts&neighbours=friends"]
)
def test_a_set_that_is_not_known_changes_nothing(page, words):
    _go(page, BALL)
    before = _rows(page)
    _go(page, f"#explore?{words}")
    assert (_chosen_set(page), _rows(page)) == ("ball", before)


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("name", ["dimension", "epsilon", "delta", "sensitivity"])
def test_dragging_a_slider_shows_the_right_numbers(page, name):
    """Fifteen places a slider, sixty in all, by the mouse."""
    _go(page, BALL)
    box = page.run(
        f"(() => {{ const {{ left, top, width, height }} = document.querySelector('[data-slider={name}]')"
        ".getBoundingClientRect(); return { left, top, width, height }; })()"
    )
    middle = box["top"] + box["height"] / 2
    draw = random.Random(name)
    places = [(box["left"] + box["width"] * draw.uniform(0.01, 0.99), middle) for _ in range(15)]
    seen = set()
    for i, _ in enumerate(page.drag(places[0], places)):
        _settle(page)
        drawn = page.run("[document.querySelector('.lnx').dataset.drawn, location.hash]")
        assert drawn[0] == drawn[1]
        seen.add(drawn[1])
        if i % 3 == 0:
            _compare_with_library(page)
    assert len(seen) >= 12
    assert page.run("document.querySelectorAll('.lnx-plot path').length") >= 6
    assert "NaN" not in page.run("document.querySelector('.lnx').innerHTML")


@pytest.mark.slow
@needs_chromium
def test_every_control_works_by_keyboard(page):
    _go(page, BALL)
    for name in ("dimension", "epsilon", "delta", "sensitivity"):
        before, table = _shown_setting(page), _rows(page)
        page.run(f"document.querySelector('[data-slider={name}]').focus()")
        page.press("ArrowRight")
        _settle(page)
        after = _shown_setting(page)
        assert after[name] > before[name]
        assert {**after, name: 0} == {**before, name: 0}
        assert _rows(page) != table
        _compare_with_library(page)
        page.run(f"document.querySelector('[data-box={name}]').focus()")
        page.press("ArrowDown")
        _settle(page)
        assert _shown_setting(page)[name] < after[name]
    page.run("document.querySelector('[data-slider=delta]').focus()")
    page.press("End")
    _settle(page)
    assert _shown_setting(page)["delta"] == 0.1


@needs_chromium
def test_tab_reaches_everything_in_order(page):
    _go(page, BALL)
    page.run("document.activeElement.blur(); scrollTo(0, 0)")
    order = []
    for _ in range(30):
        page.press("Tab")
        order.append(page.run("document.activeElement.dataset.box ?? document.activeElement.dataset.slider ?? ''"))
    reached = [name for name in order if name]
    assert reached[:8] == [name for name in ("dimension", "epsilon", "delta", "sensitivity") for _ in range(2)]


@pytest.mark.slow
@needs_chromium
def test_controls_have_names_and_the_result_is_spoken(page):
    unnamed = page.run(
        "[...document.querySelectorAll('.lnx :is(input, select, button)')]"
        ".filter(e => !(e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim())).length"
    )
    assert unnamed == 0
    page.run("new Promise(done => setTimeout(done, 700))")
    spoken = page.run("document.querySelector('[aria-live=polite]').textContent")
    assert spoken == page.run("document.querySelector('.lnx-summary').textContent") != ""
    assert page.run("document.querySelector('.lnx-plot title').textContent") != ""


@needs_chromium
def test_curves_are_also_a_table(page):
    page.run("document.querySelector('.lnx-numbers').open = true; new Promise(done => setTimeout(done, 50))")
    cells = page.run(
        "[...document.querySelectorAll('.lnx-curve-table tr')].map(row => [...row.cells].map(cell => cell.textContent))"
    )
    epsilons = [float(text) for text in cells[0][1:]]
    published = next(row for row in cells if row[0] == "R1SMG, published")
    setting = {"dimension": 7921, "epsilon": 1e-5, "delta": 1e-7, "sensitivity": 1.0, "changes": "moved"}
    mechanism = _build("r1smg-published", setting)
    for epsilon, text in zip(epsilons, published[1:], strict=True):
        assert float(text) == pytest.approx(mechanism.delta(epsilon).upper, rel=1.1e-2)


@needs_chromium
def test_the_address_holds_the_setting(tab, page):
    page.open("about:blank")
    page.open(tab.page + "#explore?M=100&epsilon=0.5&delta=1e-6&sensitivity=2")
    _settle(page)
    assert _shown_setting(page) == {"dimension": 100, "epsilon": 0.5, "delta": 1e-6, "sensitivity": 2}
    page.run("location.hash = '#explore?M=50&epsilon=nonsense&delta=2'")
    _settle(page)
    assert _shown_setting(page) == {"dimension": 50, "epsilon": 0.5, "delta": 1e-6, "sensitivity": 2}


@needs_chromium
def test_an_address_of_the_page_around_it_is_left_alone(tab, page):
    page.open("about:blank")
    page.open(tab.page + "#table-1")
    page.run("new Promise(done => setTimeout(done, 200))")
    assert page.run("location.hash") == "#table-1"
    assert _shown_setting(page)["dimension"] == 7921


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize(
    ("name", "text"),
    [("dimension", "2.5"), ("epsilon", "-1"), ("delta", "1"), ("sensitivity", "much"), ("epsilon", "")],
)
def test_a_bad_number_gets_a_sentence_and_changes_nothing(page, name, text):
    before = _rows(page)
    page.run(
        f"(() => {{ const box = document.querySelector('[data-box={name}]'); box.value = {json.dumps(text)};"
        "box.dispatchEvent(new Event('input')); })()"
    )
    _settle(page)
    key = "M" if name == "dimension" else name
    sentence = page.run("document.querySelector('.lnx-complaint').textContent")
    assert sentence.startswith(f"{key}={text} ")
    assert "between" in sentence
    assert _rows(page) == before
    assert page.run(f"document.querySelector('[data-box={name}]').getAttribute('aria-invalid')") == "true"
    page.run(f"document.querySelector('[data-box={name}]').dispatchEvent(new Event('change'))")
    assert page.run("document.querySelector('.lnx-complaint').textContent") == ""


@pytest.mark.slow
@needs_chromium
def test_the_command_shown_certifies_the_number_shown(page):
    for name, code in (("r1smg-published", 1), ("l2", 0), ("r1smg", 0)):
        page.run(
            f"(() => {{ const choice = document.querySelector('.lnx-choice'); choice.value = '{name}';"
            "choice.dispatchEvent(new Event('change')); })()"
        )
        words = shlex.split(page.run("document.querySelector('.lnx-command').textContent"))
        result = CliRunner().invoke(app, [*words[1:], "--json"])
        assert words[0] == "lessnoise"
        assert result.exit_code == code
        upper = json.loads(result.stdout)["exact"]["upper"]
        assert float(_rows(page)[name][1]) == pytest.approx(upper, rel=1.1e-3)


@needs_chromium
def test_the_command_can_be_copied(page):
    page.run("document.querySelector('.lnx-copy').focus()")
    page.press("Enter")
    page.run("new Promise(done => setTimeout(done, 200))")
    assert page.run("document.querySelector('.lnx-copied').textContent") == "copied"


@needs_chromium
def test_a_curve_can_be_hidden(page):
    count = "document.querySelectorAll('.lnx-plot [data-m=laplace]').length"
    assert page.run(count) == 1
    page.run("document.querySelector('.lnx-legend [data-m=laplace]').focus()")
    page.press("Enter")
    assert page.run("document.activeElement.getAttribute('aria-pressed')") == "false"
    assert page.run(count) == 0
    page.press("Enter")
    assert page.run(count) == 1


_CUT_CHOICES = """[...document.querySelectorAll('.lnx select')].filter(choice => {
  const free = choice.cloneNode(true);  // as wide as its longest entry
  free.style.cssText = 'position: absolute; width: auto; max-width: none';
  choice.after(free);
  const needed = free.offsetWidth;
  free.remove();
  return choice.offsetWidth && needed > choice.offsetWidth + 1;
}).map(choice => choice.textContent)"""


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 1400])
def test_nothing_overflows_and_all_text_has_contrast(page, scheme, width):
    page.resize(width, 900)
    page.scheme(scheme)
    page.run("document.querySelector('.lnx-numbers').open = true; new Promise(done => setTimeout(done, 300))")
    assert page.run("document.documentElement.scrollWidth") <= width
    if width >= 1200:
        assert page.run(_CUT_CHOICES) == [], "what can be chosen is shown whole"
    colours = page.run(
        """[...document.querySelectorAll('.lnx *')].filter(e => e.getClientRects().length && [...e.childNodes].some(
          n => n.nodeType === 3 && n.textContent.trim())).map(e => {
          const own = getComputedStyle(e);
          const ink = e.namespaceURI.endsWith('svg') ? own.fill : own.color;
          let back = e;
          while (back && /, 0\\)$|transparent/.test(getComputedStyle(back).backgroundColor)) back = back.parentElement;
          return [e.className.baseVal ?? e.className, ink, getComputedStyle(back ?? document.body).backgroundColor];
        })"""
    )
    assert len(colours) > 60
    for name, ink, back in colours:
        assert contrast(_hex(ink), _hex(back)) >= 4.5, (name, ink, back)


def _hex(colour):
    channels = re.fullmatch(r"rgba?\((\d+), (\d+), (\d+)(?:, 1)?\)", colour).groups()
    return "#" + "".join(f"{int(channel):02x}" for channel in channels)


# The fragment.


@pytest.mark.parametrize("panel", ["#ffffff", "#1f2024"])
def test_every_mechanism_has_a_colour_that_stands_out(panel):
    for colour in COLOURS.values():
        assert contrast(legible(colour, panel), panel) >= 3.0


def test_fragment_keeps_to_itself():
    html = explorer.fragment()
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert ids
    assert all(name.startswith("lnx-") for name in ids)
    assert len(set(ids)) == len(ids)
    css = re.search(r"<style>(.*?)</style>", html, re.DOTALL)[1]
    css = re.sub(r"@keyframes lnx-\w+ \{.*?\}\s*\}", "", css, flags=re.DOTALL)
    selectors = [part.strip() for part in re.findall(r"([^{};]+)\{", css) if not part.strip().startswith("@")]
    assert len(selectors) > 50
    assert all(one.strip().startswith(".lnx") for part in selectors for one in re.split(r",(?![^(]*\))", part))
    assert "@fields@" not in html
    assert not re.search(r"(src|href)=|https?://(?!www\.w3\.org/2000/svg)", html)


def test_modules_are_small():
    from importlib import resources

    for file in resources.files(explorer).iterdir():
        if file.name.endswith((".js", ".css", ".html", ".py")):
            assert len(file.read_text(encoding="utf-8").splitlines()) < 400, file.name
