"""Case study III: networks, trainer against Opacus, data, results, the strong recipe, membership."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import lessnoise as ln
from lessnoise import learn
from lessnoise import mechanism as mechanisms
from lessnoise.audit import draw_many
from lessnoise.text import down, up
from lessnoise_paper import Settings, registry, single_page
from lessnoise_paper.experiments import learning as experiment
from lessnoise_paper.training import compared, data, inside, results, settings
from lessnoise_paper.training import membership as membership_module
from lessnoise_paper.training.membership import membership

EXTRA = "needs the extra: pip install 'lessnoise[learn]'"


@pytest.fixture
def torch():
    found = pytest.importorskip("torch", reason=EXTRA)
    found.set_num_threads(1)
    return found


def small(records=300, size=28, colours=1, seed=0):
    """Images whose class is a bright square in one of ten places: learnable at once."""
    rng = np.random.default_rng(seed)

    def part(count):
        labels = rng.integers(0, 10, count).astype(np.uint8)
        images = rng.integers(0, 40, (count, size, size, colours)).astype(np.uint8)
        for image, label in zip(images, labels, strict=True):
            row, column = 4 + 12 * (label // 5), 1 + 5 * (label % 5)
            image[row : row + 5, column : column + 4] = 230
        return images, labels

    return data.Images(*part(records), *part(100))


# Plans.


def test_stored_plans_are_what_the_settings_give():
    stored = settings.stored_plans()
    for case in settings.CASES.values():
        for budget in case.budgets:
            for method in ("dpsgd", "r1smg-published"):
                plan = settings.plan_of(case, budget, method)
                kept = settings.stored_plan(case.data, method, budget.epsilon)
                assert kept.mechanism.law.scale == pytest.approx(plan.mechanism.law.scale, rel=1e-12)
                assert (kept.rate, kept.steps, kept.records) == (plan.rate, plan.steps, plan.records)
    names = {
        settings.key(case.data, method, budget.epsilon)
        for case in settings.CASES.values()
        for budget in case.budgets
        for method in settings.PRIVATE_METHODS
    } | {settings.key(recipe.data, "strong", recipe.epsilon) for recipe in settings.STRONG.values()}
    names |= {settings.key(data, settings.INSIDE, share) for data in settings.CASES for share in settings.SHARES}
    names |= {settings.key(data, settings.GAUSSIAN_OF_THAT_LENGTH, settings.SHARES[0]) for data in settings.CASES}
    budgets = settings.CASES["mnist"].budgets
    names |= {f"mnist {method} {budget.epsilon} after 8" for method in settings.SWEPT for budget in budgets}
    assert set(stored) == names


@pytest.mark.parametrize("name", ["mnist dpsgd-exact 1.795", "cifar10 strong 2.673", "mnist strong 1.795"])
def test_stored_calibrated_plans_keep_their_target(name):
    entry = settings.stored_plans()[name]
    plan = learn.TrainingPlan.from_dict(entry["plan"])
    delta = plan.delta(entry["epsilon"])
    assert 0.9e-5 < delta.upper <= 1e-5
    assert list(entry["delta"]) == pytest.approx([delta.lower, delta.upper], rel=1e-3)


def test_what_the_stored_plans_say():
    """R1SMG as published has no privacy; exact noise keeps every budget; DP-SGD keeps MNIST's alone."""
    for name, entry in settings.stored_plans().items():
        lower, upper = entry["delta"]
        assert lower <= upper
        if "inside" in name:  # what is claimed there is next to nothing
            continue
        if "published" in name:
            assert lower > 0.999
        elif name.split()[1] == "dpsgd":
            assert (upper <= 1e-5) == name.startswith("mnist")
        else:
            assert upper <= 1e-5
    assert settings.stored_plans()["mnist dpsgd 1.795"]["epsilon_at_1e-5"][1] == pytest.approx(1.6362, rel=1e-3)


# Networks and trainer.


