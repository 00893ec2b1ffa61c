"""Losses and models that mix records, or remember them, in every disguise: refused before the first step."""

import functools
import warnings

import pytest

import lessnoise as ln

torch = pytest.importorskip("torch", reason="needs the extra: pip install 'lessnoise[learn]'")
pytest.importorskip("opacus", reason="needs the extra: pip install 'lessnoise[learn]'")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

from tests.helpers.private_training import RECORDS, movement, one_step, private_of, problem  # noqa: E402

WEIGHTS = torch.tensor([1.0, 1.0, 100.0])
BOTH_MODES = pytest.mark.parametrize("mode", ["hooks", "ghost"])


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Full backward hook")  # torch's, about inputs that need no gradients
        yield


def refuse(message, data, model=None, **options):
    private = private_of(data, model, **options)
    before = [p.detach().clone() for p in private.model.parameters()]
    with pytest.raises(ln.InvalidInput, match=message):
        one_step(private, next(iter(private.data_loader)))
    assert private.privacy.taken == 0
    assert all(torch.equal(a, b) for a, b in zip(before, private.model.parameters(), strict=True))


# Losses.


class Centres(nn.Module):
    """The centre loss of Wen et al. (2016): a learnt centre for each class."""

    def __init__(self, *, learnt):
        super().__init__()
        self.learnt = learnt
        if learnt:
            self.centres = nn.Parameter(torch.zeros(3, 3))
        else:
            self.register_buffer("centres", torch.zeros(3, 3))

    def forward(self, scores, labels):
        if not self.learnt:
            with torch.no_grad():
                self.centres[labels] += 0.001 * (scores.detach() - self.centres[labels])
        return F.cross_entropy(scores, labels) + 0.1 * (scores - self.centres[labels]).square().sum(1).mean()


class Remembering:
    """Divides by a running mean of its own values, which moves too slowly to be seen in one batch's sum."""

    def __init__(self):
        self.mean = 1.0

    def __call__(self, scores, labels):
        loss = F.cross_entropy(scores, labels)
        self.mean = 0.9999 * self.mean + 0.0001 * loss.item()
        return loss / self.mean


class Hoarding:
    """Keeps the last outputs to compare the next ones with."""

    last = None

    def __call__(self, scores, labels):
        before, self.last = self.last, scores.detach().mean(0)
        return F.cross_entropy(scores, labels) + (0.0 if before is None else (scores - before).square().mean())


CENTRES = torch.zeros(3, 3, requires_grad=True)
MIXED = "neither the mean nor the sum"
KEPT = "keeps something of the records"
LEAF = "not an output of the model"


@BOTH_MODES
@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (functools.partial(F.cross_entropy, weight=WEIGHTS), MIXED),
        (lambda scores, labels: F.cross_entropy(scores, labels, weight=WEIGHTS), MIXED),
        (functools.partial(F.cross_entropy, weight=WEIGHTS, label_smoothing=0.1), MIXED),
        (lambda scores, labels: F.cross_entropy(scores - scores.mean(0), labels), MIXED),
        (lambda scores, labels: F.cross_entropy(scores @ scores.T, torch.arange(len(scores))), MIXED),
        (lambda scores, labels: F.nll_loss(torch.log_softmax(scores, 0), labels), MIXED),
        (lambda scores, labels: scores.square().mean() - scores.mean(0).square().mean(), MIXED),
        (Centres(learnt=False), KEPT),
        (Remembering(), KEPT),
        (Hoarding(), "keep nothing of the records"),
        (Centres(learnt=True), LEAF),
        (lambda scores, labels: F.cross_entropy(scores, labels) + (scores - CENTRES[labels]).square().mean(), LEAF),
    ],
)
def test_losses_that_mix_or_remember_records_are_refused(loss, message, mode):
    refuse(message, problem(), loss=loss, grad_sample_mode=mode)


def test_a_penalty_on_weights_inside_the_loss_is_refused():
    """It would change nothing, since gradients past the records' own are not summed."""
    model = nn.Linear(5, 3)
    refuse(LEAF, problem(), model, loss=lambda scores, labels: F.cross_entropy(scores, labels) + model.weight.norm())


class Sequences(nn.Module):
    """Four words a record, of three kinds."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.layer = nn.Linear(5, 12)

    def forward(self, x):
        return self.layer(x).view(-1, 3, 4)


@BOTH_MODES
def test_sequences_with_ignored_words_are_summed_and_not_averaged(mode):
    inputs, _ = problem()
    words = (torch.arange(RECORDS).unsqueeze(1) + torch.arange(4)) % 3
    words[::3, 1:] = -100  # these records have one word
    options = {"grad_sample_mode": mode}
    refuse(MIXED, (inputs, words), Sequences(), **options)
    words[5] = -100  # this one has none, so that its mean would be nan
    loss = functools.partial(F.cross_entropy, reduction="sum")
    assert 0.99 < movement((inputs, words), Sequences, loss=loss, **options) <= 1.0


@BOTH_MODES
def test_label_smoothing_and_summed_weights_keep_records_apart(mode):
    for loss in (
        functools.partial(F.cross_entropy, label_smoothing=0.1),
        functools.partial(F.cross_entropy, weight=WEIGHTS, reduction="sum"),
    ):
        assert 0.99 < movement(problem(), loss=loss, grad_sample_mode=mode) <= 1.0


# Models.


class Between(nn.Module):
    """Two layers with something between them."""

    def __init__(self, between):
        super().__init__()
        self.first, self.last, self.between = nn.Linear(5, 5), nn.Linear(5, 3), between

    def forward(self, x):
        return self.last(self.between(self.first(x)))


class RunningMean:
    """Statistics in a plain attribute, which no list of buffers shows, used only after the batch that they are of."""

    def __init__(self, momentum):
        self.mean, self.momentum = torch.zeros(5), momentum

    def __call__(self, hidden):
        out = hidden - self.mean
        self.mean = torch.lerp(self.mean, hidden.detach().mean(0), self.momentum)
        return out


def best_five(hidden):
    """Routing with a capacity: whether a record passes depends on the others."""
    passed = torch.zeros(len(hidden), 1)
    passed[hidden[:, 0].detach().topk(min(5, len(hidden))).indices] = 1.0
    return hidden * passed


@BOTH_MODES
@pytest.mark.parametrize(
    ("between", "message"),
    [
        (lambda hidden: F.batch_norm(hidden, None, None, training=True), "cannot compute 1 of the 40 records"),
        (lambda hidden: torch.softmax(hidden, 0), "of a record alone is not that"),
        (lambda hidden: hidden + hidden.detach().mean(0), "of a record alone is not that"),
        (lambda hidden: F.normalize(hidden, dim=0), "of a record alone is not that"),
        (best_five, "of a record alone is not that"),
        (RunningMean(0.1), "keeps something of the records"),
        (RunningMean(1e-3), "keeps something of the records"),
    ],
)
def test_models_that_mix_or_remember_records_are_refused(between, message, mode):
    refuse(message, problem(loud=False), Between(between), grad_sample_mode=mode)
