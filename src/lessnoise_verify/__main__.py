"""``python -m lessnoise_verify CERTIFICATE [VALUE]``: prove a certificate, within a minute and a gigabyte."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from lessnoise_verify.document import LARGEST_FILE

MEMORY, SECONDS = 2**30, 60


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns 0 proved, 1 refuted, 2 unreadable, 3 not covered."""
    parser = argparse.ArgumentParser(prog="lessnoise_verify", description="Prove what a certificate states.")
    parser.add_argument("certificate", type=Path, help="a certificate's file, or a folder with certificate.json in it")
    parser.add_argument("value", type=Path, nargs="?", help="the released value, a .npy file")
    parser.add_argument("--public-key", type=Path, help="the signer's Ed25519 key, in PEM form")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="give up after so long (default: %(default)s)")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    return _prove(given) if given.inside else _guarded(given, sys.argv[1:] if arguments is None else arguments)


def _guarded(given: argparse.Namespace, arguments: list[str]) -> int:
    """Do it in a process of its own: whatever a hostile file makes of it, this one answers."""
    command = [sys.executable, "-m", "lessnoise_verify", "--inside", *arguments]
    try:
        done = subprocess.run(command, timeout=given.seconds, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        return _tell(given, "not covered", f"the proof takes more than {given.seconds} s.", 3)
    if done.returncode not in (0, 1, 2, 3) or not done.stdout:
        return _tell(given, "not covered", f"the proof needs more than {MEMORY // 2**20} MB of memory, or it fails.", 3)
    sys.stdout.buffer.write(done.stdout)
    sys.stdout.flush()
    return done.returncode


def _tell(given: argparse.Namespace, word: str, reason: str, code: int) -> int:
    print(json.dumps({"word": word, "reason": reason, "code": code}) if given.json else f"{word}: {reason}")
    return code


def _prove(given: argparse.Namespace) -> int:
    _limit_memory()
    from lessnoise_verify.verdict import verify  # after the limit, and not in the process that guards

    path = given.certificate / "certificate.json" if given.certificate.is_dir() else given.certificate
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        key = None if given.public_key is None else given.public_key.read_bytes()
        folder = path.parent if path is not given.certificate else None
        if given.value is None:
            found = verify(content, None, key, folder)
        else:
            with given.value.open("rb") as value:
                found = verify(content, value, key, folder)
    except OSError as error:
        return _tell(given, "unreadable", f"{error.filename}: {error.strerror}.", 2)
    except MemoryError:
        return _tell(given, "not covered", f"the proof needs more than {MEMORY // 2**20} MB of memory.", 3)
    print(json.dumps({**asdict(found), "code": found.code}, indent=2) if given.json else found)
    return found.code


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # not on this system
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


if __name__ == "__main__":
    sys.exit(main())
