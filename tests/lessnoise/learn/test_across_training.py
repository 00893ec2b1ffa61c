"""Trainings with noise across steps: places of records, the law of the noise, and what must never happen twice."""

import copy
import math
import pickle

import numpy as np
import pytest

from lessnoise import InvalidInput, Ledger, learn

torch = pytest.importorskip("torch", reason="needs the extra: pip install 'lessnoise[learn]'")
pytest.importorskip("opacus", reason="needs the extra: pip install 'lessnoise[learn]'")

from lessnoise.learn.across.loader import GroupSampler  # noqa: E402

INVERSE = learn.BandedInverse((1.0, -0.5, -0.125))
BANDED = learn.Banded((1.0, 0.5, 0.375))
pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")


def private_of(*, inputs=None, batch_size=50, secure=True, momentum=0.0, **options):
    torch.set_num_threads(1)
    inputs = torch.randn(300, 6, generator=torch.Generator().manual_seed(1)) if inputs is None else inputs
    labels = (inputs[:, 0] > 0).long()
    model = torch.nn.Linear(inputs.shape[1], 2, bias=False)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, labels), batch_size=batch_size)
    settings = {"records": 300, "mechanism": INVERSE, "clip_norm": 1, "epochs": 2, "epsilon": 4, "delta": 1e-5}
    return learn.make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=1.0, momentum=momentum),
        loader,
        loss=torch.nn.functional.cross_entropy,
        secure_mode=secure,
        **settings | options,
    )


def step_on(private, batch):
    inputs, labels = batch
    private.optimizer.zero_grad()
    private.loss(private.model(inputs), labels).backward()
    private.optimizer.step()


# Places.


@pytest.mark.parametrize("secure", [True, False])
def test_a_record_has_one_place_an_epoch_that_stays(secure):
    sampler = GroupSampler(500, 20, 20, secure=secure)
    epochs = [list(sampler) for _ in range(3)]
    assert epochs[0] == epochs[1] == epochs[2]
    assert sorted(place for batch in epochs[0] for place in batch) == list(range(500))
    sizes = np.array([len(batch) for batch in epochs[0]])
    assert 25 * 0.1 < sizes.var() < 25 * 5  # places are drawn one by one: batches are not equally long
    again = list(GroupSampler(500, 20, 20, secure=secure))
    assert again != epochs[0]


@pytest.mark.parametrize("secure", [True, False])
def test_groups_take_turns_and_are_sampled_anew_each_time(secure):
    sampler = GroupSampler(400, 20, 4, secure=secure)
    batches = []
    for epoch in range(10):
        sampler.start = 20 * epoch
        batches += list(sampler)
    group = {place: step % 4 for step, batch in enumerate(batches) for place in batch}
    assert all(group[place] == step % 4 for step, batch in enumerate(batches) for place in batch)
    counts = np.bincount(np.concatenate(batches).astype(int), minlength=400)  # 50 turns at rate 1/5
    assert abs(counts - 10).max() < 9 * math.sqrt(8)
    assert abs(counts.mean() - 10) < 7 * math.sqrt(8 / 400)
    assert 8 * 0.4 < counts.var() < 8 * 1.8


@pytest.mark.parametrize("mechanism", [INVERSE, BANDED], ids=lambda m: m.kind)
def test_a_pass_that_was_broken_off_goes_on_where_the_steps_are(mechanism):
    private = private_of(mechanism=mechanism, secure=False)
    taken = []
    period = private.privacy.plan.groups
    for count in (2, 3, 6, 1):
        for place, batch in enumerate(private.data_loader):
            if place == count:
                break
            taken.append(batch[0].clone())
            step_on(private, batch)
    assert private.privacy.taken == 12
    seen = {}
    for step, inputs in enumerate(taken):
        for record in inputs.tolist():
            seen.setdefault(tuple(record), set()).add(step % period)
    assert all(len(places) == 1 for places in seen.values())
    assert len(seen) > 100


