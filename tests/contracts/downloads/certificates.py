"""Certificates for loopback hosts: one to trust, and the ways not to."""

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

_AUTHORITY = """
[ca]
default_ca = own
[own]
dir = {folder}
database = {folder}/index.txt
new_certs_dir = {folder}
serial = {folder}/serial
certificate = {folder}/authority.pem
private_key = {folder}/authority.key
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
"""


@dataclass(frozen=True)
class Certificates:
    folder: Path

    @classmethod
    def made_in(cls, folder: Path) -> "Certificates":
        """An authority that signs what it is asked to, with any dates."""
        (folder / "ca.cnf").write_text(_AUTHORITY.format(folder=folder))
        (folder / "index.txt").write_text("")
        (folder / "index.txt.attr").write_text("unique_subject = no\n")
        (folder / "serial").write_text("1000\n")
        _openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=authority", "-keyout", folder / "authority.key"),
            *("-out", folder / "authority.pem"),
        )
        return cls(folder)

    @property
    def ca_file(self) -> Path:
        return self.folder / "authority.pem"

    def server(self, names: str = "IP:127.0.0.1", *, expired: bool = False) -> ssl.SSLContext:
        request, key, made = (self.folder / f"server.{end}" for end in ("csr", "key", "pem"))
        _openssl(
            *("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=server", "-keyout", key),
            *("-out", request, "-addext", f"subjectAltName={names}"),
        )
        dates = (
            ("200101000000Z", "200102000000Z") if expired else ("200101000000Z", "491231000000Z")
        )
        _openssl(
            *("ca", "-batch", "-notext", "-config", self.folder / "ca.cnf", "-in", request),
            *("-out", made, "-startdate", dates[0], "-enddate", dates[1]),
        )
        return _context(made, key)

    def self_signed(self) -> ssl.SSLContext:
        key, made = self.folder / "self.key", self.folder / "self.pem"
        _openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", key, "-out", made),
        )
        return _context(made, key)


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
