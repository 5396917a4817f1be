"""A file host that costs little: nginx with one worker, https, and few files under any name."""

import hashlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from apt_tools import place_of
from forebay.simulator.certificates import make_certificate

SIZES = {"20k": 20_000, "100k": 100_000, "200m": 200_000_000}

_CONFIGURATION = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 1;
{user}
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; keepalive_requests 1000000; types {{ application/pdf pdf; }}
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{
    listen 127.0.0.1:{port} ssl backlog=1024;
    ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;
    {locations}
  }}
}}
"""
_LOCATION = "location /{size}/ {{ root {folder}/files; try_files /{size}.pdf =404; }}"


@dataclass(frozen=True)
class NginxHost:
    """`home` is where everything of one benchmark lies until its end."""

    url: str
    ca_file: Path
    home: Path

    def link(self, size: str, number: int) -> str:
        return f"{self.url}/{size}/{number}.pdf"


@contextmanager
def nginx_host(folder: Path) -> Iterator[NginxHost]:
    program = place_of("nginx")
    if program is None:
        raise FileNotFoundError("nginx is not installed; make setup-bench installs it")
    folder.mkdir(parents=True, exist_ok=True)
    made = make_certificate(folder, ["127.0.0.1"])
    _make_files(folder / "files")
    port = _free_port()
    configuration = folder / "nginx.conf"
    locations = " ".join(_LOCATION.format(size=size, folder=folder) for size in SIZES)
    configuration.write_text(
        _CONFIGURATION.format(
            folder=folder,
            port=port,
            certificate=made.certificate,
            key=made.key,
            locations=locations,
            user="user root;" if os.geteuid() == 0 else "",
        )
    )
    process = subprocess.Popen([program, "-p", str(folder), "-c", str(configuration)])
    try:
        _await_port(port, process)
        yield NginxHost(f"https://127.0.0.1:{port}", made.certificate, folder)
    finally:
        process.terminate()
        process.wait()


def pdf(size: int) -> bytes:
    beginning, end = b"%PDF-1.4\n", b"\n%%EOF\n"
    return beginning + b"x" * (size - len(beginning) - len(end)) + end


def sha256_of(size: str) -> str:
    return hashlib.sha256(pdf(SIZES[size])).hexdigest()


def _make_files(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name, size in SIZES.items():
        (folder / f"{name}.pdf").write_bytes(pdf(size))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("nginx did not start; its error log says why")
