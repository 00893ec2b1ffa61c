"""Private training: accounting, noise, bad input. The tests of torch parts are skipped without the extra."""

import json
import math
import warnings

import numpy as np
import pytest

import lessnoise as ln
from lessnoise import learn
from lessnoise.composition import published
from lessnoise.learn.plan import NAMES
from lessnoise.mechanism import CATALOGUE

EXTRA = "needs the extra: pip install 'lessnoise[learn]'"
MNIST = {"rate": 256 / 60000, "steps": 7031, "records": 60000}


# Accounting, without torch.


# Noise multiplier, rate and steps: the four trainings of case study III, and large batches.
TRAININGS = [
    (1.1, 256 / 60000, 7031),
    (0.5, 256 / 60000, 7031),
    (1.1, 256 / 50000, 19531),
    (0.5, 256 / 50000, 19531),
    (2.0, 0.05, 400),
]


@pytest.mark.slow
@pytest.mark.parametrize(("multiplier", "rate", "steps"), TRAININGS)
def test_gaussian_epsilon_is_that_of_dp_accounting(multiplier, rate, steps):
    from dp_accounting import dp_event
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    step = learn.gaussian(noise_multiplier=multiplier, clip_norm=3, parameters=26010)
    ours = learn.TrainingPlan(step, rate, steps, 60000).epsilon(1e-5)
    event = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(multiplier))
    theirs = PLDAccountant().compose(event, steps).get_epsilon(1e-5)
    assert ours.lower <= theirs * 1.001
    assert ours.upper == pytest.approx(theirs, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("multiplier", "rate", "steps"), TRAININGS)
def test_gaussian_epsilon_is_that_of_opacus(multiplier, rate, steps):
    prv = pytest.importorskip("opacus.accountants", reason=EXTRA).PRVAccountant()
    prv.history = [(multiplier, rate, steps)]
    step = learn.gaussian(noise_multiplier=multiplier, clip_norm=1, parameters=100)
    ours = learn.TrainingPlan(step, rate, steps, 60000).epsilon(1e-5)
    assert ours.upper == pytest.approx(prv.get_epsilon(1e-5), rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gaussian", "l2"])
def test_calibration_ends_on_the_safe_side_and_is_tight(kind):
    setting = {"clip_norm": 2.0, "parameters": 50, "rate": 0.02, "steps": 300, "records": 1000}
    plan = learn.plan_training(kind, epsilon=1.5, delta=1e-5, **setting)
    assert 0.95e-5 < plan.delta(1.5).upper <= 1e-5
    assert plan.epsilon(1e-5).upper <= 1.5
    assert plan.check().holds
    law = plan.mechanism.law
    less = ln.Mechanism("less", law.scaled(0.98), (50,), 2.0)
    assert learn.TrainingPlan(less, 0.02, 300, 1000).delta(1.5).lower > 1e-5


@pytest.mark.slow
def test_a_description_keeps_its_noise_without_a_target_and_is_rescaled_with_one():
    shells = ln.shells(edges=[0, 1, 2], probabilities=[0.5, 0.5], sensitivity=1.0, shape=3)
    setting = {"clip_norm": 1.0, "parameters": 3, "rate": 0.1, "steps": 10, "records": 100}
    assert learn.plan_training(shells, **setting).mechanism == shells
    gaussian = learn.gaussian(noise_multiplier=1.0, clip_norm=1.0, parameters=3)
    rescaled = learn.plan_training(gaussian, epsilon=1, delta=1e-5, **setting)
    named = learn.plan_training("gaussian", epsilon=1, delta=1e-5, **setting)
    assert rescaled.mechanism.law.scale == pytest.approx(named.mechanism.law.scale, rel=2e-3)


def test_kinds_have_the_names_of_the_catalogue_and_gaussian_is_short_for_one():
    setting = {"clip_norm": 1.0, "parameters": 3, "rate": 0.5, "steps": 2, "records": 10, "epsilon": 8, "delta": 1e-2}
    full = learn.plan_training("analytic-gaussian", **setting)
    assert full.mechanism.name == "analytic-gaussian"
    assert learn.plan_training("gaussian", **setting) == full
    assert set(NAMES) <= set(CATALOGUE)


@pytest.mark.slow
def test_published_training_shares_out_the_budget_and_does_not_keep_its_claim():
    with pytest.warns(ln.ClaimWarning, match="not below 1/M"):
        plan = learn.published_r1smg(1.795, 1e-5, clip_norm=1, parameters=26010, **MNIST)
    each = published.amortise(1.795, 1e-5, steps=7031, rate=256 / 60000)
    assert plan.mechanism.claim.epsilon == each.epsilon
    assert f"{each.epsilon:.2f}" == "0.71"  # the paper prints 0.71
    verdict = plan.check()
    assert not verdict.holds
    assert verdict.exact.lower > 0.999


@pytest.mark.slow
def test_plans_survive_json():
    plan = learn.plan_training(
        "gaussian", clip_norm=1, parameters=5, rate=0.1, steps=9, records=90, epsilon=1, delta=1e-3
    )
    assert learn.TrainingPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


@pytest.mark.slow
def test_cost_grows_with_the_steps_from_nothing():
    plan = learn.TrainingPlan(learn.gaussian(noise_multiplier=1, clip_norm=1, parameters=4), 0.05, 40, 100)
    assert plan.epsilon(1e-4, 0) == ln.Bracket(0.0, 0.0)
    assert plan.delta(1.0, 0).upper == 0.0
    assert plan.epsilon(1e-4, 10).upper < plan.epsilon(1e-4, 20).lower < plan.epsilon(1e-4).upper


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mechanism": "laplacian"}, "mechanism='laplacian' is not known"),
        ({"epsilon": None}, "epsilon=None for mechanism='gaussian'"),
        ({"delta": None}, "delta=None"),
        ({"delta": 1.0}, "delta=1.0 must lie strictly between"),
        ({"epsilon": math.nan}, "epsilon=nan is not finite"),
        ({"clip_norm": 0.0}, "clip_norm=0.0 must be above 0"),
        ({"steps": 0}, "steps=0 must be at least 1"),
        ({"rate": 1.5}, "rate=1.5 must be above 0 and at most 1"),
        ({"mechanism": learn.gaussian(noise_multiplier=1, clip_norm=1, parameters=4)}, "build it with shape=5"),
        ({"mechanism": learn.gaussian(noise_multiplier=1, clip_norm=2, parameters=5)}, "differs from clip_norm=1"),
        ({"mechanism": ln.laplace(epsilon=1, sensitivity=1, shape=5)}, "does not fit real gradients"),
        (
            {"mechanism": ln.l2_mechanism(epsilon=1, delta=1e-5, sensitivity=1, shape=5, neighbours="replace")},
            "neighbours='replace'",
        ),
    ],
)
def test_bad_plans_are_refused_in_one_sentence(change, message):
    asked = {
        "mechanism": "gaussian",
        "clip_norm": 1,
        "parameters": 5,
        "rate": 0.1,
        "steps": 10,
        "records": 100,
        "epsilon": 1,
        "delta": 1e-5,
    } | change
    with pytest.raises(ln.InvalidInput, match=message):
        learn.plan_training(asked.pop("mechanism"), **asked)