def test_networks_have_the_tutorials_parameters(torch):
    from lessnoise_paper.training.networks import module, network

    for name, case in settings.CASES.items():
        assert network(name).parameters == case.parameters
        built = module(network(name))
        assert sum(p.numel() for p in built.parameters()) == case.parameters
        height, width, colours = network(name).image
        assert built(torch.zeros(2, colours, height, width)).shape == (2, 10)


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_clipped_sums_are_those_of_opacus(torch, name):
    """Same weights, same records: the sum of clipped gradients is what Opacus's optimizer computes."""
    pytest.importorskip("opacus", reason=EXTRA)
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    from lessnoise_paper.training.networks import module, network
    from lessnoise_paper.training.trainer import Ensemble, Run

    net = network(name)
    runs = [Run("a", 1.0, 3, None, 0.5), Run("b", 1.0, 4, None, 6.0)]  # all are clipped, some are
    ensemble = Ensemble(net, runs, torch.device("cpu"))
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(2, 7, *net.image, generator=generator)
    labels = torch.randint(0, 10, (2, 7), generator=generator)
    taking_part = torch.ones(2, 7)
    taking_part[1, 5:] = 0.0
    weights, biases, norms = ensemble.clipped_sums(images, labels, taking_part)
    assert norms[1, 5:].max() == 0.0
    for i, run in enumerate(runs):
        there = taking_part[i] > 0
        model = GradSampleModule(module(net, torch.Generator().manual_seed(1000 + run.seed)), loss_reduction="sum")
        optimizer = DPOptimizer(
            torch.optim.SGD(model.parameters(), lr=1.0),
            noise_multiplier=0.0,
            max_grad_norm=run.clip_norm,
            expected_batch_size=1,
            loss_reduction="sum",
        )
        pixels = images[i, there].permute(0, 3, 1, 2)
        # Opacus's patches of a convolution need plain strides.
        scores = model(pixels.flatten().view(pixels.shape))
        torch.nn.functional.cross_entropy(scores, labels[i, there], reduction="sum").backward()
        optimizer.clip_and_accumulate()
        sums = [p.summed_grad for p in model.parameters()]
        for ours, theirs in zip(weights, sums[0::2], strict=True):
            torch.testing.assert_close(ours[i], theirs.flatten(1).T, rtol=1e-4, atol=2e-6)
        for ours, theirs in zip(biases, sums[1::2], strict=True):
            torch.testing.assert_close(ours[i, 0], theirs, rtol=1e-4, atol=2e-6)


def test_noise_of_an_ensemble_has_each_law(torch):
    from lessnoise_paper.training.trainer import Noise, Run

    laws = [None, ln.Radial(40, 2, 3.0), ln.Radial(1, 2, 3.0), ln.Radial(40, 1, 0.2)]
    noise = Noise([Run("x", 1.0, 0, law, 1.0) for law in laws], 40, torch.device("cpu"))
    generator = torch.Generator().manual_seed(0)
    drawn = torch.stack([noise.draw(generator) for _ in range(2000)]).numpy()
    assert np.abs(drawn[:, 0]).max() == 0.0
    for i, law in enumerate(laws[1:], start=1):
        losses = (drawn[:, i].astype(float) ** 2).sum(1)
        mechanism = ln.Mechanism("x", law, (40,), 1.0)
        for q in (0.1, 0.5, 0.9):
            limit = 6.5 * math.sqrt(q * (1 - q) / 2000)
            assert abs((losses <= mechanism.loss_quantile(q)).mean() - q) < limit
        for wrong in (2 / 3, 3 / 2):
            assert abs((losses <= mechanism.loss_quantile(0.5) * wrong**2).mean() - 0.5) > 0.1
        assert np.abs(drawn[:, i].mean(0)).max() < 7 * mechanism.standard_deviation / math.sqrt(2000)


