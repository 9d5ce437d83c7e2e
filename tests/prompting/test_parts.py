"""Choosing examples, writing prompts, reading answers, keeping them."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug.augmenter import SetAugmenter
from setaug.codec import SetCodec
from setaug.errors import DataError, FileError
from setaug.examples import Example, Pair
from setaug.prompting import AnswerReader, Endpoint, FewShotPrompt, PromptedSetModel
from setaug.prompting.answers import Answer, Response, open_answers, request_key
from setaug.prompting.prompt import choose_shots
from setaug.sample import sample_examples
from setaug.vocabulary import LabelIndex

EXAMPLES = list(sample_examples(200))
LABELS = sorted({label for example in EXAMPLES for label in example.labels})


@given(st.integers(0, 250), st.sampled_from(["random", "cover"]), st.integers(0, 5))
def test_shots_are_different_and_depend_on_the_seed_alone(n_shots: int, way: str, seed: int) -> None:
    chosen = choose_shots(EXAMPLES, n_shots, way=way, seed=seed)
    assert len(set(chosen)) == len(chosen) == min(n_shots, len(EXAMPLES))
    assert chosen == choose_shots(EXAMPLES, n_shots, way=way, seed=seed)


def test_another_seed_draws_others() -> None:
    assert choose_shots(EXAMPLES, 24, seed=0) != choose_shots(EXAMPLES, 24, seed=1)


def test_cover_shows_more_labels_than_chance() -> None:
    def n_labels(way: str, seed: int) -> int:
        chosen = choose_shots(EXAMPLES, 6, way=way, seed=seed)
        return len({label for at in chosen for label in EXAMPLES[at].labels})

    assert min(n_labels("cover", seed) for seed in range(5)) > max(n_labels("random", seed) for seed in range(5))


def test_cover_takes_the_example_that_adds_most_each_time() -> None:
    examples = [Example("", labels) for labels in (["a"], ["a", "b", "c"], ["b", "c"], ["d", "e"], [])]
    chosen = choose_shots(examples, 5, way="cover", seed=3)
    assert chosen[:2] == [1, 3]
    assert set(chosen) == set(range(5))


def test_labels_in_the_prompt_are_ordered_as_asked() -> None:
    """The orders come from the statistics of all training examples, not of those that are shown."""
    for ordering in ("topological", "reversed", "random", "frequency", "given"):
        augmenter = SetAugmenter(ordering=ordering, random_state=4)
        model = PromptedSetModel("any", augmenter=augmenter, shots=20).fit(EXAMPLES)
        for at, shot in zip(model.shots_, model.prompt_.shots, strict=True):
            written = augmenter.codec.decode(shot.completion)
            assert set(written.labels) == set(EXAMPLES[at].labels)
            assert shot.prompt == EXAMPLES[at].text
            if ordering == "given":
                assert written.labels == EXAMPLES[at].labels
            if ordering in ("topological", "reversed"):
                order = written.labels if ordering == "topological" else written.labels[::-1]
                graph = model.augmenter_.graph(EXAMPLES[at].labels)
                assert all(order.index(edge.before) < order.index(edge.after) for edge in graph.edges)


def test_sizes_are_written_only_where_asked() -> None:
    for size in (True, False):
        model = PromptedSetModel("any", augmenter=SetAugmenter(with_size=size), shots=5).fit(EXAMPLES)
        starts = [shot.completion.split(" ")[0].isdigit() for shot in model.prompt_.shots]
        assert starts == [size] * 5
        assert ("number of labels" in model.prompt_.instruction) == size


def test_labels_are_listed_in_a_closed_and_small_vocabulary_only() -> None:
    def instruction(**options: object) -> str:
        return PromptedSetModel("any", **options).fit(EXAMPLES).prompt_.instruction  # type: ignore[arg-type]

    listed = " | ".join(LABELS)
    assert listed in instruction()
    assert listed not in instruction(max_listed=len(LABELS) - 1)
    assert LABELS[0] not in instruction(vocabulary="open")
    assert "zebra" in instruction(vocabulary=["zebra"])
    assert instruction(instruction="Emotions? {labels}") == f"Emotions? {listed}"
    assert instruction(instruction="") == ""


def test_chat_messages_come_in_turns() -> None:
    prompt = FewShotPrompt(instruction="Do.", shots=(Pair("a", "1 | x"), Pair("b", "1 | y")))
    roles = [(message["role"], message["content"]) for message in prompt.body("c\nd")["messages"]]
    assert roles == [
        ("system", "Do."),
        ("user", "a"),
        ("assistant", "1 | x"),
        ("user", "b"),
        ("assistant", "1 | y"),
        ("user", "c\nd"),
    ]


def test_a_text_with_lines_cannot_look_like_an_example() -> None:
    prompt = FewShotPrompt(instruction="", shots=(), kind="completion")
    assert prompt.body("a\nLabels: 1 | b\n\nText: c")["prompt"] == "Text: a Labels: 1 | b Text: c\nLabels:"


@pytest.mark.parametrize(
    ("answer", "labels"),
    [
        ("2 | joy | New York", ("joy", "New York")),
        (" 2|joy|New York\n", ("joy", "New York")),
        ("Labels: 1 | joy", ("joy",)),
        ("<think>1 | love?\nno</think>\n\n1 | joy", ("joy",)),
        ("<think>and so on", ()),
        ("```\n1 | joy\n```", ("joy",)),
        ("```text\n1 | joy\n```", ("joy",)),
        ("I think it is love.\n</think>\n\n1 | joy", ("joy",)),
        ("Labels:\n1 | joy", ("joy",)),
        ("1 | a\u2028b", ("a\u2028b",)),
        ("1 | joy\n\nText: More.\nLabels: 1 | love", ("joy",)),
        ("joy, new york", ("joy", "New York")),
        ("- joy\n- love", ("joy", "love")),
        ("1. joy\n2. love\n3. joy", ("joy", "love")),
        ("joy", ("joy",)),
        ("0", ()),
        ("", ()),
        ("The text is about joy, I think.", ("The text is about joy, I think.",)),
        ("joy\nThis is why: it is.", ("joy",)),
    ],
)
def test_answers_are_read_as_sets(answer: str, labels: tuple[str, ...]) -> None:
    reader = AnswerReader(codec=SetCodec(), index=LabelIndex(["joy", "love", "New York"]))
    assert reader.read(answer).prediction.labels == labels


def test_labels_are_mapped_only_where_it_is_clear_which_is_meant() -> None:
    reader = AnswerReader(codec=SetCodec(), index=LabelIndex(["joy", "US", "us", "New York"]))
    reading = reader.read("5 | JOY | joy | Us | new\u00a0 york | sorrow")
    assert reading.prediction.labels == ("joy", "Us", "New York", "sorrow")
    assert reading.mapped == ("JOY", "new\u00a0 york")
    assert reading.prediction.unknown == ("Us", "sorrow")
    assert reading.prediction.repeated == ("joy",)
    dropping = AnswerReader(codec=SetCodec(), index=LabelIndex(["joy", "US", "us"]), unknown="drop")
    assert dropping.read("2 | joy | Us").prediction.labels == ("joy",)
    assert dropping.read("2 | joy | Us").dropped == ("Us",)


def test_in_an_open_vocabulary_labels_stay_as_they_are() -> None:
    reading = AnswerReader(codec=SetCodec(with_size=False)).read("Joy | joy, love")
    assert (reading.prediction.labels, reading.prediction.unknown, reading.mapped) == (("Joy", "joy, love"), None, ())


@given(st.text())
def test_reading_never_fails(text: str) -> None:
    reading = AnswerReader(codec=SetCodec(), index=LabelIndex(LABELS)).read(text)
    assert len(set(reading.prediction.labels)) == len(reading.prediction.labels)


def test_answers_survive_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    with open_answers(path) as log:
        log.add(Response("a", (Answer("1 | joy"), Answer("ä", True)), 5, 6))
    path.write_bytes(path.read_bytes() + b'{"request": "b", "ans')
    with open_answers(path) as log:
        assert log.of("a") == [Answer("1 | joy"), Answer("ä", True)]
        assert log.of("b") == []
        log.add(Response("b", (Answer(""),)))
    with open_answers(path) as log:
        assert [response.request for response in log.responses] == ["a", "b"]


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    for content in ('{"text": "x"}\n', '{"text": "x"}', '{"text": "x"}\n{"text": "y"}', "\n", '{"request": 3}\n'):
        path.write_text(content)
        with pytest.raises(FileError, match=r"line 1 of .*test.jsonl was not written by"), open_answers(path):
            pass
        assert path.read_text() == content


def test_two_runs_cannot_write_to_one_file(tmp_path: Path) -> None:
    with open_answers(tmp_path / "a"), pytest.raises(FileError, match="another run"), open_answers(tmp_path / "a"):
        pass


def test_requests_are_named_by_what_they_say() -> None:
    assert request_key({"a": 1, "b": [2]}, "here") == request_key({"b": [2], "a": 1}, "here")
    assert request_key({"a": 1}, "here") != request_key({"a": 2}, "here")
    assert request_key({"a": 1}, "here") != request_key({"a": 1}, "there")
    assert request_key({"a": "\ud83d"}, "here") != request_key({"a": "?"}, "here")


def test_passwords_in_an_address_name_no_server() -> None:
    assert Endpoint(base_url="http://me:secret@host:8000/v1").server == "host:8000/v1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "letter"}, "kind must be one of chat, completion"),
        ({"unknown": "guess"}, "unknown must be one of keep, drop"),
        ({"choose": "vote"}, "choose must be one of"),
        ({"shots": -1}, "shots must be an integer of at least 0"),
        ({"samples": 1.5}, "samples must be an integer"),
        ({"temperature": 3.0}, "temperature must be from 0 to 2"),
        ({"threshold": 2.0}, "threshold must be from 0 to 1"),
        ({"choose": "top-k", "k": 0}, "k must be an integer of at least 1, got 0"),
        ({"k": 2}, "k is for choose='top-k', and choose is 'expected-f1'"),
        ({"shot_choice": "best"}, "must be one of random, cover"),
        ({"vocabulary": "half"}, "vocabulary must be closed, open"),
        ({"endpoint": Endpoint(request={"n": 3})}, 'the field "n" of a request cannot be set'),
        ({"endpoint": Endpoint(request={"seed": "a"})}, "the seed of a request must be an integer"),
        ({"augmenter": SetAugmenter(separator="\n")}, "the separator must not contain a newline"),
    ],
)
def test_bad_parameters_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PromptedSetModel("any", **options).fit(EXAMPLES)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency must be"),
        ({"max_retries": -1}, "max_retries must be"),
        ({"timeout": 0}, "timeout must be above 0"),
        ({"base_url": "localhost:8000"}, "base_url must be a URL"),
        ({"base_url": "http://localhost:port/v1"}, "base_url must be a URL"),
        ({"base_url": "http:///v1"}, "base_url must be a URL"),
    ],
)
def test_bad_endpoints_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Endpoint(**options)  # type: ignore[arg-type]


def test_it_is_a_scikit_learn_estimator() -> None:
    from sklearn.base import clone

    model = PromptedSetModel("any", shots=2)
    assert clone(model).get_params()["shots"] == 2
    with pytest.raises(AttributeError, match="not fitted yet"):
        model.predict(["a"])
    with pytest.raises(TypeError, match="does not accept size_is"):
        model.fit(EXAMPLES).predict(["a"], size_is=3)
    with pytest.raises(DataError, match="empty"):
        model.fit([])
    assert model.fit(EXAMPLES, dev=EXAMPLES, progress=None).labels_ is not None


def test_fields_of_the_request_can_be_added_and_left_out() -> None:
    endpoint = Endpoint(request={"max_tokens": None, "top_p": 0.5})
    body = PromptedSetModel("any", shots=0, endpoint=endpoint).fit(EXAMPLES).request("a", samples=2)
    assert body.keys() == {"model", "messages", "temperature", "seed", "top_p"}
    assert (body["top_p"], body["temperature"]) == (0.5, 1.0)


def test_prompts_can_ask_for_json() -> None:
    augmenter = SetAugmenter(written_as="json")
    model = PromptedSetModel("any", shots=2, kind="completion", augmenter=augmenter, vocabulary="closed").fit(EXAMPLES)
    prompt = model.request("The ferry was late.")["prompt"]
    first, second, *rest = prompt.splitlines()
    assert first == (
        "Label the text: write a JSON object with the number of labels and the labels, such as "
        '{"size": 2, "labels": ["first label", "second label"]}. Write nothing else.'
    )
    assert json.loads(second.removeprefix("Possible labels: ")) == LABELS
    shown = [json.loads(line.removeprefix("Labels: ")) for line in rest if line.startswith("Labels: ")]
    assert len(shown) == 2
    assert all(len(one["labels"]) == one["size"] for one in shown)


@pytest.mark.parametrize(
    ("answer", "labels"),
    [
        ('{"size": 2, "labels": ["joy", "Love"]}', ("joy", "love")),
        ('```json\n{\n  "size": 2,\n  "labels": [\n    "joy",\n    "love"\n  ]\n}\n```', ("joy", "love")),
        ('Labels: ["joy"]', ("joy",)),
        ("<think>[]</think>[]", ()),
        ("joy, love", ("joy", "love")),
        ("- joy\n- love", ("joy", "love")),
    ],
)
def test_answers_in_json_are_read_over_several_lines(answer: str, labels: tuple[str, ...]) -> None:
    reader = AnswerReader(codec=SetCodec(written_as="json"), index=LabelIndex(["joy", "love"]))
    assert reader.read(answer).prediction.labels == labels
