"""Private training keeps records apart: in what a loop does with a batch, and in the model."""

import contextlib
import copy
import functools
import warnings

import pytest

import lessnoise as ln
from lessnoise import learn

torch = pytest.importorskip("torch", reason="needs the extra: pip install 'lessnoise[learn]'")
pytest.importorskip("opacus", reason="needs the extra: pip install 'lessnoise[learn]'")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

from lessnoise.learn.batch import Drawn  # noqa: E402
from tests.helpers.private_training import RECORDS, network, one_step, private_of, problem  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
    torch.manual_seed(0)


# What a loop may do with a batch.


@pytest.mark.parametrize(
    "prepare",
    [
        lambda x: x.to("cpu", torch.float64).float(),
        lambda x: (x - 0.1307) / 0.3081,
        lambda x: x.view(x.size(0), -1).contiguous(),
        lambda x: x.reshape(len(x), 5, 1).flatten(1),
        lambda x: x[:, torch.tensor([4, 3, 2, 1, 0])],
        lambda x: x + 0.1 * torch.randn_like(x),
        lambda x: F.dropout(x, 0.5),
        lambda x: F.normalize(x, dim=1),
        lambda x: torch.cat([x[:, :2], x[:, 2:]], dim=1),
        lambda x: x.clone().sub_(1).clamp(-3, 3),
        lambda x: x.where(torch.rand(len(x), 1) < 0.5, -x),
        lambda x: x @ torch.eye(5),
    ],
)
def test_records_may_be_prepared_one_by_one(prepare):
    private = private_of(problem())
    one_step(private, next(iter(private.data_loader)), prepare)
    assert private.privacy.taken == 1


def first_in_place(x):
    x[0] = x.mean(0)
    return x


@pytest.mark.parametrize(
    "prepare",
    [
        lambda x: (x - x.mean(0)) / x.std(0),
        lambda x: x - x.mean(),
        lambda x: x / x.abs().max(),
        lambda x: 0.5 * x + 0.5 * x[torch.randperm(len(x))],
        lambda x: x.flip(0),
        lambda x: x.roll(1, 0),
        lambda x: x.cumsum(0),
        lambda x: x.flip(0).cumsum(0).flip(0),
        lambda x: x.clone().sub_(x.mean(0)),
        lambda x: F.normalize(x, dim=0),
        lambda x: torch.softmax(x @ x.T, 1) @ x,
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda x: torch.cat([x, x]),
        first_in_place,
        lambda x: torch.from_numpy(x.numpy()),
    ],
)
def test_records_may_not_be_prepared_together(prepare):
    private = private_of(problem())
    with pytest.raises(ln.InvalidInput, match=r"across the records of a batch|not for a batch of the Poisson loader"):
        one_step(private, next(iter(private.data_loader)), prepare)
    assert private.privacy.taken == 0


def test_outputs_may_be_finished_one_by_one_and_not_together():
    private = private_of(problem(), loss=F.nll_loss)
    one_step(private, next(iter(private.data_loader)), finish=lambda scores: F.log_softmax(scores.float(), dim=1))
    private = private_of(problem(), loss=F.nll_loss)
    with pytest.raises(ln.InvalidInput, match="across the records of a batch"):
        one_step(private, next(iter(private.data_loader)), finish=lambda scores: F.log_softmax(scores, dim=0))


def test_labels_may_be_coded_with_public_classes_only():
    for classes, right in ((3, True), (-1, False)):
        private = private_of(problem(), loss=F.mse_loss)
        inputs, labels = next(iter(private.data_loader))
        batch = inputs, F.one_hot(labels, classes).float()
        if right:
            one_step(private, batch)
        else:  # as many classes as the batch shows
            with pytest.raises(ln.InvalidInput, match="across the records"):
                one_step(private, batch)


def test_numbers_of_a_batch_can_be_printed():
    private = private_of(problem())
    inputs, labels = next(iter(private.data_loader))
    loss = private.loss(private.model(inputs), labels)
    assert float(f"{loss:.3f}") == pytest.approx(loss.item(), abs=1e-3)
    assert float(f"{labels.float().mean():.3f}") == pytest.approx(float(problem()[1].float().mean()), abs=1e-3)
    assert isinstance(labels, Drawn)


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_worker_processes_are_known_too(workers):
    data = problem()
    private = private_of(data, batch_size=10, loader={"num_workers": workers})
    batches = list(private.data_loader)
    tokens = {inputs.token for inputs, _ in batches}
    assert len(tokens) == 4
    assert all(inputs.token == labels.token for inputs, labels in batches)
    for batch in private.data_loader:
        one_step(private, batch)
    assert private.privacy.taken == 4


# Models.


class Centred(nn.Module):
    def forward(self, x):
        return x - x.mean(0)


class Shifted(nn.Module):
    """Batch statistics without a gradient: only outputs show it."""

    def forward(self, x):
        return x + x.mean(0).detach()


class Attention(nn.Module):
    """Over the records instead of over each one's own parts."""

    def forward(self, x):
        return torch.softmax(x @ x.T, dim=1) @ x


