# Runs compilers, and writes their output to descriptor 3. The commands are the
# harness's; neither the source nor the output is trusted.
import json, os, signal, sys

spec = json.loads(SPEC)
for argv in spec["commands"]:
    pid = os.posix_spawn(argv[0], argv, spec["env"], setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
                         file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1), (os.POSIX_SPAWN_CLOSE, 3)])
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status < 0:
        print("%s was ended by signal %d" % (os.path.basename(argv[0]), -status), file=sys.stderr)
    if status != 0:
        sys.exit(1)
if spec["output"]:
    made = os.open(spec["output"], os.O_RDONLY | os.O_NOFOLLOW)
    while part := os.read(made, 1 << 20):
        while part:
            part = part[os.write(3, part):]
