"""The likelihood of sets under torch models: one whose distribution is known, and one that was trained."""

from copy import copy, deepcopy
from itertools import permutations
from math import factorial, log, log2, sqrt

import numpy as np
import pytest
import torch

from setaug import Example, SetAugmenter, SetCodec
from setaug.errors import DataError
from setaug.examples import Skipped
from setaug.models import SetGenerator, TrainingSettings
from setaug.models.neural.generator import fitted_copy
from setaug.models.neural.layouts import make_layout
from setaug.models.neural.writer import Writer
from setaug.orders.statistics import LabelStatistics
from setaug.registry import proposals
from tests.conftest import DEV
from tests.tiny import LABELS, make_model, make_tokenizer

SETS = [Example("a match", LABELS[:3]), Example("the zoo has an apple", []), Example("x", LABELS[5:9], id="four")]


KINDS = [("bart", "bytes"), ("t5", "unigram"), ("gpt2", "bytes"), ("llama", "unigram")]


def make_generator(kind, tokens, *, is_level=False, size=True, n_places=None):
    """Give a generator around a model with random weights, or with none: then each token has the same chance."""
    model = deepcopy(make_model(kind))
    if is_level:
        with torch.no_grad():
            for weights in model.parameters():
                weights.zero_()
    if n_places is not None:
        model.config.max_position_embeddings = n_places
    generator = SetGenerator(augmenter=SetAugmenter(with_size=size))
    generator.statistics_ = LabelStatistics().update([LABELS])
    generator.augmenter_ = fitted_copy(generator.augmenter, generator.statistics_)
    layout = make_layout(
        model, make_tokenizer(tokens), around_text=("", ""), max_source_length=120, max_target_length=120
    )
    codec = generator.augmenter_.codec
    generator.network_ = Writer(layout=layout, codec=codec, labels=LABELS, largest=5, max_label_tokens=8)
    return generator


# --- a known distribution ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [True, False])
@pytest.mark.parametrize(("kind", "tokens"), KINDS)
def test_where_each_token_has_the_same_chance_all_is_known(kind, tokens, size):
    """p(order) = 400 ** -tokens, and the orders of a set have as many tokens, or nearly."""
    generator = make_generator(kind, tokens, is_level=True, size=size)
    codec = SetCodec(with_size=size)
    for proposal in ("uniform", "given"):
        for found, example in zip(generator.log_likelihood(SETS, proposal=proposal), SETS, strict=True):
            orders = list(permutations(example.labels))
            lengths = [
                len(generator.tokenizer_(codec.encode(z), add_special_tokens=False)["input_ids"]) for z in orders
            ]
            n_more = 2 if kind == "bart" else 1  # the end, and what this BART puts in front
            p = [400.0 ** -(length + n_more) for length in lengths]
            assert found.exact == pytest.approx(log2(sum(p)), abs=1e-3)
            assert (found.n_labels, found.id) == (len(example.labels), example.id)
            if len(set(lengths)) == 1:
                n_orders = factorial(len(example.labels)) if proposal == "uniform" else 1
                assert found.bound == pytest.approx(log2(p[0] * n_orders), abs=1e-3)
                assert found.elbo == pytest.approx(found.bound, abs=1e-3)


@pytest.mark.parametrize(("kind", "tokens"), KINDS)
def test_an_order_has_the_probability_that_the_model_gives_its_tokens(kind, tokens):
    """Each order by itself, without padding or a shared encoder, token by token, in double precision."""
    generator = make_generator(kind, tokens)
    model, tokenizer = deepcopy(generator.model_).double(), generator.tokenizer_

    def bits(text, order):
        target = tokenizer("".join(SetCodec().encode(order)), add_special_tokens=False)["input_ids"]
        target = [*([0] if kind == "bart" else []), *target, 2]
        if model.config.is_encoder_decoder:
            before = torch.tensor([[model.config.decoder_start_token_id, *target[:-1]]])
            inputs = {"input_ids": torch.tensor([tokenizer(text)["input_ids"]]), "decoder_input_ids": before}
        else:
            inputs = {"input_ids": torch.tensor([[*tokenizer(f"{text}\n")["input_ids"], *target[:-1]]])}
        with torch.no_grad():
            logits = model(**inputs).logits[0, -len(target) :]
        return sum(row.log_softmax(0)[token].item() for row, token in zip(logits, target, strict=True)) / log(2)

    for example, found in zip(SETS, generator.log_likelihood(SETS, proposal="given"), strict=True):
        assert found.bound == pytest.approx(bits(example.text, example.labels), rel=1e-4)
        assert found.allowed == pytest.approx(found.bound)
        every = [bits(example.text, order) for order in permutations(example.labels)]
        assert found.exact == pytest.approx(np.logaddexp2.reduce(every), rel=1e-4)


