"""``lessnoise verify`` and ``python -m lessnoise_verify``: exit codes, words, files that no one should have written."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest

import lessnoise as ln
from lessnoise_verify.__main__ import main

TARGET = ("--sensitivity", "1", "--epsilon", "1", "--delta", "1e-6")


@pytest.fixture
def released(run, tmp_path):
    """A signed release of twelve numbers."""
    (tmp_path / "key.pem").write_text((signer := ln.Signer.new()).private_key)
    (tmp_path / "key.pub").write_text(signer.public_key)
    np.save("counts.npy", np.arange(12.0))
    run("release", "counts.npy", "noisy.npy", *TARGET, "--mechanism", "analytic-gaussian", "--sign", "key.pem")
    return tmp_path


def test_a_release_is_proved_with_its_value_and_its_signature(run, released):
    result = run("verify", "noisy.npy.certificate.json", "noisy.npy", "--public-key", "key.pub")
    assert result.stdout.startswith("proved\n")
    for words in (
        "holder of the key",
        "delta at epsilon = 1",
        "its SHA-256 is the stated one",
        "every entry is a multiple",
        "AES-256",
    ):
        assert words in result.stdout
    assert "not checked" not in result.stdout
    assert "not checked: the released value" in run("verify", "noisy.npy.certificate.json").stdout


def test_a_changed_value_a_changed_certificate_and_another_key_are_refuted(run, released):
    values = json.loads((released / "noisy.npy.certificate.json").read_text())
    other = np.load("noisy.npy")
    other[3] += 1.0
    np.save("other.npy", other)
    assert "SHA-256 differs" in run("verify", "noisy.npy.certificate.json", "other.npy", code=1).stdout
    values["mechanism"]["sensitivity"] = 1.5
    (released / "changed.json").write_text(json.dumps(values))
    assert "above the stated" in run("verify", "changed.json", code=1).stdout
    assert "signature" in run("verify", "changed.json", "--public-key", "key.pub", code=1).stdout
    (released / "another.pub").write_text(ln.Signer.new().public_key)
    assert "signature" in run("verify", "noisy.npy.certificate.json", "--public-key", "another.pub", code=1).stdout


def test_json_for_programs(run, released):
    told = json.loads(run("verify", "noisy.npy.certificate.json", "--json").stdout)
    assert told["word"] == "proved"
    assert told["code"] == 0
    assert len(told["proved"]) >= 3
    assert "No such file" in json.loads(run("verify", "none.json", "--json", code=2).stdout)["reason"]


@pytest.mark.filterwarnings("ignore::lessnoise.ClaimWarning")
def test_published_claims_are_refuted(run, tmp_path):
    wrong = {
        "r1smg": ln.r1smg(epsilon=1e-5, delta=1e-7, sensitivity=2**0.5, shape=7921, calibration="published"),
        "classic": ln.classic_gaussian(epsilon=10, delta=1e-5, sensitivity=1, shape=10),
        "product": ln.mechanism.product_noise(epsilon=1, sensitivity=1, shape=20, k=1000.0),
        "wishart": ln.mechanism.families.wishart(epsilon=1, features=3, records=10),
    }
    for name, mechanism in wrong.items():
        (tmp_path / f"{name}.json").write_text(mechanism.to_json())
        assert run("verify", f"{name}.json", code=1).stdout.startswith("refuted"), name


def test_a_seeded_release_is_refuted(run, tmp_path):
    release = ln.laplace(epsilon=1, sensitivity=1, shape=2).release([0.0, 0.0], np.random.default_rng(0))
    (tmp_path / "seeded.json").write_text(release.certificate.to_json())
    assert "seeded generator" in run("verify", "seeded.json", code=1).stdout


def test_a_folder_of_counts_is_proved_and_its_files_are_checked(run, tmp_path):
    made = ln.private_histogram({"x": [1, 2]}, ["x"], bins=[2], bounds=[(0, 4)], epsilon=1, delta=1e-6)
    made.save(tmp_path / "counts", formats=["csv"])
    assert "counts.csv" in run("verify", "counts").stdout
    (tmp_path / "counts" / "counts.csv").write_text("other")
    run("verify", "counts", code=1)
    (tmp_path / "counts" / "counts.csv").unlink()
    assert "not beside" in run("verify", "counts", code=1).stdout


HOSTILE = {
    "empty": b"",
    "binary": bytes(range(256)) * 100,
    "deep lists": b"[" * 10**6,
    "deep objects": b'{"a":' * 10**6,
    "huge": b'{"schema": 2, "kind": "release", "more": "' + b"x" * (100 * 2**20) + b'"}',
    "many numbers": b'{"schema": 2, "kind": "release", "more": [' + b"0.5," * (10 * 2**20) + b"1]}",
    "long number": b'{"schema": ' + b"9" * 10**6 + b"}",
    "not UTF-8": b'{"schema": "\xff\xfe"}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_end_soon_and_in_a_word(tmp_path, capfdbinary, name):
    (tmp_path / "file.json").write_bytes(HOSTILE[name])
    begun = time.perf_counter()
    assert main([str(tmp_path / "file.json")]) == 2
    assert time.perf_counter() - begun < 60.0
    out, err = capfdbinary.readouterr()
    assert out.startswith(b"unreadable: ")
    assert len(out) < 400
    assert not err


def test_what_takes_too_long_or_too_much_is_not_covered(tmp_path, capfdbinary, monkeypatch):
    path = tmp_path / "file.json"
    path.write_text(ln.laplace(epsilon=1, sensitivity=1, shape=2).to_json())
    assert main([str(path), "--seconds", "0"]) == 3
    assert b"more than 0 s" in capfdbinary.readouterr().out
    limited = "import lessnoise_verify.__main__ as m; m.MEMORY = 2**24; raise SystemExit(m.main(['--inside', 'x']))"
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, check=False)
    assert done.returncode != 0


def test_the_verifier_loads_neither_lessnoise_nor_numpy(tmp_path):
    path = tmp_path / "file.json"
    path.write_text(ln.laplace(epsilon=1, sensitivity=1, shape=2).to_json())
    script = (
        "import sys, lessnoise_verify as v\n"
        f"assert v.verify(open({str(path)!r}, 'rb').read()).word == 'proved'\n"
        "bad = [name for name in sys.modules if name.split('.')[0] in ('lessnoise', 'numpy', 'scipy', 'mpmath')]\n"
        "assert not bad, bad\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
