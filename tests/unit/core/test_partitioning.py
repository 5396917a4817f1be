import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.core.partitioning import murmur2, partition_of

# From the tests of Kafka's Java client, as signed 32-bit integers.
JAVA_SAYS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "signed"), JAVA_SAYS.items())
def test_murmur2_gives_what_the_java_client_gives(key, signed):
    assert murmur2(key) == signed % 2**32


@given(st.binary(max_size=64), st.integers(1, 10_000))
def test_a_key_has_one_partition_and_it_exists(key, partitions):
    chosen = partition_of(key, partitions)
    assert 0 <= chosen < partitions
    assert partition_of(bytes(key), partitions) == chosen


@given(st.binary(max_size=64))
def test_a_hash_fits_32_bits(data):
    assert 0 <= murmur2(data) < 2**32


def test_keys_spread_evenly_enough():
    counts = [0] * 12
    for number in range(12_000):
        counts[partition_of(b"key-%d" % number, 12)] += 1
    assert min(counts) > 850
    assert max(counts) < 1150
