"""Attacks on private training: nothing but its own clipped gradient may say whether a record took part."""

import functools
import math
from fractions import Fraction

import numpy as np
import pytest

import lessnoise as ln
from lessnoise import learn

torch = pytest.importorskip("torch", reason="needs the extra: pip install 'lessnoise[learn]'")
pytest.importorskip("opacus", reason="needs the extra: pip install 'lessnoise[learn]'")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812
from torch.utils.data import DataLoader, Dataset, TensorDataset  # noqa: E402

from lessnoise.learn.gradients import RESERVE, clipped_sums  # noqa: E402
from tests.helpers.private_training import RECORDS, clipped_sum, drawn, movement, network, one_step, private_of, problem  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
    torch.manual_seed(0)


# Losses.

WEIGHTS = torch.tensor([1.0, 1.0, 100.0])


def masked_mean(scores, labels):
    losses = F.cross_entropy(scores, labels, reduction="none")
    return (losses * (labels + 1)).sum() / (labels + 1).sum()


def contrastive(scores, labels):
    return F.cross_entropy(scores, labels) + (scores @ scores.T).logsumexp(1).mean()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (nn.CrossEntropyLoss(weight=WEIGHTS), "divides by the weights of the batch"),
        (nn.NLLLoss(weight=WEIGHTS), "divides by the weights of the batch"),
        (functools.partial(F.cross_entropy, weight=WEIGHTS), "neither the mean nor the sum"),
        (nn.CrossEntropyLoss(ignore_index=1), "neither the mean nor the sum"),
        (masked_mean, "neither the mean nor the sum"),
        (contrastive, "neither the mean nor the sum"),
        (functools.partial(F.cross_entropy, reduction="none"), None),
        (lambda scores, labels: scores, "returns more than one number for one record"),
    ],
)
def test_losses_that_mix_records_are_refused_before_any_noise(loss, message):
    if message is None:  # of one record there is one number: the mean over the batch is meant
        assert movement(problem(), loss=loss) <= 1
        return
    with pytest.raises(ln.InvalidInput, match=message):
        clipped_sum(problem(), loss=loss)


def squared_error(scores, labels):
    return ((scores - F.one_hot(labels, 3)) ** 2).mean()


def with_item(scores, labels):
    return F.cross_entropy(scores, labels) * (2.0 if labels.max().item() > 0 else 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss",
    [
        F.cross_entropy,
        nn.CrossEntropyLoss(label_smoothing=0.1),
        nn.CrossEntropyLoss(reduction="sum"),
        nn.CrossEntropyLoss(weight=WEIGHTS, reduction="sum"),
        nn.CrossEntropyLoss(ignore_index=1, reduction="sum"),
        nn.MultiMarginLoss(weight=WEIGHTS),
        squared_error,
    ],
)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_record_moves_the_sum_by_its_clipped_gradient_and_no_more(loss, reduction):
    found = movement(problem(), loss=loss, loss_reduction=reduction)
    assert 0.99 < found <= 1.0


def test_a_loss_that_cannot_be_vectorised_is_computed_record_by_record():
    inputs, labels = problem()
    data = inputs, labels.clamp(min=1)  # the loss is a mean for these
    assert 0.99 < movement(data, loss=with_item) <= 1.0
    private = private_of(data, loss=with_item)
    batch = next(iter(private.data_loader))
    assert one_step(private, batch).norm() > 0
    assert one_step(private, drawn(private, inputs[:0], labels[:0])).norm() == 0


def test_a_rare_class_that_the_first_batch_lacks_does_not_move_the_others():
    """Class weights of a normalising loss: all of one weight at first, so that nothing is to be seen."""
    inputs, labels = problem()
    sums = []
    for last in (RECORDS, RECORDS - 1):
        private = private_of((inputs, labels), loss=functools.partial(F.cross_entropy, weight=WEIGHTS), lr=0.0)
        one_step(private, drawn(private, inputs[:30], labels[:30]))
        sums.append(one_step(private, drawn(private, inputs[:last], labels[:last])))
    assert 0.99 < float((sums[0] - sums[1]).norm()) <= 1.0


def test_terms_and_factors_past_the_watched_loss_are_refused():
    private = private_of(problem())
    inputs, labels = next(iter(private.data_loader))
    scores = private.model(inputs)
    with pytest.raises(ln.InvalidInput, match=r"private\.loss was multiplied before backward"):
        (private.loss(scores, labels) / 7).backward()
    private = private_of(problem())
    inputs, labels = next(iter(private.data_loader))
    scores = private.model(inputs)
    (private.loss(scores, labels) + scores.softmax(1).mean(0).square().sum()).backward()
    with pytest.raises(ln.InvalidInput, match=r"past private\.loss"):
        private.optimizer.step()
    private = private_of(problem())
    inputs, labels = next(iter(private.data_loader))
    F.cross_entropy(private.model(inputs), labels).backward()
    with pytest.raises(ln.InvalidInput, match=r"not computed by private\.loss"):
        private.optimizer.step()
    assert private.privacy.taken == 0