def test_batches_of_an_ensemble_are_poisson_samples(torch):
    from lessnoise_paper.training.trainer import poisson_batches

    generator = torch.Generator().manual_seed(0)
    sizes, counts = [], np.zeros(500)
    for indices, taking_part in poisson_batches(3, 500, 0.04, 200, generator, torch.device("cpu"), ahead=7):
        assert indices.shape == taking_part.shape
        for row, there in zip(indices, taking_part > 0, strict=True):
            chosen = row[there].numpy()
            assert len(set(chosen)) == len(chosen)
            sizes.append(len(chosen))
            counts[chosen] += 1
    assert len(sizes) == 600
    assert abs(np.mean(sizes) - 20) < 7 * math.sqrt(19.2 / 600)
    assert 19.2 * 0.6 < np.var(sizes) < 19.2 * 1.5
    assert np.abs(counts - 24).max() < 7.5 * math.sqrt(24)


@pytest.mark.slow
def test_a_short_run_learns_resumes_and_refuses_other_settings(torch, tmp_path):
    """One epoch at a time on 300 records; interrupted and resumed is the same as in one go."""
    from lessnoise_paper.training.run import runs_of, train_case

    case = settings.Case("mnist", 300, 26010, 2, settings.CASES["mnist"].budgets, batch=30, learning_rate=0.2)
    images, runs = small(), runs_of(settings.CASES["mnist"], [0])
    assert [run.method for run in runs[:3]] == ["sgd", "dpsgd", "dpsgd-exact"]
    common = {"device": "cpu", "command": "test", "report": lambda line: None}
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    whole = train_case(case, images, runs, epochs=2, out=tmp_path / "a", **common)
    train_case(case, images, runs, epochs=2, out=tmp_path / "b", deadline=0.0, **common)
    resumed = train_case(case, images, runs, epochs=2, out=tmp_path / "b", **common)
    assert [line["test"] for line in whole["runs"]] == [line["test"] for line in resumed["runs"]]
    assert whole["epochs_done"] == 2
    assert whole["runs"][0]["test"][-1] > 0.5  # plain SGD; a guess has 0.1
    stored = results.read("mnist", tmp_path / "a")
    assert len(results.curves(stored)) == 9
    with pytest.raises(ln.InvalidInput, match=r"checkpoint=.* is of other settings"):
        train_case(case, images, runs, epochs=3, out=tmp_path / "a", **common)


@pytest.mark.slow
def test_the_published_noise_trains_as_the_paper_says_and_exact_noise_does_not(torch, tmp_path):
    from lessnoise_paper.training.run import runs_of, train_case

    case = settings.Case("mnist", 300, 26010, 3, settings.CASES["mnist"].budgets, batch=100, learning_rate=0.5)
    runs = [run for run in runs_of(settings.CASES["mnist"], [0]) if run.epsilon != 16.983]
    result = train_case(
        case, small(), runs, epochs=8, device="cpu", out=tmp_path, command="test", report=lambda line: None
    )
    final = {line["method"]: line["test"][-1] for line in result["runs"]}
    assert final["r1smg-published"] > 0.6
    assert final["r1smg"] < 0.35  # drowned in noise


MNIST_FOLDER = next(Path(os.environ.get("LESSNOISE_DATA", "none")).glob("**/train-images-idx3-ubyte*"), None)


@pytest.mark.slow
@pytest.mark.skipif(MNIST_FOLDER is None, reason="$LESSNOISE_DATA names no folder with MNIST")
def test_one_epoch_on_the_first_records_of_mnist(torch, tmp_path, monkeypatch):
    from lessnoise_paper.training import run

    images = data.load("mnist", MNIST_FOLDER.parent)
    few = data.Images(*(part[:400] for part in images))
    case = replace(settings.CASES["mnist"], batch=20, learning_rate=0.3)
    monkeypatch.setattr(run, "load", lambda name, folder: few)
    monkeypatch.setitem(settings.CASES, "mnist", case)
    options = ("--only", "mnist", "--epochs", "1", "--seeds", "1", "--device", "cpu")
    run.main(["--data", str(MNIST_FOLDER.parent), "--out", str(tmp_path), *options])
    result = results.read("mnist", tmp_path)
    assert result["command"].endswith("--data DATA --out OUT " + " ".join(options))
    final = {(line["method"], line["epsilon"]): line["train"][-1] for line in result["runs"]}
    assert len(final) == 9
    assert final["sgd", None] > 0.25  # after 20 steps; a guess has 0.1
    assert final["r1smg", 1.795] < 0.25


