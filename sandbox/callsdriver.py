# Calls one function of the program for each list of arguments, each time in a copy of
# the process as it is after the module was read, the last time in the process itself.
# Values are written as "test size\n" and the text; "test 0\n" says that the copy then
# ended well. Whatever goes wrong is an answer that is missing: the harness then runs that
# test alone.
import random, threading

if threading.active_count() == 1:  # else a copy would miss what other threads do
    state = random.getstate()
    tests = json.loads(ARGS)
    for i, args in enumerate(tests):
        pid = os.fork() if i + 1 < len(tests) else 0
        if pid == 0:
            random.setstate(state)  # a fork reseeds it
            try:
                text = text_of(plain(find()(*args)))
            except BaseException:
                os._exit(1)
            put(b"%d %d\n" % (i, len(text)) + text)
            os.close(3)
            break  # and end as a program does
        if os.waitpid(pid, 0)[1] == 0:
            put(b"%d 0\n" % i)
        elif not RUN_ALL:
            os._exit(0)
