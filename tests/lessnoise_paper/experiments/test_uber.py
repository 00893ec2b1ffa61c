"""Case study I: the loader refuses what is not the file, and the study says what its own numbers say."""

import csv
import gzip
import hashlib
import io
import json
import math
import os
import re
import urllib.error

import numpy as np
import pytest
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise.cli import app
from lessnoise_paper import Settings, registry, single_page
from lessnoise_paper.data import fetch, synthetic_city, uber_pickups
from lessnoise_paper.data.fetch import PublicFile, read_public
from lessnoise_paper.data.uber import FIGURE_BOUNDS, WINDOW_BOUNDS
from lessnoise_paper.experiments import counts as experiment
from lessnoise_paper.experiments.rows import Reconstruction
from lessnoise_paper.experiments.uber import PAPER_MEANS, cell_counts, run_uber
from lessnoise_paper.experiments.windows import SMALL_COUNT, VALID_CELLS, try_windows
from lessnoise_paper.render import PAPER_FULL, PAPER_PAGE
from lessnoise_paper.sections import counts as section
from tests.helpers.outline import Outline

SIGMAS = 6.5
REPETITIONS = 4


@pytest.fixture(scope="module")
def steps():
    return []


@pytest.fixture(scope="module")
def result(steps):
    return run_uber(
        "synthetic", repetitions=REPETITIONS, attack_releases=1500, progress=lambda *step: steps.append(step)
    )


# The file.

CONTENT = b"a,b\n1,2\n"
FILE = PublicFile(("small.csv",), hashlib.sha256(CONTENT).hexdigest(), "https://example.org/small.csv")


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise urllib.error.URLError("no route")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.delenv(fetch.VARIABLE, raising=False)


@pytest.mark.parametrize("name", ["small.csv", "small.csv.gz", "below/small.csv"])
def test_a_file_is_found_plain_compressed_or_one_folder_below(tmp_path, name, no_network, monkeypatch):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(CONTENT, mtime=0) if name.endswith(".gz") else CONTENT)
    assert read_public("it", (FILE,), tmp_path) == CONTENT
    monkeypatch.setenv(fetch.VARIABLE, str(tmp_path))
    assert read_public("it", (FILE,)) == CONTENT


@pytest.mark.parametrize(
    ("content", "words"),
    [(CONTENT + b"x", "sha256"), (gzip.compress(CONTENT, mtime=0)[:-4], "not a whole gzip file"), (b"", "sha256")],
)
def test_any_other_content_is_refused(tmp_path, content, words):
    (tmp_path / "small.csv").write_bytes(content)
    with pytest.raises(ln.InvalidInput, match=words):
        read_public("it", (FILE,), tmp_path)


def test_a_missing_file_gets_a_sentence(tmp_path, no_network):
    with pytest.raises(ln.InvalidInput, match=r"holds no small\.csv") as caught:
        read_public("it", (FILE,), tmp_path)
    assert FILE.url in str(caught.value)
    with pytest.raises(ln.InvalidInput, match="is not a folder"):
        read_public("it", (FILE,), tmp_path / "nowhere")
    with pytest.raises(ln.InvalidInput, match=r"could not be downloaded \(no route\).*--data FOLDER"):
        read_public("it", (FILE,))


def test_a_download_is_checked_and_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("LESSNOISE_CACHE", str(tmp_path))
    monkeypatch.delenv(fetch.VARIABLE, raising=False)
    asked = []

    def answer(url, timeout):
        asked.append(url)
        return io.BytesIO(CONTENT if len(asked) > 1 else CONTENT + b"x")

    monkeypatch.setattr("urllib.request.urlopen", answer)
    with pytest.raises(ln.InvalidInput, match="sha256"):
        read_public("it", (FILE,))
    assert not list(tmp_path.rglob("*.csv"))
    assert read_public("it", (FILE,)) == read_public("it", (FILE,)) == CONTENT
    assert asked == [FILE.url] * 2
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("LESSNOISE_CACHE", str(tmp_path / "a file"))  # no folder: used, not kept
    assert read_public("it", (FILE,)) == CONTENT


