"""What each of two processes does that train one model together; they need the extra ``learn``."""

import os
import warnings

import torch
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
from torch.nn import functional as F  # noqa: N812
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

import lessnoise as ln
from lessnoise import learn
from lessnoise.learn.optimizer import MechanismOptimizer

RECORDS, FEATURES, CLASSES, DEVIATION = 60, 50, 40, 5.0
PARAMETERS = CLASSES * (FEATURES + 1)


def data():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(RECORDS, FEATURES, generator=generator), torch.arange(RECORDS) % CLASSES


def network(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Linear(FEATURES, CLASSES)


def private_of(model, *, batch_size=RECORDS, clip_norm=1.0, **options):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = learn.gaussian(noise_multiplier=DEVIATION / clip_norm, clip_norm=clip_norm, parameters=PARAMETERS)
    settings = {"loss": F.cross_entropy, "records": RECORDS, "mechanism": step, "clip_norm": clip_norm, "epochs": 8}
    return learn.make_private(model, optimizer, DataLoader(TensorDataset(*data()), batch_size), **settings | options)


def flat(tensors):
    return torch.cat([tensor.detach().reshape(-1).double() for tensor in tensors])


def train(private, loader, steps):
    """Of each step this process's sum, what was released, and the weights after it."""
    found = []
    while private.privacy.taken < steps:
        for inputs, labels in loader:
            private.optimizer.zero_grad()
            private.loss(private.model(inputs), labels).backward()
            taken = private.privacy.taken
            private.optimizer.step()
            if private.privacy.taken > taken:
                parts = [p.summed_grad for p in private.optimizer.params], [p.grad for p in private.optimizer.params]
                found.append((flat(parts[0]), flat(parts[1]) * RECORDS, flat(private.model.parameters())))
    return found


def refusal(call):
    try:
        call()
    except (ln.InvalidInput, ln.BudgetExceeded) as error:
        return str(error)
    return None


def train_as(rank, folder):
    """Everything that one process does; what it found goes into a file."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=2)
    common = []
    noisy_sum = MechanismOptimizer._noisy_sum
    MechanismOptimizer._noisy_sum = lambda self, total: common.append(total.clone()) or noisy_sum(self, total)

    found = {}
    private = private_of(DifferentiallyPrivateDistributedDataParallel(network(rank)))  # the first one's weights count
    found["start"] = flat(private.model.parameters())
    found["steps"] = train(private, private.data_loader, 4)
    found["taken"] = private.privacy.taken
    small = private_of(DistributedDataParallel(network()), batch_size=12, grad_sample_mode="ghost")
    found["parts"] = train(small, small.virtual(max_rows=2 + rank), 5)
    found["parts taken"] = small.privacy.taken
    found["records"] = [list(small.data_loader.batch_sampler) for _ in range(3)]
    found["common"] = common

    wrapped = DifferentiallyPrivateDistributedDataParallel(network())
    found["other clip"] = refusal(lambda: private_of(wrapped, clip_norm=1.0 + rank))
    rich, poor = (
        ln.Ledger.open(folder / f"{name}.ledger", epsilon=e, delta=1e-4) for name, e in (("rich", 9), ("poor", 0.01))
    )
    found["poor"] = refusal(lambda: private_of(wrapped, ledger=poor))
    private = private_of(wrapped, ledger=rich)
    torch.distributed.barrier()
    found["payments"] = len(rich.records()), len(poor.records())

    for inputs, labels in private.data_loader:  # one of the two dies before its step
        private.loss(private.model(inputs), labels).backward()
        before = flat(private.model.parameters())
        torch.save(found, folder / f"{rank}.pt")
        if rank == 1:
            os._exit(9)
        try:
            private.optimizer.step()
        except RuntimeError as error:
            found["death"] = type(error).__name__
        found["moved"] = not torch.equal(before, flat(private.model.parameters()))
        found["left"] = [p.grad is not None for p in private.optimizer.params]
        found["retry"] = refusal(private.optimizer.step)
        found["plain"] = refusal(private.optimizer.original_optimizer.step)
    torch.save(found, folder / f"{rank}.pt")
    os._exit(0)  # without a partner nothing can be ended in good order
