"""Fetches Apache Kafka as Maven jars, once per machine, and prepares what makes it start fast."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from forebay.core.errors import Unusable

KAFKA_VERSION = "4.3.1"
JAVA_VERSION_MIN = 17

_PATIENCE_SECONDS = 600
_HERE = Path(__file__).parent
_INSTALL = "On Debian: apt-get install openjdk-17-jre-headless maven."

JVM_FLAGS = (
    "-Xms128m",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv4Stack=true",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)


def missing() -> str | None:
    """What must be installed before a trial broker can start, in one line; None if nothing."""
    version = _java_version()
    if version is None:
        return f"no Java found. {_INSTALL}"
    if version < JAVA_VERSION_MIN:
        return f"Java {version} is too old, {JAVA_VERSION_MIN} is needed. {_INSTALL}"
    if not libraries_folder().is_dir() and shutil.which("mvn") is None:
        return f"no Maven found, which fetches Kafka's jars once. {_INSTALL}"
    return None


def java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def cache_folder() -> Path:
    named = os.environ.get("FOREBAY_KAFKA_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "forebay" / f"kafka-{KAFKA_VERSION}"


def libraries_folder() -> Path:
    return cache_folder() / "libs"


def fetch() -> Path:
    """The folder of jars, filled by Maven on first use and compared with jars.lock."""
    libraries = libraries_folder()
    if libraries.is_dir():
        return libraries
    with locked(cache_folder() / "fetch.lock"):
        if not libraries.is_dir():
            _fetch_into(libraries)
    return libraries


def class_path() -> str:
    """Sorted and explicit: an archive of classes is used only with the very same class path."""
    return os.pathsep.join(str(jar) for jar in sorted(fetch().glob("*.jar")))


def bootstrap_checkpoint() -> bytes:
    """The feature levels that formatting writes: the same bytes for every node and cluster."""
    kept = cache_folder() / "bootstrap.checkpoint"
    if not kept.exists():
        with locked(cache_folder() / "format.lock"):
            if not kept.exists():
                replace_with(kept, _format())
    return kept.read_bytes()


def archive_file() -> Path:
    """Where the AppCDS archive for this Java, these jars and these flags belongs."""
    version = subprocess.run([java(), "-version"], capture_output=True, check=True).stderr
    fingerprint = hashlib.sha256(version + class_path().encode() + " ".join(JVM_FLAGS).encode())
    return cache_folder() / f"classes-{fingerprint.hexdigest()[:12]}.jsa"


def archive_flags() -> list[str]:
    archive = archive_file()
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"] if archive.exists() else []


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time; the kernel frees the lock of one that died."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def replace_with(path: Path, content: bytes) -> None:
    written = path.with_suffix(f".{os.getpid()}.part")
    written.write_bytes(content)
    written.rename(path)


def _java_version() -> int | None:
    try:
        answer = subprocess.run([java(), "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r'version "(\d+)', answer.stderr)
    return int(found.group(1)) if found else None


def _fetch_into(libraries: Path) -> None:
    part = libraries.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={part}"]
    _run(
        ["mvn", "-B", "-q", "-ntp", "-f", str(_HERE / "pom.xml"), *goal],
        "Maven could not fetch Kafka's jars; look at its output and at ~/.m2/settings.xml",
    )
    _compare(part)
    part.rename(libraries)


def _compare(folder: Path) -> None:
    lines = (_HERE / "jars.lock").read_text().splitlines()
    wanted = {name: digest for digest, name in (line.split() for line in lines)}
    fetched = {
        jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in folder.glob("*.jar")
    }
    wrong = sorted({name for name, _ in wanted.items() ^ fetched.items()})
    if wrong:
        raise Unusable(
            f"The jars Maven fetched are not those of jars.lock: {', '.join(wrong)}. Nothing of "
            f"them is used. Look at what your Maven mirror delivers."
        )


def _format() -> bytes:
    with tempfile.TemporaryDirectory(prefix="forebay-kafka-") as folder:
        properties = Path(folder) / "server.properties"
        properties.write_text(
            "process.roles=broker,controller\nnode.id=1\n"
            "controller.quorum.voters=1@127.0.0.1:9\ncontroller.listener.names=CONTROLLER\n"
            "listeners=PLAINTEXT://127.0.0.1:8,CONTROLLER://127.0.0.1:9\n"
            f"log.dirs={folder}/data\n"
        )
        tool = ["kafka.tools.StorageTool", "format", "-t", "A" * 22, "-c", str(properties)]
        _run(
            [java(), *JVM_FLAGS, "-cp", class_path(), *tool],
            "Kafka's storage tool could not format a folder",
        )
        return (Path(folder) / "data" / "bootstrap.checkpoint").read_bytes()


def _run(command: Sequence[str], complaint: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_PATIENCE_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise Unusable(f"{complaint}. It did not end in {_PATIENCE_SECONDS} s.") from error
    if done.returncode:
        raise Unusable(f"{complaint}. It said: {(done.stdout + done.stderr)[-2000:]}")
