package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"exp/cmd/exp/cli"
	"exp/eval"
	"exp/eval/task"
	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/experiments/query"
	"exp/experiments/store"
	"exp/harness/config"
	harness "exp/harness/run"
	"exp/train"
	"exp/train/checkpoint"
)

// TestKnownErrors covers every error of lower packages with its own meaning.
func TestKnownErrors(t *testing.T) {
	tests := []struct {
		name string
		err  error
		code cli.ExitCode
		help string // part of it
	}{
		{"no row", &store.Error{Op: "read run", Path: "exp.db", Err: store.ErrNotFound}, cli.ExitNotFound, ""},
		{"no store", &store.Error{Op: "open store", Path: "d", Err: store.ErrNoStore, Hint: "exp run creates one"}, cli.ExitNotFound, "exp run creates one"},
		{"no run", &query.NotFoundError{Ref: "x", Hint: "exp ls shows names"}, cli.ExitNotFound, "exp ls shows names"},
		{"several runs", &query.AmbiguousError{Ref: "x", Candidates: []store.Run{{Seed: 0}, {Seed: 1}}}, cli.ExitNotFound, "name#seed"},
		{"no permission", &fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, cli.ExitResource, "check its permissions"},
		{"path through a file", &fs.PathError{Op: "open", Path: "x/y", Err: syscall.ENOTDIR}, cli.ExitNotFound, "check the path"},
		{"damaged database", &store.Error{Err: store.ErrCorrupt, Hint: "restore it"}, cli.ExitIntegrity, "restore it"},
		{"damaged blob", &blob.Error{Op: "read", Err: blob.ErrCorrupt, Hint: "move it away"}, cli.ExitIntegrity, "move it away"},
		{"missing blob", &blob.Error{Op: "open", Err: fs.ErrNotExist, Hint: "running its stage again"}, cli.ExitIntegrity, "running its stage"},
		{"damaged checkpoint", &checkpoint.Error{Op: "read", Err: checkpoint.ErrCorrupt, Hint: "cut short"}, cli.ExitIntegrity, "cut short"},
		{"probe", &checkpoint.ProbeError{Path: "model"}, cli.ExitIntegrity, "were not kept"},
		{"stage diverged", &store.DivergenceError{Kind: "train", SID: ident.Sum(nil)}, cli.ExitDivergence, "exp doctor"},
		{"step diverged", &store.DivergenceError{RID: ident.Sum(nil), Step: 3}, cli.ExitDivergence, "exp show e3b0c442"},
		{"sampler and trainer", &train.MismatchError{Step: 1}, cli.ExitDivergence, "exp doctor"},
		{"disk full", &store.Error{Err: store.ErrFull, Hint: "free some space"}, cli.ExitResource, "free some space"},
		{"disk full, checkpoint", &checkpoint.Error{Err: syscall.ENOSPC, Hint: "free some space"}, cli.ExitResource, "free some space"},
		{"disk full, plain", &fs.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC}, cli.ExitResource, "free some space"},
		{"disk failed", &blob.Error{Op: "read", Err: syscall.EIO}, cli.ExitResource, "dmesg"},
		{"file too large", &blob.Error{Op: "store", Err: syscall.EFBIG}, cli.ExitResource, "ulimit -f"},
		{"database file", &store.Error{Err: store.ErrIO, Hint: "check the disk"}, cli.ExitResource, "check the disk"},
		{"database busy", &store.Error{Err: store.ErrBusy, Hint: "another process"}, cli.ExitResource, "another process"},
		{"run locked", &store.LockedError{RID: ident.Sum(nil)}, cli.ExitResource, "stop that process"},
		{"network", &store.Error{Err: store.ErrNetwork, Hint: "local directory"}, cli.ExitResource, "local directory"},
		{"read-only", &store.Error{Err: store.ErrReadOnly}, cli.ExitResource, ""},
		{"newer store", &store.VersionError{Have: 9, Want: 1}, cli.ExitResource, "use a newer exp"},
		{"newer checkpoint", &checkpoint.Error{Err: checkpoint.ErrNewer, Hint: "the program that wrote it"}, cli.ExitResource, "that wrote it"},
		{"not graded", &eval.NotGradedError{NotGraded: 2, Samples: 3, Reason: "no sandbox"}, cli.ExitEvaluation, "run again"},
		{"requirements", &harness.RequireError{Name: "x", Missing: []string{"a GPU"}}, cli.ExitResource, ""},
		{"broken line", &task.LineError{Path: "p.jsonl", Line: 3, Err: errors.New("no id")}, cli.ExitUsage, ""},
		{"too few problems", &task.ScarceError{Kind: "words", Hint: "ask for fewer"}, cli.ExitUsage, ""},
		{"filter", &query.SyntaxError{Text: "a =", Col: 3, Msg: "expected a value"}, cli.ExitUsage, ""},
		{"panic", &harness.PanicError{Value: "x"}, cli.ExitFailure, "report it"},
		{"hint alone", &store.Error{Err: errors.New("odd"), Hint: "try this"}, cli.ExitFailure, "try this"},
		{"nothing known", errors.New("odd"), cli.ExitFailure, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, err := range []error{tt.err, fmt.Errorf("train: %w", tt.err), errors.Join(tt.err, errors.New("and closing"))} {
				got := describe(err, nil)
				if got.Code != tt.code {
					t.Errorf("%v: code %d, want %d", err, got.Code, tt.code)
				}
				if !strings.Contains(got.Help, tt.help) || tt.help == "" && tt.code != cli.ExitFailure && got.Help != "" {
					t.Errorf("%v: help %q, want %q", err, got.Help, tt.help)
				}
			}
		})
	}
}

