"""Compiled loops that scan JSON lines and write pairs, without creating a Python object for any value.

`scan` finds the positions of the wanted fields in a block of lines; the bytes of a text or a label are then copied
unchanged, including escapes. It accepts a line only if a JSON parser would accept it with the same meaning. It declines
whatever is uncertain, and the caller parses that line. A line that the parser found valid is scanned again, and then
never declined. A *span* is a start and an end in the block.
"""

import numpy as np
from numba import njit, types, uint8, uint64
from numba.core import cgutils
from numba.extending import intrinsic

from setaug.engines.fast.plain_scan import ACCEPTED, BLANK, DECLINED, REFUSED, VALID

ONES = np.uint64(0x0101010101010101)
HIGH_BITS = np.uint64(0x8080808080808080)
QUOTES, BACKSLASHES, SPACES = ONES * np.uint64(0x22), ONES * np.uint64(0x5C), ONES * np.uint64(0x20)
LOW_BYTE, EIGHT = np.uint64(0xFF), np.uint64(8)
MOST_DIGITS = 200
"""A parser may reject a number with more digits before the point, or with a three-digit exponent."""

ID_MASK = 0xFFFFFFFF
NOT_BLANK, PERHAPS_ESCAPED, PERHAPS_BLANK = 2, 1, 0
BLANKNESS = np.full(256, NOT_BLANK, np.uint8)
"""The class of each byte of a label: part of white space in UTF-8, part of an escape of it, or neither."""
BLANKNESS[list(b'\\/"bfnrtu0123456789abcdefABCDEF')] = PERHAPS_ESCAPED
BLANKNESS[list(b" \x85\x9a\x9f\xa0\xa8\xa9\xaf\xc2\xe1\xe2\xe3")] = PERHAPS_BLANK
BLANKNESS[0x80:0x8B] = PERHAPS_BLANK


@njit(cache=True, inline="always")
def skip_space(block, at, end):
    while at < end and (block[at] == 32 or block[at] == 9 or block[at] == 13):
        at += 1
    return at


@njit(cache=True)
def read_hex(block, at, end):
    r"""Read the four digits of a ``\u`` escape; -1 if they are not hexadecimal."""
    if at + 4 > end:
        return -1
    value = 0
    for k in range(4):
        digit = block[at + k]
        if 48 <= digit <= 57:
            value = value * 16 + digit - 48
        elif 97 <= digit | 32 <= 102:
            value = value * 16 + (digit | 32) - 87
        else:
            return -1
    return value


@njit(cache=True)
def skip_escape(block, at, end):
    """Return the end of the escape whose backslash is at `at`; -1 if it is invalid."""
    if at + 1 >= end:
        return -1
    kind = block[at + 1]
    if kind != 117:
        # One of "\/bfnrt
        known = kind == 34 or kind == 92 or kind == 47 or kind == 98 or kind == 102 or kind == 110
        return at + 2 if known or kind == 114 or kind == 116 else -1
    code = read_hex(block, at + 2, end)
    if code < 0 or 0xDC00 <= code < 0xE000:
        return -1
    if 0xD800 <= code < 0xDC00:
        if at + 7 >= end or block[at + 6] != 92 or block[at + 7] != 117:
            return -1
        if not 0xDC00 <= read_hex(block, at + 8, end) < 0xE000:
            return -1
        return at + 12
    return at + 6


@intrinsic
def copy_bytes(typing_context, target, at, source, start, size):
    """Copy bytes between arrays with memcpy: several times as fast as assigning a slice."""
    signature = types.void(target, types.intp, source, types.intp, types.intp)

    def generate(context, builder, signature, arguments):
        target, at, source, start, size = arguments
        into = context.make_array(signature.args[0])(context, builder, target).data
        out_of = context.make_array(signature.args[2])(context, builder, source).data
        cgutils.raw_memcpy(builder, builder.gep(into, [at]), builder.gep(out_of, [start]), size, 1)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def eight_bytes(typing_context, block, at):
    """Load eight bytes, at any alignment, as one integer."""
    signature = types.uint64(block, types.intp)

    def generate(context, builder, signature, arguments):
        block, at = arguments
        data = context.make_array(signature.args[0])(context, builder, block).data
        word = context.get_value_type(types.uint64).as_pointer()
        return builder.load(builder.bitcast(builder.gep(data, [at]), word), align=1)

    return signature, generate


