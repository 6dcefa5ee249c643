package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// childEnv makes the test binary do the work of one process of exp: it holds the
// kind of work, the directory and a number.
const childEnv = "EXP_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if args := strings.Split(os.Getenv(childEnv), "|"); len(args) == 3 {
		n, _ := strconv.Atoi(args[2])
		work := map[string]func(dir string, n int) error{"steps": writeSteps, "run": wholeRun}[args[0]]
		if err := work(args[1], n); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(kind, dir string, n int) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%d", childEnv, kind, dir, n))
	return cmd
}

// writeSteps executes a run for ever, from a few steps before where it stands,
// and prints the number of each step that it knows to be written.
func writeSteps(dir string, _ int) error {
	db, err := Open(dir, Options{Create: true})
	if err != nil {
		return err
	}
	ctx := context.Background()
	run, _, err := db.EnsureRun(ctx, newRun("killed", 0))
	if err != nil {
		return err
	}
	if _, err := db.LockRun(run.RID); err != nil {
		return err
	}
	a, err := db.BeginAttempt(ctx, Attempt{Run: run.ID, Kind: AttemptResume})
	if err != nil {
		return err
	}
	w := db.NewStepWriter(run.ID, a.ID, nil)
	for n := max(1, run.Steps-3); ; n++ {
		if err := w.Record(step60(n)); err != nil {
			return err
		}
		if n%3 == 0 {
			if err := w.Flush(ctx); err != nil {
				return err
			}
			fmt.Println(n)
		}
	}
}

// A process that is killed at any moment loses nothing that was written, and
// never leaves half a step.
func TestKill(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := filepath.Join(t.TempDir(), ".exp")
	kills := 10
	if testing.Short() {
		kills = 3
	}
	for i := range kills {
		printed := killAfter(t, child("steps", dir, 0), time.Duration(1+r.IntN(60))*time.Millisecond)
		db, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Check(context.Background()); err != nil {
			t.Error(err)
		}
		checkSteps(t, db, printed, int64(i+1))
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("after kill %d", i+1)
		}
	}
}

// killAfter kills a child some time after its first line and returns the number
// on its last one.
func killAfter(t *testing.T, cmd *exec.Cmd, wait time.Duration) int64 {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	var last int64
	for first := true; ; first = false {
		line, err := lines.ReadString('\n')
		if err != nil { // half a line does not count
			break
		}
		if last, err = strconv.ParseInt(strings.TrimSpace(line), 10, 64); err != nil {
			t.Fatal(err)
		}
		if first {
			time.AfterFunc(wait, func() { cmd.Process.Kill() })
		}
	}
	io.Copy(io.Discard, out)
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("child was not killed: %v: %s", err, stderr.String())
	}
	return last
}

// checkSteps wants steps 1 to at least atLeast, each with its 60 metrics.
func checkSteps(t *testing.T, db *DB, atLeast, attempts int64) {
	t.Helper()
	ctx := context.Background()
	runs, err := db.Runs(ctx, RunQuery{Name: "killed"})
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	run := runs[0]
	if run.Steps < atLeast {
		t.Errorf("%d steps, %d were reported written", run.Steps, atLeast)
	}
	steps, err := db.Steps(ctx, run.ID, 0, AllSteps)
	if err != nil || int64(len(steps)) != run.Steps {
		t.Errorf("%d rows of steps, %v, want %d", len(steps), err, run.Steps)
	}
	for i, s := range steps {
		if s.Det.Step != int64(i+1) || s.Chain != digest("chain %d", i+1) {
			t.Errorf("row %d is step %d with chain %s", i, s.Det.Step, s.Chain)
		}
	}
	curves, err := db.Metrics(ctx, run.ID, "", 0, AllSteps)
	if err != nil || len(curves) != 60 {
		t.Errorf("%d series, %v, want 60", len(curves), err)
	}
	for _, c := range curves {
		if int64(len(c.Steps)) != run.Steps || c.N != run.Steps || c.LastStep != run.Steps {
			t.Errorf("%s has %d points, summary of %d up to %d, want %d", c.Name, len(c.Steps), c.N, c.LastStep, run.Steps)
		}
	}
	all, err := db.Attempts(ctx, run.ID)
	if err != nil || int64(len(all)) != attempts {
		t.Errorf("%d attempts, %v, want %d", len(all), err, attempts)
	}
	if _, alive := db.Alive(run.RID); alive {
		t.Error("a killed run is alive")
	}
}

const stepsOfChild = 40

