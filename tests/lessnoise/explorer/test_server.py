"""The explorer's local server: answers against the library, who may ask, and what a bad question gets."""

import contextlib
import http.client
import json
import math
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise import Request, explorer
from lessnoise.cli import app
from lessnoise.explorer import server as explorer_server
from lessnoise.explorer.server import ExplorerServer
from lessnoise.mechanism.catalogue import build_all, find_mechanism
from tests.helpers.browser import CHROMIUM, browser

GOOD = "shape=5&epsilon=1&delta=1e-6&sensitivity=2"
COUNTS = "shape=5&epsilon=1&delta=1e-6&changes=counts"


@pytest.fixture(scope="module")
def server():
    with ExplorerServer(0) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def _get(server, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=120)
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response, body


def test_answers_are_the_librarys(server):
    response, body = _get(server, f"/mechanisms?{GOOD}")
    assert response.status == 200
    assert response.headers["Content-Type"] == "application/json"
    found = json.loads(body)["mechanisms"]
    expected = build_all(Request(1.0, 1e-6, 2.0, (5,)))
    assert [row["name"] for row in found] == [mechanism.name for mechanism in expected]
    assert found[0]["name"] == "least-noise"
    for row, mechanism in zip(found, expected, strict=True):
        verdict = mechanism.check()
        assert row["delta"] == verdict.exact.to_dict()
        assert (row["holds"], row["refuted"]) == (verdict.holds, verdict.refuted)
        assert row["expected_loss"] == mechanism.expected_loss
        assert row["claimed_delta"] == mechanism.claim.delta
        # The words are rounded outwards.
        low, high = (float(part) for part in (row["bracket"].split(" to ") * 2)[:2])
        assert low <= verdict.exact.lower
        assert verdict.exact.upper <= (high if " to " in row["bracket"] else low)


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("counts", ln.changes.counts()),
        ("counts&neighbours=replace", ln.changes.counts(neighbours="replace")),
        ("ball:1.5,norm=inf", ln.changes.ball(1.5, norm=math.inf)),
        ("corner:2", ln.changes.corner(2.0)),
    ],
)
def test_answers_for_a_set_of_changes_are_the_librarys(server, words, given):
    response, body = _get(server, f"/mechanisms?{COUNTS.replace('counts', words)}")
    assert response.status == 200
    answer = json.loads(body)
    relation = given.relation or ln.Neighbours.ADD_REMOVE
    expected = build_all(Request(1.0, 1e-6, None, (5,), relation, changes=given))
    assert answer["changes"] == str(given)
    assert [row["name"] for row in answer["mechanisms"]] == [mechanism.name for mechanism in expected]
    assert answer["mechanisms"][0]["name"] == "least-noise"
    kept = [row["expected_loss"] for row in answer["mechanisms"] if row["holds"]]
    assert answer["mechanisms"][0]["expected_loss"] == min(kept)
    assert next(row for row in answer["mechanisms"] if row["name"] == "laplace")["holds"]
    points = json.loads(_get(server, f"/curve?{COUNTS.replace('counts', words)}")[1])["points"]
    least = find_mechanism("least-noise").build(Request(1.0, 1e-6, None, (5,), relation, changes=given))
    for epsilon, delta in points[::6]:
        assert delta >= least.delta(epsilon).lower * (1 - 1e-9)


def test_every_row_is_at_the_epsilon_that_was_asked():
    for mechanism in build_all(Request(0.5, 1e-6, 1.0, (2, 2))):
        assert mechanism.claim.epsilon == 0.5


def test_curve_of_the_least_noise_is_its_upper_ends(server):
    response, body = _get(server, f"/curve?{GOOD}")
    assert response.status == 200
    mechanism = find_mechanism("least-noise").build(Request(1.0, 1e-6, 2.0, (5,)))
    points = json.loads(body)["points"]
    assert len(points) > 15
    for epsilon, delta in points:
        exact = mechanism.delta(epsilon)
        assert exact.lower * (1 - 1e-9) <= delta <= max(exact.upper * 1.002, 1e-5 * 1e-6)


