package reward

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"exp/train/program"
	"exp/train/rollout"
)

// TestMain makes the test binary a reward program where its first argument says so.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "reward-program" {
		rewardProgram(os.Args[2:])
		return
	}
	os.Exit(m.Run())
}

// rewardProgram answers rows as a well-behaved program does, score = length of the response,
// except for responses that name a fault to show.
func rewardProgram(args []string) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	if len(args) > 0 && args[0] == "child" {
		c := exec.Command("sleep", "1000")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr // it holds our output open
		if err := c.Start(); err != nil {
			panic(err)
		}
		_ = os.WriteFile(args[1], []byte(strconv.Itoa(c.Process.Pid)), 0o666)
	}
	for in.Scan() {
		var r row
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			panic(err)
		}
		n := len(r.Response)
		switch {
		case strings.HasPrefix(r.Response, "boom"):
			fmt.Fprintln(os.Stderr, "cannot stand", r.Response)
			os.Exit(3)
		case strings.HasPrefix(r.Response, "hang"):
			time.Sleep(time.Hour)
		case strings.HasPrefix(r.Response, "half"):
			fmt.Printf(`{"id": "%s", "sco`, r.ID)
			os.Exit(0)
		case strings.HasPrefix(r.Response, "refuse"):
			say(`{"id": %q, "error": "I would rather not"}`, r.ID)
		case strings.HasPrefix(r.Response, "print"):
			say("debug: %s", r.Response)
		case strings.HasPrefix(r.Response, "nan"):
			say(`{"id": %q, "score": NaN}`, r.ID)
		case strings.HasPrefix(r.Response, "twice"):
			say(`{"id": %q, "score": 1}`, r.ID)
			say(`{"id": %q, "score": 1}`, r.ID)
		case strings.HasPrefix(r.Response, "who"):
			say(`{"id": "who", "score": 1}`)
		case strings.HasPrefix(r.Response, "noid"):
			say(`{"score": 1}`)
		case strings.HasPrefix(r.Response, "empty"):
			say(`{"id": %q}`, r.ID)
		case strings.HasPrefix(r.Response, "long"):
			say(`{"id": %q, "score": 1, "note": %q}`, r.ID, strings.Repeat("x", program.MaxLine))
		case strings.HasPrefix(r.Response, "fields"):
			b, _ := json.Marshal(r)
			fmt.Fprintln(os.Stderr, string(b))
			fallthrough
		default:
			say("\n"+`{"id": %q, "score": %d, "components": {"a": %d.5, "more": 1}}`, r.ID, n, n)
		}
	}
}

func argv(t *testing.T, args ...string) []string {
	t.Helper()
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{me, "reward-program"}, args...)
}

func options(t *testing.T, args ...string) CommandOptions {
	return CommandOptions{Argv: argv(t, args...), DataSource: "toy", Workers: 1, Batch: 4, RowLimit: 30 * time.Second, BatchLimit: time.Minute, Retries: 2, Restarts: 30}
}

// items makes completions with those texts, one for each problem.
func items(texts ...string) []rollout.Item {
	out := make([]rollout.Item, len(texts))
	for i, s := range texts {
		out[i] = rollout.Item{Problem: &rollout.Problem{ID: fmt.Sprintf("p%d", i), Prompt: "say: ", Answer: "gold" + s}, Completion: &rollout.Completion{Text: s}}
	}
	return out
}

func values(scores []Score) string {
	var out []string
	for _, s := range scores {
		if s.Graded {
			out = append(out, fmt.Sprint(s.Value))
		} else {
			out = append(out, "-")
		}
	}
	return strings.Join(out, " ")
}

