"""How a run of the command line begins and ends: every command there is, one sentence, a code for scripts."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import threading
import warnings
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from lessnoise.cli.output import drop_output, silence
from lessnoise.errors import ClaimWarning, LessnoiseError, PaidNotReleased, SpendUnknown
from lessnoise.harmless import printable
from lessnoise.release import IN_MEMORY, Release, reason

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from lessnoise.ledger import Receipt

GROUP = "lessnoise.commands"
"""Whatever is in this group of entry points becomes a command; any package may add one."""

EXIT_FAILED_CLAIM = 1
EXIT_BAD_INPUT = 2
EXIT_PAID = 4  # 3 is a report that is not complete
EXIT_INTERRUPTED = 130  # as shells have it: 128 + SIGINT


class OneSentenceGroup(TyperGroup):
    """Turns every foreseen error into one sentence and an exit code; has the commands of other packages too."""

    _added = _alone = False  # whether commands of other packages are here; whether this is the whole program

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        """One command; other packages are loaded for names that are not ours."""
        if cmd_name not in self.commands:
            self._add_commands()
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401
        """Every command, for help and completion."""
        self._add_commands()
        return super().list_commands(ctx)

    def _add_commands(self) -> None:
        if self._added:
            return
        self._added = True
        for name, command in _added_commands(self.commands):
            command.name = name  # as help lists it
            self.add_command(command, name)
            if self._alone:
                _settle(command)

    def main(self, args: Any = None, standalone_mode: bool = True, **options: Any) -> Any:  # type: ignore[override]  # noqa: ANN401
        """Run, and tell of a wrong command line as of any other wrong input."""
        if not standalone_mode:
            return super().main(args, standalone_mode=False, **options)
        self._alone = True
        _settle(self)
        try:
            code = super().main(args, standalone_mode=False, **options)
        except Exception as error:
            if not hasattr(error, "format_message"):  # not about the command line
                raise
            _tell_usage(error)
            code = EXIT_BAD_INPUT
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Run the command; errors of ours, of files and of memory become a sentence."""
        code = EXIT_BAD_INPUT
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except PaidNotReleased as error:
            message, code = _rescued(error), EXIT_PAID
        except SpendUnknown as error:  # it may be paid for
            message, code = str(error), EXIT_PAID
        except LessnoiseError as error:
            message = str(error)
        except BrokenPipeError:
            drop_output()
        except OSError as error:
            message = f"{_name(error)}: {error.strerror or error}: check the path, its permissions and the space left."
        except MemoryError:
            message = "there is not enough memory: release the array in parts, each with its share of the budget."
        except KeyboardInterrupt as interrupt:
            notes = getattr(interrupt, "__notes__", [])
            typer.echo(f"interrupted: {notes[0] if notes else 'no half-written file is left.'}", err=True)
            raise typer.Exit(EXIT_PAID if notes else getattr(interrupt, "code", EXIT_INTERRUPTED)) from None
        else:
            return result
        typer.echo(f"error: {printable(message)}", err=True)
        raise typer.Exit(code)


def _settle(command: Any) -> None:  # noqa: ANN401
    """Values that are wrong are told, and paragraphs fill the terminal, wherever the lines of their docstring end."""
    for one in _with_inner(command):
        _remember_values(one)
        if one.help:
            one.help = "\n\n".join(" ".join(part.split()) for part in one.help.split("\n\n"))


def _added_commands(taken: Container[str]) -> Iterator[tuple[str, Any]]:
    """Name and command of every entry point, by name: a function with Typer's annotations, or a Typer application.

    A command that cannot be loaded, or whose name is taken, is left out with a sentence on standard error.
    """
    for point in sorted(metadata.entry_points(group=GROUP), key=lambda point: point.name):
        if point.name in taken:
            _tell_left_out(point, "this name is taken")
            continue
        try:
            loaded = point.load()
            command = typer.main.get_command(loaded if isinstance(loaded, typer.Typer) else _application(loaded))
        except Exception as error:
            _tell_left_out(point, f"{type(error).__name__}: {error}")
        else:
            yield point.name, command


def _application(function: Any) -> typer.Typer:  # noqa: ANN401
    made = typer.Typer(add_completion=False, rich_markup_mode="rich")
    made.command()(function)
    return made


def _tell_left_out(point: metadata.EntryPoint, reason: str) -> None:
    typer.echo(f"warning: the command {point.name!r} ({point.value}) is left out: {reason}", err=True)


