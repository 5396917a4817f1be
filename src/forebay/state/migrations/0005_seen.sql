CREATE TABLE seen (
    seen_key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (seen_key, fingerprint)
);

CREATE INDEX seen_by_time ON seen (at_ms);
