import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.lakehouse.files.local.torn import SECTOR_BYTES, piece_is_torn

ORIGINAL = os.urandom(4 * SECTOR_BYTES)


@pytest.mark.parametrize(
    "stored",
    [
        b"",
        ORIGINAL,
        ORIGINAL[:700],
        bytes(4 * SECTOR_BYTES),
        bytes(100),
        ORIGINAL[:SECTOR_BYTES] + bytes(SECTOR_BYTES) + ORIGINAL[2 * SECTOR_BYTES :],
    ],
)
def test_what_lacks_bytes_and_has_no_others_is_torn(stored):
    assert piece_is_torn(stored, ORIGINAL)


@pytest.mark.parametrize(
    "stored",
    [
        b"\x00\x01",
        ORIGINAL[:700] + b"?",
        ORIGINAL[:100] + bytes(100) + ORIGINAL[200:],
        ORIGINAL[1:],
    ],
    ids=["one byte of its own", "one at its end", "zeros inside a sector", "moved by a byte"],
)
def test_what_has_a_byte_of_its_own_is_not(stored):
    assert not piece_is_torn(stored, ORIGINAL)


@given(
    original=st.binary(min_size=1, max_size=2_000),
    stored=st.binary(min_size=1, max_size=2_000),
)
def test_replacing_what_counts_as_torn_loses_no_byte_but_zeros(original, stored):
    stored = stored[: len(original)]
    if piece_is_torn(stored, original):
        pairs = zip(stored, original, strict=False)
        assert all(kept in {0, new} for kept, new in pairs)