def test_the_page_is_served_without_reach_to_anything_else(server):
    response, body = _get(server, "/")
    assert response.status == 200
    assert 'data-endpoint="/"' in body
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    assert "data-endpoint" not in explorer.page().split("<script>")[0].split("</style>")[-1]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": "127.0.0.1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ],
)
@pytest.mark.parametrize("path", ["/", f"/mechanisms?{GOOD}"])
def test_foreign_names_and_foreign_pages_are_refused(server, headers, path):
    response, body = _get(server, path, **headers)
    assert response.status == 403
    assert "its own page only" in json.loads(body)["error"]


def test_localhost_is_welcome(server):
    response, _ = _get(server, "/", Host=f"localhost:{server.server_port}")
    assert response.status == 200


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "shape is given 0 times"),
        (GOOD.replace("epsilon=1", "epsilon=-1"), "epsilon=-1.0"),
        (GOOD.replace("epsilon=1", "epsilon=nan"), "epsilon=nan"),
        (GOOD.replace("epsilon=1", "epsilon=one"), "epsilon='one'"),
        (GOOD.replace("1e-6", "1"), "delta=1.0"),
        (GOOD.replace("shape=5", "shape=5x"), "shape='5x'"),
        (GOOD.replace("shape=5", "shape=0"), "shape=(0,)"),
        (GOOD.replace("shape=5", "shape=9999999999999"), "more than"),
        (GOOD.replace("sensitivity=2", "sensitivity=0"), "sensitivity=0.0"),
        (GOOD.replace("epsilon=1", "epsilon=1e-300"), "epsilon=1e-300 is out of range"),
        (GOOD.replace("epsilon=1", "epsilon=1e400"), "epsilon=inf is out of range"),
        (GOOD.replace("epsilon=1", "epsilon=-nan"), "epsilon=nan is out of range"),
        (GOOD.replace("epsilon=1", "epsilon=%D9%A1"), "is not a number"),
        (GOOD.replace("epsilon=1", "epsilon=1_0"), "epsilon='1_0' is not a number"),
        (GOOD.replace("epsilon=1", "epsilon=+1"), "epsilon=' 1' is not a number"),
        (GOOD.replace("epsilon=1", "epsilon=" + 3000 * "1"), "1...' is not a number"),
        (GOOD.replace("epsilon=1", "epsilon=1%0d%0aX:1"), "is not a number"),
        (GOOD.replace("1e-6", "1e-200"), "delta=1e-200 is out of range"),
        (GOOD.replace("sensitivity=2", "sensitivity=1e300"), "sensitivity=1e+300 is out of range"),
        (GOOD.replace("shape=5", "shape=%D9%A5"), "is not a shape"),
        (GOOD.replace("shape=5", "shape=1_0"), "is not a shape"),
        (GOOD.replace("shape=5", "shape=-5"), "is not a shape"),
        (GOOD.replace("shape=5", "shape=" + "x".join(50 * "2")), "is not a shape"),
        (GOOD.replace("shape=5", "shape=" + 5000 * "9"), "is not a shape"),
        (GOOD.replace("shape=5", "shape=99999x99999"), "more than"),
        (GOOD + "&epsilon=2", "epsilon is given 2 times"),
        (GOOD + "&file=/etc/passwd", "file='/etc/passwd' is not known"),
        (GOOD + "&changes=counts", "sensitivity='2' beside changes"),
        (GOOD + "&neighbours=replace", "neighbours=replace is for changes=counts alone"),
        (COUNTS + "&changes=counts", "changes is given 2 times"),
        (COUNTS + "&neighbours=friends", "neighbours='friends' is not known"),
        (COUNTS + "&neighbours=replace&neighbours=replace", "neighbours is given 2 times"),
        (COUNTS + ":20,per_cell=1", "changes='counts:20,per_cell=1' is not a set that is offered here"),
        (COUNTS.replace("counts", "corner:-1"), "changes=-1.0 is out of range"),
        (COUNTS.replace("counts", "corner:1e300"), "changes=1e+300 is out of range"),
        (COUNTS.replace("counts", "corner:1,2"), "is not a set that is offered here"),
        (COUNTS.replace("counts", "corner:1") + "&neighbours=add/remove", "is for changes=counts alone"),
        (COUNTS.replace("counts", "corner:" + 5000 * "9"), "9...' is not a number"),
        (COUNTS.replace("counts", "ball:nan,norm=inf"), "changes=nan is out of range"),
        (COUNTS.replace("counts", "ball:1"), "is not a set that is offered here"),
        (COUNTS.replace("counts", "ball:,norm=inf"), "changes='' is not a number"),
        (COUNTS.replace("counts", "listed:%0d%0a"), "is not a set that is offered here"),
        (COUNTS.replace("counts", 5000 * "a"), "a...' is not a set that is offered here"),
        ("&".join(f"a{i}=1" for i in range(50)), "cannot be computed"),
    ],
)
@pytest.mark.parametrize("path", ["/mechanisms", "/curve"])
def test_a_bad_question_gets_one_sentence(server, path, query, words):
    response, body = _get(server, f"{path}?{query}")
    assert response.status == 400
    sentence = json.loads(body)["error"]
    assert words in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


