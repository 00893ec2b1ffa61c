"""What a cache folder holds is never believed: laws and bounds are proved again, whatever was written there."""

import json
import math
import os
import subprocess
import sys
import threading
from dataclasses import dataclass

import pytest

import lessnoise as ln
from lessnoise import cache as kept_answers
from lessnoise.mechanism.least import builder, search
from lessnoise.mechanism.least.objective import Goal

TARGET = {"epsilon": 4.0, "delta": 1e-6, "sensitivity": 1.0, "shape": 3}


def forget():
    search.find.cache_clear()
    builder.proved_bound.cache_clear()


@pytest.fixture
def cache(tmp_path, monkeypatch, truth):
    """An empty cache; searching anew gives at once what it gave before."""
    monkeypatch.setenv(kept_answers.VARIABLE, str(tmp_path / "cache"))
    for module, name in ((search, "search"), (builder, "_compute")):
        monkeypatch.setattr(module, name, _recorded(getattr(module, name), truth.seen))
    forget()
    yield tmp_path / "cache"
    forget()


@dataclass
class Truth:
    """What an untouched cache leads to, and the files in it."""

    seen: dict
    mechanism: ln.Mechanism
    bound: float
    files: dict


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder, seen = tmp_path_factory.mktemp("truth"), {}
        patch.setenv(kept_answers.VARIABLE, str(folder))
        for module, name in ((search, "search"), (builder, "_compute")):
            patch.setattr(module, name, _recorded(getattr(module, name), seen))
        forget()
        mechanism, bound = ln.least_noise(**TARGET), ln.loss_lower_bound(**TARGET)
        forget()
    files = {}
    for file in folder.iterdir():
        record = json.loads(file.read_bytes())
        kind = record["question"]["of"]  # the law of the bound's question is the one for the whole delta
        if kind == "bound" or record["question"]["delta"] < TARGET["delta"]:
            files[kind] = file.name, record
    return Truth(seen, mechanism, bound, files)


def _recorded(function, seen):
    def called(*arguments):
        if arguments not in seen:
            seen[arguments] = function(*arguments)
        return seen[arguments]

    return called


def plant(cache, truth, kind, content):
    """Write a file where the library looks for it."""
    name, record = truth.files[kind]
    cache.mkdir(exist_ok=True)
    text = content if isinstance(content, bytes) else json.dumps({**record, "answer": content}).encode()
    (cache / name).write_bytes(text)
    forget()
    return cache / name


@pytest.mark.slow
def test_bounds_are_remembered_as_proofs(cache, truth, monkeypatch):
    assert ln.loss_lower_bound(**TARGET) == truth.bound
    forget()
    monkeypatch.setattr(builder, "_compute", None)  # must not be needed again
    assert ln.loss_lower_bound(**TARGET) == truth.bound


@pytest.mark.slow
@pytest.mark.parametrize("number", [1e9, 11.8, 1e-3, -1.0, math.nan, math.inf, "1e9", None, True])
def test_a_number_in_the_place_of_a_bound_is_not_believed(cache, truth, number):
    plant(cache, truth, "bound", {"bound": number})
    assert ln.loss_lower_bound(**TARGET) == truth.bound
    assert ln.least_noise(**TARGET).optimality == truth.mechanism.optimality


def proofs():
    """Ways to make a proof claim more than is true, or to break it."""

    def change(**changes):
        return lambda proof: {**proof, **changes}

    def values(function):
        return lambda proof: {
            **proof,
            "tests": [
                {**test, "values": [[function(value) for value in row] for row in test["values"]]}
                for test in proof["tests"]
            ],
        }

    return {
        "scale times 1e9": lambda proof: {**proof, "scale": 1e9 * proof["scale"]},
        "scale 0": change(scale=0.0),
        "scale nan": change(scale=math.nan),
        "values halved": values(lambda value: 0.5 * value),
        "values doubled": values(lambda value: 2.0 * value),
        "values negative": values(lambda value: -value),
        "values huge": values(lambda value: 1e300 * value),
        "values nan": values(lambda value: math.nan),
        "longer shifts": lambda proof: {**proof, "tests": [{**test, "shift": 2.0} for test in proof["tests"]]},
        "levels above 1": change(levels=[2.0]),
        "nodes fall": lambda proof: {**proof, "nodes": proof["nodes"][::-1]},
        "nodes missing": lambda proof: {name: value for name, value in proof.items() if name != "nodes"},
        "nodes are words": change(nodes="none"),
        "too many nodes": change(nodes=list(range(10**5))),
        "nothing": lambda proof: {},
        "no object": lambda proof: 7,
        "deep": lambda proof: {"nodes": json.loads(500 * "[" + 500 * "]")},
    }


