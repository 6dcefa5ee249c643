# Plain values between the two processes of mode asserts, one JSON line each. Values are
# read by the methods of their base types, so that a subclass arrives as its plain value
# and no method of the program runs in the checker. A line holds nothing that can
# be executed. Any other value is sent as a number; other gives it and thing finds it.
import builtins, json, os


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
            return {tag: [pack(x, depth + 1, other) for x in base.__iter__(v)]}
    if issubclass(t, dict):
        return {"d": [[pack(k, depth + 1, other), pack(x, depth + 1, other)] for k, x in dict.items(v)]}
    if t is type and getattr(builtins, v.__name__, None) is v:
        return {"T": v.__name__}
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
    return {"l": list, "t": tuple, "s": set, "S": frozenset}[tag](unpack(y, thing) for y in x)


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
