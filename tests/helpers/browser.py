"""A real headless Chromium for tests, driven over a pipe (DevTools protocol) with the standard library alone."""

import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
_PATIENCE = 120
_FLAGS = (
    "--headless",
    "--no-sandbox",  # tests may run as root in a container
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--remote-debugging-pipe",
)
# The protocol wants descriptors 3 (commands) and 4 (answers); both are moved out of the way first.
_LAUNCH = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(given), fcntl.F_DUPFD, 10) for given in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
_KEYS = {
    "ArrowRight": 39,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowDown": 40,
    "Home": 36,
    "End": 35,
    "Tab": 9,
    "Enter": 13,
}


class Tab:
    """One page: load it, run scripts in it, press keys, and know what it complained about."""

    def __init__(self, write, read):
        self._write, self._read = write, read
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._session = {}
        self._loaded = set()
        self.complaints = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._session = {"sessionId": session}
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def call(self, method, **parameters):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters, **self._session}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        return self._wait(lambda answer: answer.get("id") == number)["result"]

    def _wait(self, wanted):
        while True:
            while b"\0" not in self._buffer:
                ready, _, _ = select.select([self._read], [], [], _PATIENCE)
                received = os.read(self._read, 1 << 20) if ready else b""
                if not received:
                    raise RuntimeError("Chromium ended" if ready else f"Chromium was silent for {_PATIENCE} s")
                self._buffer += received
            text, self._buffer = self._buffer.split(b"\0", 1)
            answer = json.loads(text)
            if "error" in answer:
                raise RuntimeError(answer["error"])
            self._note(answer)
            if wanted(answer):
                return answer

    def _note(self, event):
        """What has loaded; uncaught exceptions, console errors and warnings, failed requests."""
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Page.lifecycleEvent" and parameters["name"] == "load":
            self._loaded.add(parameters["loaderId"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(parameters["exceptionDetails"]["exception"].get("description", "exception"))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(parameters["entry"]["text"])

    def open(self, address):
        loader = self.call("Page.navigate", url=address)["loaderId"]
        if loader not in self._loaded:  # it may have loaded before the call was answered
            self._wait(lambda event: loader in self._loaded)

    def run(self, script):
        """The value of a script; promises are awaited."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def press(self, key):
        """A key as a keyboard sends it."""
        known = {
            "key": key,
            "code": key,
            "windowsVirtualKeyCode": _KEYS[key],
            **({"text": "\r"} if key == "Enter" else {}),
        }
        self.call("Input.dispatchKeyEvent", type="keyDown", **known)
        self.call("Input.dispatchKeyEvent", type="keyUp", **known)

    def drag(self, start, places):
        """The mouse pressed at one point and moved over others."""

        def mouse(kind, place, buttons):
            x, y = place
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=buttons, clickCount=1)

        mouse("mousePressed", start, 1)
        for place in places:
            mouse("mouseMoved", place, 1)
            yield place
        mouse("mouseReleased", place, 0)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name):
        """Light or dark."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.call("Emulation.setEmulatedMedia", features=features)


@contextlib.contextmanager
def browser():
    """A fresh Chromium with one tab."""
    from_us, to_them = os.pipe()
    from_them, to_us = os.pipe()
    with tempfile.TemporaryDirectory(prefix="lessnoise-chromium-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                sys.executable,
                "-S",
                "-c",
                _LAUNCH,
                str(from_us),
                str(to_us),
                CHROMIUM,
                *_FLAGS,
                f"--user-data-dir={profile}",
            ],
            pass_fds=(from_us, to_us),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(from_us)
        os.close(to_us)
        try:
            yield Tab(to_them, from_them)
        finally:
            process.terminate()
            process.wait(_PATIENCE)
            os.close(to_them)
            os.close(from_them)
