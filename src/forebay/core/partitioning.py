"""Key to partition as Kafka's Java client does it (murmur2), so that both brokers agree."""

from functools import lru_cache

_SEED = 0x9747B28C
_MIX = 0x5BD1E995
_WORD = 0xFFFFFFFF


@lru_cache(maxsize=65_536)
def partition_of(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    length = len(data)
    digest = _SEED ^ length
    whole = length - length % 4
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _MIX & _WORD
        word = (word ^ word >> 24) * _MIX & _WORD
        digest = digest * _MIX & _WORD ^ word
    if tail := data[whole:]:
        digest = (digest ^ int.from_bytes(tail, "little")) * _MIX & _WORD
    digest = (digest ^ digest >> 13) * _MIX & _WORD
    return digest ^ digest >> 15
