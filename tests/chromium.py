"""A real browser without a window: what a page says on its console, and whether it fits a phone."""

import html
import json
import re
import shutil
import subprocess

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next((path for name in NAMES if (path := shutil.which(name))), None)

_PROBE = """<script>
addEventListener("error", e => errors.push(String(e.message)));
addEventListener("load", () => setTimeout(() => {
  const root = document.documentElement, wide = root.clientWidth;
  const inside = e => e && e !== document.body
    && (getComputedStyle(e).overflowX !== "visible" || inside(e.parentElement));
  const over = [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > wide + 1
    && !inside(e.parentElement)).map(e => e.tagName + "." + e.className).slice(0, 5);
  parent.postMessage({errors, width: innerWidth, client: wide, scroll: root.scrollWidth, over,
    dark: matchMedia("(prefers-color-scheme: dark)").matches}, "*");
}, 50));
</script>"""
_OUTER = """<!doctype html><body style="margin:0">
<iframe src="{page}" style="border:0;width:{width}px;height:900px"></iframe>
<script>addEventListener("message", e => {{ document.body.dataset.found = JSON.stringify(e.data); }});</script>"""


def look(folder, page, width):
    """Open a page of some width, in pixels; returns what it measured of itself, and the browser's console."""
    probed = folder / "probed.html"
    probed.write_text(page.replace("</head>", f"<script>const errors = [];</script>{_PROBE}</head>", 1))
    outer = folder / "outer.html"
    outer.write_text(_OUTER.format(page=probed.name, width=width))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=8000", "--window-size=1400,900", "--dump-dom"]
    ended = subprocess.run([*command, outer.as_uri()], capture_output=True, text=True, timeout=300, check=False)
    found = re.search(r'data-found="([^"]*)"', ended.stdout)
    assert found is not None, ended.stderr[-2000:]
    console = [line for line in ended.stderr.splitlines() if ":CONSOLE" in line]
    return json.loads(html.unescape(found.group(1))), console
