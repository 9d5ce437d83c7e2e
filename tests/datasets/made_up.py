"""Small data sets in the forms in which the real ones are distributed."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

EMOTIONS = ("joy", "pride", "fear", "grief")
GO_EMOTIONS = {
    "train": [("We won!", "0,1", "a1"), ('He said "no\u2028', "2", "a2"), ("All three", "3,2,0", "a3")],
    "dev": [("Who is there?", "2", "b1")],
    "test": [("We lost.", "3", "c1"), ("We lost, then won.", "3,0", "c2")],
}


def write_go_emotions(folder: Path, *, emotions: str = "emotions.txt") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / emotions).write_text("\n".join(EMOTIONS))
    for split, rows in GO_EMOTIONS.items():
        lines = "".join("\t".join(row) + "\n" for row in rows)
        (folder / f"{split}.tsv").write_text(lines, encoding="utf-8", newline="")
    return folder


def ufet_row(mention: str, types: Sequence[str], key: str | None) -> dict[str, object]:
    row = {
        "mention_span": mention,
        "y_str": types,
        "left_context_token": ["Then"],
        "right_context_token": ["came", "."],
    }
    return row if key is None else {**row, "annot_id": key}


UFET = {
    "train": [ufet_row("the queen", ["person", "ruler", "person"], "x:1"), ufet_row("it", [], "x:2")],
    "dev": [ufet_row("a storm", ["event"], "x:3")],
    "test": [ufet_row("she", ["person", "woman"], "x:4")],
}


def write_ufet(
    folder: Path, rows: Mapping[str, Sequence[Mapping[str, object]]] = UFET, *, types: str = "types.txt"
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / types).parent.mkdir(parents=True, exist_ok=True)
    (folder / types).write_text("person\nruler\nevent\nwoman\nplace\n")
    for split, each in rows.items():
        (folder / f"{split}.json").write_text("".join(json.dumps(row) + "\n" for row in each))
    return folder


def story(
    key: int,
    topics: Sequence[str],
    *,
    split: str = "TRAIN",
    has_topics: str = "YES",
    text: str = "<TEXT>&#2;\n<TITLE>A TITLE</TITLE>\n<DATELINE> X - </DATELINE><BODY>A\n   body.\n&#3;</BODY></TEXT>",
) -> str:
    listed = "".join(f"<D>{topic}</D>" for topic in topics)
    return (
        f'<REUTERS TOPICS="{has_topics}" LEWISSPLIT="{split}" CGISPLIT="TRAINING-SET" OLDID="9" NEWID="{key}">\n'
        f"<DATE>26-FEB-1987</DATE>\n<TOPICS>{listed}</TOPICS>\n<PLACES><D>usa</D></PLACES>\n{text}\n</REUTERS>\n"
    )


HEAD = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'


def write_reuters(folder: Path) -> Path:
    """Write 22 files: in each a story for training on wheat, the last with others for testing and for nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(22):
        stories = story(number, ["wheat", "grain"] if number % 2 else ["wheat"])
        if number == 21:
            stories += story(100, ["grain", "wheat", "rare"], split="TEST") + story(101, ["rare"], split="TEST")
            stories += story(102, [], split="TEST") + story(103, ["wheat"], has_topics="NO")
            stories += story(104, ["wheat"], split="NOT-USED") + story(105, ["lonely"])
        (folder / f"reut2-{number:03}.sgm").write_text(HEAD + stories, encoding="latin-1")
    return folder


KP20K = {
    "train": [
        ("sorting networks . <eos> we sort with networks .", "sorting network;<peos>;parallel algorithm;hardware;"),
        ("hashing ? <eos> tables , mostly .", "<peos>;dictionary"),
    ],
    "valid": [("graphs . <eos> on graphs .", "graph;graph; ;trees")],
    "test": [("a title . <eos> an abstract .", "title;abstract;other")],
}


def write_kp20k(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in KP20K.items():
        (folder / f"{split}_src.txt").write_text("".join(text + "\n" for text, _ in rows))
        (folder / f"{split}_trg.txt").write_text("".join(phrases + "\n" for _, phrases in rows))
    return folder


def write_all(folder: Path) -> Path:
    write_go_emotions(folder / "goemotions")
    write_ufet(folder / "ufet")
    write_reuters(folder / "reuters21578")
    write_kp20k(folder / "KP-20k_small")
    return folder
