"""The parameters of a set in a request to a server."""

import pytest

from setaug import SetCodec
from setaug.decoding.set_request import LISTS_VARIABLE, SetRequest


@pytest.mark.parametrize("sizes", [None, (2,), (1, 2, 5)])
@pytest.mark.parametrize("labels", [None, ("joy", "New York", "a|b", "x", "y")])
@pytest.mark.parametrize("codec", [SetCodec(), SetCodec(separator=" ; ", with_size=False), SetCodec(written_as="json")])
def test_parameters_are_read_back(labels, sizes, codec):
    request = SetRequest(labels=labels, sizes=sizes, codec=codec)
    assert SetRequest.read({**request.parameters(), "temperature": 0}) == request


@pytest.mark.parametrize(("given", "expected"), [(3, (3,)), ([3, 1, 3], (1, 3)), ("2-4", (2, 3, 4)), ("0-0", (0,))])
def test_sizes_are_a_number_a_list_or_a_range(given, expected):
    assert SetRequest.read({"set_labels": "*", "set_sizes": given}).sizes == expected


@pytest.mark.parametrize("given", [-1, 1.0, True, [], [1, "2"], "", "4-2", "1-", "-1", "1-2-3", "0-99999", {}, None])
def test_other_sizes_are_refused(given):
    with pytest.raises(ValueError, match="set_sizes must be a number"):
        SetRequest.read({"set_labels": "*", "set_sizes": given})


def test_a_request_without_parameters_asks_for_no_set():
    assert SetRequest.read(None) is SetRequest.read({}) is SetRequest.read({"settings": 1}) is None


def test_lists_of_the_server_are_known_by_name(tmp_path, monkeypatch):
    monkeypatch.delenv(LISTS_VARIABLE, raising=False)
    with pytest.raises(ValueError, match="it has none"):
        SetRequest.read({"set_labels": "moods"})
    monkeypatch.setenv(LISTS_VARIABLE, str(tmp_path))
    (tmp_path / "moods.txt").write_text("joy\n\nlove\njoy\n", encoding="utf-8")
    (tmp_path / "none.txt").write_text("\n", encoding="utf-8")
    assert SetRequest.read({"set_labels": "moods"}).labels == ("joy", "love")
    with pytest.raises(ValueError, match="it has moods, none"):
        SetRequest.read({"set_labels": "../moods"})
    with pytest.raises(ValueError, match='"none" is empty'):
        SetRequest.read({"set_labels": "none"})
