package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
)

const chatTemplate = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"

// chatFolder writes a random model that reads bytes, with a chat template.
func chatFolder(t *testing.T, positions int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "talker")
	writeByteModel(t, dir, positions, chatTemplate)
	return dir
}

// One question gets the answer that the endpoint gives with the same seed, and stdout has nothing else.
func TestChatOnce(t *testing.T) {
	dir := chatFolder(t, 256)
	s := serveEndpoint(t, dir)
	var want struct {
		Choices []struct{ Message struct{ Content string } }
		Usage   struct {
			Completion int `json:"completion_tokens"`
		}
	}
	body := s.post("/chat/completions", `{"messages":[{"role":"system","content":"be"},{"role":"user","content":"hi"}],`+
		`"max_tokens":30,"seed":7,"temperature":0.8,"top_k":40}`)
	if err := json.Unmarshal([]byte(body), &want); err != nil {
		t.Fatal(err)
	}
	s.stop()
	text := want.Choices[0].Message.Content
	flags := []string{"--system", "be", "--max-tokens", "30", "--seed", "7", "--temperature", "0.8", "--top-k", "40"}
	for _, tt := range []struct {
		stdin, question string
	}{{"", "hi"}, {"hi\n", "-"}} {
		e := call{stdin: tt.stdin}.run(append([]string{"chat", dir, tt.question}, flags...)...)
		said, err := json.Marshal(e.stdout)
		if err == nil {
			err = json.Unmarshal(said, &e.stdout) // replaces bytes that are not UTF-8, as the endpoint does
		}
		if !strings.Contains(e.stderr, "cut after 30 tokens") {
			t.Errorf("%q: stderr %q", tt.question, e.stderr)
		}
		if e.code != 0 || err != nil || e.stdout != text+"\n" {
			t.Errorf("%q: code %d, %q, the endpoint says %q\n%s", tt.question, e.code, e.stdout, text, e.stderr)
		}
	}
	e := call{}.run(append([]string{"chat", dir, "hi", "--json"}, flags...)...)
	var got struct {
		Schema string
		Data   struct {
			Model, Question, Text, Finish string
			Seed                          int64
			New                           int `json:"completion_tokens"`
			Tokens                        []struct{ Logprob *float64 }
		}
	}
	if err := json.Unmarshal([]byte(e.stdout), &got); err != nil || got.Schema != "exp.chat/1" {
		t.Fatalf("%v: %s%s", err, e.stdout, e.stderr)
	}
	if d := got.Data; d.Model != "talker" || d.Question != "hi" || d.Text != text || d.Seed != 7 || d.New != want.Usage.Completion ||
		len(d.Tokens) != d.New || d.Tokens[0].Logprob == nil {
		t.Errorf("%+v, the endpoint %+v", d, want)
	}
}