# Data.


def test_data_are_checked_and_missing_files_are_named(tmp_path, monkeypatch):
    def unreachable(address, timeout):
        raise OSError("no way there")

    monkeypatch.setattr("urllib.request.urlopen", unreachable)
    monkeypatch.delenv(data.VARIABLE, raising=False)
    monkeypatch.setenv("LESSNOISE_CACHE", str(tmp_path / "cache"))
    for name, file in (("mnist", "train-images-idx3-ubyte"), ("cifar10", "cifar-10-binary.tar.gz")):
        with pytest.raises(ln.InvalidInput, match=r"could not be downloaded \(no way there\).*LESSNOISE_DATA"):
            data.load(name)
        with pytest.raises(ln.InvalidInput, match="is not a folder"):
            data.load(name, tmp_path / "none")
        with pytest.raises(ln.InvalidInput, match=f"holds no {file}"):
            data.load(name, tmp_path)
    with pytest.raises(ln.InvalidInput, match="data='letters' is not known"):
        data.load("letters", tmp_path)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"not it")
    with pytest.raises(ln.InvalidInput, match=r"has sha256 .* fetch the original again"):
        data.load("mnist", tmp_path)


def test_cifar_archive_is_read_colour_by_colour(tmp_path, monkeypatch):
    import hashlib
    import io
    import tarfile

    rng = np.random.default_rng(0)
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    rows = {name: rng.integers(0, 256, (4, 3073)).astype(np.uint8) for name in names}
    with tarfile.open(tmp_path / "cifar-10-binary.tar.gz", "w:gz") as archive:
        for name, part in rows.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = part.nbytes
            archive.addfile(member, io.BytesIO(part.tobytes()))
    with pytest.raises(ln.InvalidInput, match=r"sha256=.* of the CIFAR-10 train data"):
        data.load("cifar10", tmp_path)
    found = data._from_archive(tmp_path / "cifar-10-binary.tar.gz")
    for part, pixels, labels in (
        ("train", found.train, found.train_labels),
        ("test", found.test, found.test_labels),
    ):
        digest = hashlib.sha256(pixels.tobytes() + labels.tobytes()).hexdigest()
        monkeypatch.setitem(data._CIFAR, part, digest)
    loaded = data.load("cifar10", tmp_path)
    assert loaded.train.shape == (20, 32, 32, 3)
    row = rows["data_batch_2.bin"][1]
    assert loaded.train_labels[5] == row[0]
    assert loaded.train[5, 3, 7, 2] == row[1 + 2 * 1024 + 3 * 32 + 7]


# The strong recipe.


def test_scattering_is_blind_to_small_shifts_and_keeps_energy(torch):
    from lessnoise_paper.training.features import _filters, scattering

    generator = torch.Generator().manual_seed(0)
    image = torch.zeros(1, 1, 28, 28)
    image[..., 8:20, 8:20] = torch.rand(12, 12, generator=generator)
    features, moved = scattering(image), scattering(image.roll(1, 3))
    pixels = (image - image.roll(1, 3)).norm() / image.norm()
    assert (features - moved).norm() / features.norm() < 0.4 * pixels
    wavelets, low = _filters(36)
    assert wavelets[:, 0, 0].abs().max() < 1e-5  # wavelets have mean 0
    assert low[0, 0] == pytest.approx(1.0, abs=1e-4)
    flat = scattering(torch.ones(1, 1, 28, 28))
    assert flat[0, 0].mean() == pytest.approx(1.0, abs=1e-3)
    assert flat[0, 1:].abs().max() < 1e-3


