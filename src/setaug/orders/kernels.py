"""The compiled loops: label pairs, and orders for many sets at once.

Each has a pure Python counterpart that tests compare it to: `plain_kernels` for small inputs, `Stream` for random
numbers, `OrderGraph` for edges, `LinearExtensions` for counts and samples. Sets are flat, as in `SetBatch`.

Sampling is exact: probabilities are ratios of integers, and no random number is rounded.
"""

from math import log

import numpy as np
from numba import njit, uint64

from setaug.orders.arrays import (
    LEFT_OUT,
    LOG2,
    LOG2_FACTORIALS,
    MAX_BITS,
    MAX_LISTED,
    MAX_QUICK_DOWN_SETS,
)

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
ONE = np.uint64(1)
EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)

MAX_DOWN_SETS = 1 << 16
"""Graphs with more down-sets are not counted; Huber's sampler samples their orders."""
LIMB_BITS, LOW_LIMB = np.uint64(32), np.uint64(0xFFFFFFFF)
MAX_LIMBS = 11
"""64! has 296 bits."""


@njit(cache=True, inline="always")
def mix(value):
    value = (value ^ (value >> uint64(30))) * MIX_1
    value = (value ^ (value >> uint64(27))) * MIX_2
    return value ^ (value >> uint64(31))


@njit(cache=True, inline="always")
def start_stream(state, seed, index):
    """Set the state to that of a new `Stream`."""
    state[0] = mix(mix(seed + GOLDEN) ^ mix(uint64(index) * GOLDEN + ONE))


@njit(cache=True, inline="always")
def below(state, bound):
    """Draw an integer below the bound, as `Stream.below` does."""
    top = bound - ONE
    bits = 0
    while bits < 56 and top >> uint64(bits + 8):
        bits += 8
    while bits < 64 and top >> uint64(bits):
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
    """Return each label pair of each set, as smaller id * 2**32 + larger id."""
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
def undecided_keys(starts, ids, bounds, cap):
    """Return the label pairs, as in `pair_keys`, whose edge depends on their joint count."""
    keys = np.empty(1024, np.uint64)
    at = 0
    for i in range(len(starts) - 1):
        for j in range(starts[i], starts[i + 1]):
            for k in range(j + 1, starts[i + 1]):
                a, b = ids[j], ids[k]
                if bounds[a, 0] < bounds[b, 0]:
                    a, b = b, a
                if bounds[a, 0] > bounds[b, 1] and float(bounds[a, 0]) * float(bounds[b, 0]) >= cap:
                    if at == len(keys):
                        larger = np.empty(2 * at, np.uint64)
                        larger[:at] = keys
                        keys = larger
                    keys[at] = uint64(min(a, b)) << uint64(32) | uint64(max(a, b))
                    at += 1
    return keys[:at]


@njit(cache=True, nogil=True)
def merge_counts(keys, counts, more_keys, more_counts):
    """Merge two tables of counts, each sorted by key; counts of shared keys are added."""
    size = len(keys) + len(more_keys)
    out_keys, out_counts = np.empty(size, np.uint64), np.empty(size, np.int64)
    at = i = j = 0
    while i < len(keys) or j < len(more_keys):
        if j == len(more_keys) or (i < len(keys) and keys[i] <= more_keys[j]):
            out_keys[at], out_counts[at] = keys[i], counts[i]
            if j < len(more_keys) and keys[i] == more_keys[j]:
                out_counts[at] += more_counts[j]
                j += 1
            i += 1
        else:
            out_keys[at], out_counts[at] = more_keys[j], more_counts[j]
            j += 1
        at += 1
    return out_keys[:at], out_counts[:at]


@njit(cache=True)
def hash_keys(keys):
    """Return a hash table of the keys, for `holds`."""
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


