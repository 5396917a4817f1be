"""A token that ends while files are stored."""

import asyncio
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from forebay.bootstrap.files import open_files
from forebay.core.errors import AccessDenied
from forebay.identity import AzureSettings
from forebay.observability.catalogue import silent

PLACE = "abfss://files@account.dfs.core.windows.net/xact"


@contextmanager
def store():
    """Answers that nothing is there; gives its address and the credentials that it was shown."""
    shown = []

    class Answer(BaseHTTPRequestHandler):
        def do_HEAD(self):
            shown.append(self.headers["Authorization"])
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", shown
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_files_that_stay_open_use_the_token_that_was_renewed(tmp_path):
    token_file = tmp_path / "token"
    token_file.write_text("first")
    with store() as (endpoint, shown):
        azure = AzureSettings(token_file=token_file, account_name="account", endpoint=endpoint)
        files = open_files(PLACE, azure, silent)

        async def work():
            assert await files.stat("a.pdf") is None
            token_file.write_text("second")
            while shown[-1] == "Bearer first":
                assert await files.stat("a.pdf") is None

        asyncio.run(asyncio.wait_for(work(), 10))
    assert shown[0] == "Bearer first"
    assert shown[-1] == "Bearer second"


def test_a_token_file_that_goes_while_files_are_stored_is_told(tmp_path):
    token_file = tmp_path / "token"
    token_file.write_text("first")
    with store() as (endpoint, _):
        azure = AzureSettings(token_file=token_file, account_name="account", endpoint=endpoint)
        files = open_files(PLACE, azure, silent)
        token_file.unlink()
        with pytest.raises(AccessDenied, match=r"token file .* correct its credentials"):
            asyncio.run(files.stat("a.pdf"))