# Sums.


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_sums_are_exact_whatever_the_parameters_are(dtype):
    """In 16 bits the sum of 3,000 gradients would move by several clipping norms."""
    data = problem(3000, dtype=dtype)
    options = {"batch_size": 3000, "records": 3000, "make_model": lambda: network(dtype=dtype)}
    assert 0.99 < movement(data, **options) <= 1.0


def exact_length(gradient):
    return math.sqrt(sum(Fraction(float(entry)) ** 2 for entry in gradient))


@pytest.mark.parametrize("clip", [1e-30, 0.1, 1.0, 3.0, 1e25])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_clipped_sums_add_exactly_in_any_order_and_any_parts(clip, dtype):
    generator = torch.Generator().manual_seed(3)
    sizes = 10.0 ** torch.randint(-30, 30, (50,), generator=generator).double()
    gradients = [
        (torch.randn(50, *shape, generator=generator) * sizes.view(-1, *(1,) * len(shape))).to(dtype)
        for shape in ((7, 3), (), (5,))
    ]
    together = clipped_sums(gradients, clip)
    order = torch.randperm(50, generator=generator)
    shuffled = clipped_sums([g[order] for g in gradients], clip)
    alone = [clipped_sums([g[i : i + 1] for g in gradients], clip) for i in range(50)]
    for place, total in enumerate(together):
        assert total.dtype == torch.float64
        assert torch.equal(total, shuffled[place])
        assert torch.equal(total, sum(own[place] for own in reversed(alone)))
    lengths = [exact_length(torch.cat([part.reshape(-1) for part in own])) for own in alone]
    assert max(lengths) <= clip
    assert max(lengths) > clip * (1 - 2 * RESERVE)
    for own, length, gradient in zip(alone, lengths, zip(*gradients, strict=True), strict=True):
        before = torch.cat([part.reshape(-1).double() for part in gradient])
        after = torch.cat([part.reshape(-1) for part in own])
        size = float(before.norm())
        if size > clip * 1e-3:  # the direction is kept, up to the unit that entries are cut to
            expected = before * min(1.0, clip * (1 - RESERVE) / size)
            assert float((after - expected).abs().max()) < clip * 1e-6
        assert length <= size * (1 + 1e-6)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e38])
def test_a_record_without_a_finite_gradient_moves_nothing_and_is_not_told(bad):
    inputs, labels = problem(loud=False)
    inputs[-1, 2] = bad
    found = movement((inputs, labels))
    assert found <= 1.0 if bad == 1e38 else found == 0.0


def test_weights_that_are_not_finite_are_refused():
    private = private_of(problem())
    with torch.no_grad():
        next(private.model.parameters())[0, 0] = math.nan
    with pytest.raises(ln.InvalidInput, match="weight=nan or infinite"):
        one_step(private, next(iter(private.data_loader)))


# The number of records.


@pytest.mark.slow
def test_nothing_public_follows_from_the_private_number_of_records():
    found = []
    for count in (600, 601, 1500, 1):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(*problem(count)), batch_size=60, drop_last=count == 601, shuffle=True)
        private = learn.make_private(
            model, optimizer, loader, loss=F.cross_entropy, records=600, clip_norm=1, epsilon=2, delta=1e-4, epochs=2
        )
        learn.fit(private, epochs=1, report=lambda line: None)
        found.append(
            (
                private.privacy.state_dict(),
                str(private.privacy),
                len(private.data_loader),
                private.optimizer.expected_batch_size,
                private.optimizer.noise_multiplier,
                private.data_loader.batch_sampler.rate,
            )
        )
    assert all(one == found[0] for one in found)
    assert found[0][0]["taken"] == 10
    assert found[0][2:4] == (10, 60.0)