@njit(cache=True)
def skip_string(block, at, end):
    """Return the position after the string whose opening quote is at `at`; -1 if it is invalid."""
    at += 1
    while at < end:
        # Eight bytes at a time, while none of them is a quote, a backslash or a control character.
        while at + 8 <= end:
            eight = eight_bytes(block, at)
            quote, slash = eight ^ QUOTES, eight ^ BACKSLASHES
            found = ((quote - ONES) & ~quote) | ((slash - ONES) & ~slash) | ((eight - SPACES) & ~eight)
            found &= HIGH_BITS
            if found:
                # The lowest of the marked bytes is one of them for sure.
                while found & LOW_BYTE == 0:
                    found >>= EIGHT
                    at += 1
                break
            at += 8
        byte = block[at]
        if byte == 34:
            return at + 1
        if byte < 32:
            return -1
        if byte == 92:
            at = skip_escape(block, at, end)
            if at < 0:
                return -1
        else:
            at += 1
    return -1


@njit(cache=True)
def skip_digits(block, at, end):
    while at < end and 48 <= block[at] <= 57:
        at += 1
    return at


@njit(cache=True)
def skip_number(block, at, end):
    """Return the end of a number; -1 if it is invalid, or so large that a parser may refuse it."""
    if at < end and block[at] == 45:
        at += 1
    start = at
    at = skip_digits(block, at, end)
    if at == start or at - start > MOST_DIGITS or (block[start] == 48 and at - start > 1):
        return -1
    if at < end and block[at] == 46:
        start = at + 1
        at = skip_digits(block, start, end)
        if at == start:
            return -1
    if at < end and block[at] | 32 == 101:
        at += 1
        if at < end and (block[at] == 43 or block[at] == 45):
            at += 1
        start = at
        at = skip_digits(block, start, end)
        if at == start or at - start > 2:
            return -1
    return at


@njit(cache=True)
def skip_word(block, at, end):
    """Return the end of true, false or null; -1 for anything else."""
    for word in (b"true", b"false", b"null"):
        size = len(word)
        if at + size <= end:
            same = True
            for k in range(size):
                if block[at + k] != word[k]:
                    same = False
            if same:
                return at + size
    return -1


@njit(cache=True)
def skip_scalar(block, at, end):
    if at >= end:
        return -1
    if block[at] == 34:
        return skip_string(block, at, end)
    if block[at] == 45 or 48 <= block[at] <= 57:
        return skip_number(block, at, end)
    return skip_word(block, at, end)


@njit(cache=True)
def skip_trusted(block, at, end):
    """Return the end of a value that is known to be valid."""
    if block[at] == 34:
        return skip_string(block, at, end)
    depth = 0
    while at < end:
        byte = block[at]
        if byte == 34:
            at = skip_string(block, at, end)
            continue
        if byte == 91 or byte == 123:
            depth += 1
        elif depth == 0 and (byte == 44 or byte == 93 or byte == 125 or byte <= 32):
            return at  # after a number or a word
        elif byte == 93 or byte == 125:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return -1


@njit(cache=True)
def skip_value(block, at, end, trusted):
    """Return the end of a value; -1 if it is invalid, or nested and not known to be valid."""
    if trusted:
        return skip_trusted(block, at, end)
    if at < end and (block[at] == 91 or block[at] == 123):
        if block[at] == 123:
            return -1
        at = skip_space(block, at + 1, end)
        if at < end and block[at] == 93:
            return at + 1
        while True:
            at = skip_scalar(block, at, end)
            if at < 0:
                return -1
            at = skip_space(block, at, end)
            if at >= end or (block[at] != 44 and block[at] != 93):
                return -1
            at += 1
            if block[at - 1] == 93:
                return at
            at = skip_space(block, at, end)
    return skip_scalar(block, at, end)


@njit(cache=True)
def may_be_blank(block, start, end):
    escaped = False
    escapes = False
    for k in range(start, end):
        blankness = BLANKNESS[block[k]]
        if blankness == NOT_BLANK:
            return False
        escapes |= blankness == PERHAPS_ESCAPED
        escaped |= block[k] == 92
    return escaped or not escapes


