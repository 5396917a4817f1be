"""Whether parameters can work, before anything starts. All problems are told in one message."""

import os
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from forebay.core.errors import InvalidRequest, Rejected, Unusable
from forebay.core.records import Offset, TopicPartition
from forebay.core.topics import check_name
from forebay.mods.kafka_consumer.configuration import Configuration
from forebay.mods.kafka_consumer.parameters import PARAMETERS, Parameter
from forebay.mods.kafka_consumer.processing import UserFunction, processor_of
from forebay.settings import Flags, Settings, TrialKafka, read_settings

_KNOWN = {parameter.name: parameter for parameter in PARAMETERS}
_INJECTED = {"_mod_name", "_mod_type"}


def configuration_of(
    given: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
    log_format: str | None = None,
) -> Configuration:
    """Raises InvalidRequest that names every problem."""
    return _Reading(given, environment, log_format).configuration()


class _Reading:
    """Goes on after a problem, so that a person mends all of them at once."""

    def __init__(
        self,
        given: Mapping[str, Any],
        environment: Mapping[str, str] | None,
        log_format: str | None,
    ) -> None:
        self._given = {name: value for name, value in given.items() if name not in _INJECTED}
        self._environment = environment
        self._log_format = log_format
        self._problems: list[str] = []

    def configuration(self) -> Configuration:
        self._check_names()
        values = {parameter.name: self._value(parameter) for parameter in PARAMETERS}
        settings = self._settings(values["bootstrap_servers"])
        processor = self._processor(values.pop("processor_callable"))
        topics = self._topics(values["topics"])
        stops = self._stops(values["stop_at_offset"], topics)
        self._check_together(values)
        paths = {name: self._path(name, values) for name in ("backup_path", "dlq_path")}
        self._check_apart(paths, backs_up=values["backup_enabled"] is not False)
        if self._problems or settings is None or processor is None:
            raise InvalidRequest(_one_message(self._problems))
        del values["enable_auto_commit"]
        made = {"topics": topics, "stop_at_offset": stops, "processor": processor, **paths}
        return Configuration(
            **(values | made | {"log_level": values["log_level"].lower()}),
            given=frozenset(self._given),
            settings=settings,
        )

    def _check_names(self) -> None:
        for name in self._given:
            if name not in _KNOWN:
                close = get_close_matches(str(name), _KNOWN, n=1)
                hint = f"write {close[0]}" if close else "leave it out"
                self._problems.append(f"{name} is no parameter of kafka_consumer; {hint}.")

    def _value(self, parameter: Parameter) -> Any:
        """The default where what was given is wrong: what depends on it is checked all the same."""
        if parameter.name not in self._given:
            if parameter.is_required:
                self._problems.append(f"{parameter.name} is missing; it is required.")
            return parameter.default
        value = self._given[parameter.name]
        problem = _problem_of(parameter, value)
        if problem:
            self._problems.append(f"{parameter.name} is {_shown(value)}; {problem}.")
            return parameter.default
        return value

    def _settings(self, servers: str | None) -> Settings | None:
        url = servers or "embedded:unknown"
        if "://" not in url and not url.startswith("embedded:") and url != "eventhub":
            url = f"kafka://{url}"
        try:
            settings = read_settings(
                Flags(broker=url, log_format=self._log_format), self._environment
            )
        except Unusable as problem:
            told = str(problem).replace("--broker", "bootstrap_servers")
            self._problems.append(told.replace("kafka://host:port[", "host:port["))
            return None
        if isinstance(settings.broker, TrialKafka):
            self._problems.append(f"bootstrap_servers is {url}; write host:port.")
        return settings

    def _processor(self, given: object) -> UserFunction | None:
        if given is None:
            return None
        try:
            return processor_of(given)
        except InvalidRequest as problem:
            self._problems.append(str(problem))
            return None

    def _topics(self, topics: list[str] | None) -> tuple[str, ...]:
        for topic in topics or ():
            try:
                check_name(topic)
            except Rejected as problem:
                self._problems.append(f"topics: {problem}")
        if len(set(topics or ())) < len(topics or ()):
            self._problems.append("topics names a topic twice; name each once.")
        return tuple(topics or ())

    def _stops(
        self, given: Mapping[object, object] | None, topics: tuple[str, ...]
    ) -> dict[TopicPartition, Offset]:
        stops: dict[TopicPartition, Offset] = {}
        for key, offset in (given or {}).items():
            at = _place(key)
            if at is None:
                self._problems.append(
                    f"stop_at_offset has the key {_shown(key)}; write (topic, partition) or "
                    f'"topic:partition".'
                )
            elif not (isinstance(offset, int) and _is_integer(offset) and offset >= 0):
                self._problems.append(
                    f"stop_at_offset has {_shown(offset)} for {at}; write an offset of 0 or more."
                )
            elif topics and at.topic not in topics:
                self._problems.append(
                    f"stop_at_offset names {at}, but {at.topic} is not among topics."
                )
            else:
                stops[at] = offset
        return stops

    def _check_together(self, values: Mapping[str, Any]) -> None:
        if values["enable_auto_commit"]:
            self._problems.append(
                "enable_auto_commit is True; the client would commit messages that are not "
                "processed yet, and a crash would lose them. Leave it out: offsets are committed "
                "every commit_interval_seconds."
            )
        session, heartbeat = values["session_timeout_ms"], values["heartbeat_interval_ms"]
        if heartbeat * 2 > session:
            self._problems.append(
                f"heartbeat_interval_ms is {heartbeat}, too seldom for a session_timeout_ms of "
                f"{session}; write at most half of it."
            )
        if session > values["max_poll_interval_ms"]:
            self._problems.append(
                f"session_timeout_ms is {session}, longer than max_poll_interval_ms "
                f"({values['max_poll_interval_ms']}); write at most that."
            )

    def _path(self, name: str, values: Mapping[str, Any]) -> Path:
        path = Path(values[name]).expanduser().absolute()
        if name == "backup_path" and not values["backup_enabled"]:
            return path
        if problem := _problem_of_path(path):
            self._problems.append(f"{name} is {values[name]}; {problem}.")
        return path

    def _check_apart(self, paths: Mapping[str, Path], *, backs_up: bool) -> None:
        if backs_up and len({path.resolve() for path in paths.values()}) < len(paths):
            self._problems.append(
                f"backup_path and dlq_path are one file, {paths['dlq_path']}; name two."
            )


