"""The compiled loops: pairs of labels, and orders for many sets at once.

Each has a plain twin that tests compare it with: `Stream` for the random numbers, `OrderGraph` for the edges,
`extensions.py` for counts and draws. Sets come flat: the labels of set ``i`` are
``ids[starts[i]:starts[i + 1]]``. A label that the statistics never saw has the id -1.

Draws are exact: probabilities are ratios of whole numbers below 2**64, and no random number is rounded.
"""

from functools import cache
from itertools import permutations
from math import factorial, lgamma, log

import numpy as np
from numba import njit, uint64

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
ONE = np.uint64(1)
EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)

MAX_LISTED = 5
"""For sets with at most so many labels, all orders of all graphs are listed once."""
MAX_COUNTED = 16
"""Connected parts of a graph with more labels than this are not counted here (16! fits in 64 bits), but drawn by
Huber's sampler."""
LEFT_OUT = -1.0
MAX_DRAWN = 32
"""Those with more labels than this are left to `extensions.py`: it may well count them, for labels of large sets are
often interchangeable."""


@njit(cache=True, inline="always")
def mix(value):
    value = (value ^ (value >> uint64(30))) * MIX_1
    value = (value ^ (value >> uint64(27))) * MIX_2
    return value ^ (value >> uint64(31))


@njit(cache=True)
def start_stream(state, seed, index):
    """Set the state to that of a fresh `Stream`."""
    state[0] = mix(mix(seed + GOLDEN) ^ mix(uint64(index) * GOLDEN + ONE))


@njit(cache=True)
def below(state, bound):
    """Draw a whole number below the bound, as `Stream.below` does."""
    top = bound - ONE
    bits = 0
    while top:
        top >>= ONE
        bits += 1
    if bits == 0:
        return uint64(0)
    shift = uint64(64 - bits)
    while True:
        state[0] += GOLDEN
        value = mix(state[0]) >> shift
        if value < bound:
            return value


@njit(cache=True)
def shuffle(state, items, size):
    for last in range(size - 1, 0, -1):
        other = below(state, uint64(last + 1))
        items[last], items[other] = items[other], items[last]


@njit(cache=True)
def pair_keys(starts, ids):
    """List each pair of labels of each set, as smaller id * 2**32 + larger id."""
    n_pairs = 0
    for i in range(len(starts) - 1):
        size = starts[i + 1] - starts[i]
        n_pairs += size * (size - 1) // 2
    keys = np.empty(n_pairs, np.uint64)
    at = 0
    for i in range(len(starts) - 1):
        for j in range(starts[i], starts[i + 1]):
            for k in range(j + 1, starts[i + 1]):
                low, high = min(ids[j], ids[k]), max(ids[j], ids[k])
                keys[at] = uint64(low) << uint64(32) | uint64(high)
                at += 1
    return keys


@njit(cache=True)
def undecided_keys(starts, ids, counts, floors, cap):
    """List those pairs, as in `pair_keys`, whose edge depends on how often they occur together."""
    keys = np.empty(1024, np.uint64)
    at = 0
    for i in range(len(starts) - 1):
        for j in range(starts[i], starts[i + 1]):
            for k in range(j + 1, starts[i + 1]):
                a, b = ids[j], ids[k]
                if counts[a] < counts[b]:
                    a, b = b, a
                if counts[a] > floors[b] and float(counts[a]) * float(counts[b]) >= cap:
                    if at == len(keys):
                        larger = np.empty(2 * at, np.uint64)
                        larger[:at] = keys
                        keys = larger
                    keys[at] = uint64(min(a, b)) << uint64(32) | uint64(max(a, b))
                    at += 1
    return keys[:at]


@njit(cache=True)
def hash_keys(keys):
    """Build a table in which `holds` finds the keys."""
    size = 8
    while size < 2 * len(keys):
        size *= 2
    table = np.full(size, EMPTY)
    mask = uint64(size - 1)
    for key in keys:
        slot = mix(key) & mask
        while table[slot] != EMPTY:
            slot = (slot + ONE) & mask
        table[slot] = key
    return table


@njit(cache=True)
def holds(table, key):
    mask = uint64(len(table) - 1)
    slot = mix(key) & mask
    while table[slot] != EMPTY:
        if table[slot] == key:
            return True
        slot = (slot + ONE) & mask
    return False


@njit(cache=True)
def is_edge(first, then, counts, floors, cap, table):
    """Tell whether label `first` must be written before label `then` (Algorithm 1, line 3)."""
    if first < 0 or then < 0 or counts[then] <= floors[first]:
        return False
    if float(counts[then]) * float(counts[first]) < cap:
        return True
    return holds(table, uint64(first) << uint64(32) | uint64(then))