# With torch.


@pytest.fixture
def torch():
    pytest.importorskip("opacus", reason=EXTRA)
    found = pytest.importorskip("torch", reason=EXTRA)
    found.set_num_threads(1)
    found.manual_seed(0)
    return found


@pytest.fixture
def parts(torch):
    """A small problem: 300 records of 6 features, 2 classes; 56 parameters."""

    def make(batch_size=30, **options):
        inputs = torch.randn(300, 6, generator=torch.Generator().manual_seed(1))
        labels = (inputs[:, 0] > 0).long()
        model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2))
        data = torch.utils.data.TensorDataset(inputs, labels)
        loader = torch.utils.data.DataLoader(data, batch_size=batch_size, **options)
        return model, torch.optim.SGD(model.parameters(), lr=0.5), loader

    return make


FIXED = learn.gaussian(noise_multiplier=2.0, clip_norm=1.0, parameters=56)


def private_of(parts, **options):
    """``make_private`` of the small problem."""
    from torch.nn.functional import cross_entropy

    settings = {"loss": cross_entropy, "records": 300, "mechanism": FIXED, "clip_norm": 1, "epochs": 1}
    return learn.make_private(*parts, **settings | options)


def train(torch, private, epochs=1):
    lines = []
    learn.fit(private, epochs=epochs, report=lines.append)
    return lines


