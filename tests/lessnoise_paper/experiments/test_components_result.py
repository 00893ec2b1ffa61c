"""Results of case study II that were damaged or forged: each is refused in one sentence, or is one that works."""

import json

import numpy as np
import pytest

import lessnoise as ln
import lessnoise_paper
from lessnoise_paper.experiments.components_result import PcaStudy, Point, Spectrum
from tests.helpers.damage import classes_read_back, try_damaged


def examples():
    point = Point("small", "l2", "l2", 1.0, 1.0, ln.Bracket(0.1, 0.2), True, (1.0,), (0.5,))
    lines = np.eye(4)[:2]
    study = PcaStudy(
        title="faces",
        shape=(10, 4),
        delta=1e-6,
        components=2,
        clip_norm=1.0,
        seed=0,
        baseline=0.9,
        points=(point,),
        spectrum=np.ones(4),
        noisy={"small": Spectrum(np.ones(4), lines, 0.1)},
        directions=lines,
        image=(2, 2),
        sweeps=3,
    )
    return {PcaStudy: study}


@pytest.mark.parametrize(("kind", "example"), examples().items(), ids=lambda given: getattr(given, "__name__", ""))
def test_a_damaged_description_is_refused_or_works(kind, example):
    values = json.loads(json.dumps(example.to_dict()))
    try_damaged(kind.from_dict, kind.__name__, values, use=lambda found: json.dumps(found.to_dict()))


def test_everything_that_can_be_read_back_is_tried():
    assert classes_read_back(lessnoise_paper) == {kind.__name__ for kind in examples()}