def test_strong_gradients_are_those_of_autograd(torch):
    """Clipped sums over records whose gradient is the mean over two views, against one backward pass a record."""
    from lessnoise_paper.training.strong import clipped_sum, grams_of

    generator = torch.Generator().manual_seed(0)
    features = torch.randn(2, 9, 6, generator=generator)
    labels = torch.randint(0, 10, (9,), generator=generator)
    weights = torch.randn(6, 10, generator=generator)
    bias = torch.randn(10, generator=generator)
    ours = clipped_sum(features, grams_of(features), labels, weights, bias, 1.5)
    sums = [torch.zeros(6, 10), torch.zeros(10)]
    clipped = 0
    for record in range(9):
        w, b = weights.clone().requires_grad_(), bias.clone().requires_grad_()
        scores = features[:, record] @ w + b
        torch.nn.functional.cross_entropy(scores, labels[record].expand(2)).backward()
        norm = float(torch.sqrt((w.grad**2).sum() + (b.grad**2).sum()))
        factor = min(1.0, 1.5 / (norm + 1e-6))
        clipped += factor < 1.0
        sums[0] += factor * w.grad
        sums[1] += factor * b.grad
    assert 0 < clipped < 9
    for found, expected in zip(ours, sums, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_strong_training_learns(torch):
    from lessnoise_paper.training.strong import accuracy, features_of, train

    images = small(250)
    recipe = replace(settings.STRONG["mnist"], batch=125, records=250, steps=60)
    device = torch.device("cpu")
    features = features_of(images.train, recipe.groups, device, mirrored=True)
    assert features.shape == (2, 250, recipe.features)
    labels = torch.from_numpy(images.train_labels).long()
    weights, bias = train(recipe, 0.02, features, labels, 0)
    tested = features_of(images.test, recipe.groups, device, mirrored=True)
    assert accuracy(tested, torch.from_numpy(images.test_labels).long(), weights, bias) > 0.85


@pytest.mark.slow
def test_learning_rates_are_tried_on_held_out_records(torch, monkeypatch, tmp_path):
    from lessnoise_paper.training import strong

    monkeypatch.setattr(strong, "load", lambda name, folder: small(150))
    lines = []
    strong.sweep(tmp_path, "cpu", rates=(4.0,), held_out=50, only=("mnist",), report=lines.append)
    assert len(lines) == 1
    assert lines[0].startswith("mnist learning rate 4: ")


# Results, membership, command line.


def fake(folder):
    case = settings.CASES["mnist"]
    lines = [("sgd", None), *((m, b.epsilon) for b in case.budgets for m in settings.PRIVATE_METHODS)]
    runs = [
        {"method": m, "epsilon": e, "seed": s, "train": [0.5, 0.9, 0.97], "test": [0.4 + 0.1 * s, 0.955, 0.96]}
        for m, e in lines
        for s in range(3)
    ]
    trained = {"data": "mnist", "records": case.records, "epochs": case.epochs, "epochs_done": case.epochs}
    (folder / "mnist.json").write_text(json.dumps({"runs": runs, **trained}))
    strong = [{"data": "mnist", "test": 0.98 + 0.001 * s, "train": 0.99} for s in range(3)]
    (folder / "strong.json").write_text(json.dumps({"runs": strong}))


@pytest.mark.slow
def test_tables_and_pictures_come_from_the_result_files(tmp_path):
    fake(tmp_path)
    rows = results.table(lambda name: results.read(name, tmp_path))
    by_name = {(row.method, row.epsilon): row for row in rows}
    assert len(rows) == 10
    assert by_name["sgd", None].guarantee == "none"
    assert by_name["r1smg-published", 1.795].guarantee.endswith("no privacy")
    assert by_name["dpsgd", 1.795].guarantee == "(1.6369, 1e-5)-DP"
    assert by_name["dpsgd", 1.795].first_checkpoint == 2
    assert by_name["strong", 1.795].accuracy == pytest.approx(0.981)
    curve = results.curves(results.read("mnist", tmp_path))[0]
    assert curve.test[0].tolist() == pytest.approx([0.5, 0.4, 0.6])
    options = {"seed": 0, "samples": 0, "results_folder": str(tmp_path)}
    files = single_page(registry.TRAINING, Settings(options={"learning": options}))
    assert set(files) == {"index.html", "numbers.json", "mnist.svg", "mnist.png"}
    assert files["mnist.svg"].startswith(b"<?xml")
    page = files["index.html"].decode()
    assert "95% test accuracy in epoch 2; the paper says 5. DP-SGD as in the paper, MNIST" in page
    assert "98.10%" in page  # the strong recipe
    (tmp_path / "mnist.json").write_text("{")
    with pytest.raises(ln.InvalidInput, match="is not JSON"):
        results.read("mnist", tmp_path)


def test_the_docs_quote_the_stored_results():
    text = (Path(__file__).parents[3] / "docs" / "studies" / "learning.md").read_text(encoding="utf-8")
    labels = {
        "sgd": "| SGD |",
        "dpsgd": "| DP-SGD, \N{GREEK SMALL LETTER SIGMA} = ",
        "dpsgd-exact": "| DP-SGD, calibrated exactly |",
        "r1smg-published": "| R1SMG as published |",
        "r1smg": "| R1SMG, calibrated exactly |",
        "strong": "| strong recipe |",
    }
    rows = results.table()
    table = text[text.index("## What each line guarantees") : text.index("## Was the record")]
    for method, label in labels.items():
        accuracies = [f"{row.accuracy:.1%}" for row in rows if row.method == method]
        quoted = [line.rsplit("|", 2)[1].strip(" *") for line in table.splitlines() if label in line]
        assert quoted == accuracies, method
    for row in rows:
        if row.method == "strong":
            assert f"| {row.accuracy:.2%} | {row.spread[0]:.2%} to {row.spread[1]:.2%} |" in text
    for found in results.checkpoints():
        ends = f"{found['first_seed']} and {found['last_seed']}"
        assert f"| {found['paper']} | {found['mean_curve']} | {ends} |" in text
    for one in inside.step_budgets():
        assert f"| {one.claimed_epsilon} | {one.printed} | {one.solved:.4f} | {one.times_the_limit:,.0f} |" in text
    for one in inside.inside_range():
        cells = (f"{down(one.exact.lower, 4)} | {down(one.step_exact.lower, 3)}", f"{one.length:,.0f}")
        assert f"≥ {' | '.join(cells)} | {' and '.join(f'{length:.0f}' for length in one.gaussian_lengths)} |" in text
        if one.gaussian_epsilon is not None:
            assert f"({up(one.gaussian_epsilon, 5)}, 10⁻⁵)" in text
    lines = {(line.method, line.claimed_epsilon): line for line in inside.trained_inside()}
    ours = next(line for (method, _), line in lines.items() if method == settings.INSIDE)
    told = " ".join(text.split())
    assert f"reaches {ours.accuracy:.1%} of the test set, {ours.least:.1%} to {ours.greatest:.1%} over seeds" in told
    wide, narrow = lines["dpsgd", 1.795], lines["dpsgd", 16.983]
    assert f"DP-SGD is at {wide.accuracy:.1%} with " in told
    assert f" = 1.1 and at {narrow.accuracy:.1%} with " in told
    for way in compared.compared():
        arrivals = [str(one.arrival or f"> {way.trained}") for one in (way.published, way.dpsgd)]
        cells = [f"{way.learning_rate:g}", f"{way.clip_norm:g}", f"{way.claimed_epsilon:g}", str(way.seeds), *arrivals]
        cells += [f"{one.accuracy:.1%}" for one in (way.published, way.dpsgd)]
        assert f"| {compared.OPTIMIZERS[way.optimizer]} | {' | '.join(cells)} |" in text


@pytest.mark.parametrize(("data_set", "least"), [("mnist", 0.98), ("cifar10", 0.65)])
def test_the_stored_strong_runs_beat_dp_sgd_at_the_same_exact_budget(data_set, least):
    rows = {(row.method, row.epsilon): row for row in results.table() if row.data == data_set}
    budget = settings.CASES[data_set].budgets[0].epsilon
    assert rows["strong", budget].spread[0] >= least
    assert rows["strong", budget].spread[0] > rows["dpsgd-exact", budget].spread[1]
    assert settings.stored_plans()[settings.key(data_set, "strong", budget)]["delta"][1] <= 1e-5


@pytest.mark.slow
def test_one_published_step_gives_the_record_away_and_dp_sgd_does_not():
    case = settings.CASES["mnist"]
    rng = np.random.default_rng(0)
    gradient = rng.normal(size=case.parameters)
    gradient /= np.linalg.norm(gradient) * 1.0000001
    for budget in case.budgets:
        plan = settings.plan_of(case, budget, "r1smg-published")
        found = membership(plan, "r1smg-published", gradient=gradient, samples=3000, rng=np.random.default_rng(1))
        assert found.right_proved > 0.97
        if budget.epsilon < 2:  # a claim of epsilon0 = 5.42 would allow 99.6%
            assert found.right_claimed == pytest.approx(1 / (1 + math.exp(-plan.mechanism.claim.epsilon)), rel=1e-6)
            assert found.right_proved > found.right_claimed + 0.2
        plan = settings.plan_of(case, budget, "dpsgd")
        found = membership(plan, "dpsgd", gradient=gradient, samples=3000, rng=np.random.default_rng(1))
        assert 0.55 < found.right_proved < found.right_limit < 0.85
        assert not found.report.refuted
        # TV of N(0, s^2) and N(1, s^2) is 2 Phi(1/(2s)) - 1.
        expected = math.erf(0.5 / budget.noise_multiplier / math.sqrt(2))
        assert found.advantage_limit == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ln.InvalidInput, match="exceeds the clipping norm"):
        membership(plan, "dpsgd", gradient=2 * gradient)


