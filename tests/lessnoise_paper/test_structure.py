"""The paper's package uses the library by its public names: from ``lessnoise`` and the front doors of its packages."""

import lessnoise
import lessnoise_paper
from tests.helpers.imports import Sources, cycles, source_of

BOTH = Sources(source_of(lessnoise), source_of(lessnoise_paper))


def of_the_paper():
    return [one for one in BOTH.imports if one.importer.startswith("lessnoise_paper")]


def test_no_module_reaches_itself_through_its_imports():
    edges = [(one.importer, one.imported) for one in of_the_paper() if not one.for_types]
    assert len(edges) > 100
    assert cycles(edges) == []


def test_the_library_is_used_by_its_public_names():
    past = [one for one in of_the_paper() if one.imported.startswith("lessnoise.") and one.imported.count(".") > 1]
    private = [one for one in of_the_paper() if one.imported.startswith("lessnoise._")]
    assert past == private == []