class Counted(nn.Module):
    def forward(self, x):
        return x / len(x)


class Borrowed(nn.Module):
    """A parameter used outside of its layer, where Opacus does not see it."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(5, 5), nn.Linear(5, 3)

    def forward(self, x):
        return self.outer(torch.tanh(F.linear(torch.tanh(self.inner(x)), self.inner.weight)))


class Remembering(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(5))

    def forward(self, x):
        self.mean.lerp_(x.detach().mean(0), 0.1)
        return x


def sequence(*parts):
    return lambda: nn.Sequential(*(part() for part in parts), nn.Linear(5, 3))


@pytest.mark.parametrize("dropout", [False, True])
@pytest.mark.parametrize(
    "make",
    [sequence(Centred), sequence(Shifted), sequence(Attention), sequence(Counted), Borrowed, sequence(Remembering)],
)
def test_models_that_mix_records_are_refused_before_the_first_step(make, dropout):
    model = nn.Sequential(nn.Dropout(0.5), make()) if dropout else make()
    private = private_of(problem(loud=False), model=model)
    before = [p.detach().clone() for p in private.model.parameters()]
    with pytest.raises(ln.InvalidInput, match=r"of a record alone is not that|buffer=|gradients are not those"):
        one_step(private, next(iter(private.data_loader)))
    assert private.privacy.taken == 0
    assert all(torch.equal(a, b) for a, b in zip(before, private.model.parameters(), strict=True))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.last = nn.Linear(5, 5), nn.Linear(5, 3)

    def forward(self, x):
        return self.last(torch.tanh(self.layer(torch.tanh(self.layer(x)))))


class Sampled(nn.Module):
    """Random by itself, as variational networks are."""

    def __init__(self):
        super().__init__()
        self.layer, self.last = nn.Linear(5, 5), nn.Linear(5, 3)

    def forward(self, x):
        return self.last(self.layer(x) + 0.3 * torch.randn(len(x), 5))


class Words(nn.Module):
    def __init__(self):
        from opacus.layers import DPLSTM

        super().__init__()
        self.words, self.lstm, self.last = nn.Embedding(9, 4), DPLSTM(4, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x):
        return self.last(self.lstm(self.words(x.long().clamp(0, 8)))[0][:, -1])


class Heads(nn.Module):
    def __init__(self):
        from opacus.layers import DPMultiheadAttention

        super().__init__()
        self.heads, self.last = DPMultiheadAttention(4, 2, batch_first=True), nn.Linear(4, 3)

    def forward(self, x):
        parts = x.unsqueeze(2).expand(-1, -1, 4)
        return self.last(self.heads(parts, parts, parts)[0].mean(1))


class Own(nn.Module):
    """A layer that Opacus has no rule for."""

    def __init__(self):
        super().__init__()
        self.scale, self.last = nn.Parameter(torch.ones(5)), nn.Linear(5, 3)

    def forward(self, x):
        return self.last(x * self.scale)


def frozen():
    model = network()
    model[0].requires_grad_(False)
    return model


MODELS = [
    Tied,
    Sampled,
    Words,
    Heads,
    Own,
    frozen,
    lambda: nn.Linear(5, 3),
    lambda: nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.5), nn.GroupNorm(2, 8), nn.Linear(8, 3)),
    lambda: nn.Sequential(nn.Unflatten(1, (1, 5)), nn.Conv1d(1, 4, 3), nn.LayerNorm(3), nn.Flatten(), nn.Linear(12, 3)),
]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["hooks", "functorch", "ew"])
@pytest.mark.parametrize("make", MODELS)
def test_models_that_keep_records_apart_are_trained(make, mode):
    if mode == "ew" and make is Own:
        pytest.skip("expanded weights know torch's own layers only")
    torch.manual_seed(4)
    private = private_of(problem(), model=make(), batch_size=4, grad_sample_mode=mode)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, about backward hooks without inputs that need gradients
        learn.fit(private, epochs=2, report=lambda line: None)
    assert private.privacy.taken == 20


def test_images_whose_gradients_opacus_gets_wrong_are_refused():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 36, 3))
    images = torch.randn(RECORDS, 3, 8, 8)
    for layout, right in ((torch.contiguous_format, True), (torch.channels_last, False)):
        private = private_of((images, problem()[1]), model=copy.deepcopy(model))
        arranged = functools.partial(torch.Tensor.contiguous, memory_format=layout)
        with (
            warnings.catch_warnings(),
            contextlib.nullcontext() if right else pytest.raises(ln.InvalidInput, match="strides"),
        ):
            warnings.filterwarnings("ignore", "Full backward hook")
            one_step(private, next(iter(private.data_loader)), arranged)


def test_parameters_may_not_be_unfrozen_after_the_plan():
    private = private_of(problem(), model=frozen())
    batch = next(iter(private.data_loader))
    private.model._module[2].bias.requires_grad_(False)
    with pytest.raises(ln.InvalidInput, match="parameters=12 are trained, and the noise was chosen for 15"):
        one_step(private, batch)
