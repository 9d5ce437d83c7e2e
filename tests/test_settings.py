"""How to decode: the five ways by name, and what makes no sense."""

import pytest

from setaug.settings import DECODINGS, Decoding


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({}, {"do_sample": False, "num_beams": 1}),
        ({"name": "beam", "n_beams": 3}, {"do_sample": False, "num_beams": 3}),
        ({"name": "random", "temperature": 2.0}, {"do_sample": True, "top_k": 0, "top_p": 1.0, "temperature": 2.0}),
        ({"name": "top-k", "top_k": 7}, {"do_sample": True, "top_k": 7, "top_p": 1.0, "temperature": 1.0}),
        ({"name": "nucleus", "top_p": 0.5}, {"do_sample": True, "top_k": 0, "top_p": 0.5, "temperature": 1.0}),
    ],
)
def test_each_way_sets_what_generate_needs(changes, options):
    decoding = Decoding(**changes)
    assert decoding.options() == options
    assert decoding.does_sample == options["do_sample"]
    assert decoding.options() is not DECODINGS[decoding.name]


@pytest.mark.parametrize(
    ("changes", "sizes"),
    [
        ({}, range(6)),
        ({"min_size": 2}, range(2, 6)),
        ({"max_size": 2}, range(3)),
        ({"max_size": 9}, range(10)),
        ({"min_size": 7}, range(7, 8)),
        ({"size_is": 0}, range(1)),
        ({"size_is": 8, "max_size": 2}, range(8, 9)),
    ],
)
def test_sizes_reach_to_the_largest_training_set(changes, sizes):
    assert Decoding(**changes).sizes(5) == sizes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "best"}, "name must be one of greedy, beam, random, top-k, nucleus, got 'best'"),
        ({"choose": "f1"}, "choose must be one of best, written, expected-f1"),
        ({"n_beams": 0}, "n_beams must be an integer of at least 1, got 0"),
        ({"top_k": 0}, "top_k must be"),
        ({"samples": -1}, "samples must be an integer of at least 0, got -1"),
        ({"samples": 2.0}, "samples must be an integer of at least 0, got 2.0"),
        ({"batch_size": True}, "batch_size must be"),
        ({"size_is": -1}, "size_is must be an integer of at least 0, got -1"),
        ({"max_size": 1.5}, "max_size must be"),
        ({"min_size": 3, "max_size": 2}, "max_size 2 is below min_size 3"),
        ({"temperature": 0}, "temperature must be from 0.001 to 1000, got 0"),
        ({"temperature": float("nan")}, "temperature must be"),
        ({"temperature": 1e-45}, "temperature must be"),
        ({"temperature": float("inf")}, "temperature must be"),
        ({"top_p": 0}, "top_p must be above 0 and at most 1, got 0"),
        ({"threshold": 1.1}, "threshold must be from 0 to 1, got 1.1"),
        ({"choose": "top-k", "k": 0}, "k must be an integer of at least 1, got 0"),
        ({"k": 2}, "k is for choose='top-k', and choose is 'best'"),
        ({"seed": -1}, r"seed must be an integer below 2\*\*64, got -1"),
        ({"seed": 1 << 64}, "seed must be"),
        ({"constrained": False, "size_is": 1}, "size_is, min_size and max_size require the constraint"),
        ({"constrained": False, "min_size": 1}, "size_is, min_size and max_size require the constraint"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Decoding(**changes)
