import pytest
from hypothesis import given
from hypothesis import strategies as st

from setaug.decoding.trie import TokenTrie
from tests.strategies import token_sequences

vocabularies = st.lists(token_sequences(), unique=True, min_size=1, max_size=10)


def find(trie, tokens):
    node = trie.root
    for token in tokens:
        node = node and node.child(token)
    return node


@given(vocabularies, st.data())
def test_a_node_knows_its_items_and_what_leads_on(sequences, data):
    trie = TokenTrie(sequences)
    assert len(trie) == len(sequences)
    used = data.draw(st.sets(st.sampled_from(range(len(sequences)))))
    for tokens in {sequence[:stop] for sequence in sequences for stop in range(len(sequence) + 1)}:
        node = find(trie, tokens)
        below = [item for item, sequence in enumerate(sequences) if sequence[: len(tokens)] == tokens]
        leads = {(sequences[item][len(tokens)], item) for item in below if len(sequences[item]) > len(tokens)}
        assert node.item == (sequences.index(tokens) if tokens in sequences else None)
        assert node.tokens.tolist() == sorted({token for token, _ in leads})
        assert node.open_tokens(used).tolist() == sorted({token for token, item in leads if item not in used})
        assert node.has_unused(used) is bool(set(below) - used)


@given(vocabularies, token_sequences(max_length=5))
def test_only_beginnings_of_sequences_are_found(sequences, tokens):
    is_beginning = any(sequence[: len(tokens)] == tokens for sequence in sequences)
    assert (find(TokenTrie(sequences), tokens) is not None) is is_beginning


@given(vocabularies)
def test_lists_do_as_well_as_tuples(sequences):
    trie = TokenTrie([list(sequence) for sequence in sequences])
    assert [find(trie, sequence).item for sequence in sequences] == list(range(len(sequences)))


def test_a_node_is_the_same_each_time():
    trie = TokenTrie([(1, 2), (1, 3)])
    assert trie.root.child(1).child(3) is trie.root.child(1).child(3)


@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        ([], "at least one sequence"),
        ([(1,), ()], "at least one token"),
        ([(1, 2), (2,), (1, 2)], "must be distinct"),
    ],
)
def test_bad_sequences_are_refused(sequences, message):
    with pytest.raises(ValueError, match=message):
        TokenTrie(sequences)
