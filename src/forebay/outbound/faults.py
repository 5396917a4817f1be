"""What the client raised, as a failure of ours. Its own texts hold URLs and are not repeated."""

import ssl

import aiohttp

from forebay.outbound.errors import OutboundFailed, ending
from forebay.outbound.guard import AddressDenied
from forebay.outbound.hosts import denied

CLIENT_ERRORS = (aiohttp.ClientError, OSError, TimeoutError)

_BROKEN_OFF = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
_SENTENCES = {
    "timeout": "{host} did not answer in time",
    "dns": "The name {host} cannot be resolved",
    "tls": "{host} cannot prove who it is, or speaks no TLS that is safe ({reason})",
    "truncated": "{host} ended the connection before the end of the answer",
    "bad_answer": "{host} sent what is no sound HTTP answer",
    "unreachable": "{host} cannot be reached ({reason})",
}


def failure_of(error: Exception, host: str, failure: type[OutboundFailed]) -> OutboundFailed:
    """To be raised `from None`: the stack is stored, and the cause's text holds the URL."""
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(inner, AddressDenied):
        return denied(host)
    kind = _kind_of(error, inner)
    told = _SENTENCES[kind].format(host=host, reason=_reason(inner))
    return failure(kind, f"{told}. {ending(kind)}")


def _kind_of(error: Exception, inner: BaseException) -> str:
    match error:
        case TimeoutError():
            return "timeout"
        case aiohttp.ClientConnectorDNSError():
            return "dns"
        case aiohttp.ClientSSLError() if not isinstance(inner, _BROKEN_OFF):
            return "tls"
        case aiohttp.ClientPayloadError():
            return "truncated"
        case aiohttp.ClientResponseError():
            return "bad_answer"
        case _:
            return "unreachable"


def _reason(inner: BaseException) -> str:
    if isinstance(inner, ssl.SSLCertVerificationError):
        return inner.verify_message
    if isinstance(inner, ssl.SSLError):
        return inner.reason or "SSL error"
    if isinstance(inner, OSError) and inner.strerror:
        return inner.strerror
    return type(inner).__name__
