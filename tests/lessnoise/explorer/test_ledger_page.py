"""The page about a ledger: what it shows is what the ledger says, it only reads, and no text in it becomes markup."""

from __future__ import annotations

import re
import threading
import urllib.error
import urllib.request
from html import unescape
from html.parser import HTMLParser

import pytest

import lessnoise as ln
from lessnoise.explorer import LedgerServer, ledger_page
from lessnoise.text import down, up
from tests.helpers.browser import CHROMIUM, browser
from tests.helpers.screens import assert_fits

GAUSSIAN = ln.analytic_gaussian(epsilon=0.3, delta=1e-8, sensitivity=1, shape=3)
PLAN = {"mechanism": ["laplace"], "shape": ["3"], "sensitivity": ["1"], "epsilon": ["0.25"], "delta": ["1e-8"]}


@pytest.fixture
def ledger(tmp_path):
    made = ln.Ledger.open(tmp_path / "a.ledger", epsilon=2, delta=1e-6)
    for number in range(5):
        made.spend(GAUSSIAN, note=f"<script>alert({number})</script>", partition="<b>north" if number else None)
    return made


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.seen = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


def answer(text: str) -> str:
    return re.search(r'id="answer">(.*?)</p>', text)[1]


def test_what_is_shown_is_what_the_ledger_says(ledger):
    text = ledger_page(ledger)
    spent = ledger.spent().upper
    assert f"5 releases have cost an epsilon of at most {up(spent, 4)} in total, at delta 1e-06." in text
    assert f"At least {down(2 - spent, 4)} of the budget's epsilon 2 is left." in unescape(text)
    for delta in (1e-9, 1e-8, 1e-7, 1e-6, 1e-5):
        assert f"<td>{up(delta)}</td><td>{up(ledger.epsilon(delta).upper, 4)}</td>" in text
    assert ledger.epsilon(1e-6) == ledger.spent()
    assert ledger.mark() in text
    assert "<td>analytic-gaussian</td>" in text


def test_no_text_becomes_markup(ledger):
    seen = Tags(ledger_page(ledger, {"shape": ['"><script>x</script>']})).seen
    assert "script" not in {tag for tag, _ in seen}
    assert not [attributes for _, attributes in seen if any(name.startswith("on") for name in attributes)]


def test_plans_that_are_held(ledger):
    ledger.reserve(GAUSSIAN.repeat(2), name="<script>monthly")
    text = ledger_page(ledger)
    assert "<li>&lt;script&gt;monthly: 2 releases reserved, 0 used</li>" in text
    assert f"At least {down(ledger.remaining(), 4)} of the budget's epsilon 2 is left." in unescape(text)
    assert down(ledger.remaining(), 4) != down(2 - ledger.spent().upper, 4)


def test_what_a_planned_release_costs(ledger):
    planned = ln.laplace(epsilon=0.25, sensitivity=1, shape=3)
    after = ledger.spent_with(planned.repeat(2)).upper
    text = answer(ledger_page(ledger, {**PLAN, "times": ["2"], "partition": [""]}))
    assert f"would rise from {up(ledger.spent().upper, 4)} to {up(after, 4)}, at delta 1e-06. The budget has 2." in text
    assert text.endswith("The release fits.")
    assert after == ln.compose(GAUSSIAN.repeat(5), planned.repeat(2)).epsilon(1e-6).upper
    assert "would be refused" in answer(ledger_page(ledger, {**PLAN, "times": ["2000"]}))
    other = ledger.spent_with(planned, partition="south")
    assert other == ledger.spent()  # a partition that is not the worst
    for change in ({"times": ["0"]}, {"times": ["1e9"]}, {"epsilon": ["-1"]}, {"mechanism": ["none"]}, {"x": ["1"]}):
        words = answer(ledger_page(ledger, {**PLAN, **change}))
        assert words.endswith(".")
        assert "would rise" not in words
    assert ledger.count() == 5


def test_under_replace_and_without_records(tmp_path):
    ledger = ln.Ledger.open(tmp_path / "r.ledger", epsilon=1, delta=0, neighbours="replace")
    text = ledger_page(ledger, PLAN)
    assert "would rise from 0 to 0.25" in answer(text)
    assert "0 releases have cost an epsilon of at most 0 in total" in text


def test_the_server_answers_its_own_page_only(ledger):
    with LedgerServer(ledger) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with urllib.request.urlopen(server.address) as page:
                assert b"What is left of a budget" in page.read()
            for place, headers, code in (
                ("nothing", {}, 404),
                ("", {"Host": "evil.example"}, 403),
                ("?" + "&".join(f"a{k}=1" for k in range(50)), {}, 400),
            ):
                with pytest.raises(urllib.error.HTTPError) as caught:
                    urllib.request.urlopen(urllib.request.Request(server.address + place, headers=headers))
                assert caught.value.code == code
                caught.value.close()
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(server.address, data=b"spend")
            assert caught.value.code == 501
            caught.value.close()
        finally:
            server.shutdown()
            thread.join()
    assert ledger.count() == 5


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: install chromium or google-chrome")
def test_the_page_fits_a_phone_and_a_desk(ledger, tmp_path):
    ledger.spend(GAUSSIAN, note="a very long note " * 12, partition="a partition with a long name")
    file = tmp_path / "ledger.html"
    file.write_text(ledger_page(ledger, PLAN), encoding="utf-8")
    with browser() as tab:
        assert_fits(tab, file.as_uri())
        assert tab.complaints == []