func TestCommandScores(t *testing.T) {
	var log []string
	o := options(t)
	o.Parts, o.Log = []string{"a"}, func(line string) { log = append(log, line) }
	c := NewCommand(o)
	list := items("", "ab", "abc\"\n", "refuse", "fields<&>")
	list[4].Problem.Data = json.RawMessage(`{"data_source": "own", "x": [1]}`)
	for range 2 { // one process for both
		got, err := c.Score(context.Background(), list)
		if err != nil {
			t.Fatal(err)
		}
		if want := "0 2 5 - 9"; values(got) != want {
			t.Errorf("scores: got %s, want %s", values(got), want)
		}
		if got[1].Parts["a"] != 2.5 || got[3].Reason != "the reward command: I would rather not" {
			t.Errorf("scores: got %+v", got)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	want := []string{
		`{"id":"5","problem":"p4","prompt":"say: ","response":"fields\u003c\u0026\u003e","turns":1,"gold":"goldfields\u003c\u0026\u003e","data_source":"own","extra":{"data_source":"own","x":[1]}}`,
		`{"id":"10","problem":"p4","prompt":"say: ","response":"fields\u003c\u0026\u003e","turns":1,"gold":"goldfields\u003c\u0026\u003e","data_source":"own","extra":{"data_source":"own","x":[1]}}`,
	}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Errorf("what the program read (-want +got):\n%s", diff)
	}
}

// A row that brings the program down, or hangs it, harms only itself, whatever the
// batches and the number of workers.
func TestCommandScoresDoNotDependOnWorkers(t *testing.T) {
	var texts []string
	for i := range 13 {
		texts = append(texts, strings.Repeat("x", i))
	}
	texts[3], texts[4], texts[9] = "boom", "boom too", "half a line"
	const want = "0 1 2 - - 5 6 7 8 - 10 11 12"
	var first []Score
	for _, workers := range []int{1, 2, 5} {
		for _, batch := range []int{1, 4, 100} {
			o := options(t)
			o.Workers, o.Batch = workers, batch
			c := NewCommand(o)
			got, err := c.Score(context.Background(), items(texts...))
			if err := errors.Join(err, c.Close()); err != nil {
				t.Fatalf("%d workers, batch %d: %v", workers, batch, err)
			}
			if values(got) != want {
				t.Errorf("%d workers, batch %d: got %s, want %s", workers, batch, values(got), want)
			}
			if first == nil {
				first = got
			}
			if diff := cmp.Diff(first, got); diff != "" {
				t.Errorf("%d workers, batch %d: scores and reasons (-first +got):\n%s", workers, batch, diff)
			}
		}
	}
	if got, want := first[3].Reason, "the reward command ended (exit status 3) before it answered; it said: cannot stand boom"; got != want {
		t.Errorf("reason: got %q, want %q", got, want)
	}
}

func TestCommandThatHangs(t *testing.T) {
	for _, tt := range []struct {
		name       string
		row, batch time.Duration
		want       string
	}{
		{"row", 300 * time.Millisecond, time.Minute, "the reward command gave no answer within 300ms (reward.row_limit)"},
		{"batch", time.Minute, 300 * time.Millisecond, "the reward command did not answer the batch within 300ms (reward.batch_limit)"},
	} {
		o := options(t)
		o.RowLimit, o.BatchLimit, o.Retries = tt.row, tt.batch, 1
		c := NewCommand(o)
		got, err := c.Score(context.Background(), items("a", "hang", "abc"))
		if err := errors.Join(err, c.Close()); err != nil {
			t.Fatal(err)
		}
		if values(got) != "1 - 3" || got[1].Reason != tt.want {
			t.Errorf("%s: got %s, %q, want 1 - 3, %q", tt.name, values(got), got[1].Reason, tt.want)
		}
	}
}

// Output that is not an answer ends the run, with the line and the row.
func TestCommandThatBreaksTheProtocol(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"print", "line 3 of its output: not a JSON answer, while the row with id 2 (problem p1) waits: invalid character 'd' looking for beginning of value: debug: print"},
		{"nan", "invalid character 'N' looking for beginning of value"},
		{"twice", "line 4 of its output: a second answer to the row with id 2 (problem p1)"},
		{"who", `line 3 of its output: the id "who" is unknown; the row with id 2 waits`},
		{"noid", `line 3 of its output: no "id" (a text), while the row with id 2 waits`},
		{"empty", `line 3 of its output: the row with id 2 (problem p1) has neither "score" nor "error"`},
		{"long", "line 3 of its output: longer than 1048576 bytes"},
	} {
		c := NewCommand(options(t))
		got, err := c.Score(context.Background(), items("a", tt.text, "abc"))
		var broken *BrokenError
		if !errors.As(err, &broken) || broken.ExitCode() != 8 || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, %v, want %q", tt.text, got, err, tt.want)
		}
		if err := c.Close(); err != nil {
			t.Errorf("%s: close: %v", tt.text, err)
		}
	}
}

// Answers of wrong kinds are refused in the words of the protocol.
func TestAnswersOfWrongKinds(t *testing.T) {
	for text, want := range map[string]string{
		`{"id": 1, "score": 1}`:                             `"id" must be a text, got a number`,
		`{"id": "1", "score": "1"}`:                         `"score" must be a number, got a text`,
		`{"id": "1", "score": true}`:                        `"score" must be a number, got true or false`,
		`{"id": "1", "score": 1e400}`:                       `"score" is 1e400, which no float64 can hold`,
		`{"id": "1", "score": 1, "components": [1]}`:        `"components" must be an object of numbers, got a list`,
		`{"id": "1", "score": 1, "components": {"a": "b"}}`: `must be a number, got a text`,
		`{"id": "1", "score": NaN}`:                         `JSON has no NaN; a row without a score has an "error": invalid character 'N'`,
		`0.5`:                                               "want an object, got a number",
	} {
		var a answer
		if err := json.Unmarshal([]byte(text), &a); err == nil || !strings.Contains(answerWords(err, []byte(text)), want) {
			t.Errorf("%s: %v, %q", text, err, answerWords(err, []byte(text)))
		}
	}
}