@njit(cache=True, inline="always")
def is_edge(first, then, bounds, cap, table):
    """Return whether label `first` must be written before label `then` (Algorithm 1, line 3).

    ``bounds[label]`` is the label's count, and the largest count of another label to which it has no edge.
    """
    if first < 0 or then < 0 or bounds[then, 0] <= bounds[first, 1]:
        return False
    if float(bounds[then, 0]) * float(bounds[first, 0]) < cap:
        return True
    return holds(table, uint64(first) << uint64(32) | uint64(then))


@njit(cache=True)
def list_edges(labels, bounds, cap, table):
    """Return for each two labels of a set whether the first must be written before the second."""
    size = len(labels)
    edges = np.zeros((size, size), np.bool_)
    for i in range(size):
        for j in range(size):
            edges[i, j] = i != j and is_edge(labels[i], labels[j], bounds, cap, table)
    return edges


@njit(cache=True)
def find_neighbours(labels, size, bounds, cap, table, before, after):
    """Fill, as bits, the labels before and after each label of a set; return the number of edges."""
    n_edges = 0
    for i in range(size):
        before[i] = uint64(0)
        after[i] = uint64(0)
        for j in range(i):
            if is_edge(labels[i], labels[j], bounds, cap, table):
                after[i] |= ONE << uint64(j)
                before[j] |= ONE << uint64(i)
                n_edges += 1
            elif is_edge(labels[j], labels[i], bounds, cap, table):
                after[j] |= ONE << uint64(i)
                before[i] |= ONE << uint64(j)
                n_edges += 1
    return n_edges


@njit(cache=True)
def find_parts(before, after, size, parts):
    """Fill the connected components of the graph, as bits; return their number."""
    n_parts = 0
    seen = uint64(0)
    for start in range(size):
        if seen >> uint64(start) & ONE:
            continue
        part = ONE << uint64(start)
        reached = part
        while reached:
            fringe = reached
            reached = uint64(0)
            for i in range(start, size):
                if fringe >> uint64(i) & ONE:
                    reached |= before[i] | after[i]
            reached &= ~part
            part |= reached
        parts[n_parts] = part
        n_parts += 1
        seen |= part
    return n_parts


@njit(cache=True)
def count_bits(mask):
    n_bits = 0
    while mask:
        mask &= mask - ONE
        n_bits += 1
    return n_bits


@njit(cache=True)
def lowest_bit(mask):
    at = 0
    while not mask >> uint64(at) & ONE:
        at += 1
    return at


@njit(cache=True)
def find_twins(before, after, part, size, twins, needs):
    """Group the labels of a component that have the same neighbours; return the number of groups.

    Fills, as bits, the labels of each group and those that must come before it.
    """
    n_groups = 0
    for i in range(size):
        if not part >> uint64(i) & ONE:
            continue
        group = n_groups
        for g in range(n_groups):
            first = lowest_bit(twins[g])
            if before[first] == before[i] and after[first] == after[i]:
                group = g
                break
        if group == n_groups:
            twins[group] = uint64(0)
            needs[group] = before[i]
            n_groups += 1
        twins[group] |= ONE << uint64(i)
    return n_groups


@njit(cache=True)
def find_down_sets(twins, needs, n_groups, masks, follows, slots, stamps, stamp):
    """List the down-sets of a component, merging those that differ only by labels with the same neighbours.

    ``follows[s, g]`` becomes the index of down-set s with one more label of group g, or -1. Returns the number of
    down-sets, or -1 if there is no room for all.
    """
    if len(masks) == 0:
        return -1
    n_labels = 0
    for g in range(n_groups):
        n_labels += count_bits(twins[g])
    mask_of_slots = uint64(min(len(slots), 1 << min(n_labels + 2, 40)) - 1)  # a small table stays in cache
    masks[0] = uint64(0)
    n_sets = 1
    at = 0
    while at < n_sets:
        for g in range(n_groups):
            follows[at, g] = -1
            left = twins[g] & ~masks[at]
            if left == 0 or needs[g] & ~masks[at]:
                continue
            larger = masks[at] | (left & (~left + ONE))
            slot = mix(larger) & mask_of_slots
            while stamps[slot] == stamp and masks[slots[slot]] != larger:
                slot = (slot + ONE) & mask_of_slots
            if stamps[slot] != stamp:
                if n_sets == len(masks):
                    return -1
                stamps[slot] = stamp
                slots[slot] = n_sets
                masks[n_sets] = larger
                n_sets += 1
            follows[at, g] = slots[slot]
        at += 1
    return n_sets


