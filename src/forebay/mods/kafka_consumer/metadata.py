"""What a framework reads of the mod without running it."""

from forebay.mods.kafka_consumer.parameters import PARAMETERS, Kind, Parameter

VERSION = "1.1.0"

METADATA: dict[str, object] = {
    "type": "kafka_consumer",
    "version": VERSION,
    "description": "Consumes Kafka topics with a Python function: parallel, at least once, with "
    "CSV backup and CSV dead letters.",
    "category": "source",
    "input_ports": [],
    "output_ports": [],
    "globals": [],
    "packages": ["forebay"],
}

# The types that such frameworks know.
_TYPES: dict[Kind, str] = {
    "string": "str",
    "enum": "str",
    "list[string]": "list",
    "callable": "object",
    "int": "int",
    "int/None": "int",
    "bool": "bool",
    "dict": "dict",
}


def _field(parameter: Parameter) -> dict[str, object]:
    told: dict[str, object] = {
        "type": _TYPES[parameter.kind],
        "description": parameter.description,
    }
    if parameter.minimum is not None:
        told["min"] = parameter.minimum
    if parameter.maximum is not None:
        told["max"] = parameter.maximum
    if parameter.choices:
        told["enum"] = list(parameter.choices)
    return told if parameter.is_required else told | {"default": parameter.default}


CONFIG_SCHEMA: dict[str, dict[str, dict[str, object]]] = {
    "required": {p.name: _field(p) for p in PARAMETERS if p.is_required},
    "optional": {p.name: _field(p) for p in PARAMETERS if not p.is_required},
}


def described() -> dict[str, object]:
    parameters = [parameter.as_object() for parameter in PARAMETERS]
    return {"mod": "kafka_consumer", "version": VERSION, "parameters": parameters}
