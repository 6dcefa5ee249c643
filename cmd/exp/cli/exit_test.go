package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"exp/cmd/exp/term"
)

func TestExitCodes(t *testing.T) {
	tests := []struct {
		name   string
		code   int
		stderr string
	}{
		{"ok", 0, ""},
		{"plain", 1, "error: something odd\n"},
		{"wrapped", 5, "error: verify 5e8d: step 12 differs (exit 5)\n"},
		{"full", 7, "error: blob: write f: no space left on device (exit 7)\n  help: free some space and run again: finished work is kept\n"},
		{"said", 6, "the table\n"},
		{"help", 3, "error: no store (exit 3)\n  help: run: exp init\n"},
		{"text", 2, "a.yaml:1:2: error[E102]: …\n"},
		{"joined", 1, "error: one\ntwo\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := call{}.run("fail", tt.name)
			if got.code != tt.code || got.stderr != tt.stderr || got.stdout != "" {
				t.Errorf("got %+v, want code %d and stderr %q", got, tt.code, tt.stderr)
			}
		})
	}
}

func TestJSONErrors(t *testing.T) {
	tests := []struct{ args, want string }{
		{"fail wrapped --json", `{"schema":"exp.error/1","code":5,"kind":"divergence","errors":[{"message":"verify 5e8d: step 12 differs"}]}`},
		{"fail text -o json", `{"schema":"exp.error/1","code":2,"kind":"config","errors":[{"message":"unknown key","id":"E102","file":"a.yaml","line":1,"column":2}]}`},
		{"fail joined -o jsonl", `{"schema":"exp.error/1","code":1,"kind":"failure","errors":[{"message":"one"},{"message":"two"}]}`},
		{"--json fail help", `{"schema":"exp.error/1","code":3,"kind":"not_found","errors":[{"message":"no store","help":"run: exp init"}]}`},
		{"rnu --json", `{"schema":"exp.error/1","code":2,"kind":"usage","errors":[{"message":"unknown command \"rnu\"","help":"did you mean \"exp run\"?"}]}`},
		{"--json show --nope", `{"schema":"exp.error/1","code":2,"kind":"usage","errors":[{"message":"unknown flag --nope for \"exp show\""}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			got := call{}.run(strings.Fields(tt.args)...)
			if !strings.HasPrefix(got.stderr, tt.want) {
				t.Errorf("stderr %q\nwant   %q", got.stderr, tt.want)
			}
		})
	}
}

func TestPanics(t *testing.T) {
	got := call{}.run("fail", "panic")
	got.check(t, 1, "", "error: internal error: index out of range\n", "this is a bug", "sampleError")
	got = call{}.run("--json", "fail", "panic")
	var e jsonError
	if err := json.Unmarshal([]byte(got.stderr), &e); err != nil {
		t.Fatalf("stderr is not one JSON object: %v\n%s", err, got.stderr)
	}
	if e.Code != 1 || e.Kind != "panic" || !strings.Contains(e.Errors[0].Stack, "sampleError") {
		t.Errorf("got %+v", e)
	}
	// One with an error that the program knows is that error.
	got = call{}.run("fail", "panic-known")
	if strings.Contains(got.stderr, "bug") || !strings.HasPrefix(got.stderr, "error: device: no space left") {
		t.Errorf("a known error:\n%s", got.stderr)
	}
	// Not even one before the flags are read may escape.
	got = call{list: func(a *App) []*Command {
		return []*Command{{Name: "x", Flags: []Flag{nil}}}
	}}.run("x", "--y")
	got.check(t, 1, "", "internal error")
}

func TestSignals(t *testing.T) {
	tests := []struct {
		name   string
		sig    os.Signal
		code   int
		stderr string
	}{
		{"wait", syscall.SIGINT, 130, "interrupted: stopped after step 12; continue with: exp resume 5e8d\n"},
		{"wait", syscall.SIGTERM, 143, "terminated: stopped after step 12"},
		{"wait-raw", syscall.SIGINT, 130, "interrupted: the command did not finish\n"},
		{"wait-other", syscall.SIGINT, 7, "error: disk full while saving (exit 7)\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			signals := make(chan os.Signal, 1)
			signals <- tt.sig
			call{signals: signals}.run("fail", tt.name).check(t, tt.code, "", tt.stderr)
		})
	}
	t.Run("second stops at once", func(t *testing.T) {
		signals := make(chan os.Signal)
		running := make(chan struct{})
		go func() {
			<-running
			signals <- syscall.SIGINT
			signals <- syscall.SIGTERM
		}()
		list := func(a *App) []*Command {
			return []*Command{{Name: "deaf", Action: func(*Context) error {
				a.Progress().StageStart(term.Stage{Kind: "train", Total: 10})
				a.OnSecondSignal(func() string { return "step 3 is kept" })
				close(running)
				select {}
			}}}
		}
		got := call{list: list, signals: signals}.run("deaf", "--progress", "tty")
		if got.code != 143 {
			t.Errorf("exit code %d, want 143", got.code)
		}
		_, after, cleared := strings.Cut(got.stderr, "\r\x1b[J")
		if !strings.Contains(got.stderr, "train") || !cleared || after != "interrupted: stopped at once; step 3 is kept\n" {
			t.Errorf("the block is left on the terminal, or nothing is said: %q", got.stderr)
		}
	})
	t.Run("taken by the command", func(t *testing.T) {
		signals, taken := make(chan os.Signal), make(chan os.Signal)
		list := func(a *App) []*Command {
			return []*Command{{Name: "takes", Action: func(c *Context) error {
				a.OnSignal(func(sig os.Signal) bool { taken <- sig; return sig == syscall.SIGINT })
				for range 2 {
					go func() { signals <- syscall.SIGINT }()
					if <-taken; c.Context.Err() != nil {
						t.Error("a signal that the command took stops it")
					}
				}
				go func() { signals <- syscall.SIGTERM }()
				<-taken
				<-c.Context.Done()
				return Stoppedf(c.Context, "stopped")
			}}}
		}
		call{list: list, signals: signals}.run("takes").check(t, 143, "", "terminated: stopped\n")
	})
	t.Run("JSON", func(t *testing.T) {
		signals := make(chan os.Signal, 1)
		signals <- syscall.SIGTERM
		call{signals: signals}.run("fail", "wait", "--json", "-q").check(t, 143, "",
			`{"schema":"exp.error/1","code":143,"kind":"terminated","errors":[{"message":"stopped after step 12; continue with: exp resume 5e8d"}]}`)
	})
}

// TestFirstSignalIsCancellation: code below the command sees what it expects.
func TestFirstSignalIsCancellation(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(&signalError{syscall.SIGINT})
	for _, err := range []error{ctx.Err(), context.Cause(ctx), fmt.Errorf("train: %w", ctx.Err()), Stoppedf(ctx, "so")} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v is not context.Canceled", err)
		}
		if got := Describe(err, context.Cause(ctx), sampleKnown).Code; got != ExitInterrupted {
			t.Errorf("%v has the code %d, want 130", err, got)
		}
	}
	if got := Describe(context.Canceled, nil, sampleKnown).Code; got != ExitFailure {
		t.Errorf("cancelled without a signal: code %d, want 1", got)
	}
}