# --- a trained model --------------------------------------------------------------------------------------------------


def test_batches_and_the_order_of_examples_change_nothing(writer):
    generator = writer
    options = {"proposals": ["topological", "uniform", "given"], "samples": 4}
    whole = generator.log_likelihoods(DEV, **options)
    small = generator.log_likelihoods(DEV, batch_size=3, **options)
    singly = [generator.log_likelihoods([one], first_index=at, **options)[0] for at, one in enumerate(DEV)]
    turned = generator.log_likelihoods(DEV[::-1], **options)[::-1]
    for at, found in enumerate(whole):
        for name in found:
            for other in (small, singly):
                for field in ("exact", "allowed", "elbo", "bound"):
                    assert getattr(other[at][name], field) == pytest.approx(getattr(found[name], field), abs=1e-3)
            assert turned[at][name].exact == pytest.approx(found[name].exact, abs=1e-3)
            assert turned[at][name].allowed == pytest.approx(found[name].allowed, abs=1e-3)


def test_one_proposal_gives_what_several_give(generator):
    several = generator.log_likelihoods(DEV[:4], proposals=list(proposals()), samples=3, seed=2)
    for name in proposals():
        alone = generator.log_likelihood(DEV[:4], proposal=name, samples=3, seed=2)
        assert [found[name] for found in several] == alone


COLOURS = {"red": ["rose", "brick", "blood"], "blue": ["sea", "sky", "ink"]}


@pytest.fixture(scope="module")
def colours():
    """Two texts that are learnt by heart, each with its set in any order."""
    examples = [Example(colour, labels) for colour, labels in COLOURS.items() for _ in range(32)]
    augmenter = SetAugmenter(ordering="random", n_orders=5)
    return SetGenerator(augmenter=augmenter, training=TrainingSettings(epochs=8, fresh_orders=True)).fit(examples)


def test_drawn_bounds_are_as_far_off_as_draws_are(colours):
    """Over many seeds, the mean elbo is the mean over all orders, within its standard error; the bound is closer."""
    example = Example("red", COLOURS["red"])
    (scores,) = colours.network_.score(["red"], [[SetCodec().encode(order) for order in permutations(example.labels)]])
    values = np.array(scores) / log(2)
    found = [colours.log_likelihood([example], proposal="uniform", samples=4, seed=seed)[0] for seed in range(60)]
    elbos, bounds = ([getattr(one, name) for one in found] for name in ("elbo", "bound"))
    error = values.std() / sqrt(4 * 60)
    assert len(set(elbos)) > 20
    assert abs(np.mean(elbos) - values.mean() - log2(6)) < 4 * error
    assert {round(one.exact, 3) for one in found} == {round(float(np.logaddexp2.reduce(values)), 3)}
    assert np.mean(elbos) + error < np.mean(bounds) < found[0].exact


def test_a_set_that_was_learnt_in_any_order_is_likelier_than_each_order(colours):
    right, wrong = colours.log_likelihood([Example("red", COLOURS[colour]) for colour in COLOURS], proposal="given")
    assert wrong.exact < -10 < -1.5 < right.exact <= 0
    assert right.exact - right.bound > 0.5
    assert right.bound == pytest.approx(right.allowed)


