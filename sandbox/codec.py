# Plain values between the two processes of mode asserts, one JSON line each. Values are
# read by the methods of their base types, so that a subclass arrives as its plain value
# and no method of the program runs in the checker. A line holds nothing that can
# be executed. An iterator arrives as one of its items, so that tests can make a list or
# a set of it. Any other value is sent as a number; other gives it and thing finds it.
# A set arrives with the order in which CPython iterates it, where a bounded search finds
# one: then the same program prints the same, whichever process it is in.
import builtins, json, os
from collections import deque
from decimal import Decimal
from fractions import Fraction
from itertools import islice

LONGEST = 100_000  # items of what is read before it is sent
VIEWS = {range: "r", deque: "q", type({}.keys()): "k", type({}.values()): "v", type({}.items()): "m"}


def pack(v, depth=0, other=None):
    t = type(v)
    if depth > 100:
        raise ValueError("nested too deep")
    if v is None or t is bool:
        return v
    if issubclass(t, int):
        return {"i": int.__format__(v, "x")}
    if issubclass(t, float):
        return {"f": float.hex(float.__float__(v))}
    if issubclass(t, complex):
        z = complex.__pos__(v)
        return {"z": [float.hex(z.real), float.hex(z.imag)]}
    if issubclass(t, str):
        return str.__str__(v)
    for base, tag in ((bytes, "b"), (bytearray, "B")):
        if issubclass(t, base):
            return {tag: base.hex(v)}
    for base, tag in ((list, "l"), (tuple, "t"), (set, "s"), (frozenset, "S")):
        if issubclass(t, base):
            items = [pack(x, depth + 1, other) for x in base.__iter__(v)]
            if tag in "sS":  # and the size of its table
                items.append(max(8, (base.__sizeof__(v) - set.__sizeof__(set())) // 16))
            return {tag: items}
    if issubclass(t, dict):
        return {"d": [[pack(k, depth + 1, other), pack(x, depth + 1, other)] for k, x in dict.items(v)]}
    if t is type and getattr(builtins, v.__name__, None) is v:
        return {"T": v.__name__}
    if t is Fraction:
        return {"F": [int.__format__(v.numerator, "x"), int.__format__(v.denominator, "x")]}
    if t is Decimal:
        return {"D": str(v)}
    if tag := VIEWS.get(t) or t.__module__ in ("builtins", "itertools") and hasattr(t, "__next__") and "g":
        items = [pack(x, depth + 1, other) for x in islice(v, LONGEST + 1)]
        if len(items) > LONGEST:
            raise TypeError("a %s of more than %d items is not a plain value" % (t.__name__, LONGEST))
        return {tag: [pack(x) for x in (v.start, v.stop, v.step)] if tag == "r" else items}
    if other is not None:
        return {"h": other(v)}
    raise TypeError("a %s is not a plain value" % t.__name__)


def unpack(v, thing=None):
    if v is None or type(v) in (bool, str):
        return v
    (tag, x), = v.items()
    if tag == "i":
        return int(x, 16)
    if tag == "f":
        return float.fromhex(x)
    if tag == "z":
        return complex(float.fromhex(x[0]), float.fromhex(x[1]))
    if tag in "bB":
        return (bytes if tag == "b" else bytearray).fromhex(x)
    if tag == "d":
        return {unpack(k, thing): unpack(y, thing) for k, y in x}
    if tag == "T":
        if not isinstance(kind := getattr(builtins, x), type):
            raise ValueError("no type")
        return kind
    if tag == "h":
        return thing(x)
    if tag == "F":
        return Fraction(int(x[0], 16), int(x[1], 16))
    if tag == "D":
        return Decimal(x)
    if tag in "sS":
        return ordered(set if tag == "s" else frozenset, [unpack(y, thing) for y in x[:-1]], x[-1])
    items = [unpack(y, thing) for y in x]
    if tag == "r":
        return range(*items)
    if tag == "k":
        return dict.fromkeys(items).keys()
    if tag == "v":
        return dict(enumerate(items)).values()
    if tag == "m":
        return dict(items).items()
    return {"l": list, "t": tuple, "q": deque, "g": iter}[tag](items)


budget = [300_000]  # steps that all searches of a process may take: some tenths of a second


def ordered(kind, items, size):
    """A set that is iterated in the order of items, if one is found."""
    plain = kind(items)
    if list(plain) == items or len(items) > 1000 or budget[0] < 0 or type(size) is not int or size & size - 1:
        return plain
    if order := insertions(items, size):
        m = size // 2 - 1  # the most items of a mapping that get a table of that size at once
        for s in (kind(order), kind(dict.fromkeys(order[:m])).union(order[m:])):
            if list(s) == items:
                return s
    return plain


def probes(item, mask):
    """The places of a table where CPython's set looks for an item, in turn (Objects/setobject.c)."""
    perturb = hash(item) & 0xFFFFFFFFFFFFFFFF
    i = perturb & mask
    while True:
        yield from range(i, i + 10 if i + 9 <= mask else i + 1)
        perturb >>= 5
        i = (i * 5 + 1 + perturb) & mask


def insertions(items, size):
    """items in an order of insertion after which a table of that size holds them in the order given."""
    n, mask, ways, slot, k = len(items), size - 1, [], [], 0
    ways = [list(islice(probes(x, mask), 12)) for x in items]
    left = [None] * n  # the places that are still to be tried, by item
    tries = 0
    for _ in range(20 * n + 200):
        budget[0] -= 1
        if k == n:
            if order := by_need(ways, slot):
                return [items[i] for i in order]
            tries += 1
            if tries == 20:
                return None
            k -= 1
            slot.pop()
        if left[k] is None:
            low = slot[-1] if slot else -1
            left[k] = iter([j for j in ways[k] if low < j <= mask - (n - 1 - k)])
        if (j := next(left[k], None)) is not None:
            slot.append(j)
            k += 1
        elif k == 0:
            return None
        else:
            left[k] = None
            k -= 1
            slot.pop()


def by_need(ways, slot):
    """The items in an order in which each finds the places before its own taken; None if there is none."""
    place = {s: i for i, s in enumerate(slot)}
    need = [[place.get(j) for j in w[:w.index(slot[i])]] for i, w in enumerate(ways)]
    if any(None in before for before in need):
        return None
    order, done, todo = [], set(), sorted(range(len(slot)), key=lambda i: len(need[i]))
    while todo:
        budget[0] -= len(todo)
        ready = [i for i in todo if done.issuperset(need[i])]
        if not ready:
            return None
        order += ready
        done.update(ready)
        todo = [i for i in todo if i not in done]
    return order


class Lines:
    """JSON lines on two descriptors, at most 8 MB each."""

    def __init__(self, read_fd, write_fd):
        self.read_fd, self.write_fd, self.rest = read_fd, write_fd, b""

    def get(self):
        parts = [self.rest]
        size = len(self.rest)
        while b"\n" not in parts[-1]:
            part = os.read(self.read_fd, 65536)
            size += len(part)
            if not part or size > 8 << 20:
                return None
            parts.append(part)
        line, _, self.rest = b"".join(parts).partition(b"\n")
        return json.loads(line)

    def put(self, v):
        data = memoryview(json.dumps(v).encode() + b"\n")
        while data:
            data = data[os.write(self.write_fd, data):]
