package toolcall

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"exp/train/rollout"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "tool-program" {
		toolProgram()
		return
	}
	os.Exit(m.Run())
}

// toolProgram answers calls as a well-behaved program does, except for inputs that name a fault to show.
func toolProgram() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var r request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			panic(err)
		}
		say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
		switch r.Input {
		case "die":
			fmt.Fprintln(os.Stderr, "no life left")
			os.Exit(3)
		case "hang":
			time.Sleep(time.Hour)
		case "chat":
			say("thinking …")
		case "empty":
			say(`{"id": %q}`, r.ID)
		case "other":
			say(`{"id": "x", "output": ""}`)
		case "end":
			say(`{"id": %q, "end": true}`, r.ID)
		case "error":
			say(`{"id": %q, "error": "no index"}`, r.ID)
		case "once": // the process that is asked first dies
			name := string(r.Extra)
			if _, err := os.Stat(strings.Trim(name, `"`)); err != nil {
				_ = os.WriteFile(strings.Trim(name, `"`), nil, 0o666)
				os.Exit(1)
			}
			fallthrough
		default:
			out, _ := json.Marshal(fmt.Sprintf("%s %s %d %s%s %s", r.Problem, r.Gold, r.Turn, r.Name, r.Arguments, r.DataSource))
			say(`{"id": %q, "output": %s}`, r.ID, out)
		}
	}
}

func TestCommand(t *testing.T) {
	var mu sync.Mutex
	var log []string
	c := NewCommand(CommandOptions{Argv: []string{os.Args[0], "tool-program"}, DataSource: "math", Workers: 3, Limit: 5 * time.Second,
		Retries: 1, Log: func(line string) { mu.Lock(); defer mu.Unlock(); log = append(log, line) }})
	ask := func(input string) (rollout.ToolAnswer, error) {
		extra, _ := json.Marshal(t.TempDir() + "/once")
		return c.Answer(context.Background(), rollout.ToolCall{Problem: &rollout.Problem{ID: "p", Answer: "7", Data: extra}, Turn: 2, Name: "f",
			Arguments: json.RawMessage(`{"a":1}`), Input: input})
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if a, err := ask("hello"); err != nil || a.Text != `p 7 2 f{"a":1} math` || a.End {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
	all.Wait()
	if a, err := ask("once"); err != nil || a.Text == "" {
		t.Errorf("a process that dies once: %+v, %v", a, err)
	}
	if a, err := ask("end"); err != nil || !a.End {
		t.Errorf("%+v, %v", a, err)
	}
	for input, want := range map[string]string{"die": "it ended (exit status 3) before it answered; it said: no life left", "chat": `is not JSON such as {"id": …, "output": "…"}; everything else belongs on standard error, while the call with id`,
		"empty": `has neither "output" nor "end" nor "error"`, "other": "has another id", "error": "on problem p it says: no index"} {
		_, err := ask(input)
		var broken *BrokenError
		if !errors.As(err, &broken) || broken.ExitCode() != 8 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", input, err, want)
		}
		if a, err := ask("hello"); err != nil || a.Text == "" {
			t.Errorf("after %s: %+v, %v", input, a, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(strings.Join(log, "\n"), "no life left") {
		t.Errorf("log %q", log)
	}

	c = NewCommand(CommandOptions{Argv: []string{os.Args[0], "tool-program"}, Workers: 1, Limit: 50 * time.Millisecond})
	if _, err := ask("hang"); err == nil || !strings.Contains(err.Error(), "rollout.tools.limit") {
		t.Errorf("a silent program: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Answer(ctx, rollout.ToolCall{Problem: &rollout.Problem{}, Input: "hang"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Try(20 * time.Millisecond); err != nil {
		t.Errorf("a program that waits: %v", err)
	}
	c = NewCommand(CommandOptions{Argv: []string{"sh", "-c", "echo no index >&2; exit 3"}, Workers: 1, Limit: time.Second})
	if err := c.Try(time.Minute); err == nil || !strings.Contains(err.Error(), "it ended (exit status 3) before any call; it said: no index") {
		t.Errorf("a program that ends: %v", err)
	}
	c = NewCommand(CommandOptions{Argv: []string{"/no/such/program"}, Workers: 1, Limit: time.Second})
	if _, err := ask("hello"); err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("a missing program: %v", err)
	}
}
