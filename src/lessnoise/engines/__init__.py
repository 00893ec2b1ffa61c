"""Where queries run: NumPy arrays in memory, DuckDB over files and tables, Spark, Dask, PostgreSQL as a source.

Every engine does the same: drop the rows that do not count, choose a user's rows if users are protected, and add up
``query.partial``. The sums are integers, so the answer is the same everywhere.
"""

from lessnoise.engines.data_files import file_columns, found_files
from lessnoise.engines.distinct import check_read_again, distinct_keys
from lessnoise.engines.engine import ENGINES, answer, engine_errors, engine_name, require
from lessnoise.engines.postgres import Postgres

__all__ = [
    "ENGINES",
    "Postgres",
    "answer",
    "check_read_again",
    "distinct_keys",
    "engine_errors",
    "engine_name",
    "file_columns",
    "found_files",
    "require",
]