@njit(cache=True)
def find_edges(labels, size, counts, floors, cap, table, before):
    """Fill ``before[i, j]``: label i goes before label j; give the number of edges."""
    n_edges = 0
    for i in range(size):
        before[i, i] = False
        for j in range(i):
            before[i, j] = is_edge(labels[i], labels[j], counts, floors, cap, table)
            before[j, i] = not before[i, j] and is_edge(labels[j], labels[i], counts, floors, cap, table)
            n_edges += before[i, j] | before[j, i]
    return n_edges


@njit(cache=True)
def find_parts(before, size, part, stack):
    """Give each connected part of the graph a number, from 0 on; return how many there are."""
    part[:size] = -1
    n_parts = 0
    for start in range(size):
        if part[start] >= 0:
            continue
        part[start] = n_parts
        stack[0] = start
        depth = 1
        while depth:
            depth -= 1
            i = stack[depth]
            for j in range(size):
                if part[j] < 0 and (before[i, j] or before[j, i]):
                    part[j] = n_parts
                    stack[depth] = j
                    depth += 1
        n_parts += 1
    return n_parts


@njit(cache=True)
def count_extensions(needs, size, ways):
    """Fill ``ways[taken]``: in how many orders the labels outside the down-set `taken` can follow it."""
    full = (1 << size) - 1
    ways[full] = ONE
    for taken in range(full - 1, -1, -1):
        total = uint64(0)
        for i in range(size):
            if not taken >> i & 1 and needs[i] & ~taken == 0:
                total += ways[taken | 1 << i]
        ways[taken] = total
    return ways[0]


@njit(cache=True)
def draw_extension(state, needs, members, size, ways, order, at):
    """Write a uniformly drawn order of a connected part's members to ``order[at:]``."""
    taken = 0
    for _ in range(size):
        rest = below(state, ways[taken])
        for i in range(size):
            if not taken >> i & 1 and needs[i] & ~taken == 0:
                share = ways[taken | 1 << i]
                if rest < share:
                    order[at] = members[i]
                    at += 1
                    taken |= 1 << i
                    break
                rest -= share


@njit(cache=True)
def bound_step(before, line, bound, n_placed, at, coin):
    """Move the bounding line one step: swap places `at` and `at + 1` if the coin says so and the graph allows it.

    ``bound[at]`` is a label known to stand at place `at` or before, or -1. Labels enter at the last place, in the
    order `line`, one whenever it falls free; gives the number that have entered.
    """
    size = len(line)
    if coin:
        left, right = bound[at], bound[at + 1]
        if left < 0 or right < 0 or not before[left, right]:
            bound[at], bound[at + 1] = right, left
    if bound[size - 1] < 0:
        bound[size - 1] = line[n_placed]
        n_placed += 1
    return n_placed


@njit(cache=True)
def draw_huber(state, before, line, order):
    """Draw a uniformly random order that the graph allows, without counting (Huber 2006).

    Coupling from the past for the chain that swaps neighbours. The bounding line follows every run of the chain
    at once: when a label stands on each place of it, all runs have met there. `line` is any allowed order.
    """
    size = len(line)
    bound = np.empty(size, np.int64)
    n_steps = size * size
    depth = 0
    starts = np.empty(64, np.uint64)
    # Go back further and further, with fresh coins, until the runs from there meet.
    while True:
        starts[depth] = state[0]
        bound[:] = -1
        bound[size - 1] = line[0]
        n_placed = 1
        for _ in range(n_steps << depth):
            choice = below(state, uint64(2 * size - 2))
            n_placed = bound_step(before, line, bound, n_placed, int(choice >> ONE), choice & ONE == 1)
        n_open = 0
        for k in range(size):
            n_open += bound[k] < 0
        if n_open == 0:
            break
        depth += 1
    order[:] = bound
    after = state[0]
    # Then follow the one state that all runs share through the later blocks, with the coins of each.
    for block in range(depth - 1, -1, -1):
        state[0] = starts[block]
        bound[:] = -1
        bound[size - 1] = line[0]
        n_placed = 1
        for _ in range(n_steps << block):
            choice = below(state, uint64(2 * size - 2))
            at, coin = int(choice >> ONE), choice & ONE == 1
            own_coin = coin != (order[at] == bound[at + 1])
            if own_coin and not before[order[at], order[at + 1]]:
                order[at], order[at + 1] = order[at + 1], order[at]
            n_placed = bound_step(before, line, bound, n_placed, at, coin)
    state[0] = after


