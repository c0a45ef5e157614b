"""Private tables are added up in DuckDB."""

import pytest

from extras import needs


@pytest.fixture(autouse=True)
def tables():
    for module in ("duckdb", "pyarrow"):
        needs(module, "private tables need the extra tables")
