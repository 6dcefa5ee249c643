package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"exp/experiments/blob"
	"exp/experiments/store"
)

// Damage from outside: damaged files, a second process, signals, kill -9, a full disk. In
// every case the run continues afterwards and ends with the bits of an undisturbed run.

// unbroken executes the smoke recipe with settings, unbroken.
func unbroken(t *testing.T, args ...string) record {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "unbroken")
	smoke(t, dir, args...).succeeds(t)
	return consistent(t, dir)
}

// process is this test binary as the program.
type process struct {
	*exec.Cmd
	stdout bytes.Buffer
	stderr bytes.Buffer
	read   chan struct{} // closed when stderr has ended
	step   chan int      // steps of the train stage as they end
	stage  chan string   // kinds of stages as they begin
}

// start starts the program as a process.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startWith(t, nil, args...)
}

// startWith is start with more variables in the environment.
func startWith(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return startProgram(t, os.Args[0], env, args...)
}

// startProgram is startWith for a copy of this program.
func startProgram(t *testing.T, program string, env []string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(program, append([]string{"--progress", "json"}, args...)...),
		read: make(chan struct{}), step: make(chan int, 1000), stage: make(chan string, 100)}
	p.Env = append(env, "EXP_TEST_AS_PROGRAM=1", "HOME="+t.TempDir(), "PATH="+os.Getenv("PATH"))
	p.Stdout = &p.stdout
	pipe, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go p.follow(pipe)
	t.Cleanup(func() { p.Process.Kill(); p.end() })
	return p
}

func (p *process) follow(pipe io.Reader) {
	defer close(p.read)
	defer close(p.step)
	defer close(p.stage)
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		var l struct {
			Event, Stage string
			Step         int
		}
		if json.Unmarshal(lines.Bytes(), &l) != nil {
			fmt.Fprintln(&p.stderr, lines.Text())
		} else if l.Event == "step" && l.Stage == "train" {
			p.step <- l.Step
		} else if l.Event == "stage_start" {
			p.stage <- l.Stage
		}
	}
}

// reaches waits until the process has finished a training step.
func (p *process) reaches(t *testing.T, step int) {
	t.Helper()
	for got := range p.step {
		if got >= step {
			return
		}
	}
	t.Fatalf("it ended before step %d: exit code %d\n%s", step, p.end(), p.stderr.String())
}

// end waits for the process and returns its exit code, -1 if it was killed.
func (p *process) end() int {
	<-p.read
	p.Wait()
	return p.ProcessState.ExitCode()
}

// goOn returns the arguments of the command that the program printed to continue.
func goOn(t *testing.T, stderr string) []string {
	t.Helper()
	m := regexp.MustCompile(`to continue: \S+ (.*)`).FindStringSubmatch(stderr)
	if m == nil {
		t.Fatalf("nothing says how to go on:\n%s", stderr)
	}
	return strings.Fields(m[1])
}

func TestInterruptedRun(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs processes for a second")
	}
	long := []string{"--set", "train.steps=300", "--set", "eval.online.every_steps=0", "--set", "checkpoint.every_steps=15"}
	want := unbroken(t, long...)
	dir := filepath.Join(t.TempDir(), "store")
	args := append([]string{"run", smokeRecipe, "--store", dir}, long...)

	p := start(t, args...)
	p.reaches(t, 3)
	// Meanwhile nobody else may execute it.
	smoke(t, dir, long...).refuses(t, 7, fmt.Sprintf("is being executed by process %d on ", p.Process.Pid), "help: wait until it is done")

	for _, sig := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}} {
		if err := p.Process.Signal(sig.signal); err != nil {
			t.Fatal(err)
		}
		if code := p.end(); code != sig.code {
			t.Fatalf("%v: exit code %d, want %d\n%s", sig.signal, code, sig.code, p.stderr.String())
		}
		if again := goOn(t, p.stderr.String()); !slices.Equal(again[2:], args) {
			t.Errorf("%v: to go on: %q, was %q", sig.signal, again[2:], args)
		}
		r := consistent(t, dir)
		if r.runs[0].Status != store.Interrupted || r.runs[0].Steps < 3 || r.runs[0].Steps >= 300 {
			t.Fatalf("%v: run is %s after %d steps", sig.signal, r.runs[0].Status, r.runs[0].Steps)
		}
		if !strings.Contains(p.stderr.String(), fmt.Sprintf("stopped in train after %d steps; saved", r.runs[0].Steps)) {
			t.Errorf("%v: message\n%s", sig.signal, p.stderr.String())
		}
		if sig.signal == syscall.SIGINT {
			p = start(t, args...)
			p.reaches(t, int(r.runs[0].Steps)+2)
		}
	}
	exp(t, append(goOn(t, p.stderr.String()), "-q")...).succeeds(t)
	consistent(t, dir).same(t, want)
}

