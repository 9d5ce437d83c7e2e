import pytest

from setaug.benchmarks import PAPER_STATISTICS, PAPER_VARIANTS, parse_name


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("ufet", "ufet"),
        (" ufet ", "ufet"),
        ("ufet[train600,min2]", "ufet[min2,train600]"),
        ("kp20k[ train10 , min3,absent ]", "kp20k[absent,min3,train10]"),
        ("reuters[min1]", "reuters[min1]"),
        *((name, name) for name in PAPER_VARIANTS.values()),
    ],
)
def test_a_name_is_written_in_one_way(name: str, canonical: str) -> None:
    assert str(parse_name(name)) == canonical
    assert str(parse_name(canonical)) == canonical


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("imdb", "there is no benchmark 'imdb'; there are go-emotions, ufet, reuters, kp20k"),
        ("", "there is no benchmark ''"),
        ("ufet[min2", r"there is no benchmark 'ufet\[min2'"),
        ("ufet[min2][train3]", "there is no benchmark"),
        ("ufet[min2]x", "there is no benchmark"),
        ("ufet[]", r"ufet has no filter ''; there are minN \(at least N labels\), trainN"),
        ("ufet[min0]", "ufet has no filter 'min0'"),
        ("ufet[min-1]", "ufet has no filter 'min-1'"),
        ("ufet[train0]", "ufet has no filter 'train0'"),
        ("ufet[min]", "ufet has no filter 'min'"),
        ("ufet[min2,]", "ufet has no filter ''"),
        ("ufet[absent]", "ufet has no filter 'absent'.*for kp20k present and absent"),
        ("ufet[min2,min3]", "more than one filter of the kind of 'min3'"),
        ("kp20k[present,absent]", "more than one filter of the kind of 'absent'"),
    ],
)
def test_a_name_that_makes_no_sense_is_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_name(name)


def test_there_are_numbers_of_the_paper_for_the_papers_variants() -> None:
    assert list(PAPER_STATISTICS) == list(PAPER_VARIANTS.values())