// A pipe talks line by line: commands change how the questions after them are answered.
func TestChatThroughPipe(t *testing.T) {
	dir := chatFolder(t, 512)
	const limits = "/max-tokens 8\n/seed 3\n"
	talk := func(script string) ended {
		t.Helper()
		e := call{stdin: script}.run("chat", dir)
		if e.code != 0 {
			t.Fatalf("%q: %s", script, e.stderr)
		}
		return e
	}
	one := talk(limits + "hi\n").stdout
	if e := (call{}).run("chat", dir, "hi", "--max-tokens", "8", "--seed", "3"); e.stdout != one || one == "" {
		t.Errorf("a conversation says %q, one question %q", one, e.stdout)
	}
	seed4 := talk("/max-tokens 8\n/seed 4\nhi").stdout
	for _, tt := range []struct{ script, want string }{
		{limits + "hi\n/reset\nhi\n", one + one},
		{limits + "hi\n/undo\nhi\n", one + one},
		{limits + "hi\n/retry\n", one + seed4},
		{"/seed 4\n/max-tokens 8\n\n  \nhi\n/quit\nhi\n", seed4},
		{limits + "/temperature 0\nhi\n/reset\n/seed\nhi\n",
			talk(limits+"/temperature 0\nhi\n").stdout + talk("/max-tokens 8\n/temperature 0\nhi\n").stdout},
		{limits + "a\\\nb\n", talk(limits + "\"\"\"\na\nb\n\"\"\"\n").stdout},
		{limits + "\"\"\"hi\"\"\"\n", one},
		{strings.ReplaceAll(limits+"hi\n", "\n", "\r\n"), one},
	} {
		if e := talk(tt.script); e.stdout != tt.want {
			t.Errorf("%q: %q, want %q\n%s", tt.script, e.stdout, tt.want, e.stderr)
		}
	}
	// The conversation goes on, and what was taken back is gone.
	two := talk(limits + "hi\nand\n").stdout
	if again := talk(limits + "hi\nno\n/undo\nand\n").stdout; !strings.HasSuffix(again, strings.TrimPrefix(two, one)) {
		t.Errorf("after /undo %q, without %q", again, two)
	}
	if alone := talk(limits + "and\n").stdout; two == one+alone {
		t.Error("the second answer does not know the first question")
	}
	slash := call{}.run("chat", dir, "/help", "--max-tokens", "8", "--seed", "3").stdout
	if got := talk(limits + "//help\n").stdout; got != slash || strings.Contains(got, "/retry") {
		t.Errorf("a question that begins with /: %q, want %q", got, slash)
	}
	if sys := talk("/system be\n" + limits + "hi\n").stdout; sys == one {
		t.Error("the system message changes nothing")
	}
	e := talk(limits + "hi\n")
	if !strings.Contains(e.stderr, "tokens, seed 3") || !strings.Contains(e.stderr, "/help lists commands") {
		t.Errorf("stderr:\n%s", e.stderr)
	}
	if e := (call{stdin: limits + "hi\n"}).run("chat", dir, "-q"); e.stdout != one || e.stderr != "" {
		t.Errorf("-q: %q\n%s", e.stdout, e.stderr)
	}
	greedy := talk(limits + "/temperature 0\nhi\n").stdout
	checkLogProbs(t, strings.TrimPrefix(talk(limits+"/temperature 0\nhi\n/logprobs\n").stdout, greedy), 8)
	golden(t, "chathelp", talk("/help\n").stdout)
}

// checkLogProbs checks what /logprobs shows of a greedy answer of n tokens: each with the likeliest others, which
// leave out the token itself, and the sum.
func checkLogProbs(t *testing.T, shown string, n int) {
	t.Helper()
	row := regexp.MustCompile(`(?m)^  "(?:[^"\\]|\\.)+" +(-\d+\.\d{3})((?: +"(?:[^"\\]|\\.)+" -\d+\.\d\d)+)$`)
	rows, sum := row.FindAllStringSubmatch(shown, -1), 0.0
	for _, r := range rows {
		v, err := strconv.ParseFloat(r[1], 64)
		if sum += v; err != nil || strings.Count(r[2], " -") != topShown-1 {
			t.Errorf("%q: want %d others", r[0], topShown-1)
		}
	}
	total := regexp.MustCompile(`(\d+) tokens, log-prob (-\d+\.\d\d) in all`).FindStringSubmatch(shown)
	if len(rows) != n || total == nil || total[1] != strconv.Itoa(n) {
		t.Fatalf("want %d tokens:\n%s", n, shown)
	}
	if v, err := strconv.ParseFloat(total[2], 64); err != nil || math.Abs(v-sum) > 0.005+0.0005*float64(n) {
		t.Errorf("the sum is %s, of the rows %.3f", total[2], sum)
	}
}

// A terminal does not obey the model; a file gets its bytes as they are.
func TestChatCleansTerminal(t *testing.T) {
	args := []string{"chat", chatFolder(t, 256), "hi", "--seed", "1", "--max-tokens", "200"}
	unclean := func(text string) bool {
		return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' })
	}
	if e := (call{}).run(args...); !unclean(e.stdout) {
		t.Fatalf("the answer has no control characters: %q", e.stdout)
	}
	if e := (call{env: map[string]string{"EXP_FORCE_TTY": "80"}}).run(args...); e.code != 0 || unclean(e.stdout) {
		t.Errorf("code %d, %q", e.code, e.stdout)
	}
}