@pytest.mark.parametrize("path", ["/etc/passwd", "/../pyproject.toml", "/explorer.js", "//mechanisms", "/mechanisms/"])
def test_no_file_is_served(server, path):
    response, _ = _get(server, path)
    assert response.status in (400, 404)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "NONSENSE"])
def test_only_get_is_answered(server, method):
    response, body = _get(server, "/", method)
    assert response.status == 501
    assert response.headers["Content-Type"] == "application/json"
    assert body == "" if method == "HEAD" else "plain GET" in json.loads(body)["error"]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.0\r\n\r\n", 403),
        (b"GET / HTTP/1.0\r\nHost: 127.0.0.1:PORT\r\nHost: evil.example\r\n\r\n", 403),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nConnection: keep-alive\r\n\r\n", 200),
        (b"GET / HTTP/9.9\r\n\r\n", 505),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"GET / HTTP/1.0\r\nHost: 127.0.0.1:PORT\r\n" + 500 * b"X: 1\r\n" + b"\r\n", 431),
        (b"GET / HTTP/1.0\r\nHost: 127.0.0.1:PORT\r\nX: " + 60_000 * b"1" + b"\r\n\r\n", 431),
        (b"GET /" + 60_000 * b"a" + b" HTTP/1.0\r\n\r\n", 431),
    ],
)
def test_raw_requests_get_one_answer_and_the_connection_ends(server, sent, status):
    with _connect(server) as connection:
        with contextlib.suppress(OSError):  # it may hang up before all is sent
            connection.sendall(sent.replace(b"PORT", str(server.server_port).encode()))
        answer = _read(connection)
    assert int(answer.split()[1]) == status


@pytest.mark.slow
def test_half_open_connections_keep_neither_threads_nor_others_waiting(server):
    before = threading.active_count()
    waiting = [_connect(server) for _ in range(200)]
    for connection in waiting[:20]:
        connection.sendall(b"GET / HTT")
    response, _ = _get(server, "/")
    assert response.status == 200
    assert server.connections <= 32
    _until_true(lambda: threading.active_count() <= before + 33)  # those hung up on take a moment to end
    for connection in waiting:
        connection.close()
    _until_true(lambda: server.connections == 0)


def test_whoever_takes_too_long_to_ask_is_cut_off(server, monkeypatch):
    monkeypatch.setattr(explorer_server, "_PATIENCE", 0.2)
    with _connect(server) as connection:
        while True:  # one byte at a time never ends, but the connection does
            try:
                connection.sendall(b"G")
            except OSError:
                break
            time.sleep(0.02)


