"""Reuters-21578 (Lewis 1997): newswire stories with their topics, in the ModApte split.

Of the stories with topics (``TOPICS="YES"``), 9,603 are for training and 3,299 for testing (``LEWISSPLIT``). Only the
ninety topics that occur in both count, and only stories with one of them: 7,770 and 3,019. A quarter of the training
stories becomes dev.

A text is ``title. body`` with white space collapsed: the title alone if there is no body, the whole text if there is no
markup.
"""

import html
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from setaug.datasets.entry import Dataset, DatasetEntry, DatasetStatistics, choose, make_example
from setaug.datasets.files import Distribution, Files
from setaug.errors import DataError
from setaug.examples import Example

_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_TOPIC = re.compile(r"<D>(.*?)</D>", re.DOTALL)


class Story(NamedTuple):
    """A story that ModApte uses."""

    key: str
    split: str
    text: str
    topics: tuple[str, ...]


def _read(files: Files) -> Dataset:
    """Read the stories, keep topics of both splits, and hold out a quarter of training as dev."""
    stories = [story for name in files.names for story in read_stories(files.read(name), name)]
    train, test = ([story for story in stories if story.split == split] for split in ("TRAIN", "TEST"))
    known = {topic for story in train for topic in story.topics} & {topic for story in test for topic in story.topics}
    labelled = _examples(train, known)
    dev = choose(labelled, len(labelled) // 4)
    held_out = {example.id for example in dev}
    return Dataset(
        name="reuters",
        train=[example for example in labelled if example.id not in held_out],
        dev=dev,
        test=_examples(test, known),
        labels=tuple(sorted(known)),
    )


def _examples(stories: Iterable[Story], known: set[str]) -> list[Example]:
    kept = ((story, [topic for topic in story.topics if topic in known]) for story in stories)
    return [make_example(story.text, topics, story.key) for story, topics in kept if topics]


def read_stories(content: bytes, name: str) -> Iterator[Story]:
    """Return the stories of a file that ModApte uses for training or testing."""
    _, *stories = content.decode("latin-1").split("<REUTERS")  # one of the files has a byte outside ASCII
    for at, story in enumerate(stories):
        head, _, rest = story.partition(">")
        attributes = dict(_ATTRIBUTE.findall(head))
        body, end, _ = rest.partition("</REUTERS>")
        try:
            if not end:
                raise KeyError("</REUTERS>")
            if attributes["TOPICS"] == "YES" and attributes["LEWISSPLIT"] in ("TRAIN", "TEST"):
                yield Story(attributes["NEWID"], attributes["LEWISSPLIT"], _text(body), _topics(body))
        except KeyError as error:
            before = content.split(b"<REUTERS", at + 1)[: at + 1]
            line = sum(part.count(b"\n") for part in before) + 1
            raise DataError(f"a story has no {error.args[0]}.", source=name, line=line) from None
    if not stories:
        raise DataError("the file contains no story (<REUTERS ...>).", source=name)


def _topics(story: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_plain, _TOPIC.findall(_inside(story, "TOPICS")))))


def _text(story: str) -> str:
    text = _inside(story, "TEXT")
    parts = [_plain(_inside(text, name)) for name in ("TITLE", "BODY") if f"<{name}>" in text]
    return ". ".join(filter(None, parts)) if parts else _plain(text)


def _inside(text: str, name: str) -> str:
    """Return the content of an element."""
    start = text.find(">", text.find(f"<{name}")) + 1
    end = text.find(f"</{name}>", start)
    if f"<{name}" not in text or end < 0:
        raise KeyError(f"<{name}>")
    return text[start:end]


def _plain(text: str) -> str:
    """Decode entities and collapse white space."""
    return " ".join(html.unescape(text).split())


ENTRY = DatasetEntry(
    name="reuters",
    help="newswire stories with their topics, in the ModApte split",
    distribution=Distribution(
        title="Reuters-21578",
        folder="reuters",
        layouts=[tuple(f"reut2-{number:03}.sgm" for number in range(22))],
        expected="reut2-000.sgm to reut2-021.sgm",
        origin="kdd.ics.uci.edu or archive.ics.uci.edu, as reuters21578.tar.gz",
        checksums={
            "reut2-000.sgm": "0ec53cda8f6d605a3ba710df14be7f00fc02f0c222a14748101df22326afe0f6",
            "reut2-001.sgm": "1528e7e82d110d88d0234eb9619eadb7f9fd805711971df05975b92277dfdf4d",
            "reut2-002.sgm": "99f18068d0518952987dedd78c622e5c2a584e357d264d3754696c815f3e6628",
            "reut2-003.sgm": "78a3a8d7e04bc9d42c4614d5d5c60a4293dbe3f708df6fb5a71d9ef31f4b3fa3",
            "reut2-004.sgm": "726342c19a65873330b412378cd6a3f0d512035f5223146ddd60930c62eb6ff0",
            "reut2-005.sgm": "d09de619b6dd2d047d5124681f6df90550abaf592020d1c1ce338ae9b91522e7",
            "reut2-006.sgm": "b5535c0d66b01f4976f84621a4a795afbc00d2c4bd0a1b7ae426df6630fb361d",
            "reut2-007.sgm": "aa706007ec84a03537a3921ca976d60e11b3f99e4b9e9b2d5c81dd384d2c2062",
            "reut2-008.sgm": "a3994583694a00b7c744097c1d7eabfcf90f2e6650cc21663e46828035a336cb",
            "reut2-009.sgm": "29995f606dd1a9bdf907eacc9d879846c716860d9d9141676979474aaea39c7d",
            "reut2-010.sgm": "996df6008089bd09fa5b28a4d2eb0ee5f7b9d4601cde566fed3926ac82960fa3",
            "reut2-011.sgm": "d3a2782015247d9c2bffb8926267827fdd449c70d619435ef01a25a1c56a53ca",
            "reut2-012.sgm": "da31035d483851f2aebce5b66d779e5e2c0ac9dcfe098596c6d544e81c5604ab",
            "reut2-013.sgm": "8f7700bc0455fac3fcc12377ced4807b7df8aba1f21ecad059b9cc2b1cf0b8be",
            "reut2-014.sgm": "ef936bd3e0f36cf722afa9a6957563549775af32e9e28b4f539c8737ceda83ab",
            "reut2-015.sgm": "6d3bcec73eff871b8a5403588af814c4e50a0de6bc25707480522ab836f74026",
            "reut2-016.sgm": "be2f03a185fff70131f3b4fdbd6229b7ee2be077eba9691eaa597c8cfbda8812",
            "reut2-017.sgm": "f370e610b4b1342e41a98e0c426a08541044bd1d7e539674f32372a6060b73b5",
            "reut2-018.sgm": "a5f971bf25448e915781962309e669359a35fbcaf3017a806eca0590897f209a",
            "reut2-019.sgm": "d3b07097fba2633d130b4914aceba671645985248943ce9e39c289315339dffb",
            "reut2-020.sgm": "f6ad1b724125c202566c63b35ea0b5ee23881f8b7ed47a32829d5af05d8e860d",
            "reut2-021.sgm": "3f5196d32869723c9042aa5756805b4e90360f1f45ea17f4594fa0e2b3630b18",
        },
    ),
    read=_read,
    score="macro_f1",
    paper_variant="reuters[min2]",
    paper=DatasetStatistics(
        mean_labels=2.52, min_labels=2, max_labels=11, n_labels=90, n_train=900, n_test=400, n_dev=300
    ),
)