class Terminated(KeyboardInterrupt):
    """The system asks the process to end, which is to be as orderly as Ctrl-C."""

    def __init__(self, number: int) -> None:
        self.code = 128 + number


@contextlib.contextmanager
def orderly() -> Iterator[None]:
    """SIGTERM and SIGHUP end what goes on in this context as Ctrl-C does: a payment is told, and nothing half left."""

    def end(number: int, _: object) -> None:
        raise Terminated(number)

    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    wanted = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {each: signal.getsignal(each) for each in wanted if signal.getsignal(each) is signal.SIG_DFL}
    try:
        for each in before:
            signal.signal(each, end)
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextlib.contextmanager
def reporting(done: str) -> Iterator[None]:
    """All is paid and written, and only words about it are left: what fails now must not say otherwise."""
    try:
        yield
        sys.stdout.flush()
    except (typer.Exit, BrokenPipeError):
        raise
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"{done}.")
        raise
    except Exception as error:
        with contextlib.suppress(OSError):
            silence()  # what is still to be printed would fail again
        typer.echo(f"error: {done}, but printing what there is to say about it failed: {reason(error)}.", err=True)
        raise typer.Exit(EXIT_PAID) from None


@contextlib.contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """What is warned of in this context, claims above all, as sentences; the list is filled when the context ends."""
    words: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ClaimWarning)
        yield words
    words += [str(warning.message) for warning in caught]


def paid_words(receipt: Receipt | None) -> str:
    """For a sentence about what was paid and written."""
    return "" if receipt is None else f"paid for (record {receipt.id}) and "


def _rescued(error: PaidNotReleased) -> str:
    """The sentence; a noisy value that could not be written to its place is written to a temporary folder."""
    if error.release is None or error.advice != IN_MEMORY:
        return str(error)
    try:
        name = "noisy.npy" if isinstance(error.release, Release) else "answer.json"
        place = Path(tempfile.mkdtemp(prefix="lessnoise-")) / name
        error.release.write(place)
    except Exception as second:
        return f"{error.failure}; the noisy value is lost ({second}), and to make it again costs again."
    return f"{error.failure}; the noisy value is kept in {place}, with its certificate."


def _name(error: OSError) -> str:
    return "file" if error.filename is None else os.fsdecode(error.filename)


def _with_inner(command: Any) -> Iterator[Any]:  # noqa: ANN401
    """A command, and all that are in it."""
    yield command
    for inner in getattr(command, "commands", {}).values():
        yield from _with_inner(inner)


def _remember_values(command: Any) -> None:  # noqa: ANN401
    """Let an error about a parameter carry the value that was given, which its message may lack."""
    for parameter in command.params:

        def process(ctx: Any, value: Any, inner: Any = parameter.process_value) -> Any:  # noqa: ANN401
            try:
                return inner(ctx, value)
            except Exception as error:
                if hasattr(error, "format_message"):
                    error.given = value[-1] if isinstance(value, (list, tuple)) and value else value  # type: ignore[attr-defined]
                raise

        parameter.process_value = process


def _tell_usage(error: Any) -> None:  # noqa: ANN401
    """One sentence on standard error; the help, if nothing at all was asked for."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        typer.echo(context.get_help(), err=True)
        return
    command = "lessnoise" if context is None else context.command_path
    typer.echo(printable(f"error: {_clause(error, context, command)}; see '{command} --help'."), err=True)


def _clause(error: Any, context: Any, command: str) -> str:  # noqa: ANN401
    kind, parameter = type(error).__name__, getattr(error, "param", None)
    if kind == "MissingParameter" and parameter is not None and context is not None:
        needed = " ".join(_spelled(one) for one in context.command.params if one.required)
        return f"{_spelled(parameter)} is missing: {command} needs {needed}"
    if parameter is not None:
        given, text = f"{parameter.name}={getattr(error, 'given', '?')!r}", str(error.message).rstrip(".")
        if "valid number" in text or "valid float" in text:  # as the releases of Typer put it
            return f"{given} is not a number: write one such as 0.5"
        if "valid int" in text:
            return f"{given} is not a whole number: write one such as 10"
        return f"{given} is not accepted: {text[:1].lower()}{text[1:]}"
    text = str(error.format_message()).strip().rstrip(".?")
    return text[:1].lower() + text[1:].replace(". Did you mean", ": perhaps you mean")


def _spelled(parameter: Any) -> str:  # noqa: ANN401
    """--epsilon, or IN.npy."""
    if getattr(parameter, "param_type_name", "") == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return str(max(parameter.opts, key=len))
