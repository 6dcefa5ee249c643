# The part of NumPy that EvalPlus's tests use, for interpreters without NumPy.
try:
    import numpy
except ImportError:
    import sys as _sys, types as _types

    def _allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
        if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
            if not isinstance(a, (list, tuple)):
                a = [a] * len(b)
            if not isinstance(b, (list, tuple)):
                b = [b] * len(a)
            if len(a) != len(b):
                raise ValueError("operands of different shapes")
            return all(_allclose(x, y, rtol, atol, equal_nan) for x, y in zip(a, b))
        if a != a or b != b:
            return equal_nan and a != a and b != b
        if a in (float("inf"), float("-inf")) or b in (float("inf"), float("-inf")):
            return a == b
        return abs(a - b) <= atol + rtol * abs(b)

    numpy = _types.ModuleType("numpy")
    numpy.allclose = numpy.isclose = _allclose
    numpy.ndarray = type("ndarray", (), {})
    numpy.float32, numpy.float64 = type("float32", (float,), {}), float
    _sys.modules["numpy"] = numpy
