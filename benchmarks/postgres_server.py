"""A PostgreSQL server in a folder, reached through a socket there; it can be killed, and started again.

Trials, benchmarks and tests of the team's ledger share it.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from urllib.parse import quote


def programs() -> Path | None:
    """The folder of initdb and pg_ctl; None if there is no server to start."""
    found = [Path(place).parent for place in [shutil.which("initdb")] if place]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return found[0] if found else None


class Server:
    """A server that syncs every commit, as a ledger asks for; a child of this process, which waits for its end."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder, self.data = folder, folder / "data"
        self.user, self.login = getpass.getuser(), {}
        if os.geteuid() == 0:  # the server refuses to run as root
            self.user = "postgres"
            self.login = {"user": self.user, "group": self.user, "extra_groups": []}
            shutil.chown(folder, self.user)
        self.settings = {"listen_addresses": "", "unix_socket_directories": str(folder), **settings}
        command = [programs() / "initdb", "-D", self.data, "-A", "trust", "-U", self.user, "--no-sync", "-E", "UTF8"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, **self.login)
        self.start()

    def start(self) -> None:
        """Start it, again too; it takes connections when this returns."""
        options = [word for name, value in self.settings.items() for word in ("-c", f"{name}={value}")]
        for _ in range(50):  # what was killed may need a moment to let go of its memory
            with (self.data / "log").open("ab") as log:
                self.process = subprocess.Popen(
                    [programs() / "postgres", "-D", self.data, *options],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, start_new_session=True,
                    **self.login,
                )  # fmt: skip
            until = time.monotonic() + 60.0
            while self.process.poll() is None and time.monotonic() < until:
                if self._is_ready():
                    return
                time.sleep(0.02)
            self.stop()
            time.sleep(0.2)
        raise RuntimeError((self.data / "log").read_text()[-2000:])

    def _is_ready(self) -> bool:
        """Whether it says so, in the file that it writes: its number in the first line, its state in the last."""
        with contextlib.suppress(OSError):
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            return len(lines) >= 8 and lines[0] == str(self.process.pid) and lines[7].strip() == "ready"
        return False

    def stop(self) -> None:
        """Stop it at once, if it runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
        self.process.wait(60.0)

    def kill(self) -> None:
        """As if the power went: nobody is told.

        It is halted first. Else it could start one more process, which nobody kills: that one could wait for ever for
        what a killed one held, and so would its client, and no new server could start beside it.
        """
        self.process.send_signal(signal.SIGSTOP)
        found = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=False)
        for each in (self.process.pid, *map(int, found.stdout.split())):
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self.process.wait(60.0)

    def address(self, ledger: str = "", *, user: str | None = None, folder: Path | None = None) -> str:
        """Of a ledger, or of the database."""
        place = f"postgresql:///postgres?host={quote(str(folder or self.folder), safe='')}&user={user or self.user}"
        return place + (f"&ledger={ledger}" if ledger else "")


class Cutter:
    """Stands between client and server; after COMMIT it cuts the connection before the answer, or before the question.

    ``cuts`` says for each further COMMIT whether to pass it on ("pass"), to pass it on and lose the answer ("answer"),
    to lose the COMMIT itself ("question"), or to say nothing until the client gives up ("silence").
    """

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.folder, self.cuts = server, folder, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / ".s.PGSQL.5432"))
        self.listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as behind:
            behind.connect(str(self.server.folder / ".s.PGSQL.5432"))
            back = threading.Thread(target=_pass_back, args=(behind, client), daemon=True)
            back.start()
            with contextlib.suppress(OSError):
                self._forward(client, behind)
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):  # the server does what it was told to, then finds that nobody listens
                behind.shutdown(socket.SHUT_WR)
            back.join()

    def _forward(self, client: socket.socket, behind: socket.socket) -> None:
        while data := client.recv(65536):
            cut = self.cuts.pop(0) if b"COMMIT" in data and self.cuts else "pass"
            if cut == "answer":
                client.shutdown(socket.SHUT_RDWR)
            while cut == "silence" and client.recv(65536):
                pass
            if cut not in ("question", "silence"):
                behind.sendall(data)
            if cut != "pass":
                return


def _pass_back(behind: socket.socket, client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := behind.recv(65536):
            client.sendall(data)
    with contextlib.suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)
