import pytest

from setaug.datasets import DATASETS, parse_name


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("ufet", "ufet"),
        (" ufet ", "ufet"),
        ("ufet[train600,min2]", "ufet[min2,train600]"),
        ("kp20k[ train10 , min3,absent ]", "kp20k[absent,min3,train10]"),
        ("reuters[min1]", "reuters[min1]"),
        ("ufet[min2,span]", "ufet[span,min2]"),
        *((entry.paper_variant, entry.paper_variant) for entry in DATASETS.values()),
    ],
)
def test_a_name_is_written_in_one_way(name: str, canonical: str) -> None:
    assert str(parse_name(name)) == canonical
    assert str(parse_name(canonical)) == canonical


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("imdb", "unknown dataset 'imdb'; use one of go-emotions, ufet, reuters, kp20k"),
        ("", "unknown dataset ''"),
        ("ufet[min2", r"unknown dataset 'ufet\[min2'"),
        ("ufet[min2][train3]", "unknown dataset"),
        ("ufet[min2]x", "unknown dataset"),
        ("ufet[]", r"ufet has no filter ''; use minN \(keep examples with at least N labels, in all splits\), trainN"),
        ("ufet[min0]", "ufet has no filter 'min0'"),
        ("ufet[min-1]", "ufet has no filter 'min-1'"),
        ("ufet[train0]", "ufet has no filter 'train0'"),
        ("ufet[min]", "ufet has no filter 'min'"),
        ("ufet[min2,]", "ufet has no filter ''"),
        ("ufet[absent]", "ufet has no filter 'absent'"),
        (
            "kp20k[abstract]",
            r"kp20k has no filter 'abstract'; .*, absent \(keep only keyphrases that do not occur in the",
        ),
        ("reuters[span]", "reuters has no filter 'span'"),
        ("ufet[min2,min3]", "two filters of the same kind; remove 'min3'"),
        ("kp20k[present,absent]", "two filters of the same kind; remove 'absent'"),
    ],
)
def test_a_name_that_makes_no_sense_is_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_name(name)


def test_the_registry_holds_together() -> None:
    for name, entry in DATASETS.items():
        assert entry.name == name
        assert entry.help
        assert (entry.paper is None) == (entry.paper_variant is None)
        assert entry.paper_variant is None or parse_name(entry.paper_variant).dataset == name
