"""Small servers for this machine alone: the explorer's page and the library's answers, or any other pages."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import math
import select
import socket
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from lessnoise import validation
from lessnoise.errors import InvalidInput, LessnoiseError
from lessnoise.explorer.answers import least_noise_curve, mechanisms, read_request
from lessnoise.explorer.html_page import page

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.mechanism import Request

    Answer = Callable[[Request], dict[str, Any]]

ADDRESS = "127.0.0.1"
HTML = "text/html; charset=utf-8"
_ANSWERS: dict[str, Answer] = {"/mechanisms": mechanisms, "/curve": least_noise_curve}
_BUSY = (
    b"HTTP/1.0 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
    b'{"error": "too many connections are open: close some, or ask again later."}'
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"


_MOST_CONNECTIONS = 32
_PATIENCE = 10.0  # seconds for a whole request to arrive, and for an answer to be taken
_LONGEST_WAIT = 30.0  # seconds for one's turn
_LONGEST_HEAD = 16_384  # bytes of a request


class Reply(NamedTuple):
    """What is at an address: its kind, and what makes it; what is quick need not wait for its turn."""

    kind: str
    make: Callable[[], bytes]
    quick: bool = False


class LocalServer(ThreadingHTTPServer):
    """Listens on this machine only; questions are computed one after another.

    At most 32 connections are served at a time. Whoever has not sent a whole request after 10 seconds is cut off, and
    earlier if others need the place.
    """

    places = "/"  # what there is to ask for, in words
    daemon_threads = True
    request_queue_size = 64

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
        self._lock = threading.Lock()
        self._open: dict[socket.socket, float] = {}  # until when the request must have arrived, oldest first

    def find(self, path: str, query: str) -> Reply | None:
        """What is at a path; None if there is nothing."""
        raise NotImplementedError

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{ADDRESS}:{self.server_port}/"

    @property
    def connections(self) -> int:
        """How many are being served."""
        with self._lock:
            return len(self._open)

    def process_request(self, request: object, client_address: object) -> None:
        """A thread for the connection, if there is room or someone dawdles."""
        assert isinstance(request, socket.socket)  # what TCP has
        with self._lock:
            full = len(self._open) >= _MOST_CONNECTIONS
            dawdler = next((one for one, until in self._open.items() if until < math.inf), None) if full else None
            if dawdler is not None:
                del self._open[dawdler]
                _hang_up(dawdler)
            if not full or dawdler is not None:
                self._open[request] = time.monotonic() + _PATIENCE
                full = False
        if full:
            with contextlib.suppress(OSError):
                request.settimeout(0.0)
                request.sendall(_BUSY)
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Called about twice a second: cut off whoever takes too long to ask."""
        now = time.monotonic()
        with self._lock:
            for one, until in self._open.items():
                if until < now:
                    _hang_up(one)

    def arrived(self, request: socket.socket) -> None:
        """The request is whole: from here on it is our time that counts."""
        with self._lock:
            if request in self._open:
                self._open[request] = math.inf

    def shutdown_request(self, request: object) -> None:
        """The connection is over."""
        assert isinstance(request, socket.socket)
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """A reader that vanished is no news; anything else is shown, as ever."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class ExplorerServer(LocalServer):
    """The explorer's page, and what the library answers it."""

    places = "/, /mechanisms or /curve"

    def find(self, path: str, query: str) -> Reply | None:
        """The page or an answer."""
        if path == "/":
            return Reply(HTML, lambda: page(endpoint="/").encode(), quick=True)
        if path not in _ANSWERS:
            return None

        def answer() -> bytes:
            request = read_request(parse_qs(query, keep_blank_values=True, max_num_fields=20))
            return json.dumps(_ANSWERS[path](request), allow_nan=False).encode()

        return Reply("application/json", answer)


def _hang_up(connection: socket.socket) -> None:
    """Wakes the thread that reads from it, which then ends."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Head(io.BufferedReader):
    """What a client sends, up to a limit."""

    left = _LONGEST_HEAD

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(self.left if size is None or size < 0 else min(size, self.left))
        self.left -= len(line)
        return line


class _Handler(BaseHTTPRequestHandler):
    server: LocalServer
    server_version = "lessnoise"
    sys_version = ""
    timeout = _PATIENCE
    rfile: _Head

    def setup(self) -> None:
        """As ever, but with a limit to the length of a request."""
        super().setup()
        self.rfile.close()
        self.rfile = _Head(socket.SocketIO(self.connection, "r"))

    def parse_request(self) -> bool:
        """As ever; then the request has arrived."""
        whole = super().parse_request()
        self.server.arrived(self.connection)
        if whole and not self.rfile.left:
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return False
        return whole

    def do_GET(self) -> None:
        """The page, an answer, or one sentence on why not."""
        if not self._is_own_page():
            self._refuse(
                HTTPStatus.FORBIDDEN, "this server answers its own page only: open it at the address it printed."
            )
            return
        place = urlsplit(self.path)
        reply = self.server.find(place.path, place.query)
        if reply is None:
            self._refuse(HTTPStatus.NOT_FOUND, f"there is nothing here: ask for {self.server.places}.")
        elif reply.quick:
            self._send(HTTPStatus.OK, reply.kind, reply.make())
        else:
            self._answer(reply)

    def _is_own_page(self) -> bool:
        """Not a foreign name that was made to point here (DNS rebinding), nor another site's page."""
        port = self.server.server_port
        own = {f"{ADDRESS}:{port}", f"localhost:{port}"}
        origins = {None, *(f"http://{name}" for name in own)}
        return (
            self.headers.get_all("Host", []) in [[name] for name in own]
            and self.headers.get("Sec-Fetch-Site", "none") in ("same-origin", "none")
            and self.headers.get("Origin") in origins
        )

    def _answer(self, reply: Reply) -> None:
        try:
            if not self.server.turn.acquire(timeout=_LONGEST_WAIT):
                self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "other questions are being computed: ask again later.")
                return
            try:
                if self._is_abandoned():
                    return
                made = reply.make()
            finally:
                self.server.turn.release()
        except LessnoiseError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except (ValueError, ArithmeticError, MemoryError):
            self._refuse(HTTPStatus.BAD_REQUEST, "this setting cannot be computed: choose a less extreme one.")
        else:
            self._send(HTTPStatus.OK, reply.kind, made)

    def _is_abandoned(self) -> bool:
        """The page has asked something newer meanwhile and closed this connection."""
        readable, _, _ = select.select([self.connection], [], [], 0.0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What HTTP itself refuses (a method, a malformed or overlong request), in one sentence."""
        status = HTTPStatus(code)
        self.close_connection, self.request_version = True, self.protocol_version
        self._refuse(status, f"{status.phrase}: ask for {self.server.places} by a plain GET.")

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
            if self.command != "HEAD":
                self.wfile.write(body)
        except OSError:
            self.close_connection = True  # the reader has gone; nobody misses the answer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: the terminal belongs to the one sentence that names the address."""