@pytest.mark.skipif(fetch.VARIABLE not in os.environ, reason="the Uber file is not here")
def test_the_real_window_has_the_known_cells():
    counts = cell_counts(uber_pickups(), WINDOW_BOUNDS).value
    assert int(counts.sum()) == 3829
    assert int((counts > 0).sum()) == 300
    assert int(counts.max()) == 221
    city = cell_counts(uber_pickups(), FIGURE_BOUNDS).value
    assert (int(city.sum()), int((city > 0).sum()), int(city.max())) == (3454, 1063, 27)
    result = run_uber(repetitions=2, attack_releases=2)
    assert (result.city.value == city).all()
    on_map = result.to_dict()["expected_loss_on_the_map"]
    assert on_map["r1smg-published"] == pytest.approx(402110.0976 * 1063 / 7921, rel=1e-9)
    assert on_map["r1smg-published"] > 3.5 * PAPER_MEANS["r1smg-published"]
    assert on_map["analytic-gaussian"] > 3.4 * PAPER_MEANS["analytic-gaussian"]
    # No window that holds the places which the paper names has both a small largest count and about 300 cells.
    assert result.windows.tried > 10_000
    assert result.windows.fewest_cells > 1.5 * VALID_CELLS[1]
    assert result.windows.least_largest > 2 * SMALL_COUNT
    assert {row.key: row.paper_mean for row in result.paper if row.paper_mean} == PAPER_MEANS


def test_windows_are_counted_as_the_query_counts_them(monkeypatch):
    """Against the histogram of the library, for the windows that give the least numbers."""
    rng = np.random.default_rng(11)
    centre, far = rng.normal((40.75, -73.94), (0.03, 0.05), (800, 2)), rng.uniform((40.59, -74.47), (41.02, -73.43))
    points = np.vstack([centre, far])
    monkeypatch.setattr("lessnoise_paper.experiments.windows._LATITUDES", (3, 2))
    monkeypatch.setattr("lessnoise_paper.experiments.windows._LONGITUDES", (2, 3))
    monkeypatch.setattr("lessnoise_paper.experiments.windows.SMALL_COUNT", 3)
    monkeypatch.setattr("lessnoise_paper.experiments.windows.VALID_CELLS", (1, 400))
    found = try_windows(points)
    shares = {count: np.linspace(0.02**0.5, 1.0, count) ** 2 for count in (2, 3)}
    (south, north), (west, east) = WINDOW_BOUNDS
    boxes = [
        ((40.723 + (south - 40.723) * a, 40.777 + (north - 40.777) * b), (-74.003 + (west + 74.003) * c, -73.873 + d))
        for a in shares[3]
        for b in shares[2]
        for c in shares[2]
        for d in (east + 73.873) * shares[3]
    ]
    seen = [cell_counts(points[_inside(points, box)], box).value for box in boxes]
    assert found.tried == len(boxes) == 36
    assert found.fewest_cells == min((counts > 0).sum() for counts in seen if counts.max() <= 3)
    assert found.least_largest == min(counts.max() for counts in seen if (counts > 0).sum() <= 400)


def _inside(points, box):
    return np.logical_and.reduce([(points[:, i] >= low) & (points[:, i] <= high) for i, (low, high) in enumerate(box)])


# The study.


@pytest.mark.slow
def test_progress_counts_up_to_the_end(result, steps):
    total = steps[0][2]
    assert [done for _, done, _ in steps] == list(range(total + 1))
    assert steps[-1][0] == "done"


def test_the_paper_settings(result):
    rows = {row.key: row for row in result.paper}
    assert [rows[key].verdict.claimed.epsilon for key in ("r1smg-published", "classic-gaussian", "hb")] == [
        1e-5,
        0.5,
        0.5,
    ]
    assert {key for key, row in rows.items() if not row.holds} == {"r1smg-published", "dawa-dpcomp"}
    assert {row.verdict.claimed.epsilon for row in result.strict} == {1e-5}
    assert not any(row.paper_mean for row in result.paper)  # the paper's numbers are about other pickups
    r1smg = rows["r1smg-published"]
    assert r1smg.losses.expected_whole == pytest.approx(402110.0976, rel=1e-9)
    assert r1smg.losses.expected_valid == pytest.approx(402110.0976 * result.occupied / 7921, rel=1e-9)
    assert r1smg.losses.kurtosis == pytest.approx(35 / 3)
    assert r1smg.losses.skewness == pytest.approx(5 / math.sqrt(3))
    # The mean that the paper reports, 1.5e4, is that of the 300 occupied cells of its own window.
    assert r1smg.losses.expected_whole * 300 / 7921 == pytest.approx(1.5e4, rel=0.02)
    assert rows["mgm"].losses.expected_whole == pytest.approx(rows["analytic-gaussian"].losses.expected_whole)


