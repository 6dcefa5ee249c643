# The interpreter of a slot. It loads the modules of ordinary programs, prepares a
# process 1 for the next run, waits for a request and forks: the child becomes the
# program. This process never executes a request and keeps nothing of it.
import os, sys

SOCKET = 3
CLONE_NEWNS, CLONE_NEWPID = 0x20000, 0x20000000
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8


def main(cfg):
    import _ast, _io, _socket, _thread, ctypes, gc, importlib, json, select, signal, socket, struct, threading, time, types, builtins, atexit, random, resource, site, traceback, linecache

    libc = ctypes.CDLL(None, use_errno=True)
    # Not os.fork, whose child first repairs the locks of other threads: there are none
    # here, and the repair costs more than the fork. Its other duty is seed, below.
    fork = ctypes.PyDLL(None).fork
    syscall = libc.syscall
    syscall.restype = ctypes.c_long
    for f in (libc.mount, libc.unshare, libc.setns, libc.prctl):
        f.restype = ctypes.c_int
    c_ulong, byref = ctypes.c_ulong, ctypes.byref

    def check(what, result):
        if result < 0:
            e = ctypes.get_errno()
            raise OSError(e, what + ": " + os.strerror(e))
        return result

    def prctl(what, option, a=0, b=0):
        return check(what, libc.prctl(option, c_ulong(a), c_ulong(b), c_ulong(0), c_ulong(0)))

    # Level landlock: no namespaces, no mounts; a program is one process in a folder that it can only read.
    alone = cfg["alone"]
    BOX = alone["box"] if alone else "/box"
    zygote = os.getpid()

    # No process of the slot can gain a right that it does not have now.
    cap = 0
    while not alone and libc.prctl(23, c_ulong(cap), 0, 0, 0) >= 0:  # PR_CAPBSET_READ
        prctl("drop from the bounding set", 24, cap)
        cap += 1
    killable = os.open("/proc/self/oom_score_adj", os.O_RDWR)  # refused once it is not dumpable
    own_killable = os.pread(killable, 16, 0).strip()
    prctl("no_new_privs", 38, 1)
    prctl("not dumpable", 4, 0)
    if os.getuid() != 0 and not alone:
        # Kept as root: there the change of the user id takes the capabilities away.
        prctl("securebits", 28, 0x2F)  # NOROOT, NO_SETUID_FIXUP and KEEP_CAPS as they are now, forever

    # Built once: a child only points the kernel at them.
    code = ctypes.create_string_buffer(bytes.fromhex(cfg["filter"]))

    def filter_of(code):
        return ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(code)))

    seccomp = filter_of(code)
    no_caps = ctypes.create_string_buffer(24)
    cap_header = ctypes.create_string_buffer(struct.pack("=Ii", 0x20080522, 0))
    CLOSE_RANGE = cfg["close_range"]
    uid, program_uid = os.getuid(), cfg["uid"]

    for name in cfg["preload"]:
        try:
            importlib.import_module(name)
        except ImportError:
            pass  # not in this build of the interpreter
    site.setquit()
    site.sethelper()
    codecs_used = ["x".encode(c) for c in ("utf-8", "latin-1", "ascii", "idna")]
    drivers = {name: compile(text, "<driver>", "exec") for name, text in cfg["drivers"].items()}
    cpu_time, monotonic = time.process_time_ns, time.monotonic_ns
    parse = json.JSONDecoder().scan_once
    pack, unpack, CMSG = struct.pack, struct.unpack, socket.CMSG_SPACE(8 * 4)
    # As module random does in a child of os.fork: no two programs draw the same numbers.
    generator, seed = random._inst, random._inst.__class__.__base__.seed
    ModuleType, excepthook, IOBase = types.ModuleType, sys.excepthook, _io._IOBase

    sock = _socket.socket(fileno=SOCKET)  # the class in C: a child runs its detach
    os.set_inheritable(SOCKET, False)
    own_pids = None if alone else os.open("/proc/self/ns/pid", os.O_RDONLY)

    def prepare():
        """Start a process 1 in a pid namespace of its own; children go there until restore()."""
        check("unshare pid", libc.unshare(CLONE_NEWPID))
        pid = os.posix_spawn("/init", ["init"], {}, file_actions=quiet)
        fd = os.pidfd_open(pid)
        return pid, fd

    ONLY_AST = 0x400  # PyCF_ONLY_AST
    null = os.open("/dev/null", os.O_RDWR)
    quiet = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (1, 2)]  # 0 is a pipe that the harness holds open

    READ_FILE, READ_DIR, WRITE_FILE, EXECUTE = 1 << 2, 1 << 3, 1 << 1, 1
    landlock = cfg["landlock"]
    ALL_FILES = (1 << (13 if landlock < 2 else 14 if landlock < 3 else 15 if landlock < 5 else 16)) - 1
    ruled = pack("=QQQ", ALL_FILES, 3 if landlock >= 4 else 0, 3 if landlock >= 6 else 0)[: 8 if landlock < 4 else 16 if landlock < 6 else 24]
    ruled = ctypes.create_string_buffer(ruled, len(ruled))

    def rules_of(places):
        """The paths and the kernel's struct for each; the descriptor of the path is put in later."""
        return [(path, ctypes.create_string_buffer(pack("=Qi", access & ALL_FILES, -1))) for path, access in places]

    def rules_here(box):
        return rules_of((("/", EXECUTE | READ_FILE | READ_DIR), ("/box", box), ("/dev/null", WRITE_FILE), ("/dev/zero", WRITE_FILE),
                         ("/dev/full", WRITE_FILE), ("/proc", WRITE_FILE)))

    def rules_alone():
        places = [(path, READ_FILE | (READ_DIR if os.path.isdir(path) else 0)) for path in alone["read"]]
        places += [("/proc/%d/%s" % (os.getpid(), name), READ_FILE) for name in ("status", "stat", "statm", "comm")]
        return rules_of(places + [(path, WRITE_FILE) for path in ("/dev/null", "/dev/zero", "/dev/full")])

    open_rules, frozen_rules = rules_here(ALL_FILES), rules_here(READ_FILE | READ_DIR)
    put_in = struct.Struct("=i").pack_into

    def restrict_files(rules):
        """Restate the file rules in case the mounts fail; without namespaces they are the only rules."""
        ruleset = check("landlock", syscall(444, ruled, c_ulong(len(ruled)), 0))
        for path, rule in rules:
            fd = os.open(path, os.O_PATH)
            put_in(rule, 8, fd)
            check("landlock rule", syscall(445, ruleset, 1, rule, 0))
            os.close(fd)
        check("landlock restrict", syscall(446, ruleset, 0))
        os.close(ruleset)

    RLIMITS = (resource.RLIMIT_CPU, resource.RLIMIT_DATA, resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE,
               resource.RLIMIT_STACK, resource.RLIMIT_NPROC, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE, resource.RLIMIT_CORE)

    def fresh_mounts(req):
        check("unshare mounts", libc.unshare(CLONE_NEWNS))
        flags = c_ulong(MS_NOSUID | MS_NODEV)
        check("mount scratch", libc.mount(b"scratch", b"/box", b"tmpfs", flags, req["scratch"].encode()))
        check("mount proc", libc.mount(b"proc", b"/proc", b"proc", c_ulong(MS_NOSUID | MS_NODEV | MS_NOEXEC), b"subset=pid"))

    def alone_rules():
        """No namespace ends this process with the zygote, or keeps its signals from others."""
        prctl("die with the zygote", 1, signal.SIGKILL)
        if os.getppid() != zygote:
            os._exit(125)
        marker = struct.pack("=I", alone["marker"])
        own = bytes.fromhex(cfg["filter"])
        if own.count(marker) != 2:
            raise RuntimeError("the filter has no place for the process's id")
        own = own.replace(marker, struct.pack("=I", os.getpid()))
        code = ctypes.create_string_buffer(own, len(own))
        return filter_of(code), code

    def confine(req, status):
        """Everything between the fork and the program; from here on rights only decrease."""
        rules, kept = seccomp, None
        if alone:
            rules, kept = alone_rules()  # the first points to the second
        else:
            fresh_mounts(req)
        prctl("dumpable", 4, 1)  # else its own /proc/self is closed to it
        os.chdir(BOX)
        os.setsid()
        for which, (soft, hard) in zip(RLIMITS, req["rlimits"]):
            resource.setrlimit(which, (soft, hard))
        if uid != program_uid and not alone:
            os.setgroups([])
            os.setresgid(program_uid, program_uid, program_uid)
            os.setresuid(program_uid, program_uid, program_uid)
        check("drop capabilities", syscall(cfg["capset"], cap_header, no_caps))
        prctl("dumpable", 4, 1)  # the change of ids has taken it away
        for name, text in req["files"].items():
            fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            view = memoryview(text.encode("utf-8", "surrogatepass") if name == req.get("name") else binascii.a2b_base64(text))
            while view:
                view = view[os.write(fd, view):]
            os.close(fd)
        if landlock > 0:
            restrict_files(rules_alone() if alone else frozen_rules if req["frozen"] else open_rules)
        check("seccomp", libc.prctl(22, c_ulong(2), rules, 0, 0))
        os.write(status, pack("=cqq", b"R", monotonic(), cpu_time()))

    import binascii

    def become(fds, size):
        """The forked child: ends as the program's exit status, never returns."""
        request, status = fds[0], fds[-1]
        try:
            sock.detach()
            req, _ = parse(os.pread(request, size, 0).decode("utf-8"), 0)
            seed(generator, req.get("seed"))
            # Descriptors: 0, 1, 2, the channel as 3 if there is one, and the status until the program runs.
            keep = fds[1:-1]
            high = [fd for fd in keep]
            for fd in high:
                if fd < 8:
                    raise RuntimeError("descriptor %d is where the program's go" % fd)
            for want, fd in enumerate(keep):
                os.dup2(fd, want, inheritable=want < 3 or not req.get("executable"))
            os.dup2(status, 7, inheritable=False)
            status = 7
            for lo, hi in ((len(keep), 6), (8, 0xFFFFFFFF)):
                check("close_range", syscall(CLOSE_RANGE, c_ulong(lo), c_ulong(hi), 0))
            confine(req, status)
        except BaseException as e:
            os.write(status, b"E" + ("%s: %s" % (type(e).__name__, e)).encode("utf-8", "replace")[:2000])
            os._exit(125)
        if "exec" in req:
            execute(req, status)
        run_program(req, status)

    def execute(req, status):
        """Become another program: descriptor 3, or one of the slot's by its path."""
        try:
            # The interpreter ignores these, and what it executes would too.
            for s in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(s, signal.SIG_DFL)
            os.execve(3 if req["executable"] else req["args"][0], req["args"], req["exec"])
        except BaseException as e:
            os.write(status, b"E" + ("%s: %s" % (type(e).__name__, e)).encode("utf-8", "replace")[:2000])
        os._exit(125)

    def run_program(req, status):
        name = req["name"]
        path = BOX + "/" + name
        sys.argv = [path] + req["args"]
        sys.path[0] = BOX
        module = ModuleType("__main__")
        module.__builtins__ = builtins
        module.__file__ = path
        module.__cached__ = None
        module.__loader__ = None
        exit_status, own = 1, {}
        try:
            source = req["files"][name].encode("utf-8", "surrogatepass")
            try:
                last = None
                if req.get("echo"):
                    tree = compile(source, path, "exec", ONLY_AST, dont_inherit=True)
                    if tree.body and isinstance(tree.body[-1], _ast.Expr):
                        last = compile(_ast.Expression(tree.body.pop().value), path, "eval", dont_inherit=True)
                    program = compile(tree, path, "exec", dont_inherit=True)
                else:
                    program = compile(source, path, "exec", dont_inherit=True)
            except (SyntaxError, ValueError, RecursionError, OverflowError) as e:
                os.write(status, b"S")
                sys.stderr.write("".join(traceback.format_exception_only(type(e), e)))
                sys.stderr.flush()
                os._exit(1)
            os.close(status)
            del source
            driver, names = req.get("driver"), req.get("names")
            req.clear()
            sys.modules["__main__"] = module
            if driver is None:
                own = module.__dict__
                exec(program, own)
                if last is not None:
                    sys.displayhook(eval(last, own))
            else:
                exec(drivers[driver], {"__name__": "<driver>", "program": program, "module": module, **names})
            exit_status = 0
        except SystemExit as e:
            exit_status = status_of(e)
        except BaseException as e:
            exit_status = 130 if isinstance(e, KeyboardInterrupt) else 1
            tb = e.__traceback__
            e.__traceback__ = tb and tb.tb_next  # without this function
            try:
                sys.excepthook(type(e), e, e.__traceback__)
            except BaseException as broken:
                exit_status = status_of(broken) if isinstance(broken, SystemExit) else 1
                excepthook(type(e), e, e.__traceback__)
            del tb  # holds what the program's functions held
        finish(exit_status, own)

    def status_of(e):
        c = e.code
        if c is None:
            return 0
        if isinstance(c, int):
            return c & 0xFF
        try:
            sys.stdout.flush()
        except BaseException:
            pass
        try:
            sys.stderr.write(str(c) + "\n")
        except BaseException:
            pass
        return 1

    shutdown, run_exitfuncs = threading._shutdown, atexit._run_exitfuncs
    threads, functions, joined = _thread._count, atexit._ncallbacks, threading._threading_atexits

    streams = (sys.stdout, sys.stderr)
    method_types = (types.BuiltinMethodType, types.MethodType)
    plain_types = frozenset((types.FunctionType, ModuleType, type, int, str, float, bool, list, tuple, dict, set, type(None)))

    def owner(v):
        """The object that v is a method of, or v."""
        return v.__self__ if type(v) in method_types else v

    def let_go(own):
        """Free the program's variables that are files, generators or have __del__: a file then writes its buffer."""
        kinds = ((name, type(owner(v))) for name, v in own.items())
        for name in [name for name, kind in kinds if kind not in plain_types and hasattr(kind, "__del__")]:
            v = owner(own.pop(name))
            if issubclass(type(v), IOBase):
                try:
                    v.flush()  # in case something else holds it
                except BaseException:
                    pass
            del v

    def finish(exit_status, own):
        # What the interpreter does at its end, except freeing all memory, which copies every page.
        # After most programs that is nothing and takes a tenth of a millisecond.
        nothing = threads() == 0 and functions() == 0 and not joined
        for step in () if nothing else (shutdown, run_exitfuncs):
            try:
                step()
            except BaseException as e:
                try:
                    excepthook(type(e), e, e.__traceback__)
                except BaseException:
                    pass
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name, None)
            try:
                if stream is not None:
                    stream.flush()
            except BaseException as e:
                if name == "stdout" and not getattr(stream, "closed", False) and exit_status == 0:
                    exit_status = 120
        try:
            let_go(own)
        except BaseException:
            pass  # a class or a thread of the program interferes
        for stream in streams:  # the program may have put others in their places
            try:
                stream.flush()
            except BaseException:
                pass
        os._exit(exit_status)

    def obey(pid):
        """Wait until a program alone has ended; kill it when the harness says so."""
        pid_fd = os.pidfd_open(pid)
        poll = select.poll()
        poll.register(pid_fd, select.POLLIN)
        poll.register(SOCKET, select.POLLIN)
        while (pid_fd, select.POLLIN) not in poll.poll():
            if not sock.recv(16):
                os._exit(0)  # the harness is gone; the kernel ends the program
            signal.pidfd_send_signal(pid_fd, signal.SIGKILL)  # it said "kill"
        os.close(pid_fd)

    def run(message, fds, init, init_fd):
        """Fork the program, wait for its end, end all that is left, tell the harness."""
        own_before = cpu_time()
        os.pwrite(killable, b"1000", 0)  # the child keeps it: when memory runs out, the kernel kills the program
        pid = fork()
        if pid == 0:
            become(fds, int(message))
        os.pwrite(killable, own_killable, 0)
        if pid < 0:
            raise OSError("fork: no process")
        for fd in fds:
            os.close(fd)
        if not alone:
            check("setns", libc.setns(own_pids, CLONE_NEWPID))
        if alone:
            obey(pid)
        # Else process 1 ends with the harness, and the program with it.
        _, status, usage = os.wait4(pid, 0)
        ended = monotonic()
        if alone:
            for name in os.listdir(BOX):  # files that confine wrote: the program could not write any
                os.unlink(BOX + "/" + name)
        else:
            signal.pidfd_send_signal(init_fd, signal.SIGKILL)
            os.waitpid(init, 0)  # returns when every process of the namespace is gone
            os.close(init_fd)
        return pack("=qqqqq", status, ended, int((usage.ru_utime + usage.ru_stime) * 1e9), usage.ru_maxrss, cpu_time() - own_before)

    del codecs_used
    traceback.format_exception_only(ValueError, ValueError("warm"))
    for fd in (4, 5, 6, 7):  # keep the low numbers taken: received descriptors are above them
        try:
            os.fstat(fd)
        except OSError:
            os.dup2(null, fd, inheritable=False)
    gc.collect()
    gc.freeze()
    with open("/proc/self/statm") as f:
        pages = f.read().split()
    ready = [json.dumps({"ready": True, "anon_kb": (int(pages[1]) - int(pages[2])) * cfg["page_kb"]}).encode()]
    while True:
        init, init_fd = (None, None) if alone else prepare()
        sock.sendmsg(ready, [] if alone else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, pack("i", init_fd))])
        message = b"kill"
        while message == b"kill":  # it came after its run had ended
            message, sent, _, _ = sock.recvmsg(64, CMSG)
        if not message:
            os._exit(0)
        fds = [fd for _, _, data in sent for fd in unpack("%di" % (len(data) // 4), data)]
        sock.send(run(message, fds, init, init_fd))
        del message, sent, fds


def start():
    import json, socket

    sock = socket.socket(fileno=os.dup(SOCKET))
    try:
        cfg = json.loads(sock.recv(1 << 20))
        sock.close()
        main(cfg)
    except BaseException as e:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        os._exit(4)


start()
