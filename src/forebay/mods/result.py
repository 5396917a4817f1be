"""What `run_mod` gives, whatever happened: the contract of the frameworks that call mods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

SUCCESS: Final = 0
WITH_WARNINGS: Final = 10
WRONG_PARAMETERS: Final = 20
FAILED: Final = 30
TIMED_OUT: Final = 40
CANCELLED: Final = 50

ExitCode: TypeAlias = Literal[0, 10, 20, 30, 40, 50]
Status: TypeAlias = Literal["success", "warning", "error"]
Result: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a mod's run ended. Errors and warnings are sentences."""

    exit_code: ExitCode
    metrics: Mapping[str, object] = field(default_factory=dict)
    artifacts: Mapping[str, object] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    errors: Sequence[str] = ()

    @property
    def status(self) -> Status:
        match self.exit_code:
            case 0:
                return "success"
            case 10:
                return "warning"
            case _:
                return "error"


@dataclass(frozen=True, slots=True)
class RunName:
    """Who ran, as its log says it."""

    run_id: str
    mod_type: str
    mod_name: str

    def as_object(self) -> dict[str, str]:
        return {"run_id": self.run_id, "mod_type": self.mod_type, "mod_name": self.mod_name}


def result_of(ended: Ended, name: RunName) -> Result:
    return {
        "status": ended.status,
        "exit_code": ended.exit_code,
        "metrics": dict(ended.metrics),
        "artifacts": dict(ended.artifacts),
        "globals": {},
        "warnings": list(ended.warnings),
        "errors": list(ended.errors),
        "logs": name.as_object(),
    }
