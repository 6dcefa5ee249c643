# The program's side of mode asserts: does what the checker asks for. If its tests use
# names of the program, the checker gets a number for anything that has no plain value.
import sys

lines = Lines(4, 5)
module.__name__ = "solution"  # skips the block of __main__, which is for programs; this is a function
sys.modules["solution"] = module
exec(program, module.__dict__)
if hasattr(module, ENTRY):
    entry = getattr(module, ENTRY)
else:
    entry = getattr(module.Solution(), ENTRY)
things = []


def number(v):
    things.append(v)
    return len(things) - 1


def thing(of):
    return entry if of == ENTRY else getattr(module, of) if type(of) is str else things[of]


def tell(v):
    try:
        lines.put(v)
    except BrokenPipeError:
        pass  # the tests have ended: there is no further call


other = number if USES else None
tell("ready")
while (ask := lines.get()) is not None:
    try:
        what, do = thing(ask["of"]), ask["do"]
        given = unpack(ask["with"], thing)
        if do == "call":
            value = what(*given[0], **given[1])
        elif do == "get":
            value = getattr(what, given)
        else:
            value = setattr(what, *given)
        reply = {"value": pack(value, 0, other)}
    except Exception as e:
        name = next((c.__name__ for c in type(e).__mro__ if c.__module__ == "builtins"), "Exception")
        reply = {"error": name, "text": str(e)[:500]}
    tell(reply)