@pytest.mark.slow
def test_the_attackers_picture_shows_the_laws_along_the_gradient():
    """Places are around 0 without the record and 1 with it, as far apart as the noise lets them be."""
    case = settings.CASES["mnist"]
    found = []
    for method, spread in (("r1smg-published", 1.68 / math.sqrt(case.parameters)), ("dpsgd", 1.1)):
        plan = settings.plan_of(case, case.budgets[0], method)
        rng = np.random.default_rng(2)
        one = membership(plan, method, samples=400, rng=rng, epsilon=1.795, shown=200)
        for places, centre in ((one.scores_without, 0.0), (one.scores_with, 1.0)):
            assert places.size == 200
            assert abs(places.mean() - centre) < 7 * spread / math.sqrt(200)
            # R1SMG's lengths are half-normal: the fourth moment of a place is 9 spread^4, a Gaussian's is 3 spread^4.
            assert places.var() == pytest.approx(spread**2, rel=7 * math.sqrt(8 / 200))
        found.append(one)
    assert (found[0].scores_without < 0.5).all()
    assert (found[0].scores_with > 0.5).all()
    assert (found[1].scores_without > 0.5).mean() > 0.2
    result = experiment.collected(lambda name: None, found)
    assert set(result.files) == {"learning-membership.svg", "learning-membership.png"}
    assert result.numbers["membership"][0]["training_claimed_epsilon"] == 1.795


