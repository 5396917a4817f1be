from forebay.core.lanes import Lane


def test_lanes_with_one_key_are_different_lanes():
    first, second = Lane("a", b"k"), Lane("a", b"k")
    assert first != second
    assert len({first, second}) == 2
    assert (list(first.waiting), first.running) == ([], None)
