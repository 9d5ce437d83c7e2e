"""Made-up data whose labels depend on each other as much as one likes: the processes of the paper's appendix G.

The input is a distribution x over N symbols, drawn from a Dirichlet distribution; a model reads it as text, each symbol
repeated in proportion (largest remainders). The labels are symbols, too.

*Blocks* (Findings 1 to 3). A set is made of B blocks of size k; the last symbol of a block depends on those before it:

    x ~ Dirichlet(a, ..., a)
    p_1, ..., p_(k-1) ~ x, without putting back        the prefix, sorted
    y_s = (p_1 + ... + p_(k-1) + 1) mod N              the suffix, with probability 1 - epsilon
    y_s ~ Uniform(0..N-1)                              otherwise

For k = 1 a block is a single symbol drawn from x: all orders of a set are equally likely. For k = 2 each second label
follows from the one before it; larger k have more independent labels. A set holds no symbol twice, so blocks are drawn
again until all of their symbols differ, and shared out at random: which block comes first means nothing.

*Partners* (Finding 4). Each of B blocks draws a symbol from x; with probability one half its partner, a label that
never comes without it, joins it. The set is all of them, shuffled:

    x ~ Dirichlet(a, ..., a),   p_b ~ x,   y = {p_1, ..., p_B} and each p_b' with probability 1/2

So a partner tells its symbol (p(symbol | partner) = 1), but not the other way round. It is half to all as frequent
(a symbol that is drawn twice has two chances to be joined): ``min_ratio`` must be near 1 for an edge between them.

*Sizes* (Finding 6). The number of labels m follows from the input: the text has w words for each label, so the counts
of its symbols sum to w m. The labels are those of blocks, as many as are needed, the last block perhaps cut off. They
are shuffled.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import inf, log2, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setaug.examples import Example

_MAX_TRIES = 1000
"""After so many sets with a symbol in two places, x is drawn again;"""
_MAX_INPUTS = 20
"""and after so many of these, the blocks are taken not to fit."""
_MOST = 1_000_000


def block_symbols(
    n: int,
    *,
    n_symbols: int = 30,
    n_blocks: int = 6,
    block_size: int = 2,
    noise: float = 0.1,
    n_words: int = 36,
    concentration: float = 0.5,
    sort_prefix: bool = True,
    shuffle_text: bool = False,
    with_input: bool = False,
    seed: int = 0,
) -> Iterator[Example]:
    """Make up examples of the block process; the labels stand block after block.

    Parameters
    ----------
    n_symbols, n_blocks, block_size
        N, B and k: the number of symbols, of blocks per example, and of symbols per block.
    noise
        The probability epsilon that a suffix does not follow from its prefix.
    n_words
        The length of the text.
    concentration
        The parameter a of the Dirichlet distribution; the smaller, the fewer symbols share the text.
    sort_prefix
        Whether the prefix symbols of a block stand in the order of their numbers, as in the paper.
    shuffle_text
        Whether the words stand in any order, not sorted.
    with_input
        Whether an example also has the vector x, as the field ``x``.

    Examples
    --------
    >>> next(block_symbols(1, n_symbols=8, n_blocks=2, n_words=6))
    Example(text='s0 s2 s5 s6 s6 s7', labels=('s7', 's0', 's4', 's5'), id=0, fields={'id': 0})

    """
    _check(
        seed,
        n_symbols=n_symbols,
        n_blocks=n_blocks,
        block_size=block_size,
        n_words=n_words,
        concentration=concentration,
        noise=noise,
    )
    _check_room(n_blocks, block_size, n_symbols)
    rng = np.random.default_rng(seed)
    for number in range(n):
        x, blocks = _draw_blocks(rng, n_symbols, n_blocks, block_size, noise, concentration)
        if sort_prefix:
            blocks = [[*sorted(block[:-1]), block[-1]] for block in blocks]
        labels = [f"s{symbol}" for block in blocks for symbol in block]
        yield _example(number, x, labels, n_words, rng if shuffle_text else None, with_input=with_input)


def paired_symbols(
    n: int,
    *,
    n_symbols: int = 30,
    n_blocks: int = 3,
    n_words: int = 24,
    concentration: float = 0.2,
    shuffle_text: bool = False,
    with_input: bool = False,
    seed: int = 0,
) -> Iterator[Example]:
    """Make up examples of the partner process, for which there are also the labels p0, p1, ...

    Examples
    --------
    >>> next(paired_symbols(1, n_symbols=4, n_words=6))
    Example(text='s0 s2 s2 s2 s2 s3', labels=('s2', 'p2', 's3'), id=0, fields={'id': 0})

    """
    _check(seed, n_symbols=n_symbols, n_blocks=n_blocks, n_words=n_words, concentration=concentration)
    rng = np.random.default_rng(seed)
    for number in range(n):
        x = rng.dirichlet(np.full(n_symbols, concentration))
        drawn = rng.choice(n_symbols, n_blocks, p=x).tolist()
        has_partner = (rng.random(n_blocks) < 0.5).tolist()
        labels = [f"s{symbol}" for symbol in drawn]
        labels += [f"p{symbol}" for symbol, is_joined in zip(drawn, has_partner, strict=True) if is_joined]
        labels = list(dict.fromkeys(labels))
        rng.shuffle(labels)
        yield _example(number, x, labels, n_words, rng if shuffle_text else None, with_input=with_input)


def paired_log2_probability(labels: Iterable[str], x: Sequence[float], *, n_blocks: int = 3) -> float:
    """Give the log2 of the probability that the partner process makes this set of this x.

    It is what no model can beat on average.

    Examples
    --------
    >>> paired_log2_probability(["s0", "p0"], [0.5, 0.5], n_blocks=1)
    -2.0

    """
    names = set(labels)
    symbols = {int(name[1:]) for name in names if name.startswith("s")}
    partners = {int(name[1:]) for name in names if name.startswith("p")}
    if not partners <= symbols:
        return -inf
    total = 0.0
    for drawn in product(sorted(symbols), repeat=n_blocks):
        if set(drawn) == symbols:
            alone = {symbol: 0.5 ** drawn.count(symbol) for symbol in symbols}
            chances = (1 - alone[symbol] if symbol in partners else alone[symbol] for symbol in symbols)
            total += prod(x[symbol] for symbol in drawn) * prod(chances)
    return log2(total) if total else -inf


def sized_symbols(
    n: int,
    *,
    n_symbols: int = 30,
    max_size: int = 8,
    words_per_label: int = 4,
    block_size: int = 2,
    noise: float = 0.1,
    concentration: float = 0.5,
    shuffle_text: bool = False,
    with_input: bool = False,
    seed: int = 0,
) -> Iterator[Example]:
    """Make up examples of the size process: 1 to `max_size` labels, and `words_per_label` words for each.

    Examples
    --------
    >>> next(sized_symbols(1, n_symbols=8, max_size=3, words_per_label=2))
    Example(text='s1 s1 s2 s3 s3 s3', labels=('s3', 's1', 's2'), id=0, fields={'id': 0})

    """
    _check(
        seed,
        n_symbols=n_symbols,
        max_size=max_size,
        words_per_label=words_per_label,
        block_size=block_size,
        concentration=concentration,
        noise=noise,
    )
    n_blocks = -(-max_size // block_size)
    _check_room(n_blocks, block_size, n_symbols)
    rng = np.random.default_rng(seed)
    for number in range(n):
        size = int(rng.integers(1, max_size + 1))
        x, blocks = _draw_blocks(rng, n_symbols, -(-size // block_size), block_size, noise, concentration)
        labels = [f"s{symbol}" for block in blocks for symbol in block][:size]
        rng.shuffle(labels)
        yield _example(number, x, labels, words_per_label * size, rng if shuffle_text else None, with_input=with_input)


PROCESSES: dict[str, Callable[..., Iterator[Example]]] = {
    "blocks": block_symbols,
    "partners": paired_symbols,
    "sizes": sized_symbols,
}


def _draw_blocks(
    rng: np.random.Generator, n_symbols: int, n_blocks: int, block_size: int, noise: float, concentration: float
) -> tuple[NDArray[np.float64], list[list[int]]]:
    """Draw x, and blocks that share no symbol."""
    n_drawn = n_blocks * max(block_size - 1, 1)
    for _ in range(_MAX_INPUTS):
        x = rng.dirichlet(np.full(n_symbols, concentration))
        with np.errstate(divide="ignore"):
            scores = np.log(x)
        for _ in range(_MAX_TRIES):
            # The highest of logarithms plus Gumbel noise are draws without putting back.
            drawn = np.argsort(-(scores + rng.gumbel(size=n_symbols)), kind="stable")[:n_drawn]
            prefixes = rng.permutation(drawn).reshape(n_blocks, -1)
            if block_size == 1:
                return x, prefixes.tolist()
            suffixes = (prefixes.sum(axis=1) + 1) % n_symbols
            suffixes = np.where(rng.random(n_blocks) < noise, rng.integers(n_symbols, size=n_blocks), suffixes)
            blocks = np.column_stack([prefixes, suffixes])
            if len(np.unique(blocks)) == blocks.size:
                return x, blocks.tolist()
    raise ValueError(
        f"{n_blocks} blocks of {block_size} hardly ever hold different symbols; use more of them than {n_symbols}, or "
        "fewer or smaller blocks."
    )


def _example(
    number: int,
    x: NDArray[np.float64],
    labels: list[str],
    n_words: int,
    rng: np.random.Generator | None,
    *,
    with_input: bool,
) -> Example:
    words = np.repeat(np.arange(len(x)), apportion(x, n_words))
    if rng is not None:
        rng.shuffle(words)
    fields: dict[str, Any] = {"id": number}
    if with_input:
        fields["x"] = x.tolist()
    return Example(" ".join(f"s{word}" for word in words.tolist()), tuple(labels), number, fields)


def shuffled(labels: tuple[str, ...], share: float, rng: np.random.Generator) -> tuple[str, ...]:
    """Shuffle a share of the labels among their own places, chosen at random; the others stay where they are.

    Examples
    --------
    >>> shuffled(("a", "b", "c", "d"), 0.5, np.random.default_rng(0))
    ('c', 'b', 'a', 'd')

    """
    places = rng.permutation(len(labels))[: round(share * len(labels))]
    mixed = list(labels)
    for place, source in zip(places.tolist(), rng.permutation(places).tolist(), strict=True):
        mixed[place] = labels[source]
    return tuple(mixed)


def apportion(shares: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Divide a total in proportion to shares, by largest remainders.

    Examples
    --------
    >>> apportion(np.array([0.5, 0.3, 0.2]), 4).tolist()
    [2, 1, 1]

    """
    exact = shares / shares.sum() * total
    counts: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    missing = total - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    return counts


def _check(seed: int, *, concentration: float, noise: float = 0.0, **whole: int) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ValueError(f"seed must be a whole number from 0 on, got {seed!r}.")
    for name, value in whole.items():
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST:
            raise ValueError(f"{name} must be a whole number from 1 to {_MOST:,}, got {value!r}.")
    if not 0.001 <= concentration <= 1000:
        raise ValueError(f"concentration must be a number from 0.001 to 1,000, got {concentration!r}.")
    if not 0 <= noise <= 1:
        raise ValueError(f"noise must be a share from 0 to 1, got {noise!r}.")


def _check_room(n_blocks: int, block_size: int, n_symbols: int) -> None:
    if n_blocks * block_size > n_symbols:
        raise ValueError(f"{n_blocks} blocks of {block_size} need more than the {n_symbols} symbols that there are.")