@pytest.mark.slow
def test_training_learns_reports_epsilon_and_stops_at_the_plan(torch, parts):
    private = private_of(parts(), mechanism="gaussian", epsilon=8, delta=1e-4, epochs=4)
    lines = train(torch, private, 4)
    assert private.privacy.taken == 40
    assert lines[-1].startswith("epoch 4, step 40 of 40: epsilon between ")
    assert private.privacy.epsilon().upper <= 8
    inputs, labels = private.data_loader.dataset.tensors
    private.model.eval()
    with torch.no_grad():
        assert (private.model(inputs).argmax(1) == labels).float().mean() > 0.8
    private.model.train()
    with pytest.raises(ln.InvalidInput, match="steps=41 exceeds the 40 steps"):
        train(torch, private)


@pytest.mark.slow
def test_gaussian_step_is_that_of_opacus_but_for_the_noise(torch, parts):
    """With next to no noise the weights after a step are Opacus's own: same gradients, clipping and averaging."""
    from opacus import PrivacyEngine

    from lessnoise.learn.batch import tagged
    from lessnoise.learn.gradients import RESERVE
    from lessnoise.learn.loader import Place

    quiet = learn.gaussian(noise_multiplier=1e-9, clip_norm=0.3, parameters=56)
    after = []
    for ours in (True, False):
        torch.manual_seed(3)
        model, optimizer, loader = parts()
        if ours:
            model, optimizer, loader, _, loss = private_of((model, optimizer, loader), mechanism=quiet, clip_norm=0.3)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model, optimizer, _ = PrivacyEngine().make_private(
                    module=model,
                    optimizer=optimizer,
                    data_loader=loader,
                    noise_multiplier=0.0,
                    max_grad_norm=0.3 * (1 - RESERVE),
                )
            loss = torch.nn.functional.cross_entropy
        inputs, labels = parts()[2].dataset[:40]
        if ours:
            loader.places[loader.collate_fn.name] = Place(None, last=True)
            inputs, labels = tagged((inputs, labels), loader.collate_fn.name, 40)
        loss(model(inputs), labels).backward()
        optimizer.step()
        after.append(torch.cat([p.detach().reshape(-1) for p in model.parameters()]))
    torch.testing.assert_close(after[0], after[1], rtol=1e-5, atol=1e-6)


def noises(torch, parts, mechanism, secure, draws=60):
    """Noise of many steps on empty gradients, one row each."""
    found = []
    from lessnoise.learn.batch import tagged
    from lessnoise.learn.loader import Place

    private = private_of(parts(batch_size=1), mechanism=mechanism, secure_mode=secure)
    for number in range(draws):
        private.optimizer.zero_grad()
        name = f"{private.data_loader.collate_fn.name}{number}"
        private.data_loader.places[name] = Place(None, last=True)
        inputs, labels = tagged((torch.zeros(0, 6), torch.zeros(0).long()), name, 0)
        private.loss(private.model(inputs), labels).backward()
        private.optimizer.pre_step()
        found.append(torch.cat([p.grad.reshape(-1) for p in private.model.parameters()]).numpy())
    return np.array(found) * private.optimizer.expected_batch_size


@pytest.mark.slow
@pytest.mark.parametrize("secure", [True, False])
@pytest.mark.parametrize(
    "mechanism",
    [
        FIXED,
        ln.l2_mechanism(epsilon=1, delta=1e-5, sensitivity=1, shape=56),
        ln.r1smg(epsilon=1, delta=0.3, sensitivity=1, shape=56, calibration="exact"),
        ln.Mechanism("shells", ln.Shells(56, (0, 5, 9), (0.4, 0.6)), (56,), 1.0),
    ],
    ids=lambda m: m.name,
)
def test_noise_has_its_law_on_both_paths(torch, parts, mechanism, secure):
    """Lengths against the law's own quantiles; entries are centred, and two draws are not in line."""
    from scipy.stats import binom

    drawn = noises(torch, parts, mechanism, secure)
    losses = (drawn**2).sum(1)
    for q in (0.25, 0.75):
        below = int((losses <= mechanism.loss_quantile(q)).sum())
        assert binom.cdf(below, len(losses), q) > 1e-11
        assert binom.sf(below - 1, len(losses), q) > 1e-11
    unit = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    assert abs((unit[::2] * unit[1::2]).sum(1)).max() < 0.85  # of two directions among 56: p < 1e-14
    assert np.abs(unit.mean(0)).max() < 8 / math.sqrt(56 * len(drawn))
    if mechanism is FIXED:
        for wrong in (2 / 3, 3 / 2):  # and the test has power
            shares = (losses <= mechanism.loss_quantile(0.75) * wrong**2).mean()
            assert abs(shares - 0.75) > 0.2


