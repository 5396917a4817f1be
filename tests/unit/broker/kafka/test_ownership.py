import threading

import pytest

from forebay.broker.kafka.ownership import Ownership
from forebay.core.errors import Closed


def in_another_thread(call):
    answers = []

    def run():
        try:
            answers.append(call())
        except Closed as error:
            answers.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return answers[0]


def test_the_first_thread_owns_it_and_another_is_told():
    ownership = Ownership("consumer")
    ownership.claim()
    assert isinstance(in_another_thread(ownership.claim), Closed)
    ownership.claim()


def test_a_close_amid_a_call_or_from_elsewhere_only_asks():
    ownership = Ownership("consumer")
    with ownership.busy():
        assert not ownership.may_close_now()
    assert ownership.closing
    assert not in_another_thread(ownership.may_close_now)
    assert ownership.may_close_now()


def test_what_was_never_used_may_be_closed_by_anybody():
    assert in_another_thread(Ownership("producer").may_close_now)


def test_what_is_closed_says_so():
    ownership = Ownership("producer")
    ownership.closed = True
    with pytest.raises(Closed, match="This producer is closed"):
        ownership.claim()
