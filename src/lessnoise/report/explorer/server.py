"""A small local server: the explorer's page and the library's answers, for this machine alone."""

from __future__ import annotations

import errno
import json
import select
import socket
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from lessnoise import validation
from lessnoise.errors import InvalidInput, LessnoiseError
from lessnoise.report.explorer import page
from lessnoise.report.explorer.answers import least_noise_curve, mechanisms, read_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.mechanism.catalogue import Request

    Answer = Callable[[Request], dict[str, Any]]

ADDRESS = "127.0.0.1"
_ANSWERS: dict[str, Answer] = {"/mechanisms": mechanisms, "/curve": least_noise_curve}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"


class ExplorerServer(ThreadingHTTPServer):
    """Listens on this machine only; questions are computed one after another."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        if validation.whole_number("port", port, minimum=0) > 65535:
            raise InvalidInput(f"port={port} is above 65535: pass a smaller one, or 0 for any free one.")
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            reason = "is in use" if error.errno == errno.EADDRINUSE else "is not allowed"
            raise InvalidInput(f"port={port} {reason}: pass another one, or 0 for any free one.") from None
        self.turn = threading.Lock()

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{ADDRESS}:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    server: ExplorerServer
    server_version = "lessnoise"
    sys_version = ""

    def do_GET(self) -> None:
        """The page, an answer, or one sentence on why not."""
        if not self._is_own_page():
            self._refuse(
                HTTPStatus.FORBIDDEN, "this server answers its own page only: open it at the address it printed."
            )
            return
        place = urlsplit(self.path)
        if place.path == "/":
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", page(endpoint="/").encode())
        elif place.path in _ANSWERS:
            self._answer(_ANSWERS[place.path], place.query)
        else:
            self._refuse(HTTPStatus.NOT_FOUND, f"{place.path} is not here: ask for /, /mechanisms or /curve.")

    def _is_own_page(self) -> bool:
        """Not a foreign name that was made to point here (DNS rebinding), nor another site's page."""
        port = self.server.server_port
        own = {f"{ADDRESS}:{port}", f"localhost:{port}"}
        return self.headers.get("Host") in own and self.headers.get("Sec-Fetch-Site", "none") in ("same-origin", "none")

    def _answer(self, compute: Answer, query: str) -> None:
        try:
            request = read_request(parse_qs(query, keep_blank_values=True, max_num_fields=20))
            with self.server.turn:
                if self._is_abandoned():
                    return
                answer = compute(request)
        except LessnoiseError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except (ValueError, ArithmeticError, MemoryError):
            self._refuse(HTTPStatus.BAD_REQUEST, "this setting cannot be computed: choose a less extreme one.")
        else:
            self._send(HTTPStatus.OK, "application/json", json.dumps(answer, allow_nan=False).encode())

    def _is_abandoned(self) -> bool:
        """The page has asked something newer meanwhile and closed this connection."""
        readable, _, _ = select.select([self.connection], [], [], 0.0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        self._send(status, "application/json", json.dumps({"error": sentence}).encode())

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        try:
            self.send_response(status)
            for name, value in {
                "Content-Type": kind,
                "Content-Length": str(len(body)),
                "Content-Security-Policy": _POLICY,
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "no-store",
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the reader has gone; nobody misses the answer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: the terminal belongs to the one sentence that names the address."""