@pytest.mark.parametrize("secure", [True, False])
def test_batches_are_poisson_samples(torch, secure):
    from lessnoise.learn.loader import PoissonSampler

    sampler = PoissonSampler(400, 20, secure=secure)
    batches = [batch for _ in range(10) for batch in sampler]
    sizes = np.array([len(batch) for batch in batches])
    assert sampler.issued == len(batches) == 200
    assert abs(sizes.mean() - 20) < 7 * math.sqrt(19 / 200)
    assert 19 * 0.4 < sizes.var() < 19 * 1.8  # a fixed batch size has 0
    counts = np.bincount(np.concatenate(batches), minlength=400)
    assert abs(counts - 10).max() < 9 * math.sqrt(9.5)


def test_replicas_share_the_records(torch):
    from lessnoise.learn.loader import PoissonSampler

    halves = [PoissonSampler(101, 1, secure=True, rank=rank, replicas=2) for rank in (0, 1)]
    assert sorted(index for half in halves for index in next(iter(half))) == list(range(101))


@pytest.mark.slow
def test_empty_batches_are_steps_too(torch, parts):
    model, optimizer, loader = parts(batch_size=1)  # mean size 1: a third of the batches are empty
    private = private_of((model, optimizer, loader))
    sizes = []
    for inputs, labels in private.data_loader:
        sizes.append(len(inputs))
        private.optimizer.zero_grad()
        private.loss(private.model(inputs), labels).backward()
        private.optimizer.step()
    assert 0 in sizes
    assert private.privacy.taken == 300


@pytest.mark.slow
def test_checkpoints_resume_and_refuse_other_settings(torch, parts, tmp_path):
    first = private_of(parts(), delta=1e-5, epochs=3)
    train(torch, first)
    path = tmp_path / "checkpoint.pt"
    torch.save({"model": first.model.state_dict(), "privacy": first.privacy.state_dict()}, path)
    saved = torch.load(path)  # plain values: safe loading takes them
    state = saved["privacy"]
    second = private_of(parts(), delta=1e-5, epochs=3, resume=state)
    second.model.load_state_dict(saved["model"])
    assert second.privacy.epsilon() == first.privacy.epsilon()
    train(torch, second, 2)
    assert second.privacy.taken == 30
    other = learn.gaussian(noise_multiplier=3.0, clip_norm=1.0, parameters=56)
    for changed, name in (
        ({"mechanism": other}, "mechanism="),
        ({"epochs": 4}, "steps=30 of the checkpoint differs from steps=40"),
    ):
        with pytest.raises(ln.InvalidInput, match=name):
            private_of(parts(), **{"epochs": 3} | changed, resume=state)
    with pytest.raises(ln.InvalidInput, match="not the state of this accountant"):
        private_of(parts(), epochs=3, resume={"history": []})


@pytest.mark.slow
def test_a_ledger_pays_before_the_first_step_and_for_what_a_resumed_training_has_left(torch, parts, tmp_path):
    ledger = ln.Ledger.open(tmp_path / "training.ledger", epsilon=2, delta=1e-4)
    private = private_of(parts(), epochs=2, ledger=ledger)
    assert [record.composition.count for record in ledger.records()] == [20]
    train(torch, private)
    private_of(parts(), epochs=2, ledger=ledger, resume=private.privacy.state_dict())
    assert [record.composition.count for record in ledger.records()] == [20, 10]
    quiet = learn.gaussian(noise_multiplier=0.3, clip_norm=1.0, parameters=56)
    model, optimizer, loader = parts()
    with pytest.raises(ln.BudgetExceeded):
        private_of((model, optimizer, loader), mechanism=quiet, epochs=2, ledger=ledger)
    assert len(ledger.records()) == 2
    private_of((model, optimizer, loader), epochs=2)  # nothing was changed


@pytest.mark.slow
def test_published_training_runs_warns_and_reports_the_truth(torch, parts):
    with pytest.warns(ln.ClaimWarning, match=r"does not hold: composed exactly, delta is at least 0\.\d+"):
        private = private_of(parts(), mechanism="r1smg-published", epsilon=3, delta=1e-4)
    assert "at the claimed epsilon=3 delta is at least 0." in train(torch, private)[0]
    assert not private.privacy.plan.check().holds


def test_seeded_training_repeats_and_says_that_it_is_not_private(torch, parts):
    weights = []
    for _ in range(2):
        torch.manual_seed(5)
        generator = torch.Generator().manual_seed(7)
        private = private_of(parts(), secure_mode=False, generator=generator)
        assert "private: false" in train(torch, private)[0]
        weights.append(next(private.model.parameters()).detach().clone())
    assert torch.equal(*weights)
    assert not private.privacy.private


