"""The real logrotate, run by hand as its timer would run it."""

import subprocess
from pathlib import Path

import pytest

from apt_tools import place_of

# Section 6.3 of the mod's document. logrotate takes no comment behind a value, so they come off.
DOCUMENTED = """
{path} {{
    daily                    # Rotate daily
    rotate 7                 # Keep 7 days
    compress                 # Compress old files
    delaycompress           # Compress after 1 day
    missingok               # Don't error if file missing
    notifempty              # Don't rotate empty files
    copytruncate            # Copy then truncate (consumer keeps writing)
    maxsize 500M            # Also rotate if > 500MB
}}
"""
BY_RENAMING = """
{path} {{
    daily
    rotate 7
    compress
    delaycompress
    missingok
    notifempty
    nocreate
}}
"""


class Logrotate:
    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._folder = folder

    def rotate(self, configuration: str, path: Path) -> None:
        """As on the next day."""
        config, state = self._folder / "logrotate.conf", self._folder / "logrotate.state"
        lines = [line.partition("#")[0].rstrip() for line in configuration.splitlines()]
        config.write_text("\n".join(lines).format(path=path) + "\n")
        config.chmod(0o644)
        command = [self._program, "--force", "--state", str(state), str(config)]
        subprocess.run(command, check=True, timeout=60)


def installed_logrotate(folder: Path) -> Logrotate:
    program = place_of("logrotate")
    if program is None:
        pytest.skip("needs logrotate: make setup-tools")
    return Logrotate(program, folder)
