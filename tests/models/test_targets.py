"""What a model learns to write: orders, one order, label by label; the same number of pairs for each method."""

from types import SimpleNamespace

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from setaug import Example, SetAugmenter, SetSearch
from setaug.models import TrainingSettings, make_model
from setaug.models.neural.generator import one_order, orders
from setaug.models.neural.layouts import make_layout
from setaug.models.neural.scratch import scratch_generator, train_tokenizer
from setaug.models.neural.writer import Writer, count_written_alike, make_training_set
from tests.conftest import EXAMPLES

AUGMENTER = SetAugmenter(n_orders=3, random_state=5).fit(EXAMPLES)


def as_sets(targets):
    return [sorted(AUGMENTER.codec.decode(target).labels) for target in targets]


def test_epoch_0_is_what_the_augmenter_writes():
    completions = [pair.completion for pair in AUGMENTER.augment(EXAMPLES)]
    assert [target for each in orders(AUGMENTER, EXAMPLES) for target in each] == completions
    assert {len(each) for each in orders(AUGMENTER, EXAMPLES)} == {4}


def test_each_epoch_has_other_orders_and_a_seed_always_the_same():
    epochs = [orders(AUGMENTER, EXAMPLES, epoch) for epoch in range(3)]
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    assert epochs == [orders(AUGMENTER, EXAMPLES, epoch) for epoch in range(3)]
    for epoch in epochs:
        assert [each[0] for each in epoch] == [AUGMENTER.codec.encode(example.labels) for example in EXAMPLES]
        for each, example in zip(epoch, EXAMPLES, strict=True):
            assert as_sets(each) == [sorted(example.labels)] * 4
    other = SetAugmenter(n_orders=3, random_state=6).fit(EXAMPLES)
    assert orders(other, EXAMPLES, 1) != epochs[1]
    assert AUGMENTER.random_state == 5


def test_one_random_order_is_repeated():
    found = one_order(AUGMENTER, EXAMPLES)
    assert all(len(each) == 4 and len(set(each)) == 1 for each in found)
    assert found == one_order(AUGMENTER, EXAMPLES, 2)
    assert [as_sets(each)[0] for each in found] == [sorted(example.labels) for example in EXAMPLES]
    assert [each[0] for each in found] != [AUGMENTER.codec.encode(example.labels) for example in EXAMPLES]


def test_each_label_stands_by_itself():
    examples = [Example("a", ["x|y", "z"]), Example("b", [])]
    assert SetSearch().write_targets(examples, 0) == [["x\\|y", "z"], [""]]


@pytest.mark.parametrize("method", ["setaug", "seq2seq", "random", "frequency", "reversed", "classifier", "set-search"])
def test_the_methods_have_the_same_number_of_pairs_and_updates(method):
    model = make_model(method, "tiny", augmenter=SetAugmenter(n_orders=1))
    model.statistics_ = AUGMENTER.statistics_
    model.largest_, model.least_ = 5, 1
    seen = []
    counted = model._learn(EXAMPLES, [], lambda network, data, **options: seen.append(data) or {})
    assert len(seen[0]) == len(EXAMPLES)
    n_labels = sum(len(example.labels) for example in EXAMPLES)
    n_pairs = {"classifier": len(EXAMPLES), "set-search": n_labels}.get(method, 2 * len(EXAMPLES))
    assert counted["n_pairs_per_epoch"] == n_pairs


# --- as tokens --------------------------------------------------------------------------------------------------------

TOKENIZER = train_tokenizer([example.text for example in EXAMPLES])
MODEL = scratch_generator("mini", TOKENIZER, max_length=20, seed=0)


def training_set(examples, **settings):
    augmenter = SetAugmenter(n_orders=1).fit(examples)
    training = TrainingSettings(**settings)
    layout = make_layout(MODEL, TOKENIZER, around_text=("", ""), **training.lengths)
    writer = Writer(layout, augmenter.codec, None, largest=0, max_label_tokens=0)
    return make_training_set(
        writer, examples, write=lambda kept, epoch: orders(augmenter, kept, epoch), settings=training
    )


def read(data):
    return [[TOKENIZER.decode(target[:-1]).strip() for target in data[at]["targets"]] for at in range(len(data))]


def test_fresh_orders_are_written_for_each_epoch_and_only_then():
    fixed, kept, _ = training_set(EXAMPLES)
    fresh, _, _ = training_set(EXAMPLES, fresh_orders=True)
    assert kept == EXAMPLES
    first = read(fixed)
    assert first == read(fresh) == orders(SetAugmenter(n_orders=1).fit(EXAMPLES), EXAMPLES)
    seen = []
    for epoch in (1, 2, 1):
        fixed.begin_epoch(epoch)
        fresh.begin_epoch(epoch)
        assert read(fixed) == first
        seen.append(read(fresh))
    assert seen[0] == seen[2] != seen[1] != first != seen[0]
    assert all(len(data[0]["targets"]) == 2 for data in (fixed, fresh))


def test_what_is_too_long_is_cut_off_or_left_out_and_counted():
    examples = [Example("a b c d", ["x"]), Example("a " * 30, ["y"]), Example("a", [f"label{n}" for n in range(20)])]
    data, kept, counted = training_set(examples, max_source_length=10, max_target_length=30)
    assert kept == examples[:2]
    assert counted == {
        "n_pairs_per_epoch": 4,
        "texts_cut_off": 1,
        "left_out_targets_too_long": 1,
    }
    assert len(data) == 2
    assert len(data[1]["input_ids"]) == 10
    assert data[1]["input_ids"][-1] == TOKENIZER.eos_token_id


def test_labels_with_the_same_tokens_are_counted():
    words = Tokenizer(WordLevel({"?": 0, "joy": 1}, unk_token="?"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?")
    writer = SimpleNamespace(labels=["joy", "歓喜", "恐怖", "怒り"], tokenizer=tokenizer)
    assert count_written_alike(writer) == 2
    assert count_written_alike(SimpleNamespace(labels=None, tokenizer=tokenizer)) == 0