// The system message of a conversation is the run's, unless --system gives another or none.
func TestChatSystemOfRun(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a model")
	}
	dir := t.TempDir()
	template, store := filepath.Join(dir, "chat.jinja"), filepath.Join(dir, "store")
	if err := os.WriteFile(template, []byte(chatTemplate), 0o600); err != nil {
		t.Fatal(err)
	}
	e := call{}.run("run", filepath.Join("..", "..", "configs", "smoke_cpu.yaml"), "--store", store, "-q",
		"--set", "tokenizer.kind=byte", "--set", "data.chat="+template, "--set", "data.system=Be", "--set", "train.steps=1",
		"--set", "data.max_prompt_tokens=40")
	if e.code != 0 {
		t.Fatal(e.stderr)
	}
	said := func(system ...string) string {
		t.Helper()
		args := []string{"chat", "@last", "7,8=15:", "--seed", "1", "--max-tokens", "8", "--store", store, "--json"}
		e := call{}.run(append(args, system...)...)
		var answer struct {
			Data struct {
				Tokens []struct{ Logprob float64 }
			}
		}
		if err := json.Unmarshal([]byte(e.stdout), &answer); err != nil || len(answer.Data.Tokens) == 0 {
			t.Fatalf("%v: code %d, %s%s", err, e.code, e.stdout, e.stderr)
		}
		return fmt.Sprint(answer.Data.Tokens)
	}
	own, same, none, other := said(), said("--system", "Be"), said("--system", ""), said("--system", "No")
	if own != same || own == none || own == other || none == other {
		t.Errorf("the run's own system message: %s; the same: %s; none: %s; another: %s", own, same, none, other)
	}
}

func TestChatErrors(t *testing.T) {
	talker, bytes := chatFolder(t, 64), byteFolder(t)
	for _, tt := range []struct {
		args   []string
		stdin  string
		code   cli.ExitCode
		stderr string
	}{
		{[]string{talker, "--temperature", "-1"}, "", cli.ExitUsage, "--temperature is -1"},
		{[]string{talker, "--top-p", "7"}, "", cli.ExitUsage, "--top-p is 7"},
		{[]string{talker, "--max-tokens", "0"}, "", cli.ExitUsage, "at least 1"},
		{[]string{talker, "--context", "65"}, "", cli.ExitUsage, "has 64 positions"},
		{[]string{talker, ""}, "", cli.ExitUsage, "the question is empty"},
		{[]string{talker, "-"}, "\n", cli.ExitUsage, "the question is empty"},
		{[]string{talker, "--json"}, "hi\n", cli.ExitUsage, "-o json needs a QUESTION"},
		{[]string{bytes, "hi", "--system", "be"}, "", cli.ExitUsage, "has no chat template"},
		{[]string{talker + "no", "hi"}, "", cli.ExitNotFound, "no"},
		{[]string{talker, strings.Repeat("x", 80)}, "", cli.ExitUsage, "the question has 97 tokens: with 1 for the answer"},
		{[]string{talker}, "/max-tokens 9\nhi\n/max-tokens 50\nyou\n", cli.ExitUsage, "/reset starts over"},
		{[]string{talker}, "/rety\nhi\n", cli.ExitUsage, "did you mean /retry?"},
		{[]string{talker}, "/reset now\n", cli.ExitUsage, "/reset takes nothing after it"},
		{[]string{talker}, "/retry\n", cli.ExitUsage, "nothing was asked yet"},
		{[]string{talker}, "/undo\n", cli.ExitUsage, "nothing was asked yet"},
		{[]string{talker}, "/logprobs\n", cli.ExitUsage, "nothing was asked yet"},
		{[]string{talker}, "/temperature hot\n", cli.ExitUsage, `"hot" is not a number`},
		{[]string{talker}, "/top-k 1.5\n", cli.ExitUsage, `"1.5" is not a whole number`},
		{[]string{talker}, "/top-p 2\n", cli.ExitUsage, "top-p is 2"},
		{[]string{talker}, "/seed x\n", cli.ExitUsage, "want a whole number"},
		{[]string{talker}, "/problem\n", cli.ExitUsage, "/problem needs a run"},
		{[]string{talker}, "\"\"\"\nhi\n", cli.ExitUsage, "the input ends within a text"},
		{[]string{bytes}, "/system be\n", cli.ExitUsage, "has no chat template"},
	} {
		e := call{stdin: tt.stdin}.run(append([]string{"chat"}, tt.args...)...)
		if e.code != int(tt.code) || !strings.Contains(e.stderr, tt.stderr) {
			t.Errorf("%q, %q: code %d, want %d, %q in\n%s", tt.args, tt.stdin, e.code, tt.code, tt.stderr, e.stderr)
		}
	}
	// A person goes on after an error.
	e := call{stdin: "/rety\n/max-tokens 3\nhi\n", env: map[string]string{"EXP_FORCE_TTY": "80", "NO_COLOR": "1"}}.run("chat", talker)
	if e.code != 0 || strings.Count(e.stderr, "> ") != 4 || !strings.Contains(e.stderr, "error: unknown command /rety\n") ||
		!strings.Contains(e.stderr, "tokens, seed ") {
		t.Errorf("code %d\n%s", e.code, e.stderr)
	}
	e = call{stdin: "hi\n"}.run("chat", bytes)
	if e.code != 0 || !strings.Contains(e.stderr, "bytes continues each line as a text by itself") {
		t.Errorf("code %d\n%s", e.code, e.stderr)
	}
}

