import re
from collections import defaultdict
from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setaug.decoding.automaton import ClosedSets, OpenSets, PartialLabel, Sizes
from tests.strategies import END, token_sequences

N_TOKENS = 6
"""Those that a machine is asked about: all that occur, and one that does not."""


@st.composite
def closed_vocabularies(draw):
    """Give the parameters of ClosedSets: labels that begin alike, hold each other, and hold the separator."""
    separator = draw(st.sampled_from([(), (1,), (4,), (1, 2)]))
    labels = draw(st.lists(token_sequences(), unique=True, min_size=1, max_size=4))
    allowed = draw(st.sets(st.integers(0, min(len(labels), 3)), min_size=1))
    sequences = st.lists(token_sequences(), unique=True, min_size=len(allowed), max_size=len(allowed))
    written = dict(zip(sorted(allowed), draw(sequences), strict=True)) if draw(st.booleans()) else None
    if written is not None:
        first = None
    elif draw(st.booleans()):
        first = labels
    else:
        first = draw(st.lists(token_sequences(), unique=True, min_size=len(labels), max_size=len(labels)))
    after = draw(st.sampled_from([(), (5,)]))
    last = draw(st.sampled_from([None, (5,), (5, 4), (3,)]))
    if draw(st.booleans()) and written is not None:
        first = draw(st.none() | st.just([(2, *label) for label in labels]))
    begins = [separator + label for label in labels]
    return {
        "later": [begin + after for begin in begins],
        "first": None if first is None else [begin + after for begin in first],
        "later_last": None if last is None else [begin + last for begin in begins],
        "first_last": None if last is None or first is None else [begin + last for begin in first],
        "empty": draw(st.sampled_from([(), (4,), (1, 5)])),
        "sizes": Sizes(frozenset(allowed)),
        "written_sizes": written,
        "end": END,
        "prefix": draw(st.sampled_from([(), (5,), (1, 1)])),
    }


def write_set(order, later, first, written_sizes, prefix, later_last=None, first_last=None, empty=(), **_):
    """Write one order of labels."""
    tokens = tuple(prefix)
    if written_sizes is not None:
        tokens += written_sizes[len(order)]
    if not order:
        return (*tokens, *empty, END)
    for at, label in enumerate(order):
        inner, outer = (later, later_last) if at or first is None else (first, first_last)
        tokens += outer[label] if at == len(order) - 1 and outer is not None else inner[label]
    return (*tokens, END)


def all_sets(later, sizes, **others):
    """Write all orders of all sets that are allowed; give the orders that each text may be."""
    texts = defaultdict(set)
    for size in sizes.allowed:
        for order in permutations(range(len(later)), size):
            texts[write_set(order, later, **others)].add(order)
    return texts


DIGITS = {1: (1,), 2: (1, 1), 3: (2, 1)}


@given(closed_vocabularies())
@example({"later": [(4, 1), (4, 1, 4, 1), (4, 1, 4), (1,)], "first": None, "sizes": Sizes.between(1, 3),
          "written_sizes": DIGITS, "end": END, "prefix": ()})  # fmt: skip
def test_the_tokens_of_known_labels_are_exactly_those_of_the_sets_there_are(options):
    texts = all_sets(**options)
    following = defaultdict(set)
    for text in texts:
        for at, token in enumerate(text):
            following[text[:at]].add(token)
    machine = ClosedSets(**options)
    states = {(): machine.start()}
    for beginning in sorted(following, key=len):
        state = states[beginning]
        choices = machine.choices(state)
        assert not choices.are_banned
        assert sorted(choices.tokens.tolist()) == sorted(following[beginning])
        assert choices.tokens.dtype == np.int64
        for token in range(N_TOKENS):
            after = machine.step(state, token)
            assert (after is not None) is (token in following[beginning])
            states[*beginning, token] = after
    for text, orders in texts.items():
        reading = machine.reading(states[text])
        assert reading.has_ended
        assert reading.labels in orders
        assert reading.size == (None if options["written_sizes"] is None else len(reading.labels))


def test_what_is_read_grows_with_each_label_and_then_stays():
    machine = ClosedSets(later=[(9, 1), (9, 2, 3)], first=None, sizes=Sizes.between(0, 2), end=END,
                         written_sizes={0: (5,), 1: (6,), 2: (7,)})  # fmt: skip
    state = machine.start()
    read = []
    for token in (7, 9, 2, 3, 9, 1, END, END, 8):
        state = machine.step(state, token)
        reading = machine.reading(state)
        read.append((reading.labels, reading.size, reading.has_ended))
    assert read == [
        ((), 2, False),
        ((), 2, False),
        ((), 2, False),
        ((1,), 2, False),
        ((1,), 2, False),
        ((1, 0), 2, False),
        *[((1, 0), 2, True)] * 3,
    ]
    assert machine.choices(state).tokens.tolist() == [END]


def test_states_are_shared_by_branches():
    machine = ClosedSets(later=[(1,), (2,), (3,)], first=[(1,), (2,), (3,)], sizes=Sizes.between(2, 2),
                         written_sizes=None, end=END)  # fmt: skip
    trunk = machine.step(machine.start(), 1)
    for token in (2, 3):
        branch = machine.step(trunk, token)
        assert machine.reading(machine.step(branch, END)).labels == (0, token - 1)
    assert machine.choices(trunk).tokens.tolist() == [2, 3]
    assert machine.step(trunk, 1) is None