@njit(cache=True)
def draw_large(state, labels, members, counts, before, order):
    """Draw an order of a part that is too large to count."""
    size = len(members)
    own_counts = np.empty(size, np.int64)
    for k in range(size):
        own_counts[k] = counts[labels[members[k]]]
    by_count = members[np.argsort(own_counts)]  # from rare to frequent, as all edges go
    own_before = np.empty((size, size), np.bool_)
    for h in range(size):
        for k in range(size):
            own_before[h, k] = before[by_count[h], by_count[k]]
    places = np.empty(size, np.int64)
    draw_huber(state, own_before, np.arange(size), places)
    for k in range(size):
        order[k] = by_count[places[k]]


@njit(cache=True)
def draw_quick(state, before, size, order, free):
    """Draw an order by picking any label whose turn it may be, again and again: quick, not uniform."""
    free[:size] = 1
    for at in range(size):
        n_open = 0
        for j in range(size):
            if free[j]:
                free[j] = 1
                for i in range(size):
                    if free[i] and before[i, j]:
                        free[j] = 2
                        break
                n_open += free[j] == 1
        pick = below(state, uint64(n_open))
        for j in range(size):
            if free[j] == 1:
                if pick == 0:
                    order[at] = j
                    free[j] = 0
                    break
                pick -= ONE


@njit(cache=True)
def log2_factorial(size):
    return lgamma(size + 1.0) / log(2.0)


@njit(cache=True)
def is_repeated(orders, start, size, since, now):
    """Tell whether the order `now` of a set equals one of those from `since` on."""
    for other in range(since, now):
        same = True
        for i in range(start, start + size):
            if orders[other, i] != orders[now, i]:
                same = False
                break
        if same:
            return True
    return False


@njit(cache=True, nogil=True)
def draw_random(starts, seed, first_index, distinct, orders):
    """Fill ``orders[j, starts[i]:starts[i + 1]]`` with uniformly random orders of positions."""
    state = np.empty(1, np.uint64)
    for i in range(len(starts) - 1):
        start = starts[i]
        size = starts[i + 1] - start
        start_stream(state, seed, first_index + i)
        n_different = int(np.exp2(min(log2_factorial(size), 62.0)) + 0.5) if distinct else 1
        for j in range(len(orders)):
            while True:
                for k in range(size):
                    orders[j, start + k] = k
                shuffle(state, orders[j, start : start + size], size)
                since = j - j % n_different
                if not distinct or not is_repeated(orders, start, size, since, j):
                    break


