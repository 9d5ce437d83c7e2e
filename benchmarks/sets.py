"""Write GoEmotions (at least 3 labels) and open entity typing (at least 2) as JSON lines, from their authors' files.

    python benchmarks/sets.py DATA_DIR OUT_DIR [--ufet-train 900]

DATA_DIR holds the folders goemotions and ufet.
"""

import argparse
import csv
import json
from collections.abc import Iterator
from pathlib import Path

Row = tuple[str, str, list[str]]
"""An id, a text, its labels."""


def go_emotions(folder: Path, split: str) -> Iterator[Row]:
    """Read comments with their emotions."""
    names = (folder / "labels.txt").read_text(encoding="utf-8").split()
    with (folder / f"{split}.tsv").open(encoding="utf-8", newline="") as lines:
        for text, labels, key in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield key, text, [names[int(label)] for label in labels.split(",")]


def entity_types(folder: Path, split: str) -> Iterator[Row]:
    """Read sentences with a marked mention, and the types of what it names."""
    with (folder / f"{split}.json").open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            row = json.loads(line)
            before, after = " ".join(row["left_context_token"]), " ".join(row["right_context_token"])
            text = f"{row['mention_span']} : {before} [ {row['mention_span']} ] {after}"
            yield f"{split}-{number}", text, list(dict.fromkeys(row["y_str"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--ufet-train", type=int, help="take only so many training rows of open entity typing")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name, read, least in (("goemotions", go_emotions, 3), ("ufet", entity_types, 2)):
        for split in ("train", "dev", "test"):
            rows = [row for row in read(options.data / name, split) if len(row[2]) >= least]
            if name == "ufet" and split == "train":
                rows = rows[: options.ufet_train]
            target = options.out / f"{name}-{split}.jsonl"
            with target.open("w", encoding="utf-8") as lines:
                for key, text, labels in rows:
                    lines.write(json.dumps({"id": key, "text": text, "labels": labels}, ensure_ascii=False) + "\n")
            print(f"{target}: {len(rows)} examples")


if __name__ == "__main__":
    main()
