import stat


def _rights(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_nobody_else_may_read_what_the_broker_keeps(broker, topic, send, folder):
    send(broker, topic, [b"secret"])
    assert _rights(folder) == 0o700
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.name: oct(_rights(path)) for path in files if _rights(path) != 0o600} == {}
    assert {"broker.db", "broker.db-wal", "gate"} <= {path.name for path in files}


def test_a_folder_that_everybody_may_enter_does_not_open_its_file(folder, open_broker):
    folder.mkdir(mode=0o755)
    open_broker()
    assert _rights(folder / "broker.db") == 0o600
    assert _rights(folder / "broker.db-wal") == 0o600
    assert _rights(folder / "members") == 0o700
