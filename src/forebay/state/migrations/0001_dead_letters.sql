-- One row for each record that was ever dead-lettered in a stage: what the newest letter says, and
-- where the entry stands by all that its topic told of it.
CREATE TABLE dead_letters (
    id TEXT NOT NULL PRIMARY KEY,
    consumer_group TEXT NOT NULL,
    pipeline TEXT NOT NULL,
    stage TEXT NOT NULL,
    origin_topic TEXT NOT NULL,
    origin_partition BIGINT NOT NULL,
    origin_offset BIGINT NOT NULL,
    origin_timestamp_ms BIGINT NOT NULL,
    dlq_topic TEXT NOT NULL,
    dlq_partition BIGINT NOT NULL,
    dlq_offset BIGINT NOT NULL,
    trace_id TEXT,
    category TEXT NOT NULL,
    reason TEXT NOT NULL,
    error TEXT NOT NULL,
    stack TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    accepted_ms BIGINT NOT NULL,
    failed_ms BIGINT NOT NULL,
    record_key BLOB,
    record_value BLOB,
    record_headers BLOB,
    search_text TEXT NOT NULL,
    letter_number BIGINT NOT NULL,
    letter_digest TEXT NOT NULL,
    first_failed_ms BIGINT NOT NULL,
    history TEXT NOT NULL,
    state TEXT NOT NULL,
    replay_number BIGINT NOT NULL,
    replay_id TEXT NOT NULL,
    state_ms BIGINT NOT NULL,
    state_by TEXT NOT NULL,
    state_reason TEXT NOT NULL,
    times_dead_lettered BIGINT NOT NULL,
    note TEXT NOT NULL
);

CREATE INDEX dead_letters_by_time ON dead_letters (failed_ms, id);
CREATE INDEX dead_letters_by_cause ON dead_letters (fingerprint, state);
CREATE INDEX dead_letters_by_trace ON dead_letters (trace_id);

-- Everything that a dead-letter topic told, also of letters that are not here (yet). A digest of
-- the telling is its name, so that one told twice counts once.
CREATE TABLE dead_letter_markers (
    letter_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    kind TEXT NOT NULL,
    replay_number BIGINT NOT NULL,
    replay_id TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    first_failed_ms BIGINT NOT NULL,
    history TEXT NOT NULL,
    PRIMARY KEY (letter_id, digest)
);
