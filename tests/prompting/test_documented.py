"""The prompts in the documentation are those that are sent."""

import json
import re
import shlex
from pathlib import Path

import pytest

from setaug.cli import main
from tests.prompting.server import Relay

PAGE = (Path(__file__).parents[2] / "docs" / "prompting.md").read_text()
CALLS = re.findall(r"^setaug (prompt .*) --dry-run$", PAGE, re.MULTILINE)
SHOWN = re.findall(r"^```(?:text|json)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_prompts_in_the_documentation_are_those_that_are_sent(
    relay: Relay, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--no-train"]) == 0
    (text,) = re.findall(r"^echo '(.*)' > test.jsonl$", PAGE, re.MULTILINE)
    Path("test.jsonl").write_text(text + "\n")
    assert len(CALLS) == len(SHOWN) == 2
    for call, shown in zip(CALLS, SHOWN, strict=True):
        arguments = [str(tiny_model) if one == "any" else one for one in shlex.split(call)]
        relay.asked.clear()
        assert main([*arguments, "--base-url", relay.url, "-q"]) == 0
        (sent,) = relay.asked
        if "prompt" in sent:
            assert sent["prompt"] + "\n" == shown
        else:
            assert {**sent, "model": "any"} == json.loads(shown)