@njit(cache=True)
def read_labels(block, at, end, trusted, labels, n_labels):
    """Fill the spans of the strings in a list; return their number so far and the list's end (-1 if invalid)."""
    if at >= end or block[at] != 91:
        return n_labels, -1
    at = skip_space(block, at + 1, end)
    if at < end and block[at] == 93:
        return n_labels, at + 1
    while True:
        if at >= end or block[at] != 34:
            return n_labels, -1
        start = at + 1
        at = skip_string(block, at, end)
        if at < 0 or (not trusted and may_be_blank(block, start, at - 1)):
            return n_labels, -1
        labels[n_labels, 0], labels[n_labels, 1] = start, at - 1
        n_labels += 1
        at = skip_space(block, at, end)
        if at >= end or (block[at] != 44 and block[at] != 93):
            return n_labels, -1
        at += 1
        if block[at - 1] == 93:
            return n_labels, at
        at = skip_space(block, at, end)


@njit(cache=True)
def unescape(block, at, end):
    """Return the code point of an escape, and the escape's end."""
    kind = block[at + 1]
    if kind == 117:
        code = read_hex(block, at + 2, end)
        if 0xD800 <= code < 0xDC00:
            return 0x10000 + ((code - 0xD800) << 10) + read_hex(block, at + 8, end) - 0xDC00, at + 12
        return code, at + 6
    code = int(kind)
    for letter, control in ((98, 8), (102, 12), (110, 10), (114, 13), (116, 9)):
        if kind == letter:
            code = control
    return code, at + 2


@njit(cache=True)
def is_escaped_name(block, at, end, names, name_at, name_end):
    """Return whether a key with escapes equals a name, which has none."""
    while at < end:
        if block[at] != 92:
            if name_at >= name_end or names[name_at] != block[at]:
                return False
            at += 1
            name_at += 1
            continue
        code, at = unescape(block, at, end)
        size = 1 + (code > 0x7F) + (code > 0x7FF) + (code > 0xFFFF)  # in UTF-8
        if name_at + size > name_end:
            return False
        mark = 0xF00 >> size & 0xFF if size > 1 else 0
        for k in range(size):
            shift = 6 * (size - 1 - k)
            byte = mark | code >> shift if k == 0 else 0x80 | (code >> shift & 0x3F)
            if names[name_at + k] != byte:
                return False
        name_at += size
    return name_at == name_end


@njit(cache=True)
def is_name(block, start, end, escaped, names, name_start, name_end):
    if escaped:
        return is_escaped_name(block, start, end, names, name_start, name_end)
    if end - start != name_end - name_start:
        return False
    for k in range(end - start):  # noqa: SIM110 (numba compiles no all())
        if block[start + k] != names[name_start + k]:
            return False
    return True


@njit(cache=True)
def scan_line(block, at, end, names, name_starts, trusted, spans, labels, n_labels):
    """Fill the spans of one line's fields. Of a duplicate field, a parser takes the last.

    Returns the number of labels so far, the status of the line, and a position in it (its end, unless it was declined).
    No value contains a raw newline, so the line's end need not be found first.
    """
    spans[:] = -1
    n_fields = len(spans)
    start = at
    at = skip_space(block, at, end)
    if at == end or block[at] == 10:
        return n_labels, BLANK, at
    if block[at] != 123:
        return n_labels, DECLINED, start
    at = skip_space(block, at + 1, end)
    while True:
        if at >= end or block[at] != 34:
            return n_labels, DECLINED, start
        key = at + 1
        at = skip_string(block, at, end)
        if at < 0:
            return n_labels, DECLINED, start
        key_end = at - 1
        escaped = False
        for k in range(key, key_end):
            escaped |= block[k] == 92
        at = skip_space(block, at, end)
        if at >= end or block[at] != 58:
            return n_labels, DECLINED, start
        at = skip_space(block, at + 1, end)
        value = at
        if not trusted and is_name(block, key, key_end, escaped, names, name_starts[1], name_starts[2]):
            n_labels, at = read_labels(block, at, end, trusted, labels, n_labels)
        else:
            at = skip_value(block, at, end, trusted)
        if at < 0:
            return n_labels, DECLINED, start
        for k in range(n_fields):
            if is_name(block, key, key_end, escaped, names, name_starts[k], name_starts[k + 1]):
                if spans[k, 0] >= 0 and not trusted:
                    return n_labels, DECLINED, start
                spans[k, 0], spans[k, 1] = value, at
        at = skip_space(block, at, end)
        if at >= end:
            return n_labels, DECLINED, start
        if block[at] == 125:
            break
        if block[at] != 44:
            return n_labels, DECLINED, start
        at = skip_space(block, at + 1, end)
    at = skip_space(block, at + 1, end)
    if (at < end and block[at] != 10) or spans[0, 0] < 0 or spans[1, 0] < 0 or block[spans[0, 0]] != 34:
        return n_labels, DECLINED, start
    if trusted:
        n_labels, labels_end = read_labels(block, spans[1, 0], end, trusted, labels, n_labels)
        if labels_end != spans[1, 1]:
            return n_labels, DECLINED, start
    spans[0, 0] += 1
    spans[0, 1] -= 1
    return n_labels, ACCEPTED, at