// A second signal does not wait for the step. The step has enough completions for the signal
// to arrive during it; if it arrives late, the next execution is checked.
func TestSecondSignal(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes")
	}
	dir := filepath.Join(t.TempDir(), "store")
	long := []string{"--set", "train.steps=8", "--set", "rollout.n=256", "--set", "checkpoint.every_steps=1"}
	args := append([]string{"run", smokeRecipe, "--store", dir}, long...)
	for try := 0; ; try++ {
		p := start(t, args...)
		p.reaches(t, 2)
		for range 2 {
			if err := p.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond) // two pending signals of one kind are one
		}
		if code := p.end(); code != 143 {
			t.Errorf("exit code %d, want 143\n%s", code, p.stderr.String())
		}
		text := p.stderr.String()
		if again := goOn(t, text); !slices.Equal(again[2:], args) {
			t.Errorf("to go on: %q, was %q", again[2:], args)
		}
		if strings.Contains(text, "stopped at once; run ") && strings.Contains(text, " and the checkpoint of step ") {
			break
		}
		if try == 3 {
			t.Fatalf("no second signal stopped it at once:\n%s", text)
		}
	}
	smoke(t, dir, long...).succeeds(t)
	if r := consistent(t, dir).runs[0]; r.Status != store.Done || r.Steps != 8 {
		t.Errorf("run is %s after %d steps", r.Status, r.Steps)
	}
}

// forget removes the blob of an output, so its stage must execute again.
func forget(t *testing.T, dir string, r record, outputs ...string) {
	t.Helper()
	for _, o := range outputs {
		if err := os.Remove(blobPath(t, dir, r, o)); err != nil {
			t.Fatal(err)
		}
	}
}

func blobPath(t *testing.T, dir string, r record, output string) string {
	t.Helper()
	d, ok := r.outputs[output]
	if !ok {
		t.Fatalf("no output %s among %v", output, r.outputs)
	}
	return blob.At(dir).Path(d)
}

