"""A PostgreSQL server of the tests' own, such as the trials start."""

import gc
import importlib.util
import tempfile
from pathlib import Path

import pytest

PLACE = Path(__file__).parents[3] / "benchmarks" / "postgres_server.py"


@pytest.fixture(scope="session")
def postgres_server():
    """The module that starts servers and cuts connections."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    spec = importlib.util.spec_from_file_location("postgres_server", PLACE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if module.programs() is None:
        pytest.skip("there is no PostgreSQL server")
    return module


@pytest.fixture(scope="module")
def server(postgres_server):
    with tempfile.TemporaryDirectory(prefix="lessnoise-ledger-") as folder:
        started = postgres_server.Server(Path(folder))
        try:
            yield started
        finally:
            started.stop()


@pytest.fixture
def cutter(server, postgres_server):
    with tempfile.TemporaryDirectory(prefix="lessnoise-cutter-") as folder:
        between = postgres_server.Cutter(server, Path(folder))
        yield between
        between.close()
        gc.collect()  # the clients close their connections before the folder goes
