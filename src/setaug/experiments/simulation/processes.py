"""Synthetic data with adjustable dependence between labels: the processes of the paper's appendix G.

The input is a distribution x over N symbols, drawn from a Dirichlet distribution. Its text repeats each symbol in
proportion to x (largest remainders). The labels are symbols, too.

*Blocks* (Findings 1 to 3). A set has B blocks of size k; the last symbol of a block depends on the others:

    x ~ Dirichlet(a, ..., a)
    p_1, ..., p_(k-1) ~ x, without replacement         the prefix, sorted
    y_s = (p_1 + ... + p_(k-1) + 1) mod N              the suffix, with probability 1 - epsilon
    y_s ~ Uniform(0..N-1)                              otherwise

For k = 1 a block is a single symbol drawn from x, and all orders of a set are equally likely. For k = 2 each second
label follows from the one before it; larger k have more independent labels. Blocks are redrawn until all symbols of a
set differ, and are dealt out at random: which block comes first carries no information.

*Partners* (Finding 4). Each of B blocks draws a symbol from x. With probability one half, its partner joins it, a label
that never occurs without it. The set is shuffled:

    x ~ Dirichlet(a, ..., a),   p_b ~ x,   y = {p_1, ..., p_B} and each p_b' with probability 1/2

A partner determines its symbol, p(symbol | partner) = 1, but not the reverse. Its frequency is half to all of the
symbol's (a symbol that is drawn twice has two chances), so an edge between them needs a ``min_ratio`` near 1. In larger
blocks k - 1 symbols are drawn, without replacement, and the partner is that of all of them together.

*Sizes* (Finding 6). The input determines the number of labels m: the text has w words per label. The labels are those
of blocks, the last of which may be cut off, shuffled.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, permutations, product
from math import inf, log2, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setaug.examples import Example

_MAX_TRIES = 1000
"""Draws of blocks with a repeated symbol before x is redrawn."""
_MAX_INPUTS = 20
"""Draws of x before the blocks are reported not to fit."""
_MAX = 1_000_000


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
    """Return examples of the block process, with the labels block by block.

    Parameters
    ----------
    n_symbols, n_blocks, block_size
        N, B and k: the number of symbols, of blocks per example, and of symbols per block.
    noise
        The probability epsilon of a random suffix.
    n_words
        The length of the text.
    concentration
        The parameter a of the Dirichlet distribution; the smaller, the fewer symbols dominate x.
    sort_prefix
        Whether the prefix of a block is sorted, as in the paper.
    shuffle_text
        Whether to shuffle the words.
    with_input
        Whether to add the vector x as the field ``x``.

    Examples
    --------
    >>> next(block_symbols(1, n_symbols=8, n_blocks=2, n_words=6))
    Example(text='s0 s2 s5 s6 s6 s7', labels=('s7', 's0', 's4', 's5'), id=0, fields={'id': 0})

    """
    _check(seed, concentration, noise, n_symbols=n_symbols, n_blocks=n_blocks, block_size=block_size, n_words=n_words)
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
    block_size: int = 2,
    n_words: int = 24,
    concentration: float = 0.2,
    shuffle_text: bool = False,
    with_input: bool = False,
    seed: int = 0,
) -> Iterator[Example]:
    """Return examples of the partner process, which also has the labels p0, p1, ... (in blocks of 3: p0-1, p0-2, ...).

    Examples
    --------
    >>> next(paired_symbols(1, n_symbols=4, n_words=6))
    Example(text='s0 s2 s2 s2 s2 s3', labels=('s2', 'p2', 's3'), id=0, fields={'id': 0})

    """
    whole = {"n_symbols": n_symbols, "n_blocks": n_blocks, "block_size": block_size, "n_words": n_words}
    _check(seed, concentration, **whole)
    if not 2 <= block_size <= n_symbols + 1:
        raise ValueError(
            f"block_size must be from 2 to {n_symbols + 1}, the number of symbols plus one, got {block_size}."
        )
    rng = np.random.default_rng(seed)
    for number in range(n):
        x = rng.dirichlet(np.full(n_symbols, concentration))
        if block_size == 2:
            drawn = [[symbol] for symbol in rng.choice(n_symbols, n_blocks, p=x).tolist()]
        else:
            drawn = [_draw_distinct(rng, x, block_size - 1).tolist() for _ in range(n_blocks)]
        has_partner = (rng.random(n_blocks) < 0.5).tolist()
        labels = [f"s{symbol}" for prefix in drawn for symbol in prefix]
        labels += [partner_of(prefix) for prefix, is_joined in zip(drawn, has_partner, strict=True) if is_joined]
        labels = list(dict.fromkeys(labels))
        rng.shuffle(labels)
        yield _example(number, x, labels, n_words, rng if shuffle_text else None, with_input=with_input)


def partner_of(prefix: Iterable[int]) -> str:
    """Return the partner of the symbols of a block.

    Examples
    --------
    >>> partner_of([7]), partner_of([7, 3])
    ('p7', 'p3-7')

    """
    return "p" + "-".join(map(str, sorted(prefix)))


def paired_log2_probability(
    labels: Iterable[str], x: Sequence[float], *, n_blocks: int = 3, block_size: int = 2
) -> float:
    """Return the log2 probability of a set under the partner process, given x: the best that a model can reach.

    Examples
    --------
    >>> paired_log2_probability(["s0", "p0"], [0.5, 0.5], n_blocks=1)
    -2.0
    >>> paired_log2_probability(["s0", "s1", "p0-1"], [0.5, 0.5], n_blocks=1, block_size=3)
    -1.0

    """
    names = set(labels)
    symbols = {int(name[1:]) for name in names if name.startswith("s")}
    partners = names - {f"s{symbol}" for symbol in symbols}
    prefixes = {
        prefix: sum(_chance_in_turn(order, x) for order in permutations(prefix))
        for prefix in combinations(sorted(symbols), block_size - 1)
    }
    total = 0.0
    for drawn in product(prefixes, repeat=n_blocks):
        if {symbol for prefix in drawn for symbol in prefix} == symbols and partners <= set(map(partner_of, drawn)):
            alone = {prefix: 0.5 ** drawn.count(prefix) for prefix in drawn}
            chances = (1 - chance if partner_of(prefix) in partners else chance for prefix, chance in alone.items())
            total += prod(prefixes[prefix] for prefix in drawn) * prod(chances)
    return log2(total) if total else -inf


def _chance_in_turn(symbols: Sequence[int], x: Sequence[float]) -> float:
    """Return the probability of drawing symbols from x one after the other, without replacement."""
    left, chance = 1.0, 1.0
    for symbol in symbols:
        chance *= x[symbol] / left if left > 0 else 0.0
        left -= x[symbol]
    return chance


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
    """Return examples of the size process: 1 to `max_size` labels, and `words_per_label` words for each.

    Examples
    --------
    >>> next(sized_symbols(1, n_symbols=8, max_size=3, words_per_label=2))
    Example(text='s1 s1 s2 s3 s3 s3', labels=('s3', 's1', 's2'), id=0, fields={'id': 0})

    """
    whole = {"n_symbols": n_symbols, "max_size": max_size, "words_per_label": words_per_label, "block_size": block_size}
    _check(seed, concentration, noise, **whole)
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
    """Draw x and blocks without a common symbol."""
    n_drawn = n_blocks * max(block_size - 1, 1)
    for _ in range(_MAX_INPUTS):
        x = rng.dirichlet(np.full(n_symbols, concentration))
        for _ in range(_MAX_TRIES):
            drawn = _draw_distinct(rng, x, n_drawn)
            prefixes = rng.permutation(drawn).reshape(n_blocks, -1)
            if block_size == 1:
                return x, prefixes.tolist()
            suffixes = (prefixes.sum(axis=1) + 1) % n_symbols
            suffixes = np.where(rng.random(n_blocks) < noise, rng.integers(n_symbols, size=n_blocks), suffixes)
            blocks = np.column_stack([prefixes, suffixes])
            if len(np.unique(blocks)) == blocks.size:
                return x, blocks.tolist()
    raise ValueError(
        f"{n_blocks} blocks of {block_size} hardly ever have distinct symbols; use more than {n_symbols} symbols, or "
        "fewer or smaller blocks."
    )


def _draw_distinct(rng: np.random.Generator, x: NDArray[np.float64], n_drawn: int) -> NDArray[np.int64]:
    """Draw symbols from x without replacement: those with the largest logarithms plus Gumbel noise."""
    with np.errstate(divide="ignore"):
        scores = np.log(x)
    return np.argsort(-(scores + rng.gumbel(size=len(x))), kind="stable")[:n_drawn]


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
    """Shuffle a share of the labels, at random positions; the others keep theirs.

    Examples
    --------
    >>> shuffled(("a", "b", "c", "d"), 0.5, np.random.default_rng(0))
    ('c', 'b', 'a', 'd')

    """
    positions = rng.permutation(len(labels))[: round(share * len(labels))]
    mixed = list(labels)
    for position, source in zip(positions.tolist(), rng.permutation(positions).tolist(), strict=True):
        mixed[position] = labels[source]
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


def _check(seed: int, concentration: float, noise: float = 0.0, **whole: int) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ValueError(f"seed must be a non-negative integer, got {seed!r}.")
    for name, value in whole.items():
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MAX:
            raise ValueError(f"{name} must be an integer from 1 to {_MAX:,}, got {value!r}.")
    if not 0.001 <= concentration <= 1000:
        raise ValueError(f"concentration must be a number from 0.001 to 1,000, got {concentration!r}.")
    if not 0 <= noise <= 1:
        raise ValueError(f"noise must be a probability from 0 to 1, got {noise!r}.")


def _check_room(n_blocks: int, block_size: int, n_symbols: int) -> None:
    if n_blocks * block_size > n_symbols:
        raise ValueError(f"{n_blocks} blocks of {block_size} need more than {n_symbols} symbols.")
