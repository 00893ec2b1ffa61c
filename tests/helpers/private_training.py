"""A small private training for the tests that attack it; they need the extra ``learn``."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import DataLoader, Dataset, TensorDataset

from lessnoise import learn
from lessnoise.learn.batch import tagged
from lessnoise.learn.loader import Place

RECORDS = 40


def problem(records=RECORDS, *, classes=3, features=5, loud=True, dtype=torch.float32):
    """Inputs and labels; the last record is far from the others, so that its gradient is clipped."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(records, features, generator=generator)
    labels = torch.arange(records) % (classes - 1)
    if loud:
        inputs[-1] *= 1000.0
        labels[-1] = classes - 1
    return inputs.to(dtype), labels


def network(classes=3, features=5, dtype=torch.float32):
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(features, 4), nn.Tanh(), nn.Linear(4, classes)).to(dtype)


def private_of(
    data, model=None, *, batch_size=RECORDS, records=RECORDS, loss=F.cross_entropy, multiplier=1.0, **options
):
    """By default every batch is everybody, so that sums are those of the whole data set."""
    model = network() if model is None else model
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=options.pop("lr", 0.1))
    count = sum(p.numel() for p in model.parameters() if p.requires_grad)
    step = learn.gaussian(noise_multiplier=multiplier, clip_norm=1.0, parameters=count)
    dataset = data if isinstance(data, Dataset) else TensorDataset(*data)
    loader = DataLoader(dataset, batch_size=batch_size, **options.pop("loader", {}))
    settings = {"loss": loss, "records": records, "mechanism": step, "clip_norm": 1.0, "epochs": 50}
    return learn.make_private(model, optimizer, loader, **settings | options)


def drawn(private, *tensors):
    """These records, as if the loader had drawn them."""
    token = f"{private.data_loader.collate_fn.name}{len(tensors[0])}"
    private.data_loader.places[token] = Place(None, last=True)
    return tagged(tensors, token, len(tensors[0]))


def one_step(private, batch, prepare=lambda inputs: inputs, finish=lambda outputs: outputs):
    private.optimizer.zero_grad()
    inputs, labels = batch
    private.loss(finish(private.model(prepare(inputs))), labels).backward()
    private.optimizer.step()
    return torch.cat([p.summed_grad.reshape(-1).double() for p in private.optimizer.params])


def clipped_sum(data, **options):
    private = private_of(data, **options)
    return one_step(private, next(iter(private.data_loader)))


def movement(data, make_model=network, **options):
    """How far the last record moves the clipped sum."""
    with_it = clipped_sum(data, model=make_model(), **options)
    without = clipped_sum(tuple(part[:-1] for part in data), model=make_model(), **options)
    return float((with_it - without).norm())
