"""Flags over environment over file over defaults, read once.

Every problem is found before one error names them all.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from forebay.core.errors import Unusable
from forebay.observability.settings import LogSettings
from forebay.settings import options
from forebay.settings.connections import read_azure, read_broker, read_consumer
from forebay.settings.slices import Flags, HealthSettings, Settings, StorageSettings
from forebay.settings.tree import read_tree
from forebay.settings.values import Sources, Values
from forebay.settings.xact import read_xact

CONFIG_VARIABLE = "FOREBAY_CONFIG"


def read_settings(
    flags: Flags | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    said = flags or Flags()
    variables = os.environ if environment is None else environment
    sources = Sources(_by_key(said), variables, read_tree(_config_file(said, variables)))
    values = Values(sources)
    settings = _with_flags(_settings(values, sources.unused), said)
    if values.problems:
        raise Unusable(_one_message(values.problems))
    return settings


def _settings(values: Values, unused: tuple[str, ...]) -> Settings:
    folder = values.get(options.FOLDER)
    return Settings(
        folder=folder,
        broker=read_broker(values, folder),
        log=LogSettings(values.get(options.LOG_LEVEL), values.get(options.LOG_FORMAT)),
        storage=_storage(values, folder),
        consumer=read_consumer(values),
        health=HealthSettings(values.get(options.HEALTH_PORT), values.get(options.HEALTH_HOST)),
        xact=read_xact(values),
        tls_ca_file=values.get(options.CA_FILE),
        file_bytes_max=values.get(options.FILE_BYTES),
        circuit_open_seconds=values.get(options.CIRCUIT_OPEN),
        azure=read_azure(values),
        chosen=values.chosen(),
        unused=unused,
    )


def _with_flags(settings: Settings, said: Flags) -> Settings:
    """What a person says for one run, and no file should."""
    chosen = settings.xact
    writes_tables = chosen.writes_tables and not said.no_tables
    xact = replace(chosen, development=said.development, writes_tables=writes_tables)
    return replace(settings, xact=xact)


def _storage(values: Values, folder: Path) -> StorageSettings:
    own = values.get(options.XACT_PATH)
    return StorageSettings(
        folder=folder,
        base_path=values.get(options.BASE_PATH),
        domain_paths={"xact": own} if own else {},
        cache_dir=values.get(options.CACHE_DIR),
        cache_bytes_max=values.get(options.CACHE_BYTES),
    )


def _by_key(flags: Flags) -> dict[str, object]:
    return {
        options.BROKER.key: flags.broker,
        options.FOLDER.key: flags.folder,
        options.LOG_LEVEL.key: flags.log_level,
        options.LOG_FORMAT.key: flags.log_format,
    }


def _config_file(flags: Flags, environment: Mapping[str, str]) -> Path | None:
    if flags.config is not None:
        return flags.config
    named = environment.get(CONFIG_VARIABLE, "").strip()
    return Path(named) if named else None


def _one_message(problems: list[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    lines = "".join(f"\n  - {problem}" for problem in problems)
    return f"{len(problems)} settings are wrong:{lines}"
