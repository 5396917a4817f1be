"""A certificate of the file host's own, made with the openssl command."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

_DAYS = "30"


class NoCertificate(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Certificate:
    """Self-signed, so the certificate's file is also the one to trust."""

    certificate: Path
    key: Path


def make_certificate(folder: Path, names: Sequence[str]) -> Certificate:
    folder.mkdir(parents=True, exist_ok=True)
    made = Certificate(folder / "file-host.crt", folder / "file-host.key")
    if shutil.which("openssl") is None:
        raise NoCertificate(
            "The simulated file host needs a certificate and the openssl command is not on PATH, "
            "so it does not start. Install openssl."
        )
    done = subprocess.run(_command(made, names), capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise NoCertificate(
            f"openssl made no certificate in {folder} ({last[0]}), so the simulated file host "
            "does not start. Check that the folder can be written."
        )
    return made


def _command(made: Certificate, names: Sequence[str]) -> list[str]:
    alternatives = ",".join(_alternative(name) for name in names)
    extensions = {
        "subjectAltName": alternatives,
        # A certificate that signs itself is an authority to strict verifiers (Python 3.13).
        "keyUsage": "critical,digitalSignature,keyCertSign",
        "extendedKeyUsage": "serverAuth",
    }
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", _DAYS, "-subj", "/CN=simulated file host"]
    command += ["-keyout", str(made.key), "-out", str(made.certificate)]
    for name, value in extensions.items():
        command += ["-addext", f"{name}={value}"]
    return command


def _alternative(name: str) -> str:
    try:
        return f"IP:{ip_address(name)}"
    except ValueError:
        return f"DNS:{name}"