def test_probabilities_of_all_sets_sum_to_at_most_one(generator):
    """All sets of up to two of the four most frequent labels: what the model writes beside them is the rest."""
    sets = [[], *([label] for label in generator.labels_[:4])]
    sets += [[a, b] for at, a in enumerate(generator.labels_[:4]) for b in generator.labels_[:at]]
    found = generator.log_likelihood([Example(DEV[0].text, labels) for labels in sets], max_exact=2)
    assert 0 < sum(2**one.exact for one in found) < 1


@pytest.mark.parametrize(("min_pmi", "min_ratio"), [(1.0, 3.0), (0.0, 1.2)])
def test_the_orders_are_those_that_the_models_own_graph_allows(generator, min_pmi, min_ratio):
    other = copy(generator)
    other.augmenter_ = fitted_copy(generator.augmenter, generator.statistics_, min_pmi=min_pmi, min_ratio=min_ratio)
    found = other.log_likelihood(DEV, samples=1, max_exact=0)
    wanted = [other.augmenter_.graph(example.labels).log2_orders for example in DEV]
    assert [one.log2_orders for one in found] == pytest.approx(wanted)
    usual = [generator.augmenter_.graph(example.labels).log2_orders for example in DEV]
    assert (wanted == usual) == (min_ratio == 3.0)


def test_progress_is_told_and_the_model_is_left_as_it_was(generator):
    told = []
    generator.model_.train()
    generator.log_likelihood(DEV[:3], progress=lambda *told_now: told.append(told_now))
    assert generator.model_.training
    generator.model_.eval()
    assert told == [("scoring", n, 3) for n in (1, 2, 3)]


def test_no_data_and_rows_are_fine(generator):
    assert generator.log_likelihood([]) == []
    row = {"text": DEV[0].text, "labels": list(DEV[0].labels), "id": DEV[0].id}
    assert generator.log_likelihood([row]) == generator.log_likelihood(DEV[:1])


# --- what cannot be scored --------------------------------------------------------------------------------------------


def test_a_set_that_the_model_has_no_places_for_is_refused_or_counted():
    generator = make_generator("bart", "bytes", n_places=24)
    examples = [SETS[1], Example("x", LABELS), Example("y", ["x"])]
    with pytest.raises(DataError, match=r'the set \["volleyball", .* tokens, and the model has places for 22\.'):
        generator.log_likelihood(examples)
    skipped = Skipped()
    found = generator.log_likelihood(examples, skipped=skipped)
    assert [one.n_labels for one in found] == [0, 1]
    assert skipped.count == 1
    assert "cannot be scored: the labels need" in skipped.first[0]


def test_labels_that_the_tokenizer_takes_for_one_are_refused():
    """Each of their orders would be counted twice."""
    generator = make_generator("bart", "wordpiece")
    with pytest.raises(DataError, match="tokenizer cannot tell the labels 'event' and 'Event' apart"):
        generator.log_likelihood([Example("x", ["event", "match", "Event"])])
    assert len(generator.log_likelihood([Example("x", ["event", "match"])])) == 1


def test_what_makes_no_sense_is_refused(generator):
    for options, message in [
        ({"proposal": "magic"}, "proposal must be one of"),
        ({"samples": 0}, "samples must be"),
        ({"max_exact": 8}, "max_exact must be an integer from 0 to 7"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1, got 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            generator.log_likelihood(DEV, **options)
    with pytest.raises(DataError, match='field "labels" is missing'):
        generator.log_likelihood([{"text": "x"}])
    with pytest.raises(AttributeError, match="not fitted yet"):
        SetGenerator().log_likelihood(DEV)


def test_each_text_is_read_once(generator, monkeypatch):
    asked = []
    score = Writer.score

    def noting(self, prompts, texts, **options):
        asked.extend((prompt, tuple(each)) for prompt, each in zip(prompts, texts, strict=True))
        return score(self, prompts, texts, **options)

    monkeypatch.setattr(Writer, "score", noting)
    generator.log_likelihoods(DEV, proposals=list(proposals()))
    assert [prompt for prompt, _ in asked] == [example.text for example in DEV]
    assert all(
        len(set(each)) == len(each) == factorial(len(one.labels)) for (_, each), one in zip(asked, DEV, strict=True)
    )
