"""What the client raises becomes what a caller can act on."""

import pytest
from deltalake.exceptions import (
    CommitFailedError,
    DeltaError,
    DeltaProtocolError,
    SchemaMismatchError,
    TableNotFoundError,
)

from forebay.core.errors import (
    AccessDenied,
    Damaged,
    Fenced,
    Full,
    OutcomeUnknown,
    RowsRefused,
    Unavailable,
    Unusable,
)
from forebay.lakehouse.tables.delta.location import TableLocation
from forebay.lakehouse.tables.delta.troubles import told_when_reading, told_when_writing

HERE = TableLocation("abfss://tables@account.dfs.core.windows.net/orders")

FULL = "Generic LocalFileSystem error: Unable to copy: No space left on device (os error 28)"
DENIED = 'Error: Os { code: 13, kind: PermissionDenied, message: "Permission denied" }'
FORBIDDEN = "Generic MicrosoftAzure error: Server returned status: 403 AuthenticationFailed"
AWAY = "Generic MicrosoftAzure error\n  \x1b[31m↳\x1b[0m Connection refused"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DeltaError(FULL), Full),
        (DeltaError(FORBIDDEN), AccessDenied),
        (OSError(DENIED), AccessDenied),
        (OSError(AWAY), OutcomeUnknown),
        (DeltaError("External error: 1 rows failed validation check."), RowsRefused),
        (SchemaMismatchError("number of fields does not match"), Unusable),
        (DeltaProtocolError("unsupported feature"), Unusable),
        (Exception("who knows"), OutcomeUnknown),
    ],
)
def test_an_error_of_writing(error, expected):
    with pytest.raises(expected) as told, told_when_writing(HERE):
        raise error
    assert type(told.value) is expected
    assert str(HERE) in str(told.value)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TableNotFoundError("No files in log segment"), Unusable),
        (TableNotFoundError(DENIED), AccessDenied),
        (DeltaError("Kernel error: Json error: Truncated record"), Damaged),
        (DeltaError("Kernel error: Invalid Checkpoint: Had a _last_checkpoint hint"), Damaged),
        (DeltaProtocolError("unsupported feature"), Unusable),
        (OSError(AWAY), Unavailable),
    ],
)
def test_an_error_of_reading(error, expected):
    with pytest.raises(expected) as told, told_when_reading(HERE):
        raise error
    assert type(told.value) is expected


@pytest.mark.parametrize("error", [CommitFailedError("conflict"), Fenced("ours")])
def test_conflicts_and_our_own_errors_pass_as_they_are(error):
    for told in (told_when_reading, told_when_writing):
        with pytest.raises(type(error)) as raised, told(HERE):
            raise error
        assert raised.value is error


class PanicException(BaseException):
    pass


def test_a_panic_of_the_client_does_not_end_the_writer_unsaid():
    with pytest.raises(OutcomeUnknown, match="unwrap"), told_when_writing(HERE):
        raise PanicException("called unwrap on an Err value")


def test_an_interruption_is_nobody_s_error():
    with pytest.raises(KeyboardInterrupt), told_when_writing(HERE):
        raise KeyboardInterrupt


def test_a_signature_in_an_address_is_not_told_and_the_reason_is_one_line():
    address = "GET https://account.example/t/x?sv=2026&sig=SECRET failed"
    with pytest.raises(Unavailable) as told, told_when_reading(HERE):
        raise OSError(f"{AWAY}\n{address}\n   0: <unknown>\n")
    sentence = str(told.value)
    assert "SECRET" not in sentence
    assert "Connection refused" in sentence
    assert not {"\n", "\x1b", "<unknown>"} & set(sentence.split())
