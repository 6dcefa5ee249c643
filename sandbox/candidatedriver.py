# The program's side of mode asserts: calls what the checker asks for.
lines = Lines(4, 5)
exec(program, module.__dict__)
if hasattr(module, ENTRY):
    entry = getattr(module, ENTRY)
else:
    entry = getattr(module.Solution(), ENTRY)
lines.put("ready")
while (call := lines.get()) is not None:
    try:
        args, kwargs = unpack(call)
        reply = {"value": pack(entry(*args, **kwargs))}
    except Exception as e:
        name = next((c.__name__ for c in type(e).__mro__ if c.__module__ == "builtins"), "Exception")
        reply = {"error": name, "text": str(e)[:500]}
    lines.put(reply)
