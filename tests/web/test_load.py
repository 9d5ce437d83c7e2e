"""Many clients at once: right answers, or none and a reason; then all is well again."""

import http.client
import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from setaug.models import SetGenerator
from setaug.sample import sample_examples
from setaug.web import Limits
from tests.web.serving import Server, serving

TEXTS = [example.text for example in sample_examples(192, seed=3)]


@pytest.fixture
def small(generator: SetGenerator) -> Iterator[Server]:
    with serving(model=generator, limits=Limits(waiting_texts=6, batch_size=4)) as found:
        yield found


def test_over_the_limit_some_are_turned_away_and_no_answer_is_wrong(small: Server, generator: SetGenerator) -> None:
    expected = {text: generator.predict([text])[0].as_row() for text in TEXTS}

    def one(text: str) -> int:
        status, content = small.ask("/api/predict", {"texts": [text]})
        if status == 200:
            assert json.loads(content)["predictions"] == [expected[text]]
        else:
            assert "try again soon" in json.loads(content)["error"]
        return status

    with ThreadPoolExecutor(64) as pool:
        statuses = Counter(pool.map(one, TEXTS))
    assert set(statuses) == {200, 503}
    assert statuses.total() == len(TEXTS)
    assert [one(text) for text in TEXTS[:5]] == [200] * 5


def test_what_computes_is_bounded_too() -> None:
    line = b'{"text": "x", "labels": ["a", "b"]}\n'
    with serving(limits=Limits(computing=1, waiting=1)) as found:
        key = found.json("/api/datasets", line * 2000)["id"]

        def one(at: int) -> int:
            return found.ask(f"/api/datasets/{key}/statistics", min_ratio=1 + at, diagnosis="false")[0]

        with ThreadPoolExecutor(32) as pool:
            assert {200, 503} == set(pool.map(one, range(64)))
        assert one(100) == 200


def test_only_so_many_files_are_sent_at_once() -> None:
    line = json.dumps({"text": "x" * 1000, "labels": ["a", "b"]}).encode() + b"\n"
    with serving(limits=Limits(downloads=2)) as found:
        key = found.json("/api/datasets", line * 4000)["id"]
        slow = [http.client.HTTPConnection(urlsplit(found.url).netloc, timeout=30) for _ in range(2)]
        for connection in slow:  # they ask for 80 MB, and do not read them
            connection.request("GET", f"/api/datasets/{key}/augment?orders=20")
            connection.getresponse().read(1)
        assert "try again soon" in found.refused(503, f"/api/datasets/{key}/augment")
        for connection in slow:
            connection.close()
        for _ in range(100):
            status, content = found.ask(f"/api/datasets/{key}/augment", orders=0)
            if status == 200:
                break
            time.sleep(0.05)  # until it is seen that nobody reads
        assert content.count(b"\n") == 4000