// told is a writer that calls a function with each text.
type told func(text string)

func (t told) Write(p []byte) (int, error) {
	t(string(p))
	return len(p), nil
}

// Ctrl-C ends an answer; a second one without a question in between ends the program.
func TestChatCtrlC(t *testing.T) {
	dir := chatFolder(t, 16384)
	in, stdin := io.Pipe()
	wrote, stopped := make(chan struct{}), make(chan struct{}, 2)
	signals, code := make(chan os.Signal), make(chan int, 1)
	stderr := told(func(text string) {
		if strings.Contains(text, "stopped; Ctrl-C again ends. ") {
			stopped <- struct{}{}
		}
	})
	go func() { // greedy, the model goes on to the end of the context, and waits for whoever reads
		code <- cli.Run(cli.System{Args: []string{"exp", "chat", dir, "--temperature", "0", "--context", "16384"}, Stdin: in,
			Stdout: told(func(string) { wrote <- struct{}{} }), Stderr: stderr, Getenv: func(string) string { return "" },
			Clock: term.SystemClock(), Signals: signals}, program(commands))
	}()
	late := time.After(time.Minute)
	for range 2 {
		if _, err := io.WriteString(stdin, "/reset\nhi\n"); err != nil {
			t.Fatal(err)
		}
		<-wrote
		signals <- syscall.SIGINT
		for ends := false; !ends; {
			select {
			case <-wrote:
			case <-stopped:
				ends = true
			case <-late:
				t.Fatal("the answer does not stop")
			}
		}
	}
	signals <- syscall.SIGINT
	select {
	case c := <-code:
		if c != 0 {
			t.Errorf("code %d", c)
		}
	case <-late:
		t.Fatal("it does not end")
	}
}

