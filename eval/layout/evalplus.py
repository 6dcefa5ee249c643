# EvalPlus' comparison (evalplus/eval of EvalPlus, commit 26d6d00b): outputs are compared
# with the results of the reference, which runs here; the function under test is elsewhere.
import copy as _copy, json as _json, math as _math

_space = {}
exec(_reference, _space)
_expected = _space[_entry]
_tested = globals()[_entry]
_number = int(_task.rsplit("/", 1)[-1])
_mbpp = _task.startswith("Mbpp/")

# Tasks whose results are compared as sets, and where a result other than None is enough.
_as_sets = {"similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly", "larg_nnum", "intersection_array", "find_dissimilar", "Diff"}
_not_none = {"check_str", "text_match_three", "text_starta_endb"}


def _tuples(v):
    return tuple(_tuples(x) for x in v) if isinstance(v, list) else v


def _inputs(inputs):
    """JSON has no tuples, sets and complex numbers: per task, which lists are such."""
    if not _mbpp:
        return inputs
    n, t = _number, tuple
    if n in (2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726, 740, 744, 809):
        return [[t(x) for x in i] for i in inputs]
    if n in (63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780):
        return [[[t(x) for x in y] for y in i] for i in inputs]
    if n in (75, 413, 444, 753):
        return [[[t(x) for x in i[0]], i[1]] for i in inputs]
    if n in (106, 750):
        return [[i[0], t(i[1])] for i in inputs]
    if n == 115:
        return [[[set(x) if isinstance(x, list) and x else {} for x in i[0]]] for i in inputs]
    if n == 124:
        return [(float(i[0]), complex(i[1])) for i in inputs]
    if n in (250, 405, 446, 617, 720, 763, 808):
        return [[t(i[0]), i[1]] for i in inputs]
    if n in (259, 401, 445):
        return [[t(t(x) for x in y) for y in i] for i in inputs]
    if n == 278:
        return [[t(t(x) if isinstance(x, list) else x for x in i[0])] for i in inputs]
    if n == 307:
        return [[t(i[0]), i[1], i[2]] for i in inputs]
    if n == 722:
        return [[{k: t(v) for k, v in i[0].items()}] + i[1:] for i in inputs]
    if n == 252:
        return [[complex(i[0])] for i in inputs]
    if n in (580, 615, 791):
        return [[_tuples(x) for x in i] for i in inputs]
    return inputs


def _floats(v):
    return isinstance(v, float) or isinstance(v, (list, tuple)) and bool(v) and all(isinstance(x, float) for x in v)


def _near(a, b, atol):
    if isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_near(x, y, atol) for x, y in zip(a, b))
    return a == b or abs(a - b) <= atol + 1e-07 * abs(b) < _math.inf


def _same(args, out, want, atol):
    same = out == want
    if _mbpp:
        if _entry == "are_equivalent":
            same = True
        elif _entry == "sum_div":
            same = same or out == 0
        elif _entry == "surface_Area":
            base, height = args
            slant = _math.sqrt((base / 2) ** 2 + height**2)
            same = same or abs(out - round(base**2 + 4 * (base * slant) / 2)) <= atol
        elif _entry == "digit_distance_nums":
            a, b = str(args[0]), str(args[1])
            width = max(len(a), len(b))
            same = same or out == sum(abs(int(x) - int(y)) for x, y in zip(a.zfill(width), b.zfill(width)))
        elif _entry in _as_sets:
            same = set(out) == set(want)
        elif _entry in _not_none:
            same = out == want if isinstance(out, bool) else want == (out is not None)
    elif _entry == "find_zero":
        return abs(sum(c * _math.pow(out, k) for k, c in enumerate(args[0]))) <= atol
    if same or atol == 0:
        return bool(same)
    return type(out) == type(want) and _near(out, want, atol)


def _check(inputs):
    atol = _atol
    for args in _inputs(_json.loads(inputs)):
        want = _expected(*_copy.deepcopy(args))
        if _mbpp and _entry in _not_none and not isinstance(want, bool):
            want = want is not None
        out = _tested(*_copy.deepcopy(args))
        if atol == 0 and _floats(want):
            atol = 1e-6  # for the inputs that follow as well
        assert _same(args, out, want, atol), "%s%r gave %r" % (_entry, tuple(args), out)