def test_batches_of_two_passes_do_not_mix():
    private = private_of(secure=False)
    first = iter(private.data_loader)
    step_on(private, next(first))
    second = iter(private.data_loader)
    other = next(second)  # for step 2, as is the next of the first pass
    step_on(private, next(first))
    with pytest.raises(InvalidInput, match="step=3 is not for this batch of the loader"):
        step_on(private, other)
    assert private.privacy.taken == 2


def test_parts_of_batches_are_refused():
    private = private_of(secure=False)
    with pytest.raises(InvalidInput, match="max_rows=8 with noise across steps is not supported"):
        private.virtual(8)
    with pytest.raises(InvalidInput, match="signal_skip_step"):
        private.optimizer.signal_skip_step()
    assert private.privacy.taken == 0


# Noise.


@pytest.mark.parametrize("mechanism", [INVERSE, BANDED], ids=lambda m: m.kind)
@pytest.mark.parametrize("secure", [False, True])
def test_noise_has_the_covariance_of_the_rows(mechanism, secure):
    """Records of zeros have no gradient: what is released is noise, and C of it is independent, of deviation sigma."""
    entries, steps = 6000, 12
    private = private_of(inputs=torch.zeros(300, entries // 2), mechanism=mechanism, secure=secure, clip_norm=2.0)
    released = []
    for _ in range(2):
        for inputs, labels in private.data_loader:
            private.optimizer.zero_grad()
            private.loss(private.model(inputs), labels).backward()
            private.optimizer.pre_step()
            released.append(torch.cat([p.grad.reshape(-1) for p in private.optimizer.params]).double().numpy())
    plan = private.privacy.plan
    noise = np.array(released) * private.optimizer.expected_batch_size
    column = mechanism.matrix(steps)
    matrix = np.array([[column[t - s] if t >= s else 0.0 for s in range(steps)] for t in range(steps)])
    white = matrix @ noise / (2.0 * plan.noise_multiplier)
    variances = (white**2).mean(1)
    assert np.abs(variances - 1.0).max() < 7 * math.sqrt(2 / entries)
    assert min(abs(variances.mean() * wrong**2 - 1.0) for wrong in (2 / 3, 3 / 2)) > 0.5
    products = white @ white.T / entries
    assert np.abs(products - np.diag(np.diag(products))).max() < 7 / math.sqrt(entries)
    neighbours = (noise[1:] * noise[:-1]).mean() / (2.0 * plan.noise_multiplier) ** 2
    assert neighbours < -0.2  # later noise takes back a part of the noise before


def test_two_trainings_have_different_noise():
    found = []
    for _ in range(2):
        private = private_of(inputs=torch.zeros(300, 50), secure=False)
        batch = next(iter(private.data_loader))
        step_on(private, batch)
        found.append(torch.cat([p.grad.reshape(-1) for p in private.optimizer.params]))
    assert not torch.equal(*found)


def test_a_seed_gives_the_same_training_again_and_is_not_private():
    found = []
    for _ in range(2):
        torch.manual_seed(0)
        private = private_of(secure=False, generator=torch.Generator().manual_seed(3))
        learn.fit(private, epochs=2, report=lambda line: None)
        found.append(torch.cat([p.detach().reshape(-1) for p in private.optimizer.params]))
    assert torch.equal(*found)
    assert not private.privacy.private


# What must not happen twice.


def test_a_step_that_breaks_off_is_counted_and_its_noise_is_not_drawn_again(monkeypatch):
    """A second sum with the same noise would tell the difference of both exactly."""
    private = private_of(secure=False)
    batches = iter(private.data_loader)
    step_on(private, next(batches))
    with monkeypatch.context() as broken:  # after the noise
        broken.setattr(private.optimizer, "scale_grad", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            step_on(private, next(batches))
    assert private.privacy.taken == 2
    step_on(private, next(iter(private.data_loader)))
    with monkeypatch.context() as broken:  # before it
        broken.setattr(private.optimizer._source, "prepared", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            step_on(private, next(iter(private.data_loader)))
    assert private.privacy.taken == 4
    with pytest.raises(InvalidInput, match="step=5 is not the one whose noise is next"):
        step_on(private, next(iter(private.data_loader)))


def test_noise_cannot_be_drawn_by_hand_and_again():
    private = private_of(secure=False)
    batch = next(iter(private.data_loader))
    private.loss(private.model(batch[0]), batch[1]).backward()
    private.optimizer.clip_and_accumulate()
    for _ in range(2):
        with pytest.raises(InvalidInput, match="step=0 is not the one whose noise is next"):
            private.optimizer.add_noise()


def test_counting_back_does_not_bring_noise_back():
    private = private_of(secure=False)
    step_on(private, next(iter(private.data_loader)))
    private.privacy.taken = 0
    with pytest.raises(InvalidInput, match="step=1 is not the one whose noise is next"):
        step_on(private, next(iter(private.data_loader)))


def test_checkpoints_have_no_key_and_are_not_resumed():
    private = private_of(secure=False)
    step_on(private, next(iter(private.data_loader)))
    state = private.privacy.state_dict()
    kept = pickle.dumps((private.optimizer.state_dict(), private.model.state_dict(), state))
    assert str(private.optimizer._source._seed).encode() not in kept
    assert private.optimizer._source._seed.to_bytes(8, "little") not in kept
    with pytest.raises(InvalidInput, match="key is in no checkpoint"):
        private_of(secure=False, resume=state)
    with pytest.raises(InvalidInput, match="key is in no checkpoint"):
        private.privacy.load_state_dict(state)
    assert private.privacy.taken == 1


def test_the_key_of_a_training_cannot_be_copied():
    private = private_of()
    for take in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            take(private.optimizer._source)


# The whole.


@pytest.mark.parametrize("mechanism", ["banded-inverse", "banded"])
def test_training_learns_and_tells_what_it_cost(mechanism):
    torch.manual_seed(0)
    seeded = torch.Generator().manual_seed(1)
    private = private_of(mechanism=mechanism, bands=3, epsilon=40, epochs=4, secure=False, generator=seeded)
    lines = []
    learn.fit(private, epochs=4, report=lines.append)
    plan = private.privacy.plan
    assert private.privacy.epsilon().upper == plan.epsilon(1e-5).upper <= 40
    assert "step 6 of 24" in lines[0]
    inputs, labels = private.data_loader.dataset.tensors
    with torch.no_grad():
        assert (private.model(inputs).argmax(1) == labels).float().mean() > 0.8
    with pytest.raises(InvalidInput, match="steps=25 exceeds the 24 steps"):
        learn.fit(private, epochs=1)


def test_momentum_is_counted_in_when_coefficients_are_chosen():
    asked = {"clip_norm": 1, "parameters": 12, "batches": 6, "steps": 12, "records": 300, "epsilon": 4, "delta": 1e-5}
    found = []
    for momentum in (0.0, 0.9):
        private = private_of(mechanism="banded-inverse", bands=4, secure=False, momentum=momentum)
        found.append(private.privacy.plan)
        assert found[-1] == learn.plan_across_steps("banded-inverse", bands=4, momentum=momentum, **asked)
    assert found[0].factorisation != found[1].factorisation


def test_bands_without_noise_across_steps_are_refused():
    with pytest.raises(InvalidInput, match="bands=4 is of no use"):
        private_of(mechanism="gaussian", bands=4)


def test_a_ledger_pays_for_the_whole_training_once(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.sqlite", epsilon=5, delta=1e-5)
    private = private_of(ledger=ledger)
    assert [one.composition for one in ledger.records()] == [private.privacy.plan.composition()]
    assert 3.9 < ledger.spent().lower <= ledger.spent().upper <= 4.01
    assert private.privacy.private
