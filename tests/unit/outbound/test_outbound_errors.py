import pickle

import pytest

from forebay.core.failures import Failure, category_of, retry_after_of
from forebay.outbound.errors import Answer, DownloadFailed, RequestFailed, UrlRefused, link


@pytest.mark.parametrize("error", [DownloadFailed, UrlRefused, RequestFailed])
def test_a_failure_travels_between_processes_whole(error):
    failed = pickle.loads(pickle.dumps(error("busy", "No.", Answer(503, 7.0))))  # noqa: S301  made here
    assert type(failed) is error
    assert (failed.kind, failed.http_status, failed.retry_after_seconds) == ("busy", 503, 7.0)
    assert (str(failed), category_of(failed), retry_after_of(failed)) == ("No.", "transient", 7.0)


def test_failures_of_many_links_are_one_group():
    told = [Failure("permanent", f"The {link(url)} is bad.").fingerprint("s") for url in "ab"]
    assert told[0] == told[1]
    assert link("a") != link("b")
