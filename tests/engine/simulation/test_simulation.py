"""The engine against everything at once: what breaks an invariant names itself and its seed."""

from collections import Counter

import pytest

from engine.simulation.faults import NAMES
from engine.simulation.scenario import run

SEEDS = 2_000
SEEDS_OF_ONE = 100


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_OF_ONE))
def test_no_interleaving_breaks_an_invariant(first):
    hits: Counter[str] = Counter()
    for seed in range(first, first + SEEDS_OF_ONE):
        told = run(seed)
        hits += told.faults
        if told.violation:
            pytest.fail(f"seed {seed}: {told.violation}\n{told.trail}", pytrace=False)
    rare = {"handler_stopped", "letter_spilled"}
    assert set(NAMES) - rare - hits.keys() == set(), "faults that were never reached"


def test_a_seed_tells_the_same_story_twice():
    first, second = run(7), run(7)
    assert (first.steps, first.trail) == (second.steps, second.trail)