def test_places_along_a_direction_follow_whole_vectors_of_noise():
    """Independent route: the first entries of whole vectors, compared by a two-sample Kolmogorov-Smirnov test."""
    for dimension in (3, 40):
        target = {"epsilon": 1.0, "delta": 1e-3, "sensitivity": 2.0, "shape": dimension}
        for mechanism in (mechanisms.r1smg(**target, calibration="published"), mechanisms.l2_mechanism(**target)):
            rng = np.random.default_rng(3)
            places = 2.0 * membership_module._places(mechanism, 20_000, rng)
            entries = draw_many(mechanism.law, (dimension,), 20_000, rng)[:, 0]
            assert stats.ks_2samp(places, entries).pvalue > 1e-6


def test_places_need_noise_that_has_no_favourite_direction():
    uneven = mechanisms.laplace(epsilon=1.0, sensitivity=1.0, shape=3)
    with pytest.raises(ln.InvalidInput, match="shown=2 needs noise of a uniform direction"):
        membership_module._places(uneven, 4, np.random.default_rng(0))


def command(*arguments):
    import typer
    from typer.testing import CliRunner

    from lessnoise_paper.commands.study import learning

    app = typer.Typer()
    app.command()(learning)
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.slow
def test_a_shorter_or_smaller_run_says_its_own_guarantee():
    # Independent route: dp_accounting's PLD for sigma = 1.1 and 234 steps at 256/60000 gives 0.3065 at delta = 1e-5.
    one_epoch = {"data": "mnist", "records": 60000, "epochs_done": 1}
    said = float(results.exact_guarantee(one_epoch, "dpsgd", 1.795).split(",")[0].lstrip("("))
    assert 0.30 < said < 0.32
    few = {"data": "mnist", "records": 2000, "epochs_done": 1}  # a higher rate costs more than the study's 1.637
    assert float(results.exact_guarantee(few, "dpsgd", 1.795).split(",")[0].lstrip("(")) > 2.5
    longer = {"data": "mnist", "records": 60000, "epochs_done": 60}
    assert float(results.exact_guarantee(longer, "dpsgd-exact", 1.795).split(",")[0].lstrip("(")) > 1.795
    published = results.exact_guarantee(one_epoch, "r1smg-published", 16.983)
    assert 0.55 < float(published.split()[2]) < 0.65
    assert "no privacy" not in published
    nothing = {"data": "mnist", "records": 100, "epochs_done": 1}
    assert results.exact_guarantee(nothing, "dpsgd", 1.795) == "no step was taken"