@njit(cache=True)
def add_multiple(total, number, times, n_limbs):
    """Add a multiple of one large integer to another, both in limbs of 32 bits, the lowest first."""
    carry = uint64(0)
    for k in range(n_limbs):
        carry += total[k] + number[k] * times
        total[k] = carry & LOW_LIMB
        carry >>= LIMB_BITS


@njit(cache=True)
def subtract(total, number, n_limbs):
    """Subtract a large integer from another; return False, without a change, if the other is smaller."""
    for k in range(n_limbs - 1, -1, -1):
        if total[k] != number[k]:
            if total[k] < number[k]:
                return False
            break
    borrow = uint64(0)
    for k in range(n_limbs):
        taken = number[k] + borrow
        borrow = uint64(total[k] < taken)
        total[k] = (total[k] + (borrow << LIMB_BITS)) - taken
    return True


@njit(cache=True)
def below_large(state, bound, n_limbs, drawn):
    """Draw a large integer below the bound."""
    top = n_limbs - 1
    while top and bound[top] == 0:
        top -= 1
    mask = bound[top]
    for shift in (1, 2, 4, 8, 16):
        mask |= mask >> uint64(shift)
    while True:
        drawn[:n_limbs] = uint64(0)
        for k in range(top + 1):
            state[0] += GOLDEN
            drawn[k] = mix(state[0]) >> LIMB_BITS
        drawn[top] &= mask
        for k in range(top, -1, -1):
            if drawn[k] < bound[k]:
                return
            if drawn[k] > bound[k]:
                break


@njit(cache=True)
def limbs_for(size):
    """Return the number of limbs of ``size!``; one limb of 64 bits if that suffices."""
    return 1 if size <= 20 else int(LOG2_FACTORIALS[size] / 32) + 2


@njit(cache=True)
def count_ways(twins, n_groups, masks, follows, n_sets, n_limbs, ways):
    """Fill ``ways[s]``: the number of orders of the labels outside down-set s."""
    ways[n_sets - 1, :n_limbs] = uint64(0)
    ways[n_sets - 1, 0] = ONE
    if n_limbs == 1:
        for at in range(n_sets - 2, -1, -1):
            ways[at, 0] = uint64(0)
            for g in range(n_groups):
                if follows[at, g] >= 0:
                    ways[at, 0] += uint64(count_bits(twins[g] & ~masks[at])) * ways[follows[at, g], 0]
        return
    for at in range(n_sets - 2, -1, -1):
        ways[at, :n_limbs] = uint64(0)
        for g in range(n_groups):
            if follows[at, g] >= 0:
                weight = uint64(count_bits(twins[g] & ~masks[at]))
                add_multiple(ways[at], ways[follows[at, g]], weight, n_limbs)


@njit(cache=True)
def log2_large(number, n_limbs):
    value = 0.0
    for k in range(n_limbs - 1, -1, -1):
        value = value * 4294967296.0 + float(number[k])
    return np.log2(value)