@cache
def small_tables():
    """List, for each graph over at most `MAX_LISTED` labels, the orders that it allows.

    Labels are sorted so that edges go from left to right; bit ``j * (j - 1) / 2 + i`` of a graph is the edge from i to
    j. Gives for each number of labels and graph where its orders start and how many there are, and all orders.
    """
    n_graphs = 1 << MAX_LISTED * (MAX_LISTED - 1) // 2
    first, n_ways = np.zeros((MAX_LISTED + 1, n_graphs), np.int64), np.zeros((MAX_LISTED + 1, n_graphs), np.int64)
    listed = []
    n_listed = 0
    for size in range(MAX_LISTED + 1):
        orders = np.array(list(permutations(range(size))), np.int8).reshape(factorial(size), size)
        place = np.argsort(orders, axis=1)
        broken = np.zeros(len(orders), np.int64)
        for j in range(size):
            for i in range(j):
                broken |= (place[:, i] > place[:, j]).astype(np.int64) << (j * (j - 1) // 2 + i)
        graphs = np.arange(1 << size * (size - 1) // 2)
        graph, order = np.nonzero(graphs[:, None] & broken == 0)
        n_ways[size, : len(graphs)] = np.bincount(graph, minlength=len(graphs))
        first[size, : len(graphs)] = n_listed + np.cumsum(n_ways[size, : len(graphs)]) - n_ways[size, : len(graphs)]
        n_listed += len(order)
        listed.append(np.pad(orders[order], ((0, 0), (0, MAX_LISTED - size))))
    return first, n_ways, np.concatenate(listed)


@njit(cache=True)
def draw_small(state, labels, size, counts, floors, cap, table, listed, distinct, start, orders, by_count, own_counts):
    """Draw the orders of a small set from the list of those that its graph allows; give its edges and its orders."""
    first, n_ways, all_orders = listed
    for i in range(size):
        own_counts[i] = counts[labels[i]] if labels[i] >= 0 else 0
        k = i
        while k and own_counts[by_count[k - 1]] > own_counts[i]:
            by_count[k] = by_count[k - 1]
            k -= 1
        by_count[k] = i
    graph = 0
    n_edges = 0
    for j in range(size):
        for i in range(j):
            if is_edge(labels[by_count[i]], labels[by_count[j]], counts, floors, cap, table):
                graph |= 1 << (j * (j - 1) // 2 + i)
                n_edges += 1
    ways = n_ways[size, graph]
    for j in range(len(orders)):
        while True:
            drawn = first[size, graph] + int(below(state, uint64(ways)))
            for k in range(size):
                orders[j, start + k] = by_count[all_orders[drawn, k]]
            if not distinct or not is_repeated(orders, start, size, j - j % ways, j):
                break
    return n_edges, ways


@njit(cache=True)
def lay_out_parts(before, size, part, members, part_start, at_part, stack):
    """Lay the members of each connected part side by side; give the number of parts and the size of the largest."""
    n_parts = find_parts(before, size, part, stack)
    part_start[: n_parts + 1] = 0
    for k in range(size):
        part_start[part[k] + 1] += 1
    largest = 0
    for p in range(n_parts):
        largest = max(largest, part_start[p + 1])
        part_start[p + 1] += part_start[p]
        at_part[p] = part_start[p]
    for k in range(size):
        members[at_part[part[k]]] = k
        at_part[part[k]] += 1
    return n_parts, largest


@njit(cache=True, nogil=True)
def draw_topological(
    starts, ids, counts, floors, cap, table, listed, seed, first_index, quick, distinct, orders, n_edges, log2_orders
):
    """Fill `orders` as `draw_random` does, with orders that each set's graph allows.

    Also fill, for each set, its number of edges and the log2 of the number of orders allowed: nan where a connected
    part of the graph is too large to be counted here. If the orders must be distinct then, or the part is too large to
    be drawn here too, it is `LEFT_OUT`, and the orders are left unfilled.
    """
    most = 1
    for i in range(len(starts) - 1):
        most = max(most, starts[i + 1] - starts[i])
    state = np.empty(1, np.uint64)
    before = np.empty((most, most), np.bool_)
    part = np.empty(most, np.int64)
    tags = np.empty(most, np.int64)
    scratch = np.empty(most, np.int64)
    members = np.empty(most, np.int64)
    needs = np.empty((most, MAX_COUNTED), np.int64)
    part_start = np.empty(most + 1, np.int64)
    at_part = np.empty(most, np.int64)
    part_order = np.empty(most, np.int64)
    ways = np.empty((most, 0), np.uint64)
    for i in range(len(starts) - 1):
        start = starts[i]
        size = starts[i + 1] - start
        labels = ids[start : start + size]
        start_stream(state, seed, first_index + i)
        if size <= MAX_LISTED and not quick:
            n_edges[i], n_ways = draw_small(
                state, labels, size, counts, floors, cap, table, listed, distinct, start, orders, scratch, tags
            )
            log2_orders[i] = np.log2(n_ways)
            continue
        n_edges[i] = find_edges(labels, size, counts, floors, cap, table, before)
        n_parts, largest = lay_out_parts(before, size, part, members, part_start, at_part, scratch)
        log2_orders[i] = log2_factorial(size)
        if largest > MAX_COUNTED:
            log2_orders[i] = np.nan
            if distinct or (largest > MAX_DRAWN and not quick):
                log2_orders[i] = LEFT_OUT
                continue
        elif 1 << largest > ways.shape[1]:
            ways = np.empty((most, 1 << largest), np.uint64)
        for p in range(n_parts):
            own = members[part_start[p] : part_start[p + 1]]
            if len(own) <= MAX_COUNTED:
                for k in range(len(own)):
                    needs[p, k] = 0
                    for h in range(len(own)):
                        needs[p, k] |= before[own[h], own[k]] << h
                log2_orders[i] += np.log2(float(count_extensions(needs[p], len(own), ways[p])))
                log2_orders[i] -= log2_factorial(len(own))
        n_different = 1 << 62
        if distinct and not np.isnan(log2_orders[i]):
            n_different = int(np.exp2(min(log2_orders[i], 62.0)) + 0.5)
        for j in range(len(orders)):
            order = orders[j, start : start + size]
            while True:
                if quick:
                    draw_quick(state, before, size, order, scratch)
                else:
                    # A uniformly random interleaving of the parts, each in a uniformly drawn order of its own.
                    for p in range(n_parts):
                        low = part_start[p]
                        own = members[low : part_start[p + 1]]
                        tags[low : part_start[p + 1]] = p
                        at_part[p] = low
                        if len(own) <= MAX_COUNTED:
                            draw_extension(state, needs[p], own, len(own), ways[p], part_order, low)
                        else:
                            draw_large(state, labels, own, counts, before, part_order[low:])
                    shuffle(state, tags, size)
                    for k in range(size):
                        order[k] = part_order[at_part[tags[k]]]
                        at_part[tags[k]] += 1
                if not distinct or not is_repeated(orders, start, size, j - j % n_different, j):
                    break