@pytest.mark.slow
def test_command_trains_again_on_given_data(torch, tmp_path, monkeypatch):
    from lessnoise_paper.training import run

    monkeypatch.setattr(run, "load", lambda name, folder: small(120))
    answer = command(
        *("--rerun", "--only", "mnist", "--epochs", "1", "--seeds", "1", "--device", "cpu"),
        *("--data", str(tmp_path), "--out", str(tmp_path / "out"), "--json"),
    )
    assert answer.exit_code == 0, answer.output
    numbers = json.loads(answer.stdout)
    assert [row["method"] for row in numbers["rows"]][:2] == ["sgd", "dpsgd"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("index.html", "numbers.json", "mnist.svg", "mnist.png", "mnist.json", "mnist.pt")
    }
    assert command("--out", str(tmp_path / "out")).exit_code == 0  # a page of ours may be replaced
    (tmp_path / "out" / "index.html").write_text("somebody else's")
    again = command("--out", str(tmp_path / "out"))
    assert isinstance(again.exception, ln.InvalidInput)
    assert "exists already" in str(again.exception)


def test_command_refuses_unknown_words(tmp_path):
    for arguments, message in (
        (("--recipe", "magic"), "recipe='magic' is not known"),
        (("--only", "imagenet"), "only='imagenet' is not known"),
    ):
        answer = command(*arguments, "--out", str(tmp_path))
        assert message in str(answer.exception)


@pytest.mark.slow
def test_command_shows_what_results_there_are(tmp_path):
    answer = command("--out", str(tmp_path))
    assert answer.exit_code == 0, answer.output
    assert "wrote" in answer.output
    rows = json.loads((tmp_path / "numbers.json").read_text())["rows"]
    assert all(row["guarantee"] for row in rows)
    assert (tmp_path / "cifar10.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["mnist dpsgd 1.795", "cifar10 strong 2.673", "mnist r1smg-inside 0.99", "mnist dpsgd 16.983 after 8"]
)
def test_plans_computed_anew_are_those_stored(name):
    ((found, plan),) = settings.compute_plans(lambda one: one == name).items()
    stored = settings.stored_plans()[name]
    assert found == name
    assert plan.keys() == stored.keys()
    assert plan["delta"] == pytest.approx(stored["delta"], rel=1e-3)
    if stored["epsilon_at_1e-5"] is None:
        assert plan["epsilon_at_1e-5"] is None
    else:
        assert plan["epsilon_at_1e-5"] == pytest.approx(stored["epsilon_at_1e-5"], rel=1e-3)