@njit(cache=True)
def draw_counted(state, size, twins, n_groups, masks, follows, ways, members, at_group, drawn, share, order):
    """Sample an order of a component whose orders are counted."""
    n_limbs = limbs_for(size)
    # Groups are sampled, not labels: the labels of a group take its positions in a random order.
    at = 0
    for g in range(n_groups):
        at_group[g] = at
        left = twins[g]
        while left:
            members[at] = lowest_bit(left)
            left &= left - ONE
            at += 1
        if at - at_group[g] > 1:
            shuffle(state, members[at_group[g] : at], at - at_group[g])
    at = 0
    for place in range(size if n_limbs == 1 else 0):
        rest = below(state, ways[at, 0])
        for g in range(n_groups):
            follower = follows[at, g]
            if follower >= 0:
                own_share = uint64(count_bits(twins[g] & ~masks[at])) * ways[follower, 0]
                if rest < own_share:
                    order[place] = members[at_group[g]]
                    at_group[g] += 1
                    at = follower
                    break
                rest -= own_share
    for place in range(0 if n_limbs == 1 else size):
        below_large(state, ways[at], n_limbs, drawn)
        for g in range(n_groups):
            follower = follows[at, g]
            if follower >= 0:
                share[:n_limbs] = uint64(0)
                add_multiple(share, ways[follower], uint64(count_bits(twins[g] & ~masks[at])), n_limbs)
                if not subtract(drawn, share, n_limbs):
                    order[place] = members[at_group[g]]
                    at_group[g] += 1
                    at = follower
                    break


