-- Offsets that retention deleted before their group had read them.
CREATE TABLE expired_ranges (
    consumer_group TEXT NOT NULL,
    topic TEXT NOT NULL,
    source_partition BIGINT NOT NULL,
    from_offset BIGINT NOT NULL,
    to_offset BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (consumer_group, topic, source_partition, from_offset, to_offset, at_ms)
);
