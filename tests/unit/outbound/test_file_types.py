import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.outbound.errors import DownloadFailed
from forebay.outbound.file_types import check_content_type, check_head, extension_of, kind_of
from forebay.outbound.rules import HostRules

ALL = HostRules((".example",))
FEW = HostRules((".example",), allowed_types=("PDF", ".xml", "jpg"))


@pytest.mark.parametrize(
    ("name", "extension"),
    [
        ("report.PDF", "pdf"),
        ("https" + "://files.example/a.b/report.pdf?x=y.exe#z.exe", "pdf"),
        ("https" + "://files.example/a.pdf/download", ""),
        ("https" + "://files.example/download?filename=a%20b.Jpg", "jpg"),
        ("https" + "://files.example/serve.php?name=a.mov", "mov"),
        ("https" + "://files.example/serve.php", "php"),
        ("a%2Epdf", "pdf"),
        ("no extension", ""),
        (".pdf", ""),
        ("a.", ""),
        ("a.b c", ""),
        ("a.thisisnoextension", ""),
    ],
)
def test_an_extension_is_what_stands_behind_the_last_dot_of_the_name(name, extension):
    assert extension_of(name) == extension


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"%PDF-1.7", "pdf"),
        (b"\xef\xbb\xbf%PDF-1.7", "pdf"),
        (b"\x89PNG\r\n\x1a\n", "png"),
        (b"\xff\xd8\xff\xe0", "jpeg"),
        (b"BM" + bytes(20), "bmp"),
        (b"BMW,320d,blue", "text"),
        (b"MZone,a,b", "text"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "webp"),
        (b"\0\0\0\x18ftypmp42", "media"),
        (b"\0\0\0\x08wide", "media"),
        (b"was free", "text"),
        (b"PK\x03\x04", "zip"),
        (b"<?xml version='1.0'?><!-- <html> --><HEADER><body/></HEADER>", "xml"),
        (b"<header><html/></header>", "xml"),
        (b"<?xml version='1.0'?>\n<html xmlns='x'>", "html"),
        (b"<!DOCTYPE HTML PUBLIC 'x'>", "html"),
        (b"<!DOCTYPE svg PUBLIC 'x'><svg>", "svg"),
        (b"<Error>\n<Code>SlowDown</Code>", "storage_error"),
        (b"<Error>late</Error>", "xml"),
        (b"<", "xml"),
        (b"<!-- " + b"- " * 500, "xml"),
        (b"\xff\xfe<\0?\0x\0m\0l\0", "xml"),
        (b"a\0b", "unknown"),
        (b"", "unknown"),
    ],
)
def test_first_bytes_show_what_a_file_is(head, kind):
    assert kind_of(head) == kind


@pytest.mark.parametrize(
    ("extension", "head"),
    [
        ("jpg", b"\x89PNG\r\n\x1a\n"),  # cameras and phones name pictures as they like
        ("doc", b"PK\x03\x04"),
        ("docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),  # with a password
        ("csv", b"BMW,320d,blue"),
        ("xml", b"<XACTDOC><HEADER/></XACTDOC>"),
        ("esx", b"\x01\x02\0"),
        ("html", b"<html>"),
        ("", b"anything"),
    ],
)
def test_a_file_that_may_be_what_it_is_called_is_taken(extension, head):
    check_head(head, extension, ALL)


@pytest.mark.parametrize(
    ("extension", "head"),
    [
        *(
            ("pdf", b"\x89PNG\r\n\x1a\n"),
            ("jpg", b"%PDF-1.7"),
            ("csv", b"<html>"),
            ("esx", b"<html>"),
        ),
        *(("", b"\x7fELF"), ("txt", b"#!/bin/sh"), ("xml", b"<html>"), ("mp4", b"text")),
    ],
)
def test_a_file_that_is_something_else_is_refused(extension, head):
    with pytest.raises(DownloadFailed) as failed:
        check_head(head, extension, ALL)
    assert failed.value.kind == "wrong_type"


@pytest.mark.parametrize(
    ("head", "is_taken"), [(b"%PDF-1.7", True), (b"<a/>", True), (b"PK\x03\x04", False)]
)
def test_without_an_extension_the_content_must_be_of_a_type_that_is_taken(head, is_taken):
    try:
        check_head(head, "", FEW)
    except DownloadFailed:
        assert not is_taken
    else:
        assert is_taken


def test_a_page_is_refused_by_what_the_server_calls_it_before_its_body():
    with pytest.raises(DownloadFailed, match="a page instead of a file"):
        check_content_type("Text/HTML; charset=utf-8", "pdf", FEW)
    check_content_type("application/octet-stream", "pdf", FEW)


def test_only_the_listed_types_of_a_server_are_taken():
    rules = HostRules((".example",), mime_types=("application/pdf",))
    check_content_type("application/pdf", "pdf", rules)
    check_content_type("", "pdf", rules)
    with pytest.raises(DownloadFailed, match="not among the taken types"):
        check_content_type("video/mp4", "pdf", rules)


@given(st.binary(max_size=1_100))
def test_no_bytes_are_too_strange_to_be_told(head):
    assert kind_of(head)
