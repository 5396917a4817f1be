import os
import ssl
import subprocess
import sys
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from forebay.simulator.attempts import Attempts
from forebay.simulator.certificates import NoCertificate, make_certificate
from forebay.simulator.control import FileHostSilent, file_host_process
from forebay.simulator.file_host import FileHostSettings, settings_from
from forebay.testing.waiting import eventually


def status_of(host, path):
    context = ssl.create_default_context(cafile=host.ca_file)
    connection = HTTPSConnection(host.https.host, host.https.port, timeout=10, context=context)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_file_host_in_a_process_of_its_own_serves_fails_on_order_and_counts(tmp_path):
    with file_host_process(tmp_path) as host:
        assert status_of(host, "/f/ok/1x1-400/a.pdf") == 200
        host.fail_for(60, "busy")
        assert status_of(host, "/f/ok/1x1-400/a.pdf") == 503
        assert host.faults() == {"outage": 1}
        assert host.standing()["requests"] == 2
        with pytest.raises(FileHostSilent, match="Nothing changes"):
            host.fail_for(1, "explode")
    with pytest.raises(ConnectionRefusedError):
        status_of(host, "/f/ok/1x1-400/a.pdf")


def test_the_certificate_counts_for_the_names_that_were_asked_for(tmp_path):
    with file_host_process(tmp_path, ["--name", "files.example"]) as host:
        text = subprocess.run(
            ["openssl", "x509", "-in", str(host.ca_file), "-noout", "-ext", "subjectAltName"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    assert {"IP Address:127.0.0.1", "DNS:localhost", "DNS:files.example"} <= {
        part.strip() for part in text.splitlines()[1].split(",")
    }


def test_the_command_line_leaves_everything_at_its_default_unless_told(tmp_path):
    settings, watches_stdin = settings_from(["--folder", str(tmp_path)])
    assert settings == FileHostSettings(tmp_path)
    assert not watches_stdin
    settings, _ = settings_from(["--folder", str(tmp_path), "--slow-seconds", "0.5"])
    assert settings.times.slow_seconds == 0.5


def test_a_file_host_ends_when_whoever_started_it_is_killed(tmp_path):
    starter = (
        "import sys, time; from pathlib import Path\n"
        "from forebay.simulator.control import file_host_process\n"
        "with file_host_process(Path(sys.argv[1])) as host:\n"
        "    print(host.pid, flush=True); time.sleep(60)\n"
    )
    command = [sys.executable, "-c", starter, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        number = int(process.stdout.readline())
        process.kill()
    assert eventually(lambda: not _is_running(number))


def _is_running(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{number}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_folder_that_cannot_hold_a_certificate_is_named(tmp_path):
    taken = tmp_path / "file-host.key"
    taken.mkdir()
    with pytest.raises(NoCertificate, match="openssl made no certificate in"):
        make_certificate(tmp_path, ["localhost"])


def test_a_missing_openssl_is_told_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCertificate, match="Install openssl"):
        make_certificate(tmp_path, ["localhost"])


def test_a_host_that_does_not_start_says_so(tmp_path):
    (tmp_path / "file-host.key").mkdir()
    with (
        pytest.raises(FileHostSilent, match="ended before it told its address"),
        file_host_process(tmp_path),
    ):
        pass


def test_failures_of_one_link_do_not_count_for_another():
    attempts = Attempts()
    assert [attempts.fails("a", 2), attempts.fails("b", 1), attempts.fails("a", 2)] == [True] * 3
    assert not attempts.fails("a", 2)
    assert not attempts.fails("b", 1)


def test_the_memory_of_failures_is_bounded_and_keeps_the_latest():
    attempts = Attempts(most=3)
    for path in "abcd":
        attempts.fails(path, 1)
    assert len(attempts) == 3
    assert not attempts.fails("d", 1)
    assert attempts.fails("a", 1)
