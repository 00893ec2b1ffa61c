"""The run: what is there already is kept, the rest is computed in parallel, and one failure costs one result."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import platform
import queue
import signal
import sys
import time
import traceback
import warnings
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lessnoise import validation
from lessnoise.errors import ClaimWarning, LessnoiseError
from lessnoise.files import write_folder
from lessnoise_paper import registry, store
from lessnoise_paper.experiments.common import cores
from lessnoise_paper.model import Outcome, Page, Settings
from lessnoise_paper.render import page_html

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from lessnoise_paper.model import Experiment, Progress, Selection

    Listener = Callable[[str, str, int, int], None]

MADE, KEPT, LEFT_OUT, FAILED = "made", "kept", "left out", "failed"
INDEX, NUMBERS, MANIFEST = "index.html", "numbers.json", "manifest.json"
_WAIT = 0.1  # seconds between looks at the progress of the workers


@dataclass(frozen=True, eq=False, kw_only=True)
class Run(Page):
    """A finished run: its page, the folder it lies in, and how long it took."""

    out: Path
    seconds: float

    @property
    def complete(self) -> bool:
        """Every section is in the report."""
        return not self.missing


def single_page(
    selection: Selection, settings: Settings, progress: Progress | None = None, *, pictures: bool = True
) -> dict[str, bytes]:
    """A page of one experiment, computed here and now: the files by name, the page first, then the numbers.

    An error of the experiment is raised, so that nothing is written. The ``pictures`` of the page are among the files
    if that is wanted; their names go without the experiment's.
    """
    (name,) = {section.experiment for section in selection.sections}
    experiment = registry.EXPERIMENTS[name]
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClaimWarning)  # the page says it, with numbers
        result = experiment.run(settings.data, progress, **experiment.parameters(settings))
    text = json.dumps(result.numbers, indent=2, allow_nan=False) + "\n"
    numbers = json.loads(text)
    outcome = Outcome(name, MADE, time.perf_counter() - started, numbers=numbers)

    def beside(file: str) -> str:
        return file.removeprefix(f"{name}-")

    shown = beside if pictures else None
    page = Page(selection, settings, {name: outcome}, result.files.__getitem__, NUMBERS, beside=shown)
    files = {beside(file): content for file, content in result.files.items()} if pictures else {}
    return {INDEX: page_html(page).encode(), NUMBERS: text.encode(), **files}


def reproduce(
    out: Path,
    settings: Settings | None = None,
    only: Sequence[str] = (),
    jobs: int | None = None,
    listener: Listener | None = None,
) -> Run:
    """Compute what is not there yet, and write report and manifest into the folder ``out``.

    ``only`` names sections; ``listener(experiment, label, done, total)`` hears of progress. ``jobs`` are processes: one
    a core if None; with 1 everything runs in this one.
    """
    settings = settings or Settings()
    validation.whole_number("seed", settings.seed, minimum=0)
    selection = registry.report(only)
    jobs = cores() if jobs is None else validation.whole_number("jobs", jobs)
    started = time.perf_counter()
    for folder in (store.DATA, store.FIGURES):
        (out / folder).mkdir(parents=True, exist_ok=True)
    tell = listener or (lambda _experiment, _label, _done, _total: None)
    wanted = {section.experiment for section in selection.sections}
    outcomes: dict[str, Outcome] = {}
    todo: list[Experiment] = []
    for experiment in registry.EXPERIMENTS.values():
        if experiment.name in wanted:
            record = store.load(out, experiment, experiment.parameters(settings))
            if record is None:
                todo.append(experiment)
            else:
                outcomes[experiment.name] = Outcome(experiment.name, KEPT, record["seconds"], "", record["numbers"])
                tell(experiment.name, KEPT, 1, 1)
    outcomes |= _here(out, settings, todo, tell) if jobs == 1 else _in_processes(out, settings, todo, jobs, tell)
    ordered = {name: outcomes[name] for name in registry.EXPERIMENTS if name in outcomes}
    run = Run(
        selection=selection,
        settings=settings,
        outcomes=ordered,
        file=lambda name: (out / store.FIGURES / name).read_bytes(),
        numbers_file=f"{store.DATA}/{{}}.json",
        manifest=MANIFEST,
        beside=lambda name: f"{store.FIGURES}/{name}",
        out=out,
        seconds=time.perf_counter() - started,
    )
    _write(run)
    return run


def _write(run: Run) -> None:
    """The report and the manifest, together. What could not be made now is not left over from another run."""
    for outcome in run.missing:
        (run.out / store.DATA / f"{outcome.experiment}.json").unlink(missing_ok=True)
    page = page_html(run).encode()
    manifest = json.dumps(manifest_of(run, page), indent=1) + "\n"
    write_folder(run.out, {INDEX: page, MANIFEST: manifest.encode()}, force=True)


def manifest_of(run: Run, page: bytes) -> dict[str, Any]:
    """Versions, settings, seeds, times, and the sha256 of every file."""
    files = {INDEX: store.sha256(page)}
    for outcome in run.outcomes.values():
        if outcome.numbers is not None:
            name = f"{store.DATA}/{outcome.experiment}.json"
            content = (run.out / name).read_bytes()
            files[name] = store.sha256(content)
            files |= {f"{store.FIGURES}/{file}": digest for file, digest in json.loads(content)["files"].items()}
    return {
        "versions": {**store.versions(), "python": platform.python_version(), "platform": platform.platform()},
        "code_sha256": store.code_hash(),
        "quick": run.settings.quick,
        "seed": run.settings.seed,
        "private": False,
        "sections": [section.name for section in run.sections],
        "seconds": round(run.seconds, 2),
        "experiments": {
            outcome.experiment: {
                "status": outcome.status,
                "seconds": round(outcome.seconds, 2),
                "parameters": registry.EXPERIMENTS[outcome.experiment].parameters(run.settings),
                **({"reason": outcome.reason} if outcome.reason else {}),
            }
            for outcome in run.outcomes.values()
        },
        "files": dict(sorted(files.items())),
    }


# One computation.


def _one(name: str, settings: Settings, out: Path, tell: Listener) -> Outcome:
    """Compute and store. Missing data and missing extras are foreseen; anything else is reported as it is."""
    experiment = registry.EXPERIMENTS[name]
    parameters = experiment.parameters(settings)
    started = time.perf_counter()
    tell(name, "starting", 0, 1)
    try:
        with warnings.catch_warnings(), _threads(settings):
            warnings.simplefilter("ignore", ClaimWarning)  # the report says it, with numbers
            result = experiment.run(
                settings.data, lambda label, done, total: tell(name, label, done, total), **parameters
            )
        store.save(out, experiment, parameters, result, time.perf_counter() - started)
    except (LessnoiseError, ImportError) as error:
        return Outcome(name, LEFT_OUT, time.perf_counter() - started, str(error))
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {error} ({place.name}, line {place.lineno})"
        return Outcome(name, FAILED, time.perf_counter() - started, reason)
    record = store.load(out, experiment, parameters)
    assert record is not None
    return Outcome(name, MADE, time.perf_counter() - started, numbers=record["numbers"])


def _threads(settings: Settings) -> contextlib.AbstractContextManager[Any]:
    """One thread for the matrices of embedded data: they are so small that threads would wait for each other."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1) if settings.quick else contextlib.nullcontext()


