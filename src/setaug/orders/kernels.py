"""The compiled loops: pairs of labels, and orders for many sets at once.

Each has a plain twin that tests compare it with: `Stream` for the random numbers, `OrderGraph` for the edges,
`extensions.py` for counts and draws. Sets come flat: the labels of set ``i`` are
``ids[starts[i]:starts[i + 1]]``. A label that the statistics never saw has the id -1.

Draws are exact: probabilities are ratios of whole numbers below 2**64, and no random number is rounded.
"""

from math import lgamma, log

import numpy as np
from numba import njit, uint64

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
ONE = np.uint64(1)
EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)

MAX_COMPILED = 16
"""Connected parts of a graph with more labels than this are left to `extensions.py` (16! fits in 64 bits)."""


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
        for j in range(size):
            before[i, j] = i != j and is_edge(labels[i], labels[j], counts, floors, cap, table)
            n_edges += before[i, j]
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
            at = int(below(state, uint64(size - 1)))
            n_placed = bound_step(before, line, bound, n_placed, at, below(state, uint64(2)) == 1)
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
            at = int(below(state, uint64(size - 1)))
            coin = below(state, uint64(2)) == 1
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
        n_different = np.exp2(min(log2_factorial(size), 62.0)) + 0.5
        for j in range(len(orders)):
            while True:
                for k in range(size):
                    orders[j, start + k] = k
                shuffle(state, orders[j, start : start + size], size)
                since = j - j % int(n_different)
                if not distinct or not is_repeated(orders, start, size, since, j):
                    break


@njit(cache=True, nogil=True)
def draw_topological(
    starts, ids, counts, floors, cap, table, seed, first_index, quick, distinct, orders, n_edges, log2_orders
):
    """Fill `orders` as `draw_random` does, with orders that each set's graph allows.

    Also fill, for each set, its number of edges and the log2 of the number of orders allowed: nan where a connected
    part of the graph is too large to be counted here. If orders must be distinct, those of such a set are left
    unfilled.
    """
    most = 1
    for i in range(len(starts) - 1):
        most = max(most, starts[i + 1] - starts[i])
    state = np.empty(1, np.uint64)
    before = np.empty((most, most), np.bool_)
    part = np.empty(most, np.int64)
    tags = np.empty(most, np.int64)
    stack = np.empty(most, np.int64)
    free = np.empty(most, np.int64)
    members = np.empty(most, np.int64)
    needs = np.empty((most, MAX_COMPILED), np.int64)
    part_start = np.empty(most + 1, np.int64)
    at_part = np.empty(most, np.int64)
    part_order = np.empty(most, np.int64)
    ways = np.empty(1 << 8, np.uint64)
    way_start = np.empty(most + 1, np.int64)
    for i in range(len(starts) - 1):
        start = starts[i]
        size = starts[i + 1] - start
        labels = ids[start : start + size]
        n_edges[i] = find_edges(labels, size, counts, floors, cap, table, before)
        log2_orders[i] = log2_factorial(size)
        start_stream(state, seed, first_index + i)
        n_parts = size
        if n_edges[i]:
            n_parts = find_parts(before, size, part, stack)
            # Lay the members of each part side by side.
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
            if largest > MAX_COMPILED:
                log2_orders[i] = np.nan
                if distinct:
                    continue
            n_ways = 0
            for p in range(n_parts):
                way_start[p] = n_ways
                if part_start[p + 1] - part_start[p] <= MAX_COMPILED:
                    n_ways += 1 << (part_start[p + 1] - part_start[p])
            if n_ways > len(ways):
                ways = np.empty(n_ways, np.uint64)
            for p in range(n_parts):
                low = part_start[p]
                part_size = part_start[p + 1] - low
                if part_size <= MAX_COMPILED:
                    for k in range(part_size):
                        needs[p, k] = 0
                        for h in range(part_size):
                            if before[members[low + h], members[low + k]]:
                                needs[p, k] |= 1 << h
                    found = count_extensions(needs[p], part_size, ways[way_start[p] :])
                    log2_orders[i] += np.log2(float(found)) - log2_factorial(part_size)
        n_different = 2.0**62 if np.isnan(log2_orders[i]) else np.exp2(min(log2_orders[i], 62.0)) + 0.5
        for j in range(len(orders)):
            order = orders[j, start : start + size]
            while True:
                if n_edges[i] == 0:
                    for k in range(size):
                        order[k] = k
                    shuffle(state, order, size)
                elif quick:
                    draw_quick(state, before, size, order, free)
                else:
                    # A uniformly random interleaving of the parts, each in a uniformly drawn order of its own.
                    for k in range(size):
                        tags[k] = part[members[k]]
                    shuffle(state, tags, size)
                    for p in range(n_parts):
                        low = part_start[p]
                        part_size = part_start[p + 1] - low
                        at_part[p] = low
                        if part_size <= MAX_COMPILED:
                            draw_extension(
                                state,
                                needs[p],
                                members[low:],
                                part_size,
                                ways[way_start[p] :],
                                part_order,
                                low,
                            )
                        else:
                            part_members = members[low : low + part_size]
                            draw_large(state, labels, part_members, counts, before, part_order[low:])
                    for k in range(size):
                        order[k] = part_order[at_part[tags[k]]]
                        at_part[tags[k]] += 1
                since = j - j % max(int(n_different), 1)
                if not distinct or not is_repeated(orders, start, size, since, j):
                    break
