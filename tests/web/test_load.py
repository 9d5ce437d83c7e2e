"""Many clients at once: right answers, or none and a reason; then all is well again."""

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from setaug.models import SetGenerator
from setaug.sample import sample_examples
from setaug.web import Limits
from tests.web.serving import Server, serving

TEXTS = [example.text for example in sample_examples(96, seed=3)]


@pytest.fixture
def small(generator: SetGenerator) -> Iterator[Server]:
    with serving(model=generator, limits=Limits(waiting_texts=12, batch_size=4)) as found:
        yield found


def test_over_the_limit_some_are_turned_away_and_no_answer_is_wrong(small: Server, generator: SetGenerator) -> None:
    expected = {text: generator.predict([text])[0].to_dict() for text in TEXTS}

    def one(text: str) -> int:
        status, content = small.ask("/api/predict", {"texts": [text]})
        if status == 200:
            assert json.loads(content)["predictions"] == [expected[text]]
        else:
            assert "try again later" in json.loads(content)["error"]
        return status

    with ThreadPoolExecutor(64) as pool:
        statuses = Counter(pool.map(one, TEXTS))
    assert set(statuses) == {200, 503}
    assert statuses.total() == len(TEXTS)
    assert [one(text) for text in TEXTS[:5]] == [200] * 5


def test_what_computes_is_bounded_too() -> None:
    line = b'{"text": "x", "labels": ["a", "b"]}\n'
    with serving(limits=Limits(waiting=3)) as found:
        key = found.json("/api/datasets", line * 2000)["id"]

        def one(at: int) -> int:
            return found.ask(f"/api/datasets/{key}/statistics", min_ratio=1 + at, diagnosis="false")[0]

        with ThreadPoolExecutor(32) as pool:
            assert {200, 503} == set(pool.map(one, range(64)))
        assert one(100) == 200