def _here(out: Path, settings: Settings, todo: list[Experiment], tell: Listener) -> dict[str, Outcome]:
    found = {}
    for experiment in todo:
        found[experiment.name] = _one(experiment.name, settings, out, tell)
        tell(experiment.name, found[experiment.name].status, 1, 1)
    return found


# In processes.

_messages: Any = None


def _prepare(messages: Any) -> None:  # noqa: ANN401
    """In a worker: where to report, and how to stop. Ctrl-C is the parent's to handle."""
    global _messages
    _messages = messages
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def _in_worker(name: str, settings: Settings, out: Path) -> Outcome:
    try:
        return _one(name, settings, out, lambda *message: _messages.put(message))
    except SystemExit:  # told to stop; unfinished files are gone by now, and the pool would only take up the next work
        os._exit(1)


def _in_processes(
    out: Path, settings: Settings, todo: list[Experiment], jobs: int, tell: Listener
) -> dict[str, Outcome]:
    """All of them side by side; if a worker dies, those without a result once more, each in a process of its own."""
    names = [experiment.name for experiment in todo]
    found = _pool(out, settings, names, jobs, tell)
    for name in names:
        if name not in found:
            found |= _pool(out, settings, [name], 1, tell)
        if name not in found:
            reason = "its process was ended from outside, perhaps for want of memory: run it again by itself"
            found[name] = Outcome(name, FAILED, 0.0, f"{reason} (--only, --jobs 1).")
            tell(name, FAILED, 1, 1)
    return found


def _pool(out: Path, settings: Settings, names: list[str], jobs: int, tell: Listener) -> dict[str, Outcome]:
    if not names:
        return {}
    context = multiprocessing.get_context("spawn")
    messages = context.Queue()
    found: dict[str, Outcome] = {}
    pool = ProcessPoolExecutor(min(jobs, len(names)), context, _prepare, (messages,))
    try:
        waiting = {pool.submit(_in_worker, name, settings, out): name for name in names}
        while waiting:
            done, _ = wait(waiting, _WAIT, FIRST_COMPLETED)
            _drain(messages, tell)
            for future in done:
                _collect(future, waiting.pop(future), found, tell)
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        messages.close()
    return found


def _collect(future: Future[Outcome], name: str, found: dict[str, Outcome], tell: Listener) -> None:
    try:
        found[name] = future.result()
    except BrokenProcessPool:
        return
    tell(name, found[name].status, 1, 1)


def _drain(messages: Any, tell: Listener) -> None:  # noqa: ANN401
    while True:
        try:
            tell(*messages.get_nowait())
        except queue.Empty:
            return