def test_empty_batches_hold_nothing_of_any_record():
    class Named(Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return {"x": torch.full((4,), 7.0), "y": 1, "name": "Ada"}

    def collate(records):
        batch = torch.utils.data.default_collate(records)
        return batch | {"longest": torch.tensor(7.0), "note": "Ada"}

    private = private_of(Named(), batch_size=1, records=1000, loader={"collate_fn": collate})
    empty = next(batch for batch in private.data_loader if not len(batch["x"]))
    assert empty["x"].shape == (0, 4)
    assert empty["y"].shape == (0,)
    assert empty["name"] == []
    assert empty["longest"] == 0
    assert empty["note"] is None


# Batches.


def test_steps_on_the_whole_data_set_are_refused():
    inputs, labels = problem()
    private = private_of((inputs, labels), batch_size=4)
    for _ in private.data_loader:
        with pytest.raises(ln.InvalidInput, match="not for a batch of the Poisson loader"):
            one_step(private, (inputs, labels))
    private = private_of((inputs, labels))  # where a batch is as large
    for _ in private.data_loader:
        with pytest.raises(ln.InvalidInput, match="not for a batch of the Poisson loader"):
            one_step(private, (inputs, labels))
    assert private.privacy.taken == 0


def test_labels_from_elsewhere_are_refused():
    data = problem()
    private = private_of(data)
    inputs, _ = next(iter(private.data_loader))
    with pytest.raises(ln.InvalidInput, match=r"targets from the same batch"):
        one_step(private, (inputs, data[1]))
    other = private_of(data)
    private = private_of(data)
    with pytest.raises(ln.InvalidInput, match="input is of another loader"):
        one_step(private, next(iter(other.data_loader)))
    inputs, labels = next(iter(private.data_loader))[0], next(iter(other.data_loader))[1]
    with pytest.raises(ln.InvalidInput, match=r"across the records of a batch \(or of several\)"):
        one_step(private, (inputs, labels))


def test_a_batch_has_one_pass_and_one_step():
    private = private_of(problem())
    batch = inputs, labels = next(iter(private.data_loader))
    one_step(private, batch)
    with pytest.raises(ln.InvalidInput, match="used for a step already"):
        one_step(private, batch)
    with pytest.raises(ln.InvalidInput, match="no batch of that loader has gone through the model"):
        private.optimizer.step()
    private = private_of(problem())
    inputs, labels = next(iter(private.data_loader))
    private.loss(private.model(inputs), labels).backward()
    with pytest.raises(ln.InvalidInput, match="model was called twice before a step"):
        private.model(inputs)
    private = private_of(problem())
    inputs, labels = next(iter(private.data_loader))
    scores = private.model(inputs)
    private.loss(scores, labels)
    with pytest.raises(ln.InvalidInput, match=r"private\.loss was called twice"):
        private.loss(scores, labels)


def test_two_batches_in_one_step_are_refused():
    private = private_of(problem(), batch_size=10)
    batches = iter(private.data_loader)
    inputs, labels = next(batches)
    loss = private.loss(private.model(inputs), labels)
    with pytest.raises(ln.InvalidInput, match="model was called twice before a step"):
        private.model(next(batches)[0])
    loss.backward()
    with pytest.raises(ln.InvalidInput, match="model was called twice before a step"):
        private.model(next(batches)[0])
    batch = next(iter(private.data_loader))  # a new pass
    one_step(private, batch)
    assert private.privacy.taken == 1


def test_batches_may_not_be_left_out():
    private = private_of(problem(), batch_size=1)  # a third of the batches are empty

    def leave_out_the_empty():
        for inputs, labels in private.data_loader:
            if len(inputs):
                one_step(private, (inputs, labels))

    with pytest.raises(ln.InvalidInput, match="the batch before was left out"):
        leave_out_the_empty()
    taken = private.privacy.taken
    with torch.no_grad():
        for inputs, _ in private.data_loader:  # looking is free
            private.model(inputs)
    for batch in private.data_loader:
        one_step(private, batch)
    assert private.privacy.taken == taken + RECORDS


def test_the_optimizer_without_noise_and_parts_of_the_model_are_refused():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(*problem()), batch_size=RECORDS)
    step = learn.gaussian(noise_multiplier=1, clip_norm=1, parameters=39)
    settings = {"loss": F.cross_entropy, "records": RECORDS, "mechanism": step, "clip_norm": 1, "epochs": 5}
    private = learn.make_private(model, optimizer, loader, **settings)
    inputs, labels = next(iter(private.data_loader))
    private.loss(private.model(inputs), labels).backward()
    with pytest.raises(ln.InvalidInput, match="optimizer without noise"):
        optimizer.step()
    private.optimizer.step()
    with pytest.raises(ln.InvalidInput, match="optimizer without noise"):
        optimizer.step()
    inputs, labels = problem()
    for part in (model, model[0], private.model._module):
        with pytest.raises(ln.InvalidInput, match="was called by itself"):
            part(inputs)
    with torch.no_grad():
        model(inputs)
    halves = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (network()[0], network()[2])]
    with pytest.raises(ln.InvalidInput, match="make one optimizer"):
        learn.make_private(network(), halves[0], loader, **settings)


