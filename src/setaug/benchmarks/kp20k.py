"""KP20k (Meng et al. 2017): titles and abstracts of papers with their authors' keyphrases.

Two forms are read. One2Set's (Ye et al. 2021) has texts, ``title . <eos> abstract``, and keyphrases, separated by
``;``, in two files, split into words and in lower case. The other has JSON lines with "title", "abstract" and
"keyword" or "keywords". A text is ``title . abstract`` in both.
"""

from collections.abc import Iterator, Mapping
from io import BufferedReader
from itertools import zip_longest
from typing import Any, cast

from setaug.benchmarks.benchmark import Benchmark, make_example
from setaug.benchmarks.distribution import Distribution, Files, decode_line
from setaug.errors import DataError, FileError
from setaug.examples import Example, json_lines, parse_json_row, shown
from setaug.files import open_input

_SPLITS = ("train", "valid", "test")
DISTRIBUTION = Distribution(
    title="KP20k",
    folder="kp20k",
    layouts=[
        tuple(f"{split}_{side}.txt" for split in _SPLITS for side in ("src", "trg")),
        ("kp20k_training.json", "kp20k_validation.json", "kp20k_testing.json"),
        ("train.jsonl", "valid.jsonl", "test.jsonl"),
        ("train.json", "valid.json", "test.json"),
    ],
    expected="train_src.txt, train_trg.txt and the same of valid and test, or kp20k_training.json, "
    "kp20k_validation.json and kp20k_testing.json, or train.json, valid.json and test.json",
    origin="memray/seq2seq-keyphrase (JSON) and jiacheng-ye/kg_one2set (the others) on GitHub",
)


def read_kp20k(files: Files) -> Benchmark:
    """Read the splits, in either form."""
    if files.names[0].endswith("_src.txt"):
        train, dev, test = (list(_read_texts(files, split)) for split in _SPLITS)
    else:
        train, dev, test = (list(_read_json(files, *each)) for each in zip(files.names, _SPLITS, strict=True))
    return Benchmark(name="kp20k", train=train, dev=dev, test=test, labels=None)


def _read_texts(files: Files, split: str) -> Iterator[Example]:
    source, target = f"{split}_src.txt", f"{split}_trg.txt"
    with open_input(files.folder / source) as raw_texts, open_input(files.folder / target) as raw_phrases:
        # A raw file is read byte by byte when it is asked for lines.
        texts, phrases = (BufferedReader(cast(Any, raw), 1 << 20) for raw in (raw_texts, raw_phrases))
        for number, (text, listed) in enumerate(zip_longest(texts, phrases), 1):
            if text is None or listed is None:
                shorter = source if text is None else target
                raise FileError(f"{source} and {target} do not belong together: {shorter} ends before line {number}.")
            title, _, abstract = decode_line(text, source, number).partition("<eos>")
            yield make_example(
                make_text(title, abstract), _phrases(decode_line(listed, target, number)), f"{split}-{number}"
            )


def _read_json(files: Files, name: str, split: str) -> Iterator[Example]:
    with open_input(files.folder / name) as stream:
        for number, line in json_lines(stream):
            try:
                yield read_row(parse_json_row(line), f"{split}-{number}")
            except DataError as error:
                raise DataError(error.problem, source=name, line=number) from None


def read_row(row: Mapping[str, Any], key: str) -> Example:
    """Make an example of a row with "title", "abstract" and "keyword" or "keywords"."""
    return make_example(make_text(_string(row, "title"), _string(row, "abstract")), _phrases(_keywords(row)), key)


def make_text(title: str, abstract: str) -> str:
    """Write title and abstract as one text.

    Examples
    --------
    >>> make_text("sorting in parallel . ", " we sort .")
    'sorting in parallel . we sort .'

    """
    return " . ".join(filter(None, (" ".join(title.split()).removesuffix(".").rstrip(), " ".join(abstract.split()))))


def _phrases(listed: str | list[str]) -> list[str]:
    """Give the different phrases in order; ``<peos>`` only separates those that are in the text from the others."""
    phrases = listed.split(";") if isinstance(listed, str) else listed
    plain = (" ".join(phrase.split()) for phrase in phrases)
    return list(dict.fromkeys(phrase for phrase in plain if phrase and phrase != "<peos>"))


def _string(row: Mapping[str, Any], name: str) -> str:
    text = row.get(name)
    if not isinstance(text, str):
        raise DataError(f'"{name}" must be a string, got {shown(text)}.')
    return text


def _keywords(row: Mapping[str, Any]) -> str | list[str]:
    keywords = row.get("keyword", row.get("keywords"))
    if isinstance(keywords, str):
        return keywords
    if isinstance(keywords, list) and all(isinstance(keyword, str) for keyword in keywords):
        return keywords
    raise DataError(
        f'"keyword" or "keywords" must be strings, in a list or with ; between them, got {shown(keywords)}.'
    )
