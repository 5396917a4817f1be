"""What is in the file.

A record's row id packs its place: (partition id << 43) | offset. One B-tree, clustered per
partition, without a second index and without DDL per partition.
"""

APPLICATION_ID = 0x46424159  # "FBAY"
SCHEMA_VERSION = 1

OFFSET_BITS = 43
OFFSET_MASK = (1 << OFFSET_BITS) - 1
PARTITION_ID_MAX = (1 << 20) - 1

PAGE_BYTES = 8192

TABLES = """
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE topic (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    retention_ms INTEGER,
    retention_bytes INTEGER
) STRICT;

-- next: the offset of the record to come; low: the first readable one; swept: rows below are gone.
CREATE TABLE partition (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    topic INTEGER NOT NULL,
    number INTEGER NOT NULL,
    next INTEGER NOT NULL DEFAULT 0,
    low INTEGER NOT NULL DEFAULT 0,
    swept INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    largest INTEGER NOT NULL DEFAULT 0,
    UNIQUE (topic, number)
) STRICT;

CREATE TABLE log (
    id INTEGER PRIMARY KEY,
    timestamp_ms INTEGER NOT NULL,
    key BLOB,
    value BLOB,
    headers BLOB
) STRICT;

-- Partitions of deleted topics whose rows wait to be swept.
CREATE TABLE doomed (
    partition INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE consumer_group (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    generation INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE member (
    id TEXT PRIMARY KEY,
    consumer_group INTEGER NOT NULL,
    client_id TEXT NOT NULL,
    host TEXT NOT NULL,
    session_seconds REAL NOT NULL,
    topics TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- owner: who reads it now, since generation `claim`; target: who should.
CREATE TABLE ownership (
    consumer_group INTEGER NOT NULL,
    partition INTEGER NOT NULL,
    owner TEXT,
    claim INTEGER NOT NULL DEFAULT 0,
    target TEXT,
    PRIMARY KEY (consumer_group, partition)
) STRICT, WITHOUT ROWID;

CREATE TABLE committed (
    consumer_group INTEGER NOT NULL,
    partition INTEGER NOT NULL,
    next_offset INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    PRIMARY KEY (consumer_group, partition)
) STRICT, WITHOUT ROWID;
"""


def row_id(partition_id: int, offset: int) -> int:
    return partition_id << OFFSET_BITS | offset
