"""The servers that some engines need: a Spark session and a PostgreSQL server, of the tests' own."""

import getpass
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

import pytest


@pytest.fixture(scope="module")
def spark():
    pyspark = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no Java runtime for Spark")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = pyspark.SparkSession.builder.master("local[2]").appName("lessnoise tests")
    for option, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",
    }.items():
        builder = builder.config(option, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def postgres():
    """A server of its own, reached through a socket in its temporary folder: no port that another may take."""
    pytest.importorskip("adbc_driver_postgresql", reason="adbc-driver-postgresql is not installed")
    places = [Path(found).parent for found in [shutil.which("initdb")] if found]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if not places:
        pytest.skip("there is no PostgreSQL server")
    user, prefix = getpass.getuser(), []
    with tempfile.TemporaryDirectory(prefix="lessnoise-postgres-") as folder:
        if os.geteuid() == 0:  # the server refuses to run as root
            user, prefix = "postgres", ["runuser", "-u", "postgres", "--"]
            shutil.chown(folder, "postgres")
        data = Path(folder) / "data"

        def call(program, *arguments):
            command = [*prefix, places[0] / program, "-D", data, *arguments]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)

        call("initdb", "-A", "trust", "-U", user, "--no-sync")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        call("pg_ctl", "-w", "-t", "300", "-o", options, "-l", data / "log", "start")
        try:
            yield f"postgresql:///postgres?{urlencode({'host': folder, 'port': 5432, 'user': user})}"
        finally:
            call("pg_ctl", "-w", "-m", "fast", "-t", "300", "stop")
