"""SetAugmenter: the number, order and content of pairs."""

from fractions import Fraction
from inspect import signature
from itertools import islice

import pytest
from datasets import ClassLabel, Dataset, Features, List, Value
from hypothesis import given
from sklearn.base import clone

from setaug import Example, SetAugmenter
from setaug.augmenter import PairFormat
from setaug.examples import Pair
from setaug.orders import ORDERINGS
from setaug.registry import PAIR_FORMATS
from setaug.sample import sample_examples
from tests.strategies import corpora

SAMPLE = list(sample_examples(200))


def examples_of(corpus: list[list[str]]) -> list[Example]:
    return [Example(f"text {number}", tuple(labels)) for number, labels in enumerate(corpus)]


def test_parameters_follow_scikit_learn_s_contract() -> None:
    augmenter = SetAugmenter(n_orders=1, min_pmi=Fraction(1, 2), with_size=False)
    params = augmenter.get_params()
    assert list(params) == list(signature(SetAugmenter).parameters)
    assert augmenter.fit(SAMPLE).get_params() == params
    assert [name for name in vars(augmenter) if name not in params] == ["statistics_"]
    copied = clone(augmenter)
    assert copied.get_params() == params
    assert not hasattr(copied, "statistics_")
    assert copied.set_params(n_orders=3, separator="; ") is copied
    assert copied.get_params() == {**params, "n_orders": 3, "separator": "; "}


def test_unknown_parameters_are_refused_and_none_is_set() -> None:
    augmenter = SetAugmenter()
    with pytest.raises(ValueError, match=r"parameter must be one of n_orders, .*, got 'size'"):
        augmenter.set_params(n_orders=9, size=True)
    assert augmenter.n_orders == 2


@pytest.mark.parametrize("ordering", ORDERINGS)
@pytest.mark.parametrize("n_orders", [0, 1, 3])
def test_each_example_gives_one_pair_more_than_orders_and_the_given_order_first(ordering: str, n_orders: int) -> None:
    augmenter = SetAugmenter(n_orders=n_orders, ordering=ordering).fit(SAMPLE)
    pairs = list(augmenter.augment(SAMPLE))
    assert len(pairs) == len(SAMPLE) * (n_orders + 1)
    for number, example in enumerate(SAMPLE):
        own = pairs[number * (n_orders + 1) : (number + 1) * (n_orders + 1)]
        assert {pair.prompt for pair in own} == {example.text}
        assert own[0].completion == augmenter.codec.encode(example.labels)
        for pair in own:
            read = augmenter.codec.decode(pair.completion)
            assert set(read.labels) == set(example.labels)
            assert read.agrees


@given(corpora)
def test_drawn_orders_are_allowed_by_the_graph_and_reversed_ones_by_the_reversed_graph(corpus: list[list[str]]) -> None:
    examples = examples_of(corpus)
    for ordering, step in (("topological", 1), ("reversed", -1)):
        augmenter = SetAugmenter(n_orders=1, ordering=ordering, min_pmi=0.0, min_ratio=1.5).fit(examples)
        for example, pair in zip(examples, islice(augmenter.augment(examples), 1, None, 2), strict=True):
            order = augmenter.codec.decode(pair.completion).labels
            assert augmenter.graph(example.labels).allows(order[::step])


def test_pairs_come_while_the_examples_are_read() -> None:
    augmenter = SetAugmenter().fit(SAMPLE)
    endless = (example for _ in iter(int, 1) for example in SAMPLE)
    assert len(list(islice(augmenter.augment(endless), 10))) == 10


def test_an_examples_orders_do_not_depend_on_what_comes_after_it() -> None:
    augmenter = SetAugmenter().fit(SAMPLE)
    assert list(augmenter.augment(SAMPLE))[:30] == list(augmenter.augment(SAMPLE[:10]))


def test_the_same_seed_gives_the_same_orders_and_another_seed_others() -> None:
    def completions(seed: int) -> list[str]:
        augmenter = SetAugmenter(random_state=seed, ordering="random").fit(SAMPLE)
        return [pair.completion for pair in augmenter.augment(SAMPLE)]

    assert completions(1) == completions(1)
    assert completions(1) != completions(2)


def test_the_template_stands_around_the_text_and_braces_elsewhere_stay() -> None:
    augmenter = SetAugmenter(template="{x} labels of: {text} {}", n_orders=0).fit(SAMPLE)
    assert next(augmenter.augment([Example("hello {text}", ())])).prompt == "{x} labels of: hello {text} {}"


def test_size_and_separator_are_options() -> None:
    augmenter = SetAugmenter(with_size=False, separator="; ", n_orders=0).fit(SAMPLE)
    assert next(augmenter.augment([Example("", ("b", "a"))])).completion == "b; a"


