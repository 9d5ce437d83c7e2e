"""Cells that were measured before a parameter was renamed are still found."""

import json
from pathlib import Path

from setaug import SetAugmenter
from setaug.experiments.stored_settings import augmenter_from_cell, augmenter_to_cell

RESULTS = Path(__file__).parent.parent.parent / "results" / "cells.jsonl"


def test_a_stored_augmenter_is_read_and_written_as_it_is() -> None:
    cells = [json.loads(line)["cell"] for line in RESULTS.read_text().splitlines()]
    stored = [cell["augmenter"] for cell in cells if "augmenter" in cell]
    assert len({kept["size"] for kept in stored}) == 2
    for kept in stored:
        assert augmenter_to_cell(augmenter_from_cell(kept)) == kept


def test_all_parameters_are_kept() -> None:
    augmenter = SetAugmenter(written_as="json")
    assert len(augmenter_to_cell(augmenter)) == len(augmenter.get_params())
    assert augmenter_to_cell(augmenter).keys() - augmenter_to_cell(SetAugmenter()).keys() == {"written_as"}