// TestWorstErrorCounts: of joined errors, the one that calls for action counts.
func TestWorstErrorCounts(t *testing.T) {
	none := &query.NotFoundError{Ref: "x"}
	full := &store.Error{Err: store.ErrFull}
	damaged := &blob.Error{Err: blob.ErrCorrupt}
	diverged := &store.DivergenceError{Step: 1}
	tests := []struct {
		errs []error
		want cli.ExitCode
	}{
		{[]error{none, full}, cli.ExitResource},
		{[]error{none, full, damaged}, cli.ExitIntegrity},
		{[]error{none, damaged, diverged, full}, cli.ExitDivergence},
	}
	for _, tt := range tests {
		if got := describe(errors.Join(tt.errs...), nil).Code; got != tt.want {
			t.Errorf("%v: code %d, want %d", tt.errs, got, tt.want)
		}
	}
	// A code that the command line itself gave counts before all.
	if got := describe(fmt.Errorf("x: %w", errors.Join(cli.Failf(cli.ExitCondition, "held"), diverged)), nil).Code; got != cli.ExitCondition {
		t.Errorf("code %d, want %d", got, cli.ExitCondition)
	}
}

// TestRealErrors: errors as the packages make them.
func TestRealErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	dir := filepath.Join(t.TempDir(), "store")
	db, err := store.Open(dir, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	_, noRun := db.RunByID(context.Background(), 7)
	_, noBlob := db.Blobs.Bytes(ident.Sum([]byte("x")))
	lock, err := db.LockRun(ident.Sum(nil))
	if err != nil {
		t.Fatal(err)
	}
	_, locked := db.LockRun(ident.Sum(nil))
	_ = lock.Release()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	_, noStore := store.Open(t.TempDir(), store.Options{})
	if err := os.WriteFile(filepath.Join(dir, "exp.db"), []byte(strings.Repeat("no database ", 500)), 0o644); err != nil {
		t.Fatal(err)
	}
	_, damaged := store.Open(dir, store.Options{})
	_, badFilter := query.Schema{}.Parse("seed >")
	for _, tt := range []struct {
		name string
		err  error
		code cli.ExitCode
	}{
		{"run", noRun, cli.ExitNotFound}, {"blob", noBlob, cli.ExitIntegrity}, {"locked", locked, cli.ExitResource}, {"store", noStore, cli.ExitNotFound},
		{"damaged", damaged, cli.ExitIntegrity}, {"filter", badFilter, cli.ExitUsage},
	} {
		if tt.err == nil {
			t.Fatalf("%s: no error", tt.name)
		}
		if got := describe(tt.err, nil); got.Code != tt.code {
			t.Errorf("%s: %v: code %d, want %d", tt.name, tt.err, got.Code, tt.code)
		}
	}
}

// TestConfigErrors: all errors of a file, with their places, for people and for
// programs.
func TestConfigErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "version: 1\nname: x\nalgo: {knd: ppo}\ntask: {kind: countdwn}\n"
	if err := os.WriteFile("bad.yaml", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"run bad.yaml", "config check bad.yaml"} {
		got := call{}.run(strings.Fields(args)...)
		got.check(t, 2, "", "bad.yaml:3:8: error[E102]: unknown key \"algo.knd\"\n    3 | algo: {knd: ppo}\n      |        ^~~\n   help: did you mean \"kind\"?",
			"bad.yaml:4:14: error[E113]", "3 errors; nothing was run\n")
		if strings.Contains(got.stderr, "error: ") && !strings.Contains(got.stderr, "]: ") || strings.Contains(got.stderr, "\x1b") {
			t.Errorf("stderr %q", got.stderr)
		}
		got = call{env: map[string]string{"EXP_FORCE_TTY": "80"}}.run(strings.Fields(args)...)
		got.check(t, 2, "", "\x1b[1;31merror[E102]\x1b[0m", "\x1b[31m^~~\x1b[0m")
		got = call{}.run(append(strings.Fields(args), "--json")...)
		got.check(t, 2, "", `{"schema":"exp.error/1","code":2,"kind":"config","errors":[{`, `"id":"E102","file":"bad.yaml","line":3,"column":8}`,
			`"id":"E113","file":"bad.yaml","line":4,"column":14}`)
	}
	// One error alone, as harness makes it, reads the same.
	one := &config.Error{Code: config.CodeData, Source: "a.yaml", Line: 2, Col: 3, Message: "no such file", Help: "fetch it"}
	f := describe(fmt.Errorf("prepare: %w", one), nil)
	if f.Code != cli.ExitUsage || f.Kind != "config" || len(f.Problems) != 1 || f.Problems[0].Line != 2 || !strings.HasPrefix(f.Render(false), "a.yaml:2:3: error[E141]: no such file\n") {
		t.Errorf("got %+v", f)
	}
}

func TestRequirementsAsJSON(t *testing.T) {
	lack := &harness.RequireError{Name: "x", Missing: []string{"a GPU", "weights"}, Do: []string{"get one", "get them"}}
	list := func(*app) []*cli.Command {
		return []*cli.Command{{Name: "x", Action: func(*cli.Context) error { return lack }}}
	}
	want := `{"schema":"exp.error/1","code":7,"kind":"resource","errors":[{"message":"a GPU","help":"get one; get them"},{"message":"weights"}]}` + "\n"
	if got := (call{list: list}).run("x", "--json"); got.stderr != want {
		t.Errorf("got  %swant %s", got.stderr, want)
	}
}
