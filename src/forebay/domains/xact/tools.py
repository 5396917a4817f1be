"""What the stages of xact work with: opened once per process, found in `context.shared`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from forebay.attachments.cache import Cache
from forebay.attachments.download import DownloadTools
from forebay.core.clock import Clock
from forebay.domains.xact.seen import SeenEvents
from forebay.domains.xact.settings import XactSettings
from forebay.lakehouse.files.routing import FileRoutes

TOOLS = "tools"


@dataclass(frozen=True, slots=True)
class Tools:
    settings: XactSettings
    downloading: DownloadTools
    files: FileRoutes
    cache: Cache
    seen: SeenEvents
    clock: Clock


def tools_of(shared: Mapping[str, Any]) -> Tools:
    tools: Tools = shared[TOOLS]
    return tools
