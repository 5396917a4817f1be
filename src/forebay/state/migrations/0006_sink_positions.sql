-- Also run by sinks over databases that hold nothing else of ours.
CREATE TABLE IF NOT EXISTS sink_positions (
    sink TEXT NOT NULL,
    topic TEXT NOT NULL,
    source_partition BIGINT NOT NULL,
    incarnation TEXT NOT NULL,
    next_offset BIGINT NOT NULL,
    PRIMARY KEY (sink, topic, source_partition, incarnation)
);
