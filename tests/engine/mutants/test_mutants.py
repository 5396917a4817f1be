"""A suite that catches nothing proves nothing."""

import pytest

from engine.mutants.faulty import FAULTS
from engine.mutants.run import catch


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name):
    assert catch(name), f"nothing notices: {name}"