// eventsOf returns the kinds of a store's events, without looking at blobs.
func eventsOf(t *testing.T, dir string) (kinds []string) {
	t.Helper()
	db, err := store.Open(dir, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	runs, err := db.Runs(context.Background(), store.RunQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		events, err := db.Events(context.Background(), r.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

// A damaged checkpoint is passed over, for the one before it or for the start.
func TestDamagedCheckpoint(t *testing.T) {
	steps := []string{"--set", "train.steps=6", "--until", "train"}
	dir := filepath.Join(t.TempDir(), "store")
	smoke(t, dir, steps...).succeeds(t)
	want := consistent(t, dir)
	found, err := filepath.Glob(filepath.Join(dir, "runs", "*", "ckpt", "train-*", "step-*", "actor.safetensors"))
	if err != nil || len(found) != 2 {
		t.Fatalf("checkpoints %v, %v; want steps 2 and 4", found, err)
	}
	for _, tt := range []struct {
		name   string
		damage func()
		says   []string
	}{
		{"whole", func() {}, []string{"resuming from the checkpoint of step 4"}},
		{"newest truncated", func() { bend(t, found[1], truncated) }, []string{"checkpoint passed over: read " + found[1] + ": corrupt file", "resuming from the checkpoint of step 2"}},
		{"all flipped", func() { bend(t, found[0], flipped); bend(t, found[1], flipped) }, []string{"passed over: read " + found[1], "passed over: read " + found[0]}},
		{"no manifest", func() { os.Remove(filepath.Join(filepath.Dir(found[1]), "manifest.json")) }, []string{"manifest.json: corrupt file: missing"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			forget(t, dir, want, "train[]/weights")
			before := len(eventsOf(t, dir))
			tt.damage()
			e := exp(t, append([]string{"run", smokeRecipe, "--store", dir}, steps...)...)
			e.succeeds(t)
			for _, text := range tt.says {
				if !strings.Contains(e.stderr, text) {
					t.Errorf("nothing says %q:\n%s", text, e.stderr)
				}
			}
			got := consistent(t, dir)
			if got.runs[0].Chain != want.runs[0].Chain || got.outputs["train[]/weights"] != want.outputs["train[]/weights"] {
				t.Errorf("chain %s, want %s", got.runs[0].Chain.Short(), want.runs[0].Chain.Short())
			}
			passed := slices.DeleteFunc(got.events[before:], func(kind string) bool { return kind != "checkpoint-passed-over" })
			if n := strings.Count(e.stderr, "passed over"); len(passed) != n {
				t.Errorf("%d events for %d warnings", len(passed), n)
			}
		})
	}
}

// A damaged blob is never computed with: without --verify-cache it is found when it
// is read, with it before.
func TestDamagedBlob(t *testing.T) {
	for _, tt := range []struct {
		name, output string
		args         []string
	}{
		{"weights", "sft[]/weights", []string{"--seeds", "1"}},
		{"problems", "prepare[]/problems/train", []string{"--seeds", "1"}},
		{"verified", "merge[]/model.safetensors", []string{"--verify-cache"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if testing.Short() && tt.name != "weights" {
				t.Skip("one kind of blob is enough")
			}
			dir := filepath.Join(t.TempDir(), "store")
			smoke(t, dir).succeeds(t)
			want := consistent(t, dir)
			path := blobPath(t, dir, want, tt.output)
			bend(t, path, flipped)
			smoke(t, dir, tt.args...).refuses(t, 4, path, "corrupt blob", "help: the file was changed outside exp")
			// What the message says to do.
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			smoke(t, dir, tt.args...).succeeds(t)
			smoke(t, dir, "--verify-cache").succeeds(t)
			if r := consistent(t, dir); !slices.ContainsFunc(r.runs, func(r store.Run) bool { return r.Chain == want.runs[0].Chain }) {
				t.Errorf("runs %+v, want one with chain %s", r.runs, want.runs[0].Chain.Short())
			}
		})
	}
	t.Run("missing", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "store")
		smoke(t, dir).succeeds(t)
		want := consistent(t, dir)
		forget(t, dir, want, "sft[]/weights", "train[]/weights", "eval.gen[test]/completions")
		smoke(t, dir).succeeds(t)
		consistent(t, dir).same(t, want)
	})
}

// TestFullDisk gives a run its own disk, first too small, then larger and larger. Mounting
// a disk takes a namespace where this user is root.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	const inside = "EXP_TEST_IN_NAMESPACE"
	if os.Getenv(inside) == "" {
		if testing.Short() {
			t.Skip("runs a process for a second")
		}
		c := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
		c.Env = append(os.Environ(), inside+"=1")
		c.SysProcAttr = ownNamespace()
		if c.SysProcAttr == nil {
			t.Skip("this system has no namespaces")
		}
		out, err := c.CombinedOutput()
		switch {
		case !bytes.Contains(out, []byte("=== RUN")):
			t.Skipf("this machine does not allow a new namespace: %v %s", err, out)
		case bytes.Contains(out, []byte("--- SKIP")):
			t.Skipf("%s", out)
		case err != nil:
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	disk := t.TempDir()
	if err := mountDisk(disk, 100<<10); err != nil {
		t.Skipf("a disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { unmountDisk(disk) })
	dir := filepath.Join(disk, "store")
	refused := 0
	for size := 100 << 10; ; size += 100 << 10 {
		if size > 9<<20 {
			t.Fatal("9 MiB are not enough for the smoke run")
		}
		if err := resizeDisk(disk, size); err != nil {
			t.Fatal(err)
		}
		e := smoke(t, dir)
		if e.code == 0 {
			break
		}
		refused++
		e.refuses(t, 7, "space")
		if !strings.Contains(e.stderr, dir) || !strings.Contains(e.stderr, "free some space and run again") {
			t.Fatalf("with %d KiB the message does not say where and what to do:\n%s", size>>10, e.stderr)
		}
		if db, err := store.Open(dir, store.Options{ReadOnly: true}); err == nil {
			db.Close()
			consistent(t, dir)
		}
	}
	t.Logf("refused %d times", refused)
	if refused < 5 {
		t.Errorf("refused %d times: the disk was hardly full", refused)
	}
	consistent(t, dir).same(t, unbroken(t))
}