@njit(cache=True, inline="always")
def bound_step(before, line, bound, n_placed, at, coin):
    """Move the bounding line one step: swap positions `at` and `at + 1` on heads, if the graph allows it.

    ``bound[at]`` is a label known to be at position `at` or before, or -1. Labels enter at the last position, in the
    order `line`, whenever it is free. Returns the number that have entered.
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


@njit(cache=True, inline="always")
def below_shifted(state, bound, shift):
    """Draw an integer as `below` does, with a precomputed shift."""
    while True:
        state[0] += GOLDEN
        value = mix(state[0]) >> shift
        if value < bound:
            return value


@njit(cache=True)
def draw_huber(state, before, line, order):
    """Sample a uniformly random allowed order without counting (Huber 2006).

    Coupling from the past for the chain that swaps neighbours. The bounding line follows every run of the chain
    at once: when each of its positions has a label, all runs have met. `line` is any allowed order.
    """
    size = len(line)
    bound = np.empty(size, np.int64)
    n_steps = int(1.3 * size**3 * log(size)) + 1  # in nine cases of ten the runs meet earlier, for any graph
    depth = 0
    n_choices = uint64(2 * size - 2)  # a position and a coin
    shift = uint64(64)
    while ONE << (uint64(64) - shift) < n_choices:
        shift -= ONE
    starts = np.empty(64, np.uint64)
    # Start further and further in the past, with fresh coins, until all runs coalesce.
    while True:
        starts[depth] = state[0]
        bound[:] = -1
        bound[size - 1] = line[0]
        n_placed = 1
        for _ in range(n_steps << depth):
            choice = below_shifted(state, n_choices, shift)
            n_placed = bound_step(before, line, bound, n_placed, int(choice >> ONE), choice & ONE == 1)
        n_open = 0
        for k in range(size):
            n_open += bound[k] < 0
        if n_open == 0:
            break
        depth += 1
    order[:] = bound
    after = state[0]
    # Then follow the common state through the later blocks, with their coins.
    for block in range(depth - 1, -1, -1):
        state[0] = starts[block]
        bound[:] = -1
        bound[size - 1] = line[0]
        n_placed = 1
        for _ in range(n_steps << block):
            choice = below_shifted(state, n_choices, shift)
            at, coin = int(choice >> ONE), choice & ONE == 1
            own_coin = coin != (order[at] == bound[at + 1])
            if own_coin and not before[order[at], order[at + 1]]:
                order[at], order[at + 1] = order[at + 1], order[at]
            n_placed = bound_step(before, line, bound, n_placed, at, coin)
    state[0] = after


@njit(cache=True)
def draw_uncounted(state, labels, part, size, bounds, after, order):
    """Sample an order of a component with too many down-sets to count."""
    members = np.empty(size, np.int64)
    own_counts = np.empty(size, np.int64)
    for k in range(size):
        members[k] = lowest_bit(part)
        part &= part - ONE
        own_counts[k] = bounds[labels[members[k]], 0]
    by_count = members[np.argsort(own_counts)]  # from rare to frequent, like all edges
    before = np.empty((size, size), np.bool_)
    for h in range(size):
        for k in range(size):
            before[h, k] = after[by_count[h]] >> uint64(by_count[k]) & ONE
    places = np.empty(size, np.int64)
    draw_huber(state, before, np.arange(size), places)
    for k in range(size):
        order[k] = by_count[places[k]]


@njit(cache=True)
def draw_quick(state, before, size, order):
    """Sample an order by a random topological sort: quick, not uniform."""
    written = uint64(0)
    for at in range(size):
        n_free = 0
        for j in range(size):
            n_free += not (written >> uint64(j) & ONE or before[j] & ~written)
        pick = int(below(state, uint64(n_free)))
        for j in range(size):
            if not (written >> uint64(j) & ONE or before[j] & ~written):
                if pick == 0:
                    order[at] = j
                    written |= ONE << uint64(j)
                    break
                pick -= 1


@njit(cache=True)
def is_repeated(orders, start, size, since, now):
    """Return whether the order `now` of a set equals one of those from `since` on."""
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
        n_different = int(np.exp2(min(LOG2_FACTORIALS[min(size, MAX_BITS)], 62.0)) + 0.5) if distinct else 1
        for j in range(len(orders)):
            while True:
                for k in range(size):
                    orders[j, start + k] = k
                shuffle(state, orders[j, start : start + size], size)
                since = j - j % n_different
                if not distinct or not is_repeated(orders, start, size, since, j):
                    break


@njit(cache=True, inline="always")
def find_small_graph(ids, start, size, bounds, cap, table, by_count, own_counts):
    """Sort the labels of a small set from rare to frequent; return its graph, as bits, and its number of edges."""
    for i in range(size):
        label = ids[start + i]
        own_counts[i] = bounds[label, 0] if label >= 0 else 0
        k = i
        while k and own_counts[by_count[k - 1]] > own_counts[i]:
            by_count[k] = by_count[k - 1]
            k -= 1
        by_count[k] = i
    graph = 0
    n_edges = 0
    for j in range(size):
        for i in range(j):
            if is_edge(ids[start + by_count[i]], ids[start + by_count[j]], bounds, cap, table):
                graph |= 1 << (j * (j - 1) // 2 + i)
                n_edges += 1
    return graph, n_edges


@njit(cache=True, nogil=True)
def draw_topological(
    starts,
    ids,
    bounds,
    cap,
    table,
    first_listed,
    n_listed,
    listed,
    seed,
    first_index,
    quick,
    distinct,
    orders,
    n_edges,
    log2_orders,
):
    """Fill `orders` as `draw_random` does, with orders that each set's graph allows.

    Also fill, for each set, its number of edges and the log2 of the number of allowed orders: nan if the graph has too
    many down-sets to count, `LEFT_OUT` if the orders are left unfilled. This applies to large sets, and to distinct
    orders that cannot be counted or come from the quick sampler, which may never reach some of them.
    """
    most = MAX_LISTED
    for i in range(len(starts) - 1):
        most = max(most, min(starts[i + 1] - starts[i], MAX_BITS))
    room = 1 if most <= MAX_LISTED else MAX_QUICK_DOWN_SETS if quick else MAX_DOWN_SETS
    state = np.empty(1, np.uint64)
    tags = np.empty(most, np.int64)
    scratch = np.empty(most, np.int64)
    members = np.empty(most, np.int64)
    part_order = np.empty(most, np.int64)
    part_start = np.empty(most + 1, np.int64)
    set_start = np.empty(most, np.int64)
    n_groups = np.empty(most, np.int64)
    before = np.empty(most, np.uint64)
    after = np.empty(most, np.uint64)
    parts = np.empty(most, np.uint64)
    twins = np.empty(most, np.uint64)
    needs = np.empty(most, np.uint64)
    masks = np.empty(room, np.uint64)
    follows = np.empty((room, most), np.int32)
    ways = np.empty((room, MAX_LIMBS), np.uint64)
    drawn = np.empty(MAX_LIMBS, np.uint64)
    share = np.empty(MAX_LIMBS, np.uint64)
    slots = np.empty(4 * room, np.int32)
    stamps = np.zeros(4 * room, np.int64)
    stamp = 0
    for i in range(len(starts) - 1):
        start = starts[i]
        size = starts[i + 1] - start
        start_stream(state, seed, first_index + i)
        if size > MAX_BITS or (quick and distinct):
            log2_orders[i] = LEFT_OUT
            continue
        if size <= MAX_LISTED:
            graph, n_edges[i] = find_small_graph(ids, start, size, bounds, cap, table, scratch, tags)
            n_ways = n_listed[size, graph]
            log2_orders[i] = LOG2[n_ways]
            if quick:
                for k in range(size):
                    before[k] = uint64(graph >> (k * (k - 1) // 2)) & ((ONE << uint64(k)) - ONE)
                for j in range(len(orders)):
                    draw_quick(state, before, size, part_order)
                    for k in range(size):
                        orders[j, start + k] = scratch[part_order[k]]
                continue
            for j in range(len(orders)):
                while True:
                    row = first_listed[size, graph] + int(below(state, uint64(n_ways)))
                    for k in range(size):
                        orders[j, start + k] = scratch[listed[row, k]]
                    if not distinct or not is_repeated(orders, start, size, j - j % n_ways, j):
                        break
            continue
        labels = ids[start : start + size]
        n_edges[i] = find_neighbours(labels, size, bounds, cap, table, before, after)
        n_parts = find_parts(before, after, size, parts)
        log2_orders[i] = LOG2_FACTORIALS[size]
        part_start[0] = 0
        n_used = 0
        for p in range(n_parts):
            low = part_start[p]
            part_size = count_bits(parts[p])
            part_start[p + 1] = low + part_size
            set_start[p] = n_used
            if part_size == 1:
                continue
            n_groups[p] = find_twins(before, after, parts[p], size, twins[low:], needs[low:])
            stamp += 1
            n_sets = find_down_sets(
                twins[low:], needs[low:], n_groups[p], masks[n_used:], follows[n_used:], slots, stamps, stamp
            )
            if n_sets < 0:
                n_groups[p] = -1
                log2_orders[i] = np.nan
                continue
            n_limbs = limbs_for(part_size)
            count_ways(twins[low:], n_groups[p], masks[n_used:], follows[n_used:], n_sets, n_limbs, ways[n_used:])
            log2_orders[i] += log2_large(ways[n_used], n_limbs) - LOG2_FACTORIALS[part_size]
            n_used += n_sets
        if distinct and np.isnan(log2_orders[i]):
            log2_orders[i] = LEFT_OUT
            continue
        n_different = int(np.exp2(min(log2_orders[i], 62.0)) + 0.5) if distinct else 1
        for j in range(len(orders)):
            order = orders[j, start : start + size]
            while True:
                if quick:
                    draw_quick(state, before, size, order)
                else:
                    # A uniform interleaving of the components, each in a uniformly sampled order.
                    for p in range(n_parts):
                        low, at = part_start[p], set_start[p]
                        own_order = part_order[low : part_start[p + 1]]
                        if len(own_order) == 1:
                            own_order[0] = lowest_bit(parts[p])
                        elif n_groups[p] < 0:
                            draw_uncounted(state, labels, parts[p], len(own_order), bounds, after, own_order)
                        else:
                            draw_counted(
                                state,
                                len(own_order),
                                twins[low:],
                                n_groups[p],
                                masks[at:],
                                follows[at:],
                                ways[at:],
                                members,
                                scratch,
                                drawn,
                                share,
                                own_order,
                            )
                        tags[low : part_start[p + 1]] = p
                    shuffle(state, tags, size)
                    for p in range(n_parts):
                        scratch[p] = part_start[p]
                    for k in range(size):
                        order[k] = part_order[scratch[tags[k]]]
                        scratch[tags[k]] += 1
                if not distinct or not is_repeated(orders, start, size, j - j % n_different, j):
                    break
