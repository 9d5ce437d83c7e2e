"""Sets as JSON schemas: arrays of unique strings."""

from collections.abc import Mapping
from typing import Any, NamedTuple

_NOTES = frozenset(("$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated"))
"""Keywords without effect on validation."""


class SetSchema(NamedTuple):
    """The sets that a schema allows."""

    labels: list[str] | None
    """The labels; None for any."""
    least: int
    most: int | None
    """The largest size; None if there is no limit."""


def read_set_schema(schema: Mapping[str, Any]) -> SetSchema:
    """Parse a schema of an array of unique strings; raise `ValueError` if it requires more than a set.

    Examples
    --------
    >>> read_set_schema({"type": "array", "items": {"enum": ["joy", "love"]}, "uniqueItems": True, "minItems": 1})
    SetSchema(labels=['joy', 'love'], least=1, most=None)

    """
    _check_object(schema, "the schema")
    _check_keywords(schema, {"type", "items", "uniqueItems", "minItems", "maxItems"}, "the schema")
    if schema.get("type") != "array":
        raise ValueError(f'the schema must have "type": "array", got {schema.get("type")!r}.')
    if schema.get("uniqueItems") is not True:
        raise ValueError('the schema must have "uniqueItems": true; a list with duplicates is not a set.')
    if "items" not in schema:
        raise ValueError('the schema must have "items", such as {"enum": ["joy", "love"]}.')
    least, most = _read_count(schema, "minItems"), _read_count(schema, "maxItems")
    if most is not None and most < (least or 0):
        raise ValueError(f"maxItems {most} is below minItems {least}.")
    return SetSchema(_read_labels(schema["items"]), least or 0, most)


def _read_labels(items: Any) -> list[str] | None:
    _check_object(items, '"items"')
    _check_keywords(items, {"type", "enum", "const"}, '"items"')
    if items.get("type", "string") != "string":
        raise ValueError(f'"items" must be strings, got "type": {items["type"]!r}.')
    if "enum" in items and "const" in items:
        raise ValueError('"items" must have "enum" or "const", not both.')
    labels = [items["const"]] if "const" in items else items.get("enum")
    if labels is None:
        if "type" not in items:
            raise ValueError('"items" must have "enum", or "type": "string" for any labels.')
        return None
    if not isinstance(labels, list) or not labels or not all(isinstance(label, str) for label in labels):
        raise ValueError(f'"enum" must be a list of strings, got {labels!r}.')
    return list(dict.fromkeys(labels))


def _read_count(schema: Mapping[str, Any], name: str) -> int | None:
    count = schema.get(name)
    if name in schema and (type(count) is not int or count < 0):
        raise ValueError(f"{name} must be an integer of at least 0, got {count!r}.")
    return count


def _check_object(value: Any, what: str) -> None:
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} must be an object, got {value!r}.")


def _check_keywords(schema: Mapping[str, Any], known: set[str], what: str) -> None:
    for keyword in schema:
        if keyword not in known and keyword not in _NOTES:
            raise ValueError(f'{what} has the keyword "{keyword}", which a set constraint does not support.')