def _problem_of(parameter: Parameter, value: object) -> str:
    """What is wrong with it, as the second half of a sentence; empty where nothing is."""
    if value is None and parameter.default is None and not parameter.is_required:
        return ""
    is_right, wanted = _KINDS[parameter.kind]
    if not is_right(value):
        return f"write {wanted}{_of_choices(parameter)}"
    if parameter.choices:
        return "" if value in parameter.choices else f"write one of {', '.join(parameter.choices)}"
    low, high = parameter.minimum, parameter.maximum
    if isinstance(value, int) and not isinstance(value, bool) and low is not None:
        is_inside = low <= value and (high is None or value <= high)
        return "" if is_inside else f"write {low} to {high}"
    return ""


def _of_choices(parameter: Parameter) -> str:
    return f": {', '.join(parameter.choices)}" if parameter.choices else ""


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


def _is_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(map(_is_text, value))


_KINDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "string": (_is_text, "text that is not empty"),
    "list[string]": (_is_texts, "a list of names, at least one"),
    "callable": (lambda value: callable(value) or _is_text(value), "a function, or its name"),
    "int": (_is_integer, "a whole number"),
    "int/None": (_is_integer, "a whole number, or None"),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "dict": (lambda value: isinstance(value, Mapping), "a dict"),
    "enum": (_is_text, "one of its words"),
}


def _place(key: object) -> TopicPartition | None:
    match key:
        case (str(topic), int(partition)) if not isinstance(partition, bool) and partition >= 0:
            return TopicPartition(topic, partition)
        case str():
            topic, mark, number = key.rpartition(":")
            if mark and topic and number.isascii() and number.isdigit():
                return TopicPartition(topic, int(number))
    return None


def _problem_of_path(path: Path) -> str:
    folder = path.parent
    if path.is_dir():
        return "that is a directory; name a file in it"
    if not folder.is_dir():
        return f"the directory {folder} does not exist; create it, or name another one"
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        return "that file cannot be written by this user; give write rights, or name another one"
    if not path.exists() and not os.access(folder, os.W_OK | os.X_OK):
        return f"the directory {folder} cannot be written by this user; name another one"
    return ""


def _shown(value: object) -> str:
    told = repr(value)
    return told if len(told) <= 100 else f"{told[:100]}…"


def _one_message(problems: list[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    lines = "".join(f"\n  - {problem}" for problem in problems)
    return f"{len(problems)} parameters are wrong; nothing was started:{lines}"