@pytest.mark.parametrize("change", proofs().values(), ids=proofs().keys())
def test_a_changed_proof_proves_what_is_true_or_nothing(cache, truth, change):
    proof = truth.files["bound"][1]["answer"]["proof"]
    plant(cache, truth, "bound", {"proof": change(proof)})
    found = ln.loss_lower_bound(**TARGET)
    assert (
        0.0 < found <= truth.bound * (1 + 1e-9)
    )  # the best that our tests prove; other tests prove less, or were refused
    assert found <= truth.mechanism.expected_loss


@pytest.mark.slow
def test_a_proof_for_another_target_is_gone_through_for_this_one(cache, truth):
    """The tests may come from anywhere; the promise that they are held against is the one asked for."""
    easier = {**TARGET, "epsilon": 3.0}
    ln.loss_lower_bound(**easier)
    harder_proof = json.loads(next(f for f in cache.iterdir() if b'"proof"' in f.read_bytes()).read_bytes())["answer"]
    plant(cache, truth, "bound", harder_proof)
    assert ln.loss_lower_bound(**TARGET) <= truth.mechanism.expected_loss


GOAL = Goal.of("squared")
LAWS = {
    "too narrow": {"edges": [0.0, 1.0], "probabilities": [1.0]},
    "far too wide": {"edges": [0.0, 1e9], "probabilities": [1.0]},
    "negative": {"probabilities": [-1.0]},
    "empty": {"edges": [], "probabilities": []},
    "endless": {"edges": list(range(20_001)), "probabilities": 20_000 * [5e-5]},
}


@pytest.mark.parametrize("changes", LAWS.values(), ids=LAWS.keys())
def test_a_changed_law_is_not_used(cache, truth, changes):
    answer = truth.files["law"][1]["answer"]
    plant(cache, truth, "law", {**answer, "law": {**answer["law"], **changes}})
    assert ln.least_noise(**TARGET) == truth.mechanism


@pytest.mark.parametrize(
    "law",
    [
        {"kind": "radial", "k": 3.0, "p": 2.0, "scale": 1e-3},
        {"kind": "radial", "k": 1e-300, "p": 1e-300, "scale": 1.0},
        {"kind": "radial", "k": 3.0, "p": 1e6, "scale": 5.0},
        {"kind": "radial", "k": "3", "p": 2.0, "scale": 1.0},
        {"kind": "laplace", "scale": 1e9},
        {"kind": "no such law"},
        {},
        7,
        None,
    ],
)
def test_another_law_is_not_used(cache, truth, law):
    plant(cache, truth, "law", {"law": law, "note": ""})
    assert ln.least_noise(**TARGET) == truth.mechanism


def test_a_kept_law_is_confirmed_by_the_verifier_whatever_the_curve_here_says(cache, truth, monkeypatch):
    answer = truth.files["law"][1]["answer"]
    edges = [0.9 * edge for edge in answer["law"]["edges"]]
    plant(cache, truth, "law", {**answer, "law": {**answer["law"], "edges": edges}})
    monkeypatch.setattr(search, "delta_of", lambda *_: ln.Bracket(0.0, 0.0))  # a curve that errs
    found = search.find(TARGET["shape"], TARGET["epsilon"], truth.files["law"][1]["question"]["delta"], 1.0, GOAL)
    assert found.law.edges[-1] > edges[-1]


def test_no_words_come_from_the_cache(cache, truth):
    answer = truth.files["law"][1]["answer"]
    for note in ("proved optimal", "the shell mechanism was left out (x); proved optimal", 7, None, ["x"]):
        plant(cache, truth, "law", {**answer, "note": note})
        assert ln.least_noise(**TARGET) == truth.mechanism