LETTERS = {1: "a", 2: "b", 3: "-"}
"""What tokens stand for; a label of nothing but "-" is none."""


BANNED = np.array([END, 4, 5, 6, 7, 8, 9])


def read_letters(tokens):
    text = "".join(LETTERS.get(token, "") for token in tokens).strip("-")
    return text or None


def read_partial(before, tokens):
    return PartialLabel(read_letters(tokens), BANNED)


@st.composite
def open_machines(draw):
    sizes = Sizes(draw(st.frozensets(st.integers(0, 3), min_size=1)))
    is_written = draw(st.booleans())
    between = draw(st.sampled_from([(4,), (4, 5)]))
    spaces = draw(st.sampled_from([(), (3,)]))
    options = {
        "first": spaces + between if is_written else draw(st.sampled_from([(), (5,), (4, 6)])),
        "between": between,
        "last": draw(st.sampled_from([(), (4, 6), (6,)])),
        "empty": draw(st.sampled_from([(), (4, 4), (6,)])),
        "max_label_tokens": draw(st.integers(1, 4)),
        "sizes": sizes,
        "written_sizes": {size: ((7,), (7, 8), (8,), (9, 7))[size] for size in sizes.allowed} if is_written else None,
        "prefix": draw(st.sampled_from([(), (6,), (1, 1)])),
    }
    return OpenSets(read_label=read_partial, end=END, **options), options


def as_pattern(tokens):
    return "".join(map(str, tokens))


def parse(text, options):
    """Read a text by a regular expression, one for each size; None where it is no set."""
    for size in options["sizes"].allowed:
        written = options["written_sizes"]
        front = as_pattern(options["prefix"]) + ("" if written is None else as_pattern(written[size]))
        labels = as_pattern(options["between"]).join(["([123]+)"] * size)
        inner = as_pattern(options["first"]) + labels + as_pattern(options["last"]) if size else None
        found = re.fullmatch(front + (inner or as_pattern(options["empty"])) + str(END), as_pattern(text))
        labels = [read_letters(map(int, part)) for part in found.groups()] if found else [None]
        if None not in labels and len(set(labels)) == size:
            return tuple(labels), None if written is None else size
    return None


def allowed_tokens(machine, state):
    choices = machine.choices(state)
    listed = set(choices.tokens.tolist())
    return set(range(10)) - listed if choices.are_banned else listed


@given(open_machines(), st.randoms(use_true_random=False))
def test_a_walk_over_allowed_tokens_is_a_set_of_any_labels(made, random):
    machine, options = made
    state = machine.start()
    walk = []
    while not machine.reading(state).has_ended:
        allowed = allowed_tokens(machine, state)
        for token in range(10):
            assert (machine.step(state, token) is not None) is (token in allowed)
        # A label that is there already can go on for ever, so prefer to end where that is possible.
        token = END if END in allowed and random.random() < 0.3 else random.choice(sorted(allowed))
        state = machine.step(state, token)
        walk.append(token)
        assert state is not None
        assert len(walk) < 500
    reading = machine.reading(state)
    assert (reading.labels, reading.size) == parse(walk, options)
    assert machine.step(state, 3) == state
    assert machine.choices(state).tokens.tolist() == [END]


@given(open_machines(), st.randoms(use_true_random=False))
def test_a_refused_token_would_break_the_set(made, random):
    """Each text is either read to its end, or no set (unless it was refused because a label was too long)."""
    machine, options = made
    longest = options["max_label_tokens"]
    for _ in range(20):
        size = random.choice(sorted(options["sizes"].allowed))
        labels = [random.choices([1, 2, 3], k=random.randint(1, longest)) for _ in range(size)]
        joined = [token for label in labels for token in (*options["between"], *label)][len(options["between"]) :]
        written = options["written_sizes"]
        inner = [*options["first"], *joined, *options["last"]] if size else options["empty"]
        text = [*options["prefix"], *(written[size] if written else ()), *inner, END]
        if random.random() < 0.3:
            wrong = random.choice([1, 3, *options["between"]])
            text.insert(random.randrange(len(options["prefix"]), len(text)), wrong)
        state = machine.start()
        for token in text:
            state = state and machine.step(state, token)
        parsed = parse(text, options)
        if state is None:
            runs = re.findall("[123]+", as_pattern(text))
            assert parsed is None or any(len(run) > longest for run in runs)
        else:
            assert (machine.reading(state).labels, machine.reading(state).size) == parsed


def test_a_long_label_has_to_end():
    machine = OpenSets(read_label=read_partial, between=(4,), max_label_tokens=2,
                       sizes=Sizes.between(2, 2), written_sizes=None, end=END)  # fmt: skip
    state = machine.start()
    for token in (1, 1):
        state = machine.step(state, token)
    assert machine.choices(state).tokens.tolist() == [4]
    for token in (4, 1, 1):
        state = machine.step(state, token)
    assert {0, 4} <= set(machine.choices(state).tokens.tolist()), "what is there already must become something else"
    assert machine.choices(state).are_banned


@pytest.mark.parametrize(
    ("count", "size", "may_end", "may_go_on"),
    [(0, None, True, True), (1, None, False, True), (3, None, True, False), (0, 3, False, True), (3, 3, True, False)],
)
def test_sizes_say_when_a_set_is_whole(count, size, may_end, may_go_on):
    sizes = Sizes(frozenset({0, 3}))
    assert sizes.most == 3
    assert sizes.may_end(count, size) is may_end
    assert sizes.may_go_on(count, size) is may_go_on
