"""Signatures of certificates: who can make them, and that every change shows."""

import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import lessnoise as ln
from lessnoise_verify import signature, verify
from lessnoise_verify.document import Fields
from tests.helpers.mutants import at, leaves, put

SIGNER = ln.Signer.new()
PUBLIC = SIGNER.public_key.encode()


def signed():
    release = ln.laplace(epsilon=1, sensitivity=1, shape=2).release([1.0, 2.0])
    return json.loads(release.certificate.to_json(SIGNER))


def word(values, key=PUBLIC):
    return verify(json.dumps(values).encode(), public_key=key).word


def test_what_is_signed_is_proved_with_the_key_and_refuted_with_another():
    values = signed()
    assert word(values) == "proved"
    assert word(values, ln.Signer.new().public_key.encode()) == "refuted"
    assert word({name: value for name, value in values.items() if name != "signature"}) == "refuted"
    assert word(values, b"no key") == "unreadable"


def test_order_and_spaces_do_not_matter():
    values = signed()
    turned = json.dumps(dict(reversed(values.items())), indent=7).encode()
    assert verify(turned, public_key=PUBLIC).word == "proved"


def test_every_change_of_every_field_is_detected():
    values = signed()
    for path in leaves(values):
        if path[0] == "signature":
            continue
        other, before = json.loads(json.dumps(values)), at(values, path)
        put(other, path, "other" if isinstance(before, str) else 7 if before != 7 else 8)
        assert word(other) in ("refuted", "unreadable"), path
        with pytest.raises((signature.Refuted, signature.Unreadable)):
            signature.check_signature(Fields(other, "certificate"), PUBLIC)


def test_both_programs_sign_the_same_bytes():
    values = signed()
    without = {name: value for name, value in values.items() if name != "signature"}
    assert SIGNER.signed(without)["signature"] == values["signature"]  # Ed25519 is deterministic
    assert signature.canonical(values) == signature.canonical(without)


def test_a_key_is_read_from_a_file(tmp_path):
    path = tmp_path / "key.pem"
    path.write_text(SIGNER.private_key)
    assert ln.Signer.read(path).public_key == SIGNER.public_key


def test_keys_are_written_once_and_for_their_owner_alone(tmp_path):
    SIGNER.write(tmp_path / "key.pem")
    assert ln.Signer.read(tmp_path / "key.pem").public_key == SIGNER.public_key
    assert (tmp_path / "key.pem").stat().st_mode & 0o077 == 0
    assert (tmp_path / "key.pem.pub").read_text() == SIGNER.public_key
    with pytest.raises(ln.InvalidInput, match="not overwritten"):
        ln.Signer.new().write(tmp_path / "key.pem")


@pytest.mark.parametrize("content", ["", "no key", PUBLIC.decode(), "\x00" * 100])
def test_other_files_are_no_keys(tmp_path, content):
    path = tmp_path / "key.pem"
    path.write_text(content)
    with pytest.raises(ln.InvalidInput, match="private key"):
        ln.Signer.read(path)


def test_keys_of_other_kinds_are_refused(tmp_path):
    path, form = tmp_path / "key.pem", serialization.PrivateFormat.PKCS8
    other = rsa.generate_private_key(65537, 2048)
    path.write_bytes(other.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    with pytest.raises(ln.InvalidInput, match="Ed25519"):
        ln.Signer.read(path)
    locked = serialization.BestAvailableEncryption(b"secret")
    path.write_bytes(Ed25519PrivateKey.generate().private_bytes(serialization.Encoding.PEM, form, locked))
    with pytest.raises(ln.InvalidInput, match="password"):
        ln.Signer.read(path)
    with pytest.raises(ln.InvalidInput, match="cannot be read"):
        ln.Signer.read(tmp_path / "none.pem")


def test_nothing_shows_the_private_key():
    assert "PRIVATE" not in repr(SIGNER)
    assert SIGNER.private_key not in f"{SIGNER} {SIGNER!r} {vars(SIGNER)}"


def test_a_signed_release_and_a_signed_table_are_files_that_verify(tmp_path):
    release = ln.laplace(epsilon=1, sensitivity=1, shape=2).release([1.0, 2.0])
    release.write(tmp_path / "noisy.npy", signer=SIGNER)
    content = (tmp_path / "noisy.npy.certificate.json").read_bytes()
    with (tmp_path / "noisy.npy").open("rb") as value:
        assert verify(content, value, PUBLIC).word == "proved"
    assert ln.Release.read(tmp_path / "noisy.npy").certificate.private
    answer = ln.Table({"age": [30.0, 40.0]}).aggregate(ln.mean("age", bounds=(0, 120))).release(epsilon=1, delta=1e-6)
    answer.save(tmp_path / "table", formats=["csv"], signer=SIGNER)
    content = (tmp_path / "table" / "certificate.json").read_bytes()
    assert verify(content, None, PUBLIC, tmp_path / "table").word == "proved"
    (tmp_path / "table" / "answer.csv").write_text("other")
    assert verify(content, None, PUBLIC, tmp_path / "table").word == "refuted"
