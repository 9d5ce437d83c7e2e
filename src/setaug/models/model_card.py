"""The model card: ``README.md`` of a model folder, with the metadata that the Hugging Face Hub reads."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setaug.terminal import printable

if TYPE_CHECKING:
    from setaug.orders.statistics import LabelStatistics

MODEL_CARD = "README.md"
PLACE = "path/to/this/folder"
"""Placeholder for the model's name on the Hub."""
HUB_NAME = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*)(?:@(?P<revision>[\w./-]+))?")
_N_LABELS = 50
_PLAIN = frozenset(" -.,/")

_USE = """\
```python
from setaug import load_model

model = load_model("{place}")
print(model.predict(["a text"])[0].labels)
```

```bash
pip install 'setaug[train]'
echo '{{"text": "a text"}}' | setaug predict {place} -
```
"""


def is_hub_name(name: str) -> bool:
    """Return whether a name looks like a name on the Hub: ``org/name``, or ``org/name@revision``.

    Examples
    --------
    >>> [is_hub_name(name) for name in ("org/topics", "org/topics@v1", "run", "run/", "./run", "a/b/c")]
    [True, True, False, False, False, False]

    """
    return HUB_NAME.fullmatch(name) is not None


def dev_f1(record: dict[str, Any]) -> float | None:
    """Return the mean F1 on dev data of what the model predicts; None without dev data."""
    found: float | None = (record.get("chosen") or {}).get("f1", record.get("best_f1"))
    return found


def make_model_card(card: dict[str, Any], statistics: "LabelStatistics") -> str:
    """Return the model card from ``setaug.json`` and the label statistics of the training data."""
    settings, record = card["settings"], card["record"]
    counts = statistics.most_common()
    data = {
        "training examples": record.get("n_examples"),
        "dev examples": record.get("n_dev"),
        "different labels": len(counts),
        "labels per training example": f"{sum(n for _, n in counts) / max(statistics.n_sets, 1):.2f}",
        "largest training set": card["largest"],
    }
    scores = {
        "mean F1 of the sets, dev data": _rounded(dev_f1(record)),
        "weights of the members": _members(record.get("chosen") or {}),
        "updates": record.get("n_updates"),
        "seconds of training": record.get("seconds"),
    }
    labels = [f"| {escaped(label)} | {n:,} |" for label, n in counts[:_N_LABELS]]
    more = len(counts) - len(labels)
    parts = [
        f"---\n{_metadata(settings, record)}\n---",
        f"# A {card['kind']} of label sets",
        "This model predicts the set of labels of a text. It was trained with setaug, from "
        f"{escaped(str(settings['model']))}.",
        "## How to use it",
        _USE.format(place=PLACE).rstrip(),
        "## Training data",
        _table(data),
        "## Scores",
        "The dev data selected the checkpoint and how sets are chosen, so this is no test score.",
        _table(scores),
        "## Labels",
        "The known labels, those that are most frequent in the training data first"
        + (f" ({more:,} more are in statistics.json):" if more else ":"),
        "\n".join(["| label | examples |", "|---|---:|", *labels]),
        "## Settings",
        _table(dict(_flat(settings))),
        "## Versions",
        _table(record.get("versions") or {}),
    ]
    return "\n\n".join(parts) + "\n"


def _members(chosen: dict[str, Any]) -> str | None:
    """Return how much decoder, label head and companion count, if there are several."""
    names = chosen.get("members", ())
    pairs = zip(names, chosen.get("weights", ()), strict=False)
    return ", ".join(f"{name.replace('_', ' ')} {weight:.2f}" for name, weight in pairs) if len(names) > 1 else None


def make_ensemble_card(card: dict[str, Any]) -> str:
    """Return the model card of an ensemble."""
    pairs = zip(card["members"], card["mixture"]["weights"], strict=True)
    members = {f"member-{number}, {kind}": f"weight {weight:.2g}" for number, (kind, weight) in enumerate(pairs, 1)}
    parts = [
        "---\nlibrary_name: setaug\npipeline_tag: text-classification\ntags:\n- setaug\n- multi-label\n---",
        "# An ensemble of models of label sets",
        "This model predicts the set of labels of a text, from a weighted mean of the label probabilities of several "
        "models. It was made with setaug.",
        "## How to use it",
        _USE.format(place=PLACE).rstrip(),
        "## Members",
        _table(members),
        "## Scores",
        "The dev data weighted the members, so this is no test score.",
        _table({"mean F1 of the sets, dev data": _rounded(card["f1"])}),
    ]
    return "\n\n".join(parts) + "\n"


def _metadata(settings: dict[str, Any], record: dict[str, Any]) -> str:
    from huggingface_hub import EvalResult, ModelCardData

    model = str(settings["model"])
    f1 = dev_f1(record)
    result = {} if f1 is None else {"metric_type": "f1", "metric_value": _rounded(f1), "metric_name": "mean F1 of sets"}
    results = (
        EvalResult(task_type="text-classification", dataset_type="dev", dataset_name="dev data", **result)
        if result
        else None
    )
    text: str = ModelCardData(
        library_name="setaug",
        pipeline_tag="text-classification",
        tags=["setaug", "multi-label", "set-generation"],
        base_model=model if is_hub_name(model) and not Path(model).exists() else None,
        model_name="setaug",
        eval_results=None if results is None else [results],
    ).to_yaml()
    return text.rstrip()


def _flat(settings: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found = []
    for name, value in settings.items():
        found += _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(prefix + name, value)]
    return found


def _table(rows: dict[str, Any]) -> str:
    shown = (f"| {escaped(name)} | {escaped(_text(value))} |" for name, value in rows.items())
    return "\n".join(["| | |", "|---|---|", *shown])


def _text(value: Any) -> str:
    if isinstance(value, list) and len(value) > _N_LABELS:
        return f"{len(value):,} values"
    return "" if value is None else f"{value:,}" if type(value) is int and value >= 10_000 else str(value)


def _rounded(score: Any) -> Any:
    return round(score, 4) if isinstance(score, float) else score


def escaped(text: str) -> str:
    r"""Return text for Markdown: whatever could be markup is a character reference.

    Examples
    --------
    >>> escaped("new york"), escaped("a|*b*\n<i>")
    ('new york', 'a&#124;&#42;b&#42;&#92;n&#60;i&#62;')

    """
    return "".join(char if char.isalnum() or char in _PLAIN else f"&#{ord(char)};" for char in printable(text))
