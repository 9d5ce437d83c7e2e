"""JSON schemas of sets."""

from typing import Any

import pytest

from setaug.decoding.json_schema import SetSchema, read_set_schema

PLAIN = {"type": "array", "items": {"enum": ["joy", "love"]}, "uniqueItems": True}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, SetSchema(["joy", "love"], 0, None)),
        ({"minItems": 1, "maxItems": 2}, SetSchema(["joy", "love"], 1, 2)),
        ({"maxItems": 0}, SetSchema(["joy", "love"], 0, 0)),
        ({"items": {"type": "string", "enum": ["a", "b", "a"]}}, SetSchema(["a", "b"], 0, None)),
        ({"items": {"const": "a"}}, SetSchema(["a"], 0, None)),
        ({"items": {"type": "string", "description": "a keyphrase"}}, SetSchema(None, 0, None)),
        (
            {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Labels"},
            SetSchema(["joy", "love"], 0, None),
        ),
    ],
)
def test_what_a_set_may_be_is_read_from_a_schema(changes: dict[str, Any], expected: SetSchema) -> None:
    assert read_set_schema({**PLAIN, **changes}) == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"type": "object"}, 'must have "type": "array", got \'object\''),
        ({"uniqueItems": False}, 'must have "uniqueItems": true; a list with duplicates is not a set'),
        (
            {"contains": {"const": "joy"}},
            'the schema has the keyword "contains", which a set constraint does not support',
        ),
        ({"prefixItems": []}, 'the keyword "prefixItems"'),
        ({"items": {"type": "integer"}}, '"items" must be strings, got "type": \'integer\''),
        ({"items": {"type": "string", "pattern": "^a"}}, '"items" has the keyword "pattern"'),
        ({"items": {}}, '"items" must have "enum", or "type": "string"'),
        ({"items": ["joy"]}, '"items" must be an object'),
        ({"items": {"enum": ["joy", 3]}}, "\"enum\" must be a list of strings, got \\['joy', 3\\]"),
        ({"items": {"enum": []}}, '"enum" must be a list of strings'),
        ({"items": {"enum": ["a"], "const": "a"}}, '"enum" or "const", not both'),
        ({"minItems": -1}, "minItems must be an integer of at least 0, got -1"),
        ({"maxItems": True}, "maxItems must be an integer of at least 0, got True"),
        ({"minItems": 2, "maxItems": 1}, "maxItems 1 is below minItems 2"),
    ],
)
def test_what_is_no_set_is_refused_with_a_reason(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_set_schema({**PLAIN, **changes})


def test_a_schema_needs_items_and_is_an_object() -> None:
    with pytest.raises(ValueError, match='must have "items"'):
        read_set_schema({"type": "array", "uniqueItems": True})
    with pytest.raises(ValueError, match="the schema must be an object, got True"):
        read_set_schema(True)  # type: ignore[arg-type]
