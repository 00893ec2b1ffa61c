"""Two processes train one model; a fork, an exception or a death in a step leave nothing half done."""

import math
import os
import threading

import pytest

import lessnoise as ln

torch = pytest.importorskip("torch", reason="needs the extra: pip install 'lessnoise[learn]'")
pytest.importorskip("opacus", reason="needs the extra: pip install 'lessnoise[learn]'")

from tests.helpers import two_processes  # noqa: E402
from tests.helpers.private_training import one_step, private_of, problem  # noqa: E402
from tests.helpers.two_processes import DEVIATION  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
    torch.manual_seed(0)


# Two processes.


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """What two processes found that trained together, until one of them died."""
    folder = tmp_path_factory.mktemp("processes")
    context = torch.multiprocessing.get_context("spawn")
    workers = [context.Process(target=two_processes.train_as, args=(rank, folder)) for rank in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=240)
    codes = [worker.exitcode for worker in workers]
    for worker in workers:
        worker.kill()
    assert codes == [0, 9]
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["steps", "parts"])
def test_both_processes_release_the_same_and_end_with_the_same_weights(both, kind):
    assert torch.equal(both[0]["start"], both[1]["start"])
    assert len(both[0][kind]) == len(both[1][kind]) > 3
    for (_, released, weights), (_, theirs, their_weights) in zip(both[0][kind], both[1][kind], strict=True):
        assert torch.equal(released, theirs)
        assert torch.equal(weights, their_weights)
    assert not torch.equal(both[0][kind][0][2], both[0][kind][1][2])


@pytest.mark.slow
def test_the_noise_goes_on_the_exact_sum_of_both(both):
    sums = [
        own + other
        for kind in ("steps", "parts")
        for (own, *_), (other, *_) in zip(both[0][kind], both[1][kind], strict=True)
    ]
    assert both[1]["common"] == []  # the second draws nothing
    assert len(sums) == len(both[0]["common"]) == 9
    for expected, summed in zip(sums, both[0]["common"], strict=True):
        assert torch.equal(expected, summed)
    alone = two_processes.private_of(two_processes.network())  # one process, all records
    first = two_processes.train(alone, alone.data_loader, 1)[0][0]
    torch.testing.assert_close(first, sums[0], rtol=0, atol=1e-5)


@pytest.mark.slow
def test_the_noise_is_that_of_one_draw(both):
    """Two draws would have twice the variance, and halves of one in each process half of it."""
    pairs = zip(both[0]["steps"], both[1]["steps"], strict=True)
    noise = torch.cat([released - own - other for (own, released, _), (other, *_) in pairs])
    assert abs(float(noise.var()) / DEVIATION**2 - 1) < 7 * math.sqrt(2 / noise.numel())
    assert abs(float(noise.mean())) < 7 * DEVIATION / math.sqrt(noise.numel())


@pytest.mark.slow
def test_each_record_is_drawn_in_one_process_only(both):
    for rank in (0, 1):
        drawn = {record for epoch in both[rank]["records"] for sample in epoch for record in sample}
        assert drawn
        assert all(record % 2 == rank for record in drawn)
    counts = [sum(len(sample) for epoch in both[rank]["records"] for sample in epoch) for rank in (0, 1)]
    assert all(abs(count - 90) < 7 * math.sqrt(90 * 0.8) for count in counts)  # 30 records, 3 epochs


@pytest.mark.slow
def test_steps_are_counted_once_and_paid_once(both):
    for found in both:
        assert found["taken"] == 4
        assert found["parts taken"] == 5
        assert found["payments"] == (1, 0)
    assert "budget" in both[0]["poor"]
    assert "could not be paid by process rank=0" in both[1]["poor"]


@pytest.mark.slow
def test_processes_that_disagree_do_not_begin(both):
    for found in both:
        assert "mechanism of process rank=1 differs from that of rank=0" in found["other clip"]


@pytest.mark.slow
def test_a_process_that_dies_leaves_no_half_step(both):
    survivor = both[0]
    assert "death" in survivor
    assert not survivor["moved"]
    assert not any(survivor["left"])
    assert "no batch of that loader has gone through the model" in survivor["retry"]
    assert "optimizer without noise" in survivor["plain"]


# Failures of one process.


def weights(private):
    return two_processes.flat(private.model.parameters())


@pytest.mark.parametrize("where", ["_noisy_sum", "scale_grad"])
@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, MemoryError])
def test_an_exception_in_a_step_leaves_no_half_step_and_no_noise_to_use_again(where, failure, monkeypatch):
    private = private_of(problem())
    optimizer = private.optimizer

    def fail(*_):
        raise failure("in the middle")

    before = weights(private)
    batch = next(iter(private.data_loader))
    with monkeypatch.context() as broken:
        broken.setattr(optimizer, where, fail)
        with pytest.raises(failure):
            one_step(private, batch)
    assert torch.equal(weights(private), before)
    assert private.privacy.taken == 1  # what may have been drawn has been counted
    with pytest.raises(ln.InvalidInput, match="no batch of that loader"):
        optimizer.step()
    with pytest.raises(ln.InvalidInput, match="optimizer without noise"):
        optimizer.original_optimizer.step()
    assert torch.equal(weights(private), before)
    one_step(private, next(iter(private.data_loader)))  # a new pass, with noise of its own
    assert private.privacy.taken == 2


def test_an_exception_in_a_part_forgets_its_sample(monkeypatch):
    from lessnoise.learn import optimizer

    private = private_of(problem())
    original, calls = optimizer.clipped_sums, []

    def fail_once(*given):
        calls.append(given)
        if len(calls) == 3:
            raise MemoryError
        return original(*given)

    monkeypatch.setattr(optimizer, "clipped_sums", fail_once)
    parts = iter(private.virtual(max_rows=7))
    for _ in range(2):
        one_step(private, next(parts))
    with pytest.raises(MemoryError):
        one_step(private, next(parts))
    with pytest.raises(ln.InvalidInput, match="model was called twice before a step"):
        one_step(private, next(parts))
    for batch in private.virtual(max_rows=7):
        total = one_step(private, batch)
    assert private.privacy.taken == 1
    monkeypatch.undo()
    whole = private_of(problem())
    torch.testing.assert_close(total, one_step(whole, next(iter(whole.data_loader))), rtol=0, atol=1e-5)


def in_a_fork(act):
    """What ``act`` returns in a forked child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = str(act())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_takes_no_step_and_draws_no_sample_of_its_parents_training():
    private = private_of(problem(), batch_size=10, lr=0.0)
    batches = iter(private.data_loader)
    one_step(private, next(batches))
    batch = next(batches)
    assert "was forked from the training of process=" in in_a_fork(lambda: one_step(private, batch))
    assert "forked in the middle of a release" in in_a_fork(lambda: next(batches))
    one_step(private, batch)  # the parent goes on
    for batch in batches:
        one_step(private, batch)
    assert private.privacy.taken == 4


def test_two_threads_cannot_step_on_one_batch():
    private = private_of(problem())
    inputs, labels = next(iter(private.data_loader))
    private.loss(private.model(inputs), labels).backward()
    outcomes = []

    def step():
        try:
            private.optimizer.step()
            outcomes.append("step")
        except ln.InvalidInput:
            outcomes.append("refused")

    threads = [threading.Thread(target=step) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["refused", "step"]
    assert private.privacy.taken == 1
