"""What a run says that it came to."""

import fcntl


def refuse_bad(value):
    if value == b"bad":
        raise ValueError("bad")


def test_failures_that_could_not_be_written_at_the_end_are_told_as_they_are(mod):
    mod.produce([b"good", b"bad"])
    with mod.letters_file.open("ab") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        run = mod.start(refuse_bad, shutdown_timeout_seconds=5)
        run.wait_for("mod.dlq_write_failed")
        ended = run.stop()
    assert (ended.metrics["processed"], ended.metrics["failed"]) == (1, 1)
    assert (ended.exit_code, ended.warnings) == (40, [])
    (told,) = ended.errors
    assert told.startswith("1 failed messages could not be written to")
    assert "come again" in told
    assert "is locked by another process" in told
    assert "dlq_path" not in ended.artifacts
