"""A command that trains, and what it wrote."""

import json
from pathlib import Path
from typing import Any


def command(place: Path, folder: Path, *options: str) -> list[str]:
    train, dev = (str(place / name) for name in ("train.jsonl", "dev.jsonl"))
    return ["train", train, "--dev", dev, "--model", "tiny", "-o", str(folder), *options]


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
