"""Other learning rates, clipping norms and optimizers: the trainer, the command, and what is told of the results."""

import json
from dataclasses import replace

import numpy as np
import pytest

from lessnoise_paper import sections
from lessnoise_paper.experiments import learning
from lessnoise_paper.training import compared, results, settings
from tests.lessnoise_paper.training.test_training import EXTRA, small


@pytest.fixture
def torch():
    found = pytest.importorskip("torch", reason=EXTRA)
    found.set_num_threads(1)
    return found


def by_hand(optimizer, weights, gradients, rate):
    """The weights after some steps, entry by entry, from the definitions."""
    speed, square = np.zeros_like(weights), np.zeros_like(weights)
    for step, gradient in enumerate(gradients, start=1):
        if optimizer == "sgd":
            weights = weights - rate * gradient
        elif optimizer == "momentum":
            speed = 0.9 * speed + gradient
            weights = weights - rate * speed
        else:
            speed = 0.9 * speed + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            weights = weights - rate * (speed / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return weights


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_steps_follow_the_optimizer_and_no_run_touches_another(torch, optimizer, monkeypatch):
    from lessnoise_paper.training.networks import network
    from lessnoise_paper.training.trainer import Ensemble, Run

    runs = [Run("a", None, 0), Run("b", None, 1)]
    ensemble = Ensemble(network("mnist"), runs, torch.device("cpu"), optimizer)
    generator = torch.Generator().manual_seed(0)
    sums = [[torch.randn(part.shape, generator=generator) for part in ensemble.weights] for _ in range(3)]
    for one in sums:
        one[2][0] = 0.0  # the third layer of the first run
    zeros = [torch.zeros_like(bias) for bias in ensemble.biases]
    given = iter(sums)
    monkeypatch.setattr(ensemble, "clipped_sums", lambda *arguments: (next(given), zeros, None))
    before = [weight.double().numpy().copy() for weight in ensemble.weights]
    for _ in sums:
        ensemble.step(None, None, None, rate=0.05, batch=4.0, generator=generator)
    for layer, start in enumerate(before):
        gradients = [one[layer].double().numpy() / 4.0 for one in sums]
        expected = by_hand(optimizer, start, gradients, 0.05)
        np.testing.assert_allclose(ensemble.weights[layer].numpy(), expected, rtol=2e-5, atol=2e-6)
    assert np.array_equal(ensemble.weights[2][0].numpy(), before[2][0].astype(np.float32))


def test_noise_of_a_trial_grows_with_its_clipping_norm(torch):
    from lessnoise_paper.training.sweep import Trial, runs_of

    for clip in (0.3, 1.0, 3.0):
        runs = runs_of(Trial("sgd", 0.5, clip, seeds=2))
        assert [(run.method, run.seed) for run in runs] == [(m, s) for m in settings.SWEPT for s in (0, 1)]
        for run in runs:
            study = settings.stored_plan("mnist", run.method, 16.983).mechanism
            assert run.clip_norm == clip
            assert run.law.scale == pytest.approx(clip * study.law.scale, rel=1e-12)
            assert (run.law.k, run.law.p) == (study.law.k, study.law.p)


@pytest.mark.slow
def test_a_sweep_goes_on_where_it_was_and_keeps_how_each_run_was_made(torch, tmp_path, monkeypatch):
    from lessnoise_paper.training import sweep

    monkeypatch.setattr(sweep, "load", lambda name, folder: small(200))
    monkeypatch.setitem(settings.CASES, "mnist", replace(settings.CASES["mnist"], batch=50))
    trials = (sweep.Trial("sgd", 0.5, 1.0), sweep.Trial("adam", 0.002, 2.0))
    common = {"data": None, "trials": trials, "epochs": 2, "command": "test", "report": lambda line: None}
    whole = sweep.run_sweep(out=tmp_path / "a", **common)
    for _ in range(4):  # an epoch each time
        pieces = sweep.run_sweep(out=tmp_path / "b", minutes=0.0, **common)
    pieces = sweep.run_sweep(out=tmp_path / "b", **common)
    assert [run["test"] for run in whole["runs"]] == [run["test"] for run in pieces["runs"]]
    assert [(run["optimizer"], run["clip_norm"]) for run in whole["runs"]] == 2 * [("sgd", 1.0)] + 2 * [("adam", 2.0)]
    stored = results.read("sweep", tmp_path / "a")
    assert stored["runs"] == whole["runs"]
    assert (stored["records"], stored["epochs"], stored["command"]) == (200, 2, "test")


def way_of(run):
    return tuple(run[name] for name in ("optimizer", "learning_rate", "clip_norm", "epsilon"))


def test_what_is_told_of_the_sweep_is_what_is_stored():
    stored, study = results.read("sweep"), results.read("mnist")
    assert stored["records"] == 60000
    assert stored["epochs"] == settings.SWEEP_EPOCHS
    assert stored["command"].startswith("python -m lessnoise_paper.training.sweep ")
    found = compared.compared()
    assert len(found) == len({way_of(run) for run in stored["runs"]}) + 2
    for way in found:
        if way.learning_rate == 0.15 and way.clip_norm == 1.0:
            runs = [run for run in study["runs"] if run["epsilon"] == way.claimed_epsilon]
        else:
            how = (way.optimizer, way.learning_rate, way.clip_norm, way.claimed_epsilon)
            runs = [run for run in stored["runs"] if way_of(run) == how]
        for method, one in (("r1smg-published", way.published), ("dpsgd", way.dpsgd)):
            curves = [run["test"] for run in runs if run["method"] == method]
            last = [curve[way.epochs - 1] for curve in curves]
            assert one.accuracy == pytest.approx(sum(last) / len(last))
            assert (one.least, one.greatest) == (min(last), max(last))
            means = [sum(shares) / len(shares) for shares in zip(*curves, strict=True)]
            assert one.arrival == next((i for i, share in enumerate(means, start=1) if share >= 0.95), None)
        assert way.gap == pytest.approx(way.published.accuracy - way.dpsgd.accuracy)
        assert "no privacy" in way.published.guarantee


def made_up(published, dpsgd, epochs=16):
    """A sweep of one way in which the two lines reach 95% in these epochs."""

    def curve(arrival):
        return [0.96 if arrival is not None and epoch >= arrival else 0.9 for epoch in range(1, epochs + 1)]

    how = {"optimizer": "sgd", "learning_rate": 0.5, "clip_norm": 1.0, "epsilon": 16.983, "seed": 0, "train": [0.9]}
    lines = (("r1smg-published", published), ("dpsgd", dpsgd))
    return {"runs": [{**how, "method": m, "test": curve(a)} for m, a in lines], "epochs": settings.SWEEP_EPOCHS}


@pytest.mark.parametrize(
    ("published", "dpsgd", "expected"),
    [(5, 14, True), (6, 16, True), (5, 6, False), (None, 14, False), (5, None, False), (9, 14, False)],
)
def test_ways_that_arrive_as_in_the_paper_are_recognised(published, dpsgd, expected):
    sweep = made_up(published, dpsgd)
    (way,) = compared.compared(lambda name: sweep if name == "sweep" else None)
    assert (way.published.arrival, way.dpsgd.arrival) == (published, dpsgd)
    assert way.as_the_paper is expected


def test_who_had_no_time_to_arrive_is_given_the_benefit_of_the_doubt():
    sweep = made_up(5, None, epochs=8)
    (way,) = compared.compared(lambda name: sweep if name == "sweep" else None)
    assert way.as_the_paper is True


def test_words_follow_the_sweep(monkeypatch):
    monkeypatch.setattr(learning, "figures", lambda read_result, attacked: {})
    for epochs, said in ((14, "In 1 of these ways"), (6, "In none of these ways")):
        sweep = {**made_up(5, epochs), "device": "a processor", "date": "2026-01-02", "command": "the command"}

        def read(name, sweep=sweep):
            return sweep if name == "sweep" else results.read(name)

        numbers = json.loads(json.dumps(learning.collected(read, []).numbers))
        words = sections.learning.rates(numbers)
        assert said in words.shows
        assert "R1SMG as published reaches 95% in epoch 5, and DP-SGD in epoch" in words.ours
        assert "the command" in words.setting
        assert "delta >= 0.999" in words.privacy
    nothing = json.loads(json.dumps(learning.collected(lambda name: None, []).numbers))
    assert "python -m lessnoise_paper.training.sweep" in sections.learning.rates(nothing).setting
    assert sections.learning.inside(nothing).privacy == sections.learning.inside(numbers).privacy


def test_the_stored_sweep_is_what_the_command_trains(torch):
    from lessnoise_paper.training.sweep import TRIALS

    budgets = settings.CASES["mnist"].budgets
    asked = {(t.optimizer, t.learning_rate, t.clip_norm, budgets[t.budget].epsilon): t.seeds for t in TRIALS}
    runs = results.read("sweep")["runs"]
    assert {way_of(run) for run in runs} == asked.keys()
    for way, seeds in asked.items():
        found = sorted((run["method"], run["seed"]) for run in runs if way_of(run) == way)
        assert found == [(method, seed) for method in sorted(settings.SWEPT) for seed in range(seeds)]
