package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"exp/experiments/store"
)

// processesFor is how long processes crowd one store in TestManyProcesses;
// EXP_TEST_PROCESSES_FOR=1m makes it the minute of the specification.
const processesFor = 2 * time.Second

// Eight exp run on one store at once, one of them killed again and again, and
// readers at the same time: nobody meets a lock, and nothing recorded is lost.
func TestManyProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("runs processes for seconds")
	}
	long, every := processesFor, 300*time.Millisecond
	if text := os.Getenv("EXP_TEST_PROCESSES_FOR"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		every = time.Second
	}
	dir := filepath.Join(t.TempDir(), "store")
	c := &crowd{T: t, dir: dir, end: time.Now().Add(long)}
	var all sync.WaitGroup
	for worker := 1; worker < 8; worker++ {
		all.Go(func() { c.work(worker) })
	}
	all.Go(func() { c.killed(every) })
	for _, args := range [][]string{{"ls", "--json"}, {"show", "@last", "--json"}, {"log", "@last", "--level", "debug"}, {"query", "SELECT count(*) FROM metric_points"}, {"gc"}, {"fsck"}} {
		all.Go(func() { c.look(args) })
	}
	all.Go(c.keep)
	all.Wait()
	t.Logf("%d runs ended, %d kills, %d looks, %d changes in %s", c.runs.Load(), c.kills.Load(), c.looks.Load(), c.changes.Load(), long)
	if c.runs.Load() < 7 || c.kills.Load() < 1 || t.Failed() {
		t.Fatal("fewer runs than planned, or one failed")
	}

	// The last victim finishes. It and the earlier ones, which finished despite the kills,
	// have the bits of undisturbed runs.
	last := c.victims.Load()
	smoke(t, dir, victim(last)...).succeeds(t)
	exp(t, "fsck", "--deep", "--store", dir).says(t, "everything is as recorded")
	r := consistent(t, dir)
	victims := map[int64]store.Run{}
	for _, run := range r.runs {
		if run.Status != store.Done {
			t.Errorf("run %s#%d is %s", run.Name, run.Seed, run.Status)
		}
		if run.Name == "victim" {
			victims[run.Seed] = run
		}
	}
	if int64(len(victims)) != last+1 || int64(len(r.runs)) != c.runs.Load()+last+1 {
		t.Errorf("%d runs are recorded, %d ended; of them %d victims and %d", len(r.runs), c.runs.Load()+last+1, len(victims), last+1)
	}
	for _, seed := range []int64{0, last} {
		got, want := victims[seed], unbroken(t, victim(seed)...).runs[0]
		if got.Chain != want.Chain || got.Steps != want.Steps {
			t.Errorf("victim %d has %d steps and chain %s, unbroken %d and %s", seed, got.Steps, got.Chain.Short(), want.Steps, want.Chain.Short())
		}
	}
}

// victim is a run that is long enough to be killed in the middle.
func victim(seed int64) []string {
	return []string{"--seeds", fmt.Sprint(seed), "--set", "name=victim", "--set", "train.steps=60", "--set", "checkpoint.every_steps=4", "--set", "eval.online.every_steps=0"}
}

// crowd is processes on one store.
type crowd struct {
	*testing.T
	dir                         string
	end                         time.Time
	runs, kills, looks, changes atomic.Int64
	victims                     atomic.Int64 // that came to their end
}

// program runs the test binary as the program, as gently as the machine has it.
func (c *crowd) program(args ...string) *exec.Cmd {
	p := exec.Command(os.Args[0], append(args, "--store", c.dir)...)
	p.Env = []string{"EXP_TEST_AS_PROGRAM=1", "EXP_THREADS=1", "HOME=" + c.TempDir(), "PATH=" + os.Getenv("PATH")}
	return p
}

// early reports whether a command found nothing because there was nothing yet.
func (c *crowd) early(err error) bool {
	return strings.Contains(err.Error(), "exit status 3") && c.runs.Load() == 0
}

// work executes one new run after the other; each must succeed.
func (c *crowd) work(worker int) {
	for seed := worker; ; seed += 10 {
		out, err := c.program("run", smokeRecipe, "-q", "--seeds", fmt.Sprint(seed)).CombinedOutput()
		if err != nil {
			c.Errorf("exp run with seed %d: %v\n%s", seed, err, out)
			return
		}
		c.runs.Add(1)
		if time.Now().After(c.end) {
			return
		}
	}
}

// killed executes one run, killed after a while each time, and after its end another,
// until the time is over. Steps that were recorded never become fewer.
func (c *crowd) killed(every time.Duration) {
	var steps int64
	for c.kills.Load() < 3 || time.Now().Before(c.end) {
		p := c.program(append([]string{"run", smokeRecipe, "-q"}, victim(c.victims.Load())...)...)
		var text strings.Builder
		p.Stdout, p.Stderr = &text, &text
		if err := p.Start(); err != nil {
			c.Error(err)
			return
		}
		timer := time.AfterFunc(every, func() { p.Process.Kill() })
		err := p.Wait()
		timer.Stop()
		if err == nil {
			c.victims.Add(1) // it came to its end in spite of all
			steps = 0
			continue
		}
		if p.ProcessState.ExitCode() != -1 {
			c.Errorf("the victim was not killed: %v\n%s", err, text.String())
			return
		}
		c.kills.Add(1)
		out, err := c.program("query", fmt.Sprintf("SELECT coalesce(max(steps), 0) AS steps, (SELECT count(*) FROM steps s JOIN runs r ON r.id = s.run WHERE r.name = 'victim' AND r.seed = %[1]d) AS n FROM runs WHERE name = 'victim' AND seed = %[1]d", c.victims.Load()), "-o", "jsonl").Output()
		var now struct{ Steps, N int64 }
		if e := json.Unmarshal(out, &now); err != nil || e != nil {
			if err != nil && c.early(err) {
				continue
			}
			c.Errorf("after a kill: %v, %v: %s", err, e, out)
			return
		}
		if now.Steps < steps || now.N != now.Steps {
			c.Errorf("the victim had %d steps, now %d, and %d of them are there", steps, now.Steps, now.N)
			return
		}
		steps = now.Steps
	}
}

// look reads again and again; only before there is a run may it find nothing.
func (c *crowd) look(args []string) {
	for first := true; first || time.Now().Before(c.end); first = false {
		out, err := c.program(args...).CombinedOutput()
		if err != nil && !c.early(err) {
			c.Errorf("exp %s: %v\n%s", strings.Join(args, " "), err, out)
			return
		}
		c.looks.Add(1)
		time.Sleep(300 * time.Millisecond)
	}
}

// keep changes small things meanwhile.
func (c *crowd) keep() {
	for time.Now().Before(c.end) {
		for _, args := range [][]string{{"tag", "@last~1", "crowd"}, {"gc", "--apply"}} {
			out, err := c.program(args...).CombinedOutput()
			if err != nil && !c.early(err) {
				c.Errorf("exp %s: %v\n%s", strings.Join(args, " "), err, out)
				return
			}
			if err == nil {
				c.changes.Add(1)
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
}