// Ctrl-C with nothing to stop asks first; a line takes it back.
func TestCtrlC(t *testing.T) {
	c := ctrlC{idle: make(chan struct{}, 1)}
	stopped := 0
	if c.take(syscall.SIGTERM) {
		t.Error("it takes SIGTERM")
	}
	if !c.take(os.Interrupt) || len(c.idle) != 1 || c.take(os.Interrupt) {
		t.Errorf("idle: told %d times", len(c.idle))
	}
	c.typed()
	c.set(func() { stopped++ })
	if !c.take(os.Interrupt) || stopped != 1 || len(c.idle) != 1 || c.take(os.Interrupt) || stopped != 1 {
		t.Errorf("an answer: stopped %d times", stopped)
	}
	s := chatSession{ctx: t.Context(), ctrlC: ctrlC{idle: make(chan struct{}, 1)}}
	if err := s.untilStopped(func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if !s.ctrlC.take(os.Interrupt) || len(s.ctrlC.idle) != 1 {
		t.Error("after an answer there is still something to stop")
	}
}

// A run is asked as it was after training or after a step, and its problems are graded.
func TestChatWithRun(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a model")
	}
	dir := smokeStore(t)
	once := func(ref string) string {
		t.Helper()
		e := call{}.run("chat", ref, "3,4=12:", "--seed", "1", "--max-tokens", "12", "--store", dir)
		if e.code != 0 {
			t.Fatalf("%s: %s", ref, e.stderr)
		}
		return e.stdout
	}
	if a, b := once("smoke#0"), once("smoke#0@4"); a != b {
		t.Errorf("%q after training, %q after its last step", a, b)
	}
	once("smoke#0@2")
	for _, tt := range []struct{ ref, want string }{
		{"smoke#0@3", "has no checkpoint of step 3"}, {"smoke#0@3", "has checkpoints of steps 2"},
		{"smok#0@3", "did you mean smoke"}, {"smoke#0@x", `no run matches "smoke#0@x"`},
	} {
		if e := (call{}).run("chat", tt.ref, "x", "--store", dir); e.code != int(cli.ExitNotFound) || !strings.Contains(e.stderr, tt.want) {
			t.Errorf("%s: code %d, %q in\n%s", tt.ref, e.code, tt.want, e.stderr)
		}
	}
	e := call{}.run("chat", "smoke#0", "hello", "--store", dir)
	e.check(t, int(cli.ExitUsage), "", "error: tokenizer: character 'h' (U+0068) at byte 0 is not in the alphabet")
	e = call{stdin: "/max-tokens 12\n/temperature 0\n/problem 2\n/problem\n/retry\n"}.run("chat", "smoke#0", "--store", dir)
	if e.code != 0 {
		t.Fatal(e.stderr)
	}
	for _, want := range []string{`(?s)test problem 2 of 16: .*gold .*verdict .*test problem 3 of 16: .*gold .*verdict .*gold .*verdict `} {
		if !regexp.MustCompile(want).MatchString(e.stdout) {
			t.Errorf("%s does not match\n%s", want, e.stdout)
		}
	}
	// Each problem has the answer to its own prompt, and its own numbers in the right answer.
	asked := regexp.MustCompile(`(?s)of 16: (\S+)=\S+\n  (\S+)\n(.*?)  gold +(\S+)\n`).FindAllStringSubmatch(e.stdout, -1)
	if len(asked) != 2 {
		t.Fatalf("%d problems in\n%s", len(asked), e.stdout)
	}
	for _, q := range asked {
		alone := call{}.run("chat", "smoke#0", q[2], "--temperature", "0", "--max-tokens", "12", "--store", dir).stdout
		gold := regexp.MustCompile(`\d+`).FindAllString(q[4], -1)
		slices.Sort(gold)
		if numbers := strings.Split(q[1], ","); q[3] != alone || !slices.Equal(gold, numbers) {
			t.Errorf("problem %s: answer %q, alone %q, gold %s", q[2], q[3], alone, q[4])
		}
	}
	// The verdict is the evaluation's, and so is the prompt.
	rows := call{}.run("samples", "smoke#0", "-n", "0", "--json", "--store", dir)
	var samples struct {
		Data []struct {
			Item, Prompt string
		}
	}
	if err := json.Unmarshal([]byte(rows.stdout), &samples); err != nil || len(samples.Data) == 0 {
		t.Fatalf("%v: %s", err, rows.stdout)
	}
	first := samples.Data[0]
	e = call{stdin: "/max-tokens 12\n/problem 1\n"}.run("chat", "smoke#0", "--store", dir)
	if !strings.Contains(e.stdout, fmt.Sprintf("test problem 1 of 16: %s\n  %s\n", first.Item, strings.TrimSpace(first.Prompt))) {
		t.Errorf("problem %s, prompt %q, in\n%s", first.Item, first.Prompt, e.stdout)
	}
	for _, n := range []string{"0", "17", "x"} {
		e := call{stdin: "/problem " + n + "\n"}.run("chat", "smoke#0", "--store", dir)
		if e.code != int(cli.ExitUsage) || !strings.Contains(e.stderr, "want a number from 1 to 16") {
			t.Errorf("problem %s: code %d\n%s", n, e.code, e.stderr)
		}
	}
}