def test_observed_losses_agree_with_theory(result):
    for row in (*result.paper, *result.strict, *result.honest, *result.true):
        expected = row.losses.expected_whole
        if expected is not None and row.losses.kurtosis is not None and row.losses.kurtosis < 2.0:
            # The loss of 7,921 independent cells has a relative deviation of at most sqrt(5/7921) = 2.5% (Laplace).
            assert row.losses.whole.mean() == pytest.approx(expected, rel=SIGMAS * 0.03 / math.sqrt(REPETITIONS))
        assert row.losses.valid.shape == (REPETITIONS,)
        assert (row.losses.valid <= row.losses.whole).all()


def test_the_honest_rows_keep_one_exact_target(result):
    for row in result.honest:
        assert row.holds
        assert row.mechanism.neighbours is ln.Neighbours.REPLACE
        assert row.mechanism.delta(0.5).upper <= 1e-7
    for row in result.true:
        assert row.mechanism.delta(1e-5).upper <= result.true_target.delta
    assert result.true_target.delta == pytest.approx(0.216642, abs=1e-5)
    for rows in (result.honest, result.true):
        found = {row.key: row for row in rows}
        least = found.pop("least-noise")
        assert least.mechanism.changes == ln.changes.counts(neighbours="replace")
        # DAWA follows the data; no other noise that is added is smaller.
        additive = [row.losses.expected_whole for row in found.values() if row.losses.expected_whole is not None]
        assert least.losses.expected_whole <= min(additive) * (1 + 1e-3)
    by_key = {row.key: row for row in result.true}
    gaussian, least = by_key["analytic-gaussian"], by_key["least-noise"]
    assert least.losses.expected_valid <= gaussian.losses.expected_valid * (1 + 1e-9)
    assert by_key["r1smg"].losses.expected_valid > 7 * gaussian.losses.expected_valid


def test_rounding_attack_against_the_closed_law(result):
    published, gaussian = result.attacks
    assert gaussian.exact_tables == 0
    # n = sqrt(sigma*) z v stays below 1/2 everywhere if |z| < 1/(2 sqrt(sigma*) max|v|), v being a random direction.
    rng = np.random.default_rng(9)
    normals = rng.standard_normal((400, 7921))
    largest = np.abs(normals).max(axis=1) / np.linalg.norm(normals, axis=1)
    from scipy.stats import norm

    share = np.mean(2 * norm.cdf(0.5 / (math.sqrt(402110.0976) * largest)) - 1)
    error = SIGMAS * math.sqrt(share / published.releases)
    assert abs(published.share - share) < error
    low, high = published.interval()
    assert low <= published.share <= high
    assert published.occupied >= published.exact_tables > 0


def test_sparse_maps_lose_far_less_with_dawa_than_with_laplace_noise():
    counts = cell_counts(synthetic_city(pickups=2000), ((40.0, 40.4), (-30.26, -29.74))).value
    laplace = ln.laplace(epsilon=0.3, sensitivity=1, shape=counts.shape)
    mechanism = ln.dawa(epsilon=0.3, shape=counts.shape)
    rng = np.random.default_rng(5)
    losses = [np.sum((mechanism.release(counts, rng).value - counts) ** 2) for _ in range(5)]
    assert max(losses) < 0.3 * laplace.expected_loss


def test_intervals_are_clopper_and_pearson():
    low, high = Reconstruction("key", "label", 100, 0, 0).interval()
    assert low == 0.0
    assert high == pytest.approx(1 - 0.005 ** (1 / 100))


@pytest.mark.slow
def test_seeds_decide_everything():
    first, again, other = (
        run_uber("synthetic", repetitions=2, attack_releases=2, seed=seed).paper[1].losses.valid for seed in (3, 3, 4)
    )
    assert (first == again).all()
    assert (first != other).any()


# What is written.


def test_the_two_grids_are_not_mixed(result):
    """The words name the cells and the largest count of each grid, and the map's own beside the map."""
    tried = {"tried": 10, "small_count": 30, "fewest_cells": 547, "valid_cells": [290, 310], "least_largest": 67}
    two = {"occupied_cells": 300, "largest_count": 221, "map_occupied_cells": 1063, "largest_count_on_the_map": 27}
    one_grid = section.figure_4(result.to_dict())
    words = section.figure_4({**result.to_dict(), **two, "windows": tried})
    assert "300 cells are occupied and the largest count is 221" in words.setting
    assert "1,063 occupied cells: we infer this window because its largest count is 27" in words.setting
    assert "use the same grid" in one_grid.setting
    assert "infer" not in one_grid.setting
    truth = next(picture for picture in words.pictures if picture.file == "counts-truth.png")
    assert re.findall(r"[\d,]+\d", truth.alt) == ["1,063", "27"]


