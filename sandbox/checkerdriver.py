# The trusted side of mode asserts: the tests run here, the program does not. Only this
# process can report a pass, on a descriptor that the other does not have.
import builtins

lines = Lines(4, 5)
dead = False


class CandidateGone(BaseException):
    """The program's process ended, or wrote what is no answer: no test may survive it."""


def answer():
    global dead
    try:
        reply = None if dead else lines.get()
    except Exception:
        reply = None
    if reply is None:
        dead = True
        raise CandidateGone("the program ended or wrote nonsense")
    return reply


def candidate(*args, **kwargs):
    global dead
    try:
        lines.put(pack((args, kwargs)))
    except OSError:
        dead = True
    reply = answer()
    try:
        if "error" in reply:
            kind = getattr(builtins, str(reply["error"]), None)
            if not (isinstance(kind, type) and issubclass(kind, Exception)):
                kind = Exception
            error = kind.__new__(kind)
            error.args = (str(reply.get("text", "")),)
        else:
            error, value = None, unpack(reply["value"])
    except Exception:
        dead = True
        raise CandidateGone("the program's answer is nonsense") from None
    if error is not None:
        raise error
    return value


candidate.__name__ = candidate.__qualname__ = ENTRY
module.__dict__[ENTRY] = candidate
if answer() != "ready":
    raise CandidateGone("the program did not begin")
exec(program, module.__dict__)
if dead:
    raise CandidateGone("the program ended before its tests")
os.write(3, b"pass")
