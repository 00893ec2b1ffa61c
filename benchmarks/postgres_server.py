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
    """A server that syncs every commit, as a ledger asks for."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder, self.data = folder, folder / "data"
        self.user, self.prefix = getpass.getuser(), []
        if os.geteuid() == 0:  # the server refuses to run as root
            self.user, self.prefix = "postgres", ["runuser", "-u", "postgres", "--"]
            shutil.chown(folder, "postgres")
        self.settings = {"listen_addresses": "", "unix_socket_directories": str(folder), **settings}
        self._call("initdb", "-A", "trust", "-U", self.user, "--no-sync", "-E", "UTF8")
        self.start()

    def _call(self, program: str, *arguments: object) -> None:
        command = [*self.prefix, programs() / program, "-D", self.data, *arguments]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL, cwd=self.folder)

    def start(self) -> None:
        """Start it, again too."""
        options = " ".join(f"-c {name}={value}" if value else f"-c {name}=" for name, value in self.settings.items())
        for _ in range(50):  # what was killed may need a moment to let go of its memory
            with contextlib.suppress(subprocess.CalledProcessError):
                self._call("pg_ctl", "-w", "-t", "60", "-o", options, "-l", self.data / "log", "start")
                return
            time.sleep(0.2)
        raise RuntimeError((self.data / "log").read_text()[-2000:])

    def stop(self) -> None:
        """Stop it at once."""
        self._call("pg_ctl", "-w", "-m", "immediate", "-t", "60", "stop")

    def kill(self) -> None:
        """As if the power went: nobody is told."""
        process = int((self.data / "postmaster.pid").read_text().split()[0])
        children = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True, check=False).stdout
        for each in (process, *map(int, children.split())):
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)

    def address(self, ledger: str = "", *, user: str | None = None, folder: Path | None = None) -> str:
        """Of a ledger, or of the database."""
        place = f"postgresql:///postgres?host={quote(str(folder or self.folder), safe='')}&user={user or self.user}"
        return place + (f"&ledger={ledger}" if ledger else "")


class Cutter:
    """Stands between client and server; after COMMIT it cuts the connection before the answer, or before the question.

    ``cuts`` says for each further COMMIT whether to pass it on ("pass"), to pass it on and lose the answer ("answer"),
    or to lose the COMMIT itself ("question").
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
            if cut != "question":
                behind.sendall(data)
            if cut != "pass":
                return


def _pass_back(behind: socket.socket, client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := behind.recv(65536):
            client.sendall(data)
    with contextlib.suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)
