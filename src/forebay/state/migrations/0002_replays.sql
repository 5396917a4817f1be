CREATE TABLE replay_plans (
    id TEXT NOT NULL PRIMARY KEY,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    entries BIGINT NOT NULL,
    finished_ms BIGINT
);

-- status: planned, published (the record is acknowledged, its marker is not), sent, passed_over,
-- refused. An edited entry keeps the value it had.
CREATE TABLE replay_entries (
    plan_id TEXT NOT NULL,
    letter_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    seen_number BIGINT NOT NULL,
    status TEXT NOT NULL,
    detail TEXT NOT NULL,
    is_edited BIGINT NOT NULL,
    edited_value BLOB,
    original_value BLOB,
    PRIMARY KEY (plan_id, letter_id)
);

-- Whoever is first may replay a letter under a number; nobody else ever may.
CREATE TABLE replay_claims (
    letter_id TEXT NOT NULL,
    replay_number BIGINT NOT NULL,
    plan_id TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (letter_id, replay_number)
);
