import re
import subprocess
import sys
from pathlib import Path

import yaml

from forebay.settings import Flags, read_settings
from forebay.settings.options import OPTIONS

EXAMPLE = Path(__file__).parents[3] / "deploy" / "forebay.example.yaml"

_COMMENTED_OUT = re.compile(r"^( *)#([a-z_]+: )", re.MULTILINE)


def leaves(tree, section=""):
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{section}{name}.")
        else:
            yield f"{section}{name}", value


def test_the_example_names_every_option_in_its_place():
    text = _COMMENTED_OUT.sub(r"\1\2", EXAMPLE.read_text())
    assert [key for key, _ in leaves(yaml.safe_load(text))] == [option.key for option in OPTIONS]


def test_the_example_as_it_is_changes_nothing():
    settings = read_settings(Flags(config=EXAMPLE), {})
    assert settings == read_settings(Flags(), {})


def test_every_value_of_the_example_is_one_that_may_be_written(written):
    text = _COMMENTED_OUT.sub(r"\1\2", EXAMPLE.read_text())
    without_files = re.sub(
        r"^ *(\w*ca_?file|\w*token_file|sasl_mechanism):.*$", "", text, flags=re.MULTILINE
    )
    settings = read_settings(Flags(config=written(without_files)), {})
    assert settings.broker.bootstrap_servers == "broker.example:9093"


def test_settings_without_a_file_do_not_wait_for_yaml():
    code = (
        "import sys, forebay.settings as s; s.read_settings(None, {}); print('yaml' in sys.modules)"
    )
    asked = [sys.executable, "-c", code]
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout == "False\n"