def test_processes_add_their_sums_before_the_noise(monkeypatch):
    """A sum that joins after the noise would shift the noise's grid by private bits."""
    from lessnoise.learn.optimizer import DistributedMechanismOptimizer, MechanismOptimizer

    steps = []
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda flat: steps.append("sum"))
    monkeypatch.setattr(torch.distributed, "broadcast", lambda flat, src: steps.append("share"))
    monkeypatch.setattr(MechanismOptimizer, "_noisy_sum", lambda self, flat: steps.append("noise") or flat)
    optimizer = DistributedMechanismOptimizer.__new__(DistributedMechanismOptimizer)
    for rank, expected in ((0, ["sum", "noise", "share"]), (1, ["sum", "share"])):
        steps.clear()
        optimizer.rank = rank
        optimizer._noisy_sum(torch.zeros(3, dtype=torch.float64))
        assert steps == expected


def test_training_on_drawn_batches_is_as_random_as_planned():
    """The noise on the released gradient has its deviation, and the sum beneath is that of the batch."""
    private = private_of(problem(), multiplier=3.0, lr=0.0)
    noise = []
    for _ in range(40):
        total = one_step(private, next(iter(private.data_loader)))
        released = torch.cat([p.grad.reshape(-1).double() for p in private.optimizer.params]) * RECORDS
        noise.append((released - total).numpy())
    values = np.concatenate(noise)
    assert abs(values.std() / 3.0 - 1) < 7 / math.sqrt(2 * values.size)
    assert abs(values.mean()) < 7 * 3 / math.sqrt(values.size)


def test_padding_to_the_longest_record_of_a_batch_is_refused():
    class Sentences(Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, index):
            return torch.ones(2 + index)

    def longest(records):
        return nn.utils.rnn.pad_sequence(records, batch_first=True)

    def longest_allowed(records):
        return torch.stack([F.pad(record, (0, 10 - len(record))) for record in records])

    def centred(records):
        return longest_allowed(records) - longest_allowed(records).mean(0)

    for collate in (longest, centred):
        with pytest.raises(ln.InvalidInput, match="pad to a public length"):
            private_of(Sentences(), loader={"collate_fn": collate})
    private_of(Sentences(), loader={"collate_fn": longest_allowed})


def test_rows_are_records():
    """A record of several rows would have several clipped gradients."""

    def rows_of_rows(records):
        inputs, labels = torch.utils.data.default_collate(records)
        return inputs.repeat_interleave(2, 0), labels.repeat_interleave(2, 0)

    private = private_of(problem(), loader={"collate_fn": rows_of_rows})
    with pytest.raises(ln.InvalidInput, match="across the records of a batch"):
        one_step(private, next(iter(private.data_loader)))


def test_what_cannot_be_trained_is_not_paid_for(tmp_path):
    class Counting(nn.Linear):
        def __init__(self):
            super().__init__(5, 3)
            self.register_buffer("count", torch.zeros(1))

    def centred(records):
        return [part - part.float().mean(0) for part in torch.utils.data.default_collate(records)]

    ledger = ln.Ledger.open(tmp_path / "x.ledger", epsilon=50, delta=1e-3)
    with pytest.raises(ln.InvalidInput, match="beside other records"):
        private_of(problem(), ledger=ledger, multiplier=9.0, loader={"collate_fn": centred})
    with pytest.raises(ln.InvalidInput, match="cannot be trained privately"):
        private_of(problem(), model=Counting(), ledger=ledger, multiplier=9.0)
    assert not ledger.records()
    private_of(problem(), ledger=ledger, multiplier=9.0)
    assert len(ledger.records()) == 1


def test_batches_may_be_fetched_ahead():
    """As loaders that copy the next batch to a device do."""
    private = private_of(problem(), batch_size=10)
    batches = list(private.data_loader)
    for batch in batches:
        one_step(private, batch)
    assert private.privacy.taken == 4
    batches = list(private.data_loader)
    one_step(private, batches[0])
    with pytest.raises(ln.InvalidInput, match="the batch before was left out"):
        one_step(private, batches[2])


def test_mixed_precision_keeps_the_bound():
    sums = []
    for last in (RECORDS, RECORDS - 1):
        private = private_of(tuple(part[:last] for part in problem()), loss=lambda s, y: F.cross_entropy(s.float(), y))
        private.optimizer.zero_grad()
        inputs, labels = next(iter(private.data_loader))
        with torch.autocast("cpu", torch.bfloat16):
            loss = private.loss(private.model(inputs), labels)
        loss.backward()
        private.optimizer.step()
        sums.append(torch.cat([p.summed_grad.reshape(-1) for p in private.optimizer.params]))
    assert 0.9 < float((sums[0] - sums[1]).norm()) <= 1.0