// wholeRun does what exp run does to a store, for the run with seed n.
func wholeRun(dir string, n int) error {
	db, err := Open(dir, Options{Create: true})
	if err != nil {
		return err
	}
	ctx := context.Background()
	run, _, err := db.EnsureRun(ctx, newRun("many", int64(n)))
	if err != nil {
		return err
	}
	lock, err := db.LockRun(run.RID)
	if err != nil {
		return err
	}
	a, err := db.BeginAttempt(ctx, Attempt{Run: run.ID, Kind: AttemptRun})
	if err != nil {
		return err
	}
	// All processes make the same start, at the same time.
	err = childStage(ctx, db, Stage{SID: digest("sft"), Run: run.ID, Attempt: a.ID, Kind: "sft"}, "sft weights", nil)
	if err != nil {
		return err
	}
	w := db.NewStepWriter(run.ID, a.ID, nil)
	for i := int64(1); i <= stepsOfChild; i++ {
		if err := w.Record(step60(i)); err != nil {
			return err
		}
		if i%10 == 0 {
			if err := db.AddCheckpoint(ctx, Checkpoint{Run: run.ID, Step: i, Digest: digest("ckpt"), Chain: digest("c")}); err != nil {
				return err
			}
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	suite, err := db.EnsureSuite(ctx, Suite{Digest: digest("suite"), Name: "test", Items: []Item{{ID: "a"}, {ID: "b"}}})
	if err != nil {
		return err
	}
	evals := []Eval{{Suite: suite, Protocol: digest("p"), Metric: "pass@1", Value: float64(n)}}
	err = childStage(ctx, db, Stage{SID: digest("eval %d", n), Run: run.ID, Attempt: a.ID, Kind: "eval.score"}, fmt.Sprint("verdicts of ", n), evals)
	if err != nil {
		return err
	}
	return errors.Join(db.EndAttempt(ctx, a.ID, Done, 0), lock.Release(), db.Close())
}

func childStage(ctx context.Context, db *DB, s Stage, content string, evals []Eval) error {
	s, err := db.BeginStage(ctx, s)
	if err != nil {
		return err
	}
	d, err := db.Blobs.PutBytes([]byte(content))
	if err != nil {
		return err
	}
	return db.FinishStage(ctx, s.ID, []IO{{Role: "out", Digest: d, Size: int64(len(content))}}, StageResult{}, evals)
}

// Eight processes write to one store, readers look on, and nobody meets a lock.
func TestProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".exp")
	const processes = 8
	var children sync.WaitGroup
	for n := range processes {
		children.Go(func() {
			if out, err := child("run", dir, n).CombinedOutput(); err != nil {
				t.Errorf("process %d: %v: %s", n, err, out)
			}
		})
	}
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() { watch(t, dir, stop) })
	children.Wait()
	close(stop)
	reader.Wait()

	db := openAt(t, dir, Options{ReadOnly: true})
	ctx := context.Background()
	if err := db.Check(ctx); err != nil {
		t.Error(err)
	}
	runs, err := db.Runs(ctx, RunQuery{Status: Done})
	if err != nil || len(runs) != processes {
		t.Errorf("%d runs are done, %v, want %d", len(runs), err, processes)
	}
	for _, run := range runs {
		evals, err := db.Evals(ctx, run.ID)
		if err != nil || len(evals) != 1 || evals[0].Value != float64(run.Seed) || run.Steps != stepsOfChild {
			t.Errorf("run of seed %d: %d steps, evaluations %+v, %v", run.Seed, run.Steps, evals, err)
		}
	}
	stages, err := db.StagesBySID(ctx, digest("sft"))
	if err != nil || len(stages) != processes {
		t.Fatalf("%d stages, %v", len(stages), err)
	}
	count := map[Status]int{}
	for _, s := range stages {
		count[s.Status]++
	}
	if count[Done] != 1 || count[Repeated] != processes-1 {
		t.Errorf("stages of one sid: %v, want one done, the others repeated", count)
	}
}

// watch reads the store until stop is closed. A step is never seen without its
// metrics.
func watch(t *testing.T, dir string, stop chan struct{}) {
	for ctx := context.Background(); ; {
		select {
		case <-stop:
			return
		default:
		}
		db, err := Open(dir, Options{ReadOnly: true})
		if errors.Is(err, ErrNoStore) {
			continue
		}
		if err != nil {
			t.Error(err)
			return
		}
		odd, err := query(ctx, db.r, scanText, `SELECT run || ' ' || step FROM steps s
			WHERE (SELECT count(*) FROM metrics m WHERE m.run = s.run AND m.step = s.step) <> 60`)
		if err != nil || len(odd) > 0 {
			t.Errorf("steps that lack metrics: %v, %v", odd, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