def test_labels_that_were_not_counted_have_no_edges_but_are_written() -> None:
    augmenter = SetAugmenter(n_orders=20).fit(SAMPLE)
    orders = {pair.completion for pair in augmenter.augment([Example("", ("new", "event"))])}
    assert orders == {"2 | new | event", "2 | event | new"}


def test_distinct_orders_differ_as_long_as_there_are_any() -> None:
    augmenter = SetAugmenter(n_orders=6, ordering="random", distinct=True).fit(SAMPLE)
    drawn = [pair.completion for pair in augmenter.augment([Example("", ("a", "b", "c"))])][1:]
    assert len(set(drawn)) == 6


def test_fields_are_carried_along_and_missing_ones_are_none() -> None:
    rows = [{"text": "a", "labels": ["x"], "id": 7}]
    (pair,) = SetAugmenter(n_orders=0).fit(rows).augment(rows, carry=["id", "source"])
    assert pair.fields == {"id": 7, "source": None}


def test_a_hugging_face_data_set_goes_in_and_its_class_labels_come_back_by_name() -> None:
    features = Features({"text": Value("string"), "labels": List(ClassLabel(names=["joy", "love"]))})
    data = Dataset.from_dict({"text": ["a", "b"], "labels": [[0, 1], [1]]}, features=features)
    pairs = SetAugmenter(n_orders=0).fit(data).augment(data)
    assert list(pairs) == [Pair("a", "2 | joy | love"), Pair("b", "1 | love")]


def test_an_augmenter_that_is_not_fitted_says_so() -> None:
    with pytest.raises(AttributeError, match="not fitted yet; call fit"):
        next(SetAugmenter().augment(SAMPLE))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = SetAugmenter().nothing


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_orders": -1}, "n_orders must be from 0 to 2\\*\\*63 - 1, got -1"),
        ({"n_orders": 1.5}, "n_orders must be an integer, got 1.5"),
        ({"random_state": True}, "random_state must be an integer, got True"),
        ({"ordering": "alphabetical"}, "ordering must be one of topological, .* got 'alphabetical'"),
        ({"sampler": "fast"}, "sampler must be one of uniform, quick, got 'fast'"),
        ({"template": "no place"}, "template must contain {text} exactly once, got 'no place'"),
        ({"template": "{text}{text}"}, "template must contain {text} exactly once"),
        ({"separator": ""}, "separator must not be empty"),
        ({"min_ratio": 0.5}, "min_ratio must be at least 1, got 0.5"),
        ({"min_pmi": float("nan")}, "min_pmi must be a finite number, got nan"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_by_fit(parameters: dict[str, object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        SetAugmenter(**parameters).fit(SAMPLE)  # type: ignore[arg-type]


def test_rows_of_each_format_hold_prompt_and_completion() -> None:
    pair = Pair("p", "1 | c", {"id": 3})
    assert PairFormat.named("prompt-completion").row(pair) == {"prompt": "p", "completion": "1 | c", "id": 3}
    assert PairFormat.named("columns", ("x", "y")).row(pair) == {"x": "p", "y": "1 | c", "id": 3}
    assert PairFormat.named("chat").row(pair) == {
        "messages": [{"role": "user", "content": "p"}, {"role": "assistant", "content": "1 | c"}],
        "id": 3,
    }
    assert PairFormat.named("chat-prompt-completion", system="s").row(pair) == {
        "prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "p"}],
        "completion": [{"role": "assistant", "content": "1 | c"}],
        "id": 3,
    }


@pytest.mark.parametrize(
    ("name", "columns", "message"),
    [
        ("table", None, f"format must be one of {', '.join(PAIR_FORMATS)}, got 'table'"),
        ("columns", None, "requires two column names"),
        ("chat", ("a", "b"), "other formats do not accept column names"),
        ("columns", ("a", "a"), "the two columns must differ, got 'a' twice"),
    ],
)
def test_formats_that_make_no_sense_are_refused(name: str, columns: tuple[str, str] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PairFormat.named(name, columns)


@pytest.mark.parametrize(("name", "columns"), [("prompt-completion", None), ("columns", ("a", "b"))])
def test_only_chats_have_a_system_message(name: str, columns: tuple[str, str] | None) -> None:
    with pytest.raises(ValueError, match=f"only chat formats have a system message; got the format '{name}'"):
        PairFormat.named(name, columns, system="Be brief.")


def test_a_field_of_the_pairs_cannot_be_carried() -> None:
    with pytest.raises(ValueError, match='the field "prompt" cannot be carried'):
        PairFormat().check_carried(["id", "prompt"])
