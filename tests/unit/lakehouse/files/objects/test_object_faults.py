import pytest
from obstore.exceptions import (
    GenericError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from forebay.core.errors import (
    AccessDenied,
    InvalidName,
    InvalidRequest,
    Unavailable,
    Unusable,
)
from forebay.lakehouse.files.objects.faults import told_plainly, translate

PLACE = "abfss://attachments@account.dfs.core.windows.net/xact"
SIGNED = "sv=2026&sig=c2VjcmV0"


def answer(status: int, code: str) -> str:
    """As the client tells of an answer: the address, the body, and its own insides."""
    return (
        f"Generic MicrosoftAzure error: Error performing PUT https://account.example/att/John.pdf"
        f"?{SIGNED} in 2.89ms - Server returned non-2xx status code: {status} Oh: <?xml?>\n<Error>"
        f"\n  <Code>{code}</Code>\n  <Message>of {SIGNED}</Message>\n</Error>\n\nDebug source:\n"
        f"Generic {{ uri: https://account.example/att/John.pdf?{SIGNED} }}"
    )


SILENT = (
    f"Generic MicrosoftAzure error: Error performing PUT https://account.example/John.pdf?{SIGNED} "
    f"in 101ms, after 1 retries, max_retries: 1 - HTTP error: error sending request\n\n"
    f"Debug source:\nuri: https://account.example/John.pdf?{SIGNED}"
)


@pytest.mark.parametrize(
    ("error", "meaning", "reason"),
    [
        (
            PermissionDeniedError(answer(403, "AuthorizationFailure")),
            AccessDenied,
            "HTTP 403, Auth",
        ),
        (UnauthenticatedError(answer(401, "NoAuth")), AccessDenied, "HTTP 401, NoAuth"),
        (GenericError(answer(403, "AuthorizationFailure")), AccessDenied, "HTTP 403"),
        (FileNotFoundError(answer(404, "ContainerNotFound")), Unusable, "HTTP 404, Container"),
        (GenericError(answer(404, "ContainerNotFound")), Unusable, "HTTP 404"),
        (GenericError(answer(400, "InvalidHeaderValue")), InvalidRequest, "InvalidHeaderValue"),
        (GenericError(answer(413, "RequestBodyTooLarge")), InvalidRequest, "HTTP 413"),
        (GenericError(answer(429, "ServerBusy")), Unavailable, "HTTP 429, ServerBusy"),
        (GenericError(answer(408, "Timeout")), Unavailable, "HTTP 408"),
        (GenericError(answer(500, "InternalError")), Unavailable, "HTTP 500, InternalError"),
        (GenericError(answer(503, "ServerBusy")), Unavailable, "HTTP 503"),
        (GenericError(SILENT), Unavailable, "error sending request"),
        (GenericError("something else"), Unavailable, "something else"),
        (InvalidPathError("John.pdf"), InvalidName, "does not take a name"),
        (NotSupportedError("copying"), Unusable, "does not offer"),
    ],
)
def test_an_error_is_told_by_what_to_do_about_it_and_without_secrets(error, meaning, reason):
    told = translate(error, PLACE)
    assert type(told) is meaning
    assert reason in str(told)
    assert PLACE in str(told)
    assert "sig=" not in str(told)
    assert "John" not in str(told)


def test_what_is_no_error_of_the_client_passes_as_it_is():
    with pytest.raises(ZeroDivisionError), told_plainly(PLACE):
        raise ZeroDivisionError