def test_secure_training_takes_nothing_from_torchs_seed(torch, parts):
    """Same seed of torch, same first batch: the noise is another one, and so are the samples."""
    from lessnoise.learn.batch import tagged
    from lessnoise.learn.loader import Place

    weights, batches = [], []
    for _ in range(2):
        torch.manual_seed(5)
        private = private_of(parts())
        batches.append(next(iter(private.data_loader))[0])
        name = private.data_loader.collate_fn.name
        private.data_loader.places[name] = Place(None, last=True)
        inputs, labels = tagged(parts()[2].dataset[:30], name, 30)
        private.loss(private.model(inputs), labels).backward()
        private.optimizer.step()
        weights.append(next(private.model.parameters()).detach().clone())
    assert not torch.equal(*weights)
    assert batches[0].shape != batches[1].shape or not torch.equal(*batches)
    assert private.privacy.private


def test_a_resumed_training_is_as_private_as_its_worst_part(torch, parts):
    first = private_of(parts(), epochs=2, secure_mode=False)
    train(torch, first)
    second = private_of(parts(), epochs=2, resume=first.privacy.state_dict())
    assert not second.privacy.private
    assert "private: false" in train(torch, second)[0]


def test_batches_from_elsewhere_are_refused(torch, parts):
    model, optimizer, loader = parts()
    private = private_of((model, optimizer, loader))
    with pytest.raises(ln.InvalidInput, match="not for a batch of the Poisson loader"):
        train(torch, private._replace(data_loader=loader))


def test_a_changed_clipping_norm_is_refused(torch, parts):
    private = private_of(parts())
    private.optimizer.max_grad_norm = 2.0
    with pytest.raises(ln.InvalidInput, match=r"max_grad_norm=2\.0 was changed"):
        train(torch, private)


def test_loaders_that_are_not_poisson_are_refused(torch, parts):
    from torch.utils.data import DataLoader, IterableDataset, WeightedRandomSampler

    class Endless(IterableDataset):
        def __iter__(self):
            return iter([])

    model, optimizer, loader = parts()
    for bad, message in (
        (
            DataLoader(loader.dataset, batch_size=5, sampler=WeightedRandomSampler([1.0] * 300, 10)),
            "WeightedRandomSampler",
        ),
        (DataLoader(loader.dataset, batch_sampler=[[0, 1], [2]]), "sampler=list does not draw Poisson"),
        (DataLoader(Endless(), batch_size=5), "iterable only"),
        (DataLoader(loader.dataset, batch_size=None), "does no batching"),
        ([1, 2], "data_loader=list is not a torch DataLoader"),
    ):
        with pytest.raises(ln.InvalidInput, match=message):
            private_of((model, optimizer, bad))


def test_models_and_options_that_cannot_be_private_are_refused(torch, parts, tmp_path):
    model, optimizer, loader = parts()
    bad = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 2))
    with pytest.raises(ln.InvalidInput, match=r"1: BatchNorm1d, which mixes the records.*GroupNorm"):
        private_of((bad, torch.optim.SGD(bad.parameters()), loader))
    with pytest.raises(ln.InvalidInput, match="differ from the model's parameters"):
        private_of((model, torch.optim.SGD(bad.parameters()), loader))
    ledger = ln.Ledger.open(tmp_path / "x.ledger", epsilon=9, delta=1e-4)
    for options, message in (
        ({"generator": torch.Generator()}, "generator= and secure_mode=True"),
        ({"ledger": ledger, "secure_mode": False}, "ledger= and secure_mode=False"),
        ({"partition": "north"}, "partition='north' is of no use"),
        ({"epochs": 0}, "epochs=0 must be at least 1"),
        ({"loss_reduction": "none"}, "loss_reduction='none' is not known"),
        ({"records": None}, "records=None: pass the number of records, or a bound on it, as you would publish it"),
        ({"records": 0}, "records=0 must be at least 1"),
        ({"loss": None}, "loss=None is not a function"),
    ):
        with pytest.raises(ln.InvalidInput, match=message):
            private_of((model, optimizer, loader), **options)
    private = private_of((model, optimizer, loader))
    with pytest.raises(ln.InvalidInput, match="private already"):
        private_of((private.model, private.optimizer, loader))


def test_without_the_extra_the_error_names_it(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'lessnoise\[learn\]'"):
        learn.make_private(None, None, None, clip_norm=1, epochs=1)
