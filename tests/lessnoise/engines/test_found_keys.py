"""Private keys on a server: the same keys and the same rows of users as in memory."""

import pytest

from lessnoise import InvalidInput
from lessnoise.engines import Postgres, distinct_keys
from tests.helpers.frames import fill
from tests.lessnoise.table.test_keys import UNITS, assert_same_on, mixed_frame

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.mark.slow
def test_postgres_finds_and_counts_the_same_keys(postgres):
    frame = mixed_frame()
    fill(postgres, "visits", pa.Table.from_pandas(frame, preserve_index=False))
    assert_same_on(Postgres(postgres, table="visits"), frame, UNITS[1:2])
    with pytest.raises(InvalidInput, match="column='age' has type double precision") as error:
        distinct_keys(["age"], Postgres(postgres, table="visits"))
    assert "5" not in str(error.value)
