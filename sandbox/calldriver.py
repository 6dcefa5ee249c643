# Calls one function of the program and writes its value to descriptor 3. Everything
# here shares the program's process: a forged value is just an answer, which the
# harness compares with the right one outside this process.
put(text_of(plain(find()(*json.loads(ARGS)))))
os.close(3)