@pytest.mark.slow
def test_a_full_house_and_a_long_queue_say_so(server, monkeypatch):
    monkeypatch.setattr(explorer_server, "_LONGEST_WAIT", 2.0)
    question = f"GET /curve?{GOOD} HTTP/1.0\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode()
    with server.turn:  # nothing is computed meanwhile
        asked = [_connect(server) for _ in range(32)]
        for connection in asked:
            connection.sendall(question)
        _until_true(lambda: list(server._open.values()) == 32 * [math.inf])
        with _connect(server) as connection:
            assert b"too many connections are open" in _read(connection)
        answers = [_read(connection) for connection in asked]
    assert all(answer.startswith(b"HTTP/1.0 503") and b"ask again later" in answer for answer in answers)
    for connection in asked:
        connection.close()
    assert _get(server, f"/curve?{GOOD}")[0].status == 200


def _connect(server):
    return socket.create_connection(("127.0.0.1", server.server_port), timeout=120)


def _read(connection):
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def _until_true(condition):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_only_this_machine_can_ask(server):
    assert server.server_address[0] == "127.0.0.1"


# The command.


def test_command_writes_a_page_that_needs_nothing_else(tmp_path):
    target = tmp_path / "explorer.html"
    result = CliRunner().invoke(app, ["explore", "--out", str(target)])
    assert result.exit_code == 0
    assert target.read_text(encoding="utf-8") == explorer.page()
    again = CliRunner().invoke(app, ["explore", "--out", str(target)])
    assert again.exit_code == 2
    assert "exists already" in again.output


@pytest.mark.parametrize("port", ["70000", "-1"])
def test_bad_port(port):
    result = CliRunner().invoke(app, ["explore", "--port", port, "--no-browser"])
    assert result.exit_code == 2
    assert f"port={port}" in result.output


def test_port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["explore", "--port", str(port), "--no-browser"])
    assert result.exit_code == 2
    assert f"port={port} is in use" in result.output


@pytest.mark.slow
def test_control_c_ends_with_one_sentence():
    # Processes started in the background ignore the signal unless told otherwise.
    script = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from lessnoise.cli import run; run()"
    )
    command = [sys.executable, "-u", "-c", script, "explore", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        first = process.stdout.readline()
        assert first.startswith("The explorer is at http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=120)
        assert rest.strip() == "The explorer has ended."
        assert process.returncode == 0


# The page with its server, in a real browser.


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: install chromium or google-chrome")
def test_page_shows_the_newest_certified_answer():
    server = ExplorerServer(0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with browser() as tab:
            tab.open(server.address + "#explore?M=7&epsilon=1&delta=1e-6&sensitivity=1")
            _certified(tab)
            # Three settings in quick succession: only the last one counts.
            with server.turn:  # no answer before the page has been looked at
                for dimension in (3, 4, 5):
                    tab.run(f"location.hash = '#explore?M={dimension}&epsilon=1&delta=1e-6&sensitivity=1'")
                tab.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))")
                assert tab.run("document.querySelector('.lnx').dataset.state") == "computing"
                assert tab.run("document.querySelectorAll('.lnx-table [data-source=page]').length") == 7
            _certified(tab)
            row = "document.querySelector('.lnx-table [data-m=least-noise]')"
            loss = float(tab.run(f"{row}.cells[5].textContent"))
            mechanism = find_mechanism("least-noise").build(Request(1.0, 1e-6, 1.0, (5,)))
            assert loss == pytest.approx(mechanism.expected_loss, rel=1e-3)
            low, high = (float(part) for part in tab.run(f"{row}.cells[2].textContent").split(" to "))
            assert low <= mechanism.delta(1.0).lower <= mechanism.delta(1.0).upper <= high
            _until(tab, "document.querySelector('.lnx-plot [data-m=least-noise]') !== null")
            assert tab.complaints == []
            server.shutdown()
            server.server_close()
            tab.run("location.hash = '#explore?M=6&epsilon=1&delta=1e-6&sensitivity=1'")
            _until(tab, "document.querySelector('.lnx-status').textContent.startsWith('The server does not answer')")
            assert tab.run("document.querySelectorAll('.lnx-table [data-source=page]').length") == 7
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _certified(tab):
    _until(tab, "document.querySelector('.lnx').dataset.state === 'certified'")


def _until(tab, condition):
    end = time.monotonic() + 120
    while not tab.run(condition):
        assert time.monotonic() < end, condition
        time.sleep(0.05)
