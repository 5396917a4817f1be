import json
import subprocess
import sys

import pytest

HEAVY = (
    *("apsw", "confluent_kafka", "polars", "deltalake", "obstore", "azure", "psycopg"),
    *("fastapi", "pydantic"),
)
LIGHT_FOR_A_HELP_TEXT = (*HEAVY, "structlog")


@pytest.mark.parametrize(
    ("module", "heavy"), [("forebay", HEAVY), ("forebay.cli.main", LIGHT_FOR_A_HELP_TEXT)]
)
def test_importing_the_package_loads_no_client_library(module, heavy):
    program = f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in json.loads(answer.stdout)}
    assert loaded & set(heavy) == set()
    assert "forebay" in loaded
