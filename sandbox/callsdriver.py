# Calls one function of the program for each list of arguments, each time in a fork of
# the process taken after the module was loaded, the last time in the process itself.
# Writes each value as "test size\n" and the text, then "test 0\n" if the fork ended
# well. If anything goes wrong, the answer is missing and the harness runs that test
# alone.
import random, threading

if threading.active_count() == 1:  # else a fork would lack the other threads
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
            break  # and end like a program
        if os.waitpid(pid, 0)[1] == 0:
            put(b"%d 0\n" % i)
        elif not RUN_ALL:
            os._exit(0)