def test_equal_terms_name_the_length_and_not_the_direction(result):
    """The loss of a mechanism is the mean of its squared length, so the words can be held against it."""
    shows = section.equal(result.to_dict()).shows
    assert "The reason is its length, not its one direction" in shows
    rows = {row.key: row.losses.expected_whole for row in result.honest}
    found = [float(one.replace(",", "")) for one in re.findall(r"(?:about|of) ([\d,]+\d|[\d.]+e\d+)", shows)]
    assert found == pytest.approx([math.sqrt(rows["analytic-gaussian"]), math.sqrt(rows["r1smg"])], rel=0.02)


@pytest.fixture(scope="module")
def files(result):
    """What the command writes, from the same computation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "run_uber", lambda *_, **__: result)
        return single_page(registry.COUNTS, Settings(quick=True))


@pytest.mark.slow
def test_the_page_is_self_contained_and_says_the_numbers(files):
    html = files["index.html"].decode()
    outline = Outline(html)
    assert outline.unbalanced == outline.open == []
    assert all(reference.startswith(("data:", "#")) for reference in outline.fetched)
    assert {link for link in outline.followed if link.startswith("http")} == {PAPER_PAGE, PAPER_FULL}
    assert {link for link in outline.followed if not link.startswith(("#", "http"))} < files.keys()
    assert all(image["alt"] for image in outline.all("img"))
    assert len(outline.all("img")) == 8 + 6 + 10  # maps: the paper's with the truth, all at 1e-5, equal privacy
    assert len(outline.all("svg")) == 3 + 3  # with the scales of the maps
    assert "0.2166" in html
    assert "synthetic city" in html
    assert "nan" not in re.sub(r"base64,[^\"]*", "", html)
    assert len(re.findall(r"https?://", re.sub(r"base64,[^\"]*", "", html))) == 3, "links to the paper alone"
    assert "rounded" in html


def test_the_table_has_a_line_for_every_row(result, files):
    lines = list(csv.DictReader(io.StringIO(files["table.csv"].decode())))
    rows = [*result.paper, *result.strict, *result.honest, *result.true]
    assert [line["mechanism"] for line in lines] == [row.label for row in rows]
    for line, row in zip(lines, rows, strict=True):
        assert float(line["exact_delta_upper"]) == row.verdict.exact.upper
        assert float(line["mean_loss_occupied"]) == pytest.approx(row.losses.valid.mean())


def test_files_have_their_formats(files):
    assert {"index.html", "numbers.json", "table.csv", "maps.png", "losses.svg", "densities.svg"} <= set(files)
    for name, content in files.items():
        start = {"png": b"\x89PNG", "svg": b"<?xml", "html": b"<!DOCTYPE", "json": b"{", "csv": b"setting"}
        assert content.startswith(start[name.rsplit(".", 1)[1]])


@pytest.mark.slow
def test_one_command_writes_all_and_replaces_only_its_own(tmp_path):
    out = tmp_path / "new" / "study"
    arguments = ["study", "uber", "--data", "synthetic", "--quick", "--repetitions", "2", "--out", str(out), "--json"]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.output
    assert {"index.html", "numbers.json", "table.csv", "maps.png"} <= {path.name for path in out.iterdir()}
    printed = json.loads(first.stdout)
    assert printed == json.loads((out / "numbers.json").read_text())
    assert printed["private"] is False
    assert printed["repetitions"] == 2
    (out / "index.html").write_text("mine")
    second = CliRunner().invoke(app, arguments)
    assert second.exit_code == 2
    assert "exists already" in second.output
    assert (out / "index.html").read_text() == "mine"


def test_without_the_file_there_is_a_sentence_and_no_folder(tmp_path, no_network):
    out = tmp_path / "study"
    answer = CliRunner().invoke(app, ["study", "uber", "--out", str(out)])
    assert answer.exit_code == 2
    assert "could not be downloaded" in answer.output
    assert "--data" in answer.output
    assert not out.exists()
    answer = CliRunner().invoke(app, ["study", "uber", "--data", str(tmp_path), "--out", str(out)])
    assert answer.exit_code == 2
    assert not out.exists()
    answer = CliRunner().invoke(app, ["study", "uber", "--data", "synthetic", "--repetitions", "1", "--out", str(out)])
    assert answer.exit_code == 2
    assert "repetitions=1" in answer.output