@pytest.mark.parametrize("kind", ["law", "bound"])
@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff", b"null", 10**5 * b"[", b"9" * 5000, b'{"question": 1, "answer": {}}', b" " * 2**23],
)
def test_damage_costs_time_only(cache, truth, kind, content):
    plant(cache, truth, kind, content)
    assert ln.least_noise(**TARGET) == truth.mechanism
    assert ln.loss_lower_bound(**TARGET) == truth.bound


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
@pytest.mark.parametrize("thing", ["folder", "pipe", "link to a device", "link to nowhere", "link to another answer"])
def test_what_is_no_file_is_neither_read_nor_followed(cache, truth, thing, tmp_path):
    for kind, (name, record) in truth.files.items():
        cache.mkdir(exist_ok=True)
        path = cache / name
        if thing == "folder":
            path.mkdir()
        elif thing == "pipe":
            os.mkfifo(path)
        elif thing == "link to a device":
            path.symlink_to("/dev/zero")
        elif thing == "link to nowhere":
            path.symlink_to(tmp_path / "nowhere")
        else:
            other = tmp_path / f"{kind}.json"
            other.write_text(json.dumps(record))
            path.symlink_to(other)
    assert ln.least_noise(**TARGET) == truth.mechanism
    assert ln.loss_lower_bound(**TARGET) == truth.bound
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.usefixtures("cache")
def test_a_folder_that_cannot_be_used_is_no_obstacle(truth, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "below", tmp_path / ("x" * 300), "/proc/none"):
        monkeypatch.setenv(kept_answers.VARIABLE, str(place))
        forget()
        assert ln.least_noise(**TARGET) == truth.mechanism


@pytest.mark.slow
def test_threads_and_processes_that_write_at_once_leave_whole_files(cache):
    code = (
        "import sys; from lessnoise import cache as store\n"
        "for i in range(200): store.save({'q': 1}, {'a': sys.argv[1] * 2000})"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(i)]) for i in range(2)]
    threads = [
        threading.Thread(target=lambda i=i: [kept_answers.save({"q": 1}, {"a": str(i) * 2000}) for _ in range(50)])
        for i in (2, 3)
    ]
    for thread in threads:
        thread.start()
    seen = set()
    while any(writer.poll() is None for writer in writers):
        answer = kept_answers.load({"q": 1})
        seen.add(None if answer is None else answer["a"])
    for thread in threads:
        thread.join()
    assert [writer.returncode for writer in writers] == [0, 0]
    assert seen <= {None, *(digit * 2000 for digit in "0123")}
    assert [file.suffix for file in cache.iterdir()] == [".json"]


# A description says of its noise only what the noise bears out.


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"choice": "proved optimal"}, "choice='proved optimal' is not what this noise is"),
        ({"choice": "Gaussian"}, "choice='Gaussian' is not"),
        ({"choice": 10**5 * "x"}, "choice='xxx"),
        ({"choice": None}, "choice=None"),
        ({"objective": "everything"}, "objective='everything'"),
        ({"objective": None}, "objective=None"),
        ({"note": "no mechanism can be better"}, "note says something"),
        ({"note": ["x"]}, "note says something"),
    ],
)
def test_a_design_that_lies_is_refused(truth, changes, words):
    values = truth.mechanism.to_dict()
    with pytest.raises(ln.InvalidInput) as caught:
        ln.Mechanism.from_dict({**values, "design": {**values["design"], **changes}})
    assert words in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_design_that_is_not_that_of_the_noise_is_refused():
    values = ln.laplace(epsilon=1, sensitivity=1, shape=1).to_dict()
    with pytest.raises(ln.InvalidInput, match="is not what this noise is"):
        ln.Mechanism.from_dict({**values, "design": {"objective": "squared", "choice": "Gaussian", "note": ""}})
    with pytest.raises(ln.InvalidInput, match="design"):
        ln.Mechanism.from_dict({**values, "design": 7})


def test_notes_of_every_kind_survive_a_round_trip(cache):
    found = ln.least_noise(epsilon=1e-300, delta=1e-6, sensitivity=1, shape=2)
    assert "the shell mechanism was left out" in found.design.note
    assert ln.Mechanism.from_json(found.to_json()) == found
    forget()
    assert ln.least_noise(epsilon=1e-300, delta=1e-6, sensitivity=1, shape=2) == found