@njit(cache=True)
def last_line_end(block, size):
    """Return the position after the last newline; 0 if there is none."""
    while size > 0 and block[size - 1] != 10:
        size -= 1
    return size


@njit(cache=True, nogil=True)
def count_marks(block, size):
    """Count the newlines and the quotes, and return whether all bytes are ASCII."""
    n_newlines = n_quotes = 0
    seen = uint8(0)
    for k in range(size):
        n_newlines += block[k] == 10
        n_quotes += block[k] == 34
        seen |= block[k]
    return n_newlines, n_quotes, seen < 128


@njit(cache=True, nogil=True)
def scan(block, at, size, names, name_starts, lines, status, spans, labels, label_starts):
    """Scan a block of lines from `at` on; return the number of lines.

    Field 0 is the text (its span excludes the quotes), field 1 the labels, the others any value. A line whose status is
    VALID or REFUSED was parsed before: the first is scanned without checks, the second skipped. Only accepted lines
    have labels.
    """
    line = 0
    n_labels = 0
    while at < size:
        label_starts[line] = n_labels
        end = at
        if status[line] != REFUSED:
            trusted = status[line] == VALID
            found, status[line], end = scan_line(
                block, at, size, names, name_starts, trusted, spans[line], labels, n_labels
            )
            if status[line] == ACCEPTED:
                n_labels = found
        while end < size and block[end] != 10:
            end += 1
        lines[line, 0], lines[line, 1] = at, end
        at = end + 1
        line += 1
    label_starts[line] = n_labels
    return line


@njit(cache=True, inline="always")
def hash_bytes(block, start, end, secret):
    """Hash a string with two secret integers, so that an attacker cannot choose colliding strings."""
    code = secret[0] ^ uint64(end - start)
    factor = secret[1]
    while start + 8 <= end:
        code = (code ^ eight_bytes(block, start)) * factor
        code ^= code >> uint64(32)
        start += 8
    rest = uint64(0)
    while start < end:
        rest = rest << EIGHT | uint64(block[start])
        start += 1
    code = (code ^ rest) * factor
    return code ^ code >> uint64(29)


@njit(cache=True, inline="always")
def are_equal(a, a_start, b, b_start, size):
    at = 0
    while at + 8 <= size:
        if eight_bytes(a, a_start + at) != eight_bytes(b, b_start + at):
            return False
        at += 8
    while at < size:
        if a[a_start + at] != b[b_start + at]:
            return False
        at += 1
    return True


@njit(cache=True, inline="always")
def tagged(code, number):
    """Combine a part of the hash with a number, so that most comparisons end there."""
    return int(code >> uint64(33)) << 32 | number


@njit(cache=True, inline="always")
def find_slot(block, start, end, code, slots, ends, arena):
    """Return the slot of a string, or the empty one where it would be inserted."""
    mask = uint64(len(slots) - 1)
    slot = code & mask
    while slots[slot] >= 0:
        other = slots[slot] & ID_MASK
        alike = slots[slot] >> 32 == int(code >> uint64(33)) and ends[other + 1] - ends[other] == end - start
        if alike and are_equal(arena, ends[other], block, start, end - start):
            break
        slot = (slot + uint64(1)) & mask
    return slot


@njit(cache=True, nogil=True)
def find(block, spans, ids, slots, ends, arena, secret):
    """Look up the numbers of the strings in the spans; return whether all are known."""
    for k in range(len(spans)):
        start, end = spans[k, 0], spans[k, 1]
        slot = find_slot(block, start, end, hash_bytes(block, start, end, secret), slots, ends, arena)
        if slots[slot] < 0:
            return False
        ids[k] = slots[slot] & ID_MASK
    return True