func TestCommandLacksComponent(t *testing.T) {
	o := options(t)
	o.Parts = []string{"a", "style"}
	c := NewCommand(o)
	defer c.Close()
	_, err := c.Score(context.Background(), items("ab"))
	if err == nil || !strings.Contains(err.Error(), `the row with id 1 (problem p0) lacks the component "style" of reward.components`) {
		t.Errorf("got %v", err)
	}
}

// The last row of a batch is answered twice: the second answer is found with the next
// batch, or at the end.
func TestCommandAnswersTwiceTooLate(t *testing.T) {
	c := NewCommand(options(t))
	list := items("a", "twice")
	if _, err := c.Score(context.Background(), list); err != nil {
		t.Fatal(err)
	}
	_, err := c.Score(context.Background(), list)
	if err == nil || !strings.Contains(err.Error(), "the id 2 belongs to an earlier row") {
		t.Errorf("next batch: got %v", err)
	}
	c = NewCommand(options(t))
	if _, err := c.Score(context.Background(), list); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err == nil || !strings.Contains(err.Error(), "line 4 of its output is not an answer to any row, or a second one") {
		t.Errorf("close: got %v", err)
	}
}

func TestCommandThatAlwaysEnds(t *testing.T) {
	o := options(t)
	o.Restarts = 3
	c := NewCommand(o)
	defer c.Close()
	_, err := c.Score(context.Background(), items("boom", "boom", "boom", "boom", "boom"))
	want := "it failed 4 times in one step; the last failure: the reward command ended (exit status 3) before it answered; it said: cannot stand boom"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestCommandThatIsNotThere(t *testing.T) {
	o := options(t)
	o.Argv = []string{filepath.Join(t.TempDir(), "no such program")}
	c := NewCommand(o)
	if _, err := c.Score(context.Background(), items("a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that it does not exist", err)
	}
}

// At the end and when the run is cancelled, nothing of the program is left, its
// children neither.
func TestCommandEndsItsChildren(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has process groups here")
	}
	for _, cancelled := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "pid")
		c := NewCommand(options(t, "child", file))
		c.grace = 100 * time.Millisecond
		ctx, cancel := context.WithCancel(context.Background())
		if _, err := c.Score(ctx, items("a")); err != nil {
			t.Fatal(err)
		}
		if cancelled {
			time.AfterFunc(100*time.Millisecond, cancel)
			if _, err := c.Score(ctx, items("hang")); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want %v", err, context.Canceled)
			}
		} else if err := c.Close(); err != nil {
			t.Error(err)
		}
		cancel()
		pid, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		gone := func() bool {
			stat, err := os.ReadFile("/proc/" + string(pid) + "/stat")
			return err != nil || strings.Contains(string(stat), ") Z ") // nobody waits for it
		}
		for i := 0; !gone(); i++ {
			if i > 500 {
				t.Fatalf("cancelled %v: the child %s is still there", cancelled, pid)
			}
			time.Sleep(10 * time.Millisecond)
		}
		_ = c.Close()
	}
}

// Words on what is right and what it comes to are read if they count, and ignored otherwise.
func TestCommandVerdicts(t *testing.T) {
	yes, no := true, false
	for _, tt := range []struct {
		line string
		want Score
		bad  string
	}{
		{`"correct": true, "answer": "Oslo"`, Score{Correct: &yes, Answer: "Oslo"}, ""},
		{`"correct": 0, "answer": [1, 2]`, Score{Correct: &no, Answer: "[1, 2]"}, ""},
		{`"correct": 1.0, "answer": 7.50`, Score{Correct: &yes, Answer: "7.50"}, ""},
		{`"correct": null, "answer": null`, Score{}, ""},
		{`"correct": "yes"`, Score{}, `the row with id 1 (problem p): "correct" must be true or false`},
		{`"correct": 0.5`, Score{}, `"correct" must be true or false`},
	} {
		for _, counts := range []bool{true, false} {
			a, _, err := parseAnswer(program.Line{Number: 1, Text: []byte(`{"id": "1", "score": 0.5, ` + tt.line + `}`)},
				map[string]int{"1": 0}, []row{{ID: "1", Problem: "p"}}, CommandOptions{Verdicts: counts})
			want, bad := tt.want, tt.bad
			if !counts {
				want, bad = Score{}, ""
			}
			want.Graded, want.Value = true, 0.5
			switch {
			case bad != "" && (err == nil || !strings.Contains(err.Error(), bad)):
				t.Errorf("%s: got %v, want %s", tt.line, err, bad)
			case bad == "" && err != nil:
				t.Errorf("%s: %v", tt.line, err)
			case bad == "":
				if diff := cmp.Diff(want, a.score()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tt.line, diff)
				}
			}
		}
	}
}
