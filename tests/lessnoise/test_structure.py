"""The shape of the library: imports go one way, and packages know each other by their front doors alone."""

import lessnoise
from tests.helpers.imports import Import, Sources, cycles, package_of, source_of

LIBRARY = Sources(source_of(lessnoise))
HEAVY = {  # modules that scikit-learn, PyTorch or the compiler come with, and who loads them when they are needed
    ("lessnoise", "lessnoise.learn"),
    ("lessnoise", "lessnoise.pca"),
    ("lessnoise.pca", "lessnoise.pca.estimators"),
    ("lessnoise.pca", "lessnoise.pca.regression"),
    ("lessnoise.noise.compiled", "lessnoise.noise.warm"),
    ("lessnoise.noise.device.engine", "lessnoise.noise.device.kernels"),
}


def test_no_module_reaches_itself_through_its_imports_not_even_by_those_in_functions():
    edges = [(one.importer, one.imported) for one in LIBRARY.imports if not one.for_types]
    assert len(edges) > 500
    assert cycles(edges) == []


def test_packages_import_each_other_by_their_front_doors():
    past = [
        one
        for one in LIBRARY.imports
        if package_of(one.importer) != package_of(one.imported) and one.imported.count(".") > 1
    ]
    assert past == []


def test_imports_inside_functions_are_of_heavy_libraries_alone():
    inside = {(one.importer, one.imported) for one in LIBRARY.imports if one.in_function}
    learning = {pair for pair in inside if all(name.startswith("lessnoise.learn") for name in pair)}  # needs PyTorch
    assert inside - learning <= HEAVY


def test_the_checks_have_teeth(tmp_path):
    folder = tmp_path / "town"
    for name, text in {
        "__init__.py": "",
        "a/__init__.py": "from town.a.one import f",
        "a/one.py": "from town.b.two import g",
        "b/__init__.py": "",
        "b/two.py": "def g():\n    from town.a import one\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    found = list(Sources(folder).imports)
    assert Import("town.b.two", "town.a.one", in_function=True, for_types=False) in found
    assert cycles((one.importer, one.imported) for one in found) == [{"town.a.one", "town.b.two"}]