@njit(cache=True, nogil=True)
def intern(block, spans, first, ids, slots, ends, arena, secret, n_known):
    """Look up the numbers of the strings in the spans from `first` on; add new ones, and stop where room is short.

    String k is ``arena[ends[k]:ends[k + 1]]``. Returns the number of spans done, and of known strings.
    """
    for k in range(first, len(spans)):
        start, end = spans[k, 0], spans[k, 1]
        size = end - start
        code = hash_bytes(block, start, end, secret)
        slot = find_slot(block, start, end, code, slots, ends, arena)
        found = slots[slot] & ID_MASK
        if slots[slot] < 0:
            if 2 * n_known >= len(slots) or n_known + 1 == len(ends) or ends[n_known] + size > len(arena):
                return k, n_known
            found = n_known
            slots[slot] = tagged(code, found)
            copy_bytes(arena, ends[found], block, start, size)
            ends[found + 1] = ends[found] + size
            n_known += 1
        ids[k] = found
    return len(spans), n_known


@njit(cache=True)
def refill_slots(slots, ends, arena, secret, n_known):
    """Insert the known strings into a larger, empty table."""
    mask = uint64(len(slots) - 1)
    for k in range(n_known):
        code = hash_bytes(arena, ends[k], ends[k + 1], secret)
        slot = code & mask
        while slots[slot] >= 0:
            slot = (slot + uint64(1)) & mask
        slots[slot] = tagged(code, k)


@njit(cache=True, nogil=True)
def merge_repeats(starts, ids, counts, last_row, row):
    """Drop repeated labels within each set, in place, and count the others; return how many were dropped.

    ``last_row[id]`` is the last row in which a label was seen; the first set here is `row`.
    """
    kept = 0
    start = starts[0]
    for i in range(len(starts) - 1):
        end = starts[i + 1]
        for k in range(start, end):
            label = ids[k]
            if last_row[label] != row + i:
                last_row[label] = row + i
                counts[label] += 1
                ids[kept] = label
                kept += 1
        start = end
        starts[i + 1] = kept
    return len(ids) - kept


@njit(cache=True)
def find_special(arena, ends, n_known, marks, special):
    """Mark the strings that may need an escape of the codec, by their bytes; all others are copied unchanged.

    `marks` has an entry for each byte: whether it alone may need one. A backslash is a part of an escape already.
    """
    for k in range(n_known):
        start, end = ends[k], ends[k + 1]
        first, last = arena[start], arena[end - 1]
        special[k] = first == 32 or last == 32 or first >= 128 or last >= 128
        all_digits = True
        for at in range(start, end):
            byte = arena[at]
            special[k] |= byte == 92 or marks[byte]
            all_digits &= 48 <= byte <= 57
        special[k] |= all_digits


@njit(cache=True, inline="always")
def put(out, at, source, start, end):
    copy_bytes(out, at, source, start, end - start)
    return at + end - start


@njit(cache=True)
def put_value(out, at, source, start, end):
    """Copy a JSON value; a carriage return becomes a space, since some readers treat it as a line end."""
    for k in range(end - start):
        byte = source[start + k]
        out[at + k] = 32 if byte == 13 else byte
    return at + end - start


@njit(cache=True, nogil=True)
def put_pairs(
    block,
    texts,
    carried,
    starts,
    ids,
    orders,
    label_bytes,
    label_starts,
    label_ends,
    openings,
    opening_starts,
    between,
    last,
    head,
    middle,
    foot,
    keys,
    key_starts,
    out,
):
    """Write the pairs of each example: the order given, then the orders drawn; return the number of bytes.

    The text before the first label of a set with k labels is ``openings[opening_starts[k]:opening_starts[k + 1]]``.
    """
    at = 0
    null = np.array([110, 117, 108, 108], np.uint8)
    for i in range(len(starts) - 1):
        start, size = starts[i], starts[i + 1] - starts[i]
        text_start, text_end = texts[i, 0], texts[i, 1]
        for j in range(len(orders) + 1):
            at = put(out, at, head, 0, len(head))
            at = put(out, at, block, text_start, text_end)
            at = put(out, at, middle, 0, len(middle))
            at = put(out, at, openings, opening_starts[size], opening_starts[size + 1])
            for k in range(size):
                if k:
                    at = put(out, at, between, 0, len(between))
                label = ids[start + (orders[j - 1, start + k] if j else k)]
                at = put(out, at, label_bytes, label_starts[label], label_ends[label])
            if size:
                at = put(out, at, last, 0, len(last))
            at = put(out, at, foot, 0, len(foot))
            for k in range(carried.shape[1]):
                at = put(out, at, keys, key_starts[k], key_starts[k + 1])
                if carried[i, k, 0] < 0:
                    at = put(out, at, null, 0, 4)
                else:
                    at = put_value(out, at, block, carried[i, k, 0], carried[i, k, 1])
            out[at] = 125
            out[at + 1] = 10
            at += 2
    return at
