"""Made-up data whose labels depend on each other in a way that is known: the paper's Finding 4 (appendix G).

The input is a distribution x over symbols, drawn from a Dirichlet distribution. Each of B blocks draws a symbol from x;
with probability one half its partner, a symbol that never comes without it, joins it. The set is all of them, shuffled:

    x ~ Dirichlet(a, ..., a),   p_b ~ x,   y = {p_1, ..., p_B} and each p_b' with probability 1/2

So a partner tells its symbol (p(symbol | partner) = 1), but not the other way round, and it is about half as frequent:
``min_ratio`` must be below 2 for an edge between them. A model reads x as text: each symbol, repeated in proportion.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from setaug.examples import Example


def paired_symbols(
    n: int,
    *,
    n_symbols: int = 30,
    n_blocks: int = 3,
    n_words: int = 24,
    concentration: float = 0.2,
    seed: int = 0,
) -> Iterator[Example]:
    """Make up examples of the Finding 4 process.

    Parameters
    ----------
    n_symbols, n_blocks
        The number of symbols (each has a partner), and of blocks per example.
    n_words
        The length of the text.
    concentration
        The parameter a of the Dirichlet distribution; the smaller, the fewer symbols share the text.

    Examples
    --------
    >>> next(paired_symbols(1, n_symbols=4, n_words=6))
    Example(text='s0 s2 s2 s2 s2 s3', labels=('s2', 'p2', 's3'), id=0, fields={'id': 0})

    """
    rng = np.random.default_rng(seed)
    for number in range(n):
        x = rng.dirichlet(np.full(n_symbols, concentration))
        drawn = rng.choice(n_symbols, n_blocks, p=x).tolist()
        has_partner = (rng.random(n_blocks) < 0.5).tolist()
        labels = [f"s{symbol}" for symbol in drawn]
        labels += [f"p{symbol}" for symbol, is_joined in zip(drawn, has_partner, strict=True) if is_joined]
        labels = list(dict.fromkeys(labels))
        rng.shuffle(labels)
        words = np.repeat(np.arange(n_symbols), apportion(x, n_words)).tolist()
        yield Example(" ".join(f"s{word}" for word in words), tuple(labels), number, {"id": number})


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
