from pathlib import Path

import pytest

from forebay.core.errors import Unusable
from forebay.settings import Flags, read_settings


@pytest.fixture
def written(tmp_path):
    """A forebay.yaml with this text; gives its path."""

    def write(text: str) -> Path:
        path = tmp_path / "forebay.yaml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def refused(written):
    """What a person is told, without the path of the file."""

    def refuse(text: str = "", environment=None, **flags) -> str:
        path = written(text)
        with pytest.raises(Unusable) as caught:
            read_settings(Flags(config=path, **flags), environment or {})
        return str(caught.value).replace(str(path), "forebay.yaml")

    return refuse
