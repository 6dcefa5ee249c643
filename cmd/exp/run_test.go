package main

import (
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"exp/cmd/exp/term"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/train/rl"
)

// smokeConfig is the recipe that these tests run.
const smokeConfig = "../../configs/smoke_cpu.yaml"

// TestRunOutput runs a recipe twice, with and without a terminal, and looks at what
// a person sees. Ids and times change with the sources; they are replaced.
func TestRunOutput(t *testing.T) {
	var out strings.Builder
	for _, env := range []map[string]string{{}, {"EXP_FORCE_TTY": "80", "NO_COLOR": "1", "EXP_PROGRESS": "tty"}} {
		dir := filepath.Join(t.TempDir(), "store")
		for range 2 {
			got := call{env: env}.run("run", smokeConfig, "--seeds", "0-1", "--store", dir, "--threads", "1")
			if got.code != 0 {
				t.Fatalf("exit code %d: %s", got.code, got.stderr)
			}
			text := "-- stderr\n" + steady(got.stderr) + "-- stdout\n" + steady(got.stdout)
			out.WriteString(strings.ReplaceAll(text, dir, "STORE"))
		}
	}
	golden(t, "run", out.String())
}

var (
	unsteadyID   = regexp.MustCompile(`\b[0-9a-f]{8}\b`)
	unsteadyTime = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d|\d+\.\ds$|(wall=)\d+\.\ds`)
	liveBlock    = regexp.MustCompile(`(?s)\r\x1b\[K.*?\x1b\[\d+A\r`)
	decimals     = regexp.MustCompile(`\d+\.\d+`)
	numerics     = regexp.MustCompile(`cpu/\S*[a-z]`)
)

// steady replaces whatever depends on the machine or the time, and
// leaves out the live block.
func steady(text string) string {
	text = liveBlock.ReplaceAllString(text, "")
	text = strings.NewReplacer("\r\x1b[J", "", "\r\n", "\n").Replace(text)
	ids := map[string]string{}
	text = unsteadyID.ReplaceAllStringFunc(text, func(id string) string {
		if ids[id] == "" {
			ids[id] = "<id " + string(rune('a'+len(ids))) + ">"
		}
		return ids[id]
	})
	text = unsteadyTime.ReplaceAllString(text, "${1}<time>")
	text = numerics.ReplaceAllString(text, "<numerics>")
	return decimals.ReplaceAllString(text, "#.#")
}

// TestRunResultsForPrograms: what people see as one cell are two.
func TestRunResultsForPrograms(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	got := call{}.run("run", smokeConfig, "--store", dir, "-q", "-o", "csv")
	rows, err := csv.NewReader(strings.NewReader(got.stdout)).ReadAll()
	if err != nil || got.code != 0 || got.stderr != "" {
		t.Fatalf("%v: %+v", err, got)
	}
	want := "run name algo seed status steps pass@1 pass@4 distinct_correct start_pass@1 executed cached also_named"
	if head := strings.Join(rows[0], " "); head != want {
		t.Errorf("fields %q, want %q", head, want)
	}
	if r := rows[1]; len(r[0]) != 64 || r[10] != "9" || r[11] != "0" {
		t.Errorf("row %q", r)
	}
}

// TestRunOtherProtocol: a run that is not evaluated under a new protocol, or no longer on any suite, has no
// start score under it, and keeps the results of the old one in lists.
func TestRunOtherProtocol(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	fields := func(names string, args ...string) string {
		args = append(args, "--store", dir, "-q", "--no-header", "-o", "csv", "--fields", names)
		got := call{}.run(args...)
		if got.code != 0 {
			t.Fatalf("%v: %+v", args, got)
		}
		return got.stdout
	}
	before := fields("pass@1,pass@4,start_pass@1", "run", smokeConfig)
	if strings.Contains(before, ",,") || strings.HasSuffix(before, ",\n") {
		t.Fatalf("no scores: %q", before)
	}
	other := fields("start_pass@1,executed", "run", smokeConfig, "--set", "eval.final.n=2", "--until", "merge")
	if other != ",0\n" {
		t.Errorf("start score and executed stages under another protocol: %q", other)
	}
	if none := fields("start_pass@1,executed", "run", smokeConfig, "--set", "eval.final.suites=[]"); none != ",0\n" {
		t.Errorf("start score and executed stages without a suite: %q", none)
	}
	if after := fields("pass@1,pass@4", "ls"); !strings.HasPrefix(before, strings.TrimSpace(after)) {
		t.Errorf("lists show %q after %q", after, before)
	}
	fields("pass@1", "run", smokeConfig, "--set", "eval.final.n=1")
	got := call{}.run("show", "@last", "--store", dir)
	if !strings.Contains(got.stdout, "results on countdown/test (16 problems, 1 sample each; 95 % intervals)") {
		t.Errorf("show says %s", got.stdout)
	}
}

// TestRunInterrupted: an interrupted run prints the command that continues it.
func TestRunInterrupted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a [*] store")
	args := []string{"run", smokeConfig, "--set", "train.steps=40", "--store", dir, "--threads", "1"}
	got := call{signals: interruptedAtWork(dir)}.run(args...)
	if got.code == 0 {
		t.Skip("this machine finished the run before the signal came")
	}
	command := "exp run " + smokeConfig + " --set train.steps=40 --store '" + dir + "' --threads 1"
	got.check(t, 130, "", "stopping after the current step and saving it; Ctrl-C again stops at once",
		"interrupted: run ", " after ", "; saved\n  to continue: "+command+"\n")
	status := call{}.run("ls", "--store", dir, "--no-header", "-o", "csv", "--fields", "status")
	status.check(t, 0, "interrupted\n")
	log := call{}.run("log", "@last", "--store", dir).stdout
	if !strings.Contains(log, "interrupted after") || !strings.Contains(log, ", exit code 130\n") {
		t.Errorf("the record has another exit code:\n%s", log)
	}
	if again := (call{}).run(append(args, "-q")...); again.code != 0 {
		t.Errorf("going on: %+v", again)
	}
	call{}.run("ls", "--store", dir, "--no-header", "-o", "csv", "--fields", "status,steps").check(t, 0, "done,40\n")
}

// The command that continues a resumed run names it by its id: @last may be another run by then.
func TestResumeInterrupted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	smoke(t, dir, "--until", "sft").succeeds(t)
	id := strings.TrimSpace(exp(t, "ls", "--store", dir, "-o", "csv", "--no-header", "--fields", "run").stdout)
	got := call{signals: interruptedAtWork(dir)}.run("resume", "@last", "--store", dir, "--threads", "1")
	if got.code == 0 {
		t.Skip("this machine finished the run before the signal came")
	}
	got.check(t, 130, "", "to continue: exp resume "+id[:8]+" --store "+dir+" --threads 1\n")
}

// TestRunArguments: errors name a flag's bad value and the allowed ones.
func TestRunArguments(t *testing.T) {
	for flag, want := range map[string]string{
		"--until=trian": "--until is \"trian\", but must be one of prepare, init, sft, reward_model, prefer, pass_rate, select, train, merge, " +
			"eval.gen, eval.score\n  help: did you mean train?",
		"--seeds=a":           "\"a\" is not a seed or a range such as 0-2",
		"--seeds=0-2,2":       "seed 2 is named twice",
		"--seeds=3-1":         "the range 3-1 ends before it begins",
		"--seeds=0-10000":     "at most 10000 seeds at once",
		"--seeds=7,0-9999":    "at most 10000 seeds at once",
		"--threads=all":       "--threads \"all\": it must be a whole number",
		"--set=compute.x=1":   "unknown key",
		"--overlay=none.yaml": "no such file",
	} {
		t.Run(flag, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			call{}.run("run", smokeConfig, flag, "--store", dir).check(t, 2, "", want)
			if _, err := os.Stat(dir); err == nil {
				t.Error("a store was made")
			}
		})
	}
}

// interruptedAtWork delivers SIGINT once the newest run of a store has recorded a step.
func interruptedAtWork(dir string) chan os.Signal {
	signals := make(chan os.Signal, 1)
	go func() {
		for recordedSteps(dir) == 0 {
			time.Sleep(5 * time.Millisecond)
		}
		signals <- syscall.SIGINT
	}()
	return signals
}

// recordedSteps returns the number of steps of a store's newest run, 0 without a store.
func recordedSteps(dir string) int64 {
	db, err := store.Open(dir, store.Options{ReadOnly: true})
	if err != nil {
		return 0
	}
	defer db.Close()
	runs, err := db.Runs(context.Background(), store.RunQuery{Limit: 1})
	if err != nil || len(runs) == 0 {
		return 0
	}
	return runs[0].Steps
}

// The files of all configurations are checked before the first one is executed.
func TestRunChecksLaterConfigs(t *testing.T) {
	dir := t.TempDir()
	problems, bad := filepath.Join(dir, "problems.jsonl"), filepath.Join(dir, "bad.yaml")
	recipe, err := filepath.Abs(smokeRecipe)
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{problems: `{"nums":"three","target":8}`,
		bad: "extends: " + recipe + "\nname: bad\ndata: {train: {source: " + problems + "}}\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e := exp(t, "run", "--store", filepath.Join(dir, "store"), smokeRecipe, bad)
	e.refuses(t, 2, "problems.jsonl:1", "nothing was run")
	if strings.Contains(e.stderr, "stage=") {
		t.Errorf("the first configuration was executed:\n%s", e.stderr)
	}
}

// Arms that differ only in how they train read the same files.
func TestReadsSame(t *testing.T) {
	load := func(sets ...string) *config.Resolved {
		t.Helper()
		r, err := config.Load(config.Input{File: smokeRecipe, Sets: sets})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for set, want := range map[string]bool{"name=b": true, "algo.kind=grpo": true, "train.optim.lr=1e-5": true, "rollout.n=2": true,
		"algo={kind: grpo,reference: elsewhere,kl: {loss_coef: 1}}": false, "data.train.size=65": false, "eval.final.max_new_tokens=9": false,
		"model.arch.layers=3": false, "train.prompts_per_step=16": false} {
		if got := readsSame(load(), load(set)); got != want {
			t.Errorf("%s: %v, want %v", set, got, want)
		}
	}
}

func TestFactOf(t *testing.T) {
	tests := []struct {
		metric rl.Metric
		want   term.Fact
	}{
		{rl.Metric{Name: "steps", Value: 30}, term.Fact{Name: "steps", Text: "30", Counts: true}},
		{rl.Metric{Name: "parameters", Value: 19232}, term.Fact{Name: "parameters", Text: "19232", Counts: true}},
		{rl.Metric{Name: "parameters", Value: 7.62e9}, term.Fact{Name: "parameters", Text: "7.62G", Counts: true}},
		{rl.Metric{Name: "labelled answers", Value: 80}, term.Fact{Name: "labelled answers", Text: "80", Counts: true}},
		{rl.Metric{Name: "pass@1", Value: 1}, term.Fact{Name: "pass@1", Text: "1.00"}},
		{rl.Metric{Name: "loss", Value: 2}, term.Fact{Name: "loss", Text: "2.00"}},
		{rl.Metric{Name: "distinct_correct", Value: 0.5}, term.Fact{Name: "distinct", Text: "0.500"}},
	}
	for _, tt := range tests {
		if got := factOf(tt.metric); got != tt.want {
			t.Errorf("%+v: %+v, want %+v", tt.metric, got, tt.want)
		}
	}
}
