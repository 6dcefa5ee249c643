package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"exp/cmd/exp/cli"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/cluster"
)

// spoolDir returns the spool that an argument names; it must exist.
func spoolDir(arg string) (cluster.Spool, error) {
	dir, err := filepath.Abs(arg)
	if err != nil {
		return cluster.Spool{}, err
	}
	if _, err := os.Stat(filepath.Join(dir, "submitted")); err != nil {
		return cluster.Spool{}, cli.Failf(cli.ExitNotFound,
			"%s is not a spool of exp run --on slurm or kubernetes", arg).
			Advise("name the directory of cluster.spool")
	}
	return cluster.Spool{Dir: dir}, nil
}

func jobsCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "jobs",
		Category:  "Experiments",
		Usage:     "list the jobs of exp run --on slurm or kubernetes",
		ArgsUsage: "SPOOL",
		Description: "Lists each job with its number, its state, the node, how often it was restarted, its step " +
			"and the last checkpoint that it published. The state is Slurm's while the job waits or runs, then " +
			"what the job said last. A job is lost if it did not end and Slurm does not know it any more: the " +
			"same exp run submits it again. -o wide gives reasons.",
		UsageText: "exp jobs /shared/spool # once\nexp jobs /shared/spool --json # for a script",
		Action: cli.WithArgs(1, 1, func(c *cli.Context, args []string) error {
			spool, err := spoolDir(args[0])
			if err != nil {
				return err
			}
			return a.listJobs(c.Context, spool)
		}),
	}
}

func (a *app) listJobs(ctx context.Context, spool cluster.Spool) error {
	jobs, err := spool.Submitted()
	if err != nil {
		return err
	}
	var states map[string]string
	if slices.ContainsFunc(jobs, cluster.Submitted.OnSlurm) {
		if states, err = (cluster.Slurm{}).States(ctx); err != nil {
			return err
		}
	}
	t := cli.Table{Schema: "exp.jobs/1", Columns: []cli.Column{{Key: "run", ID: true}, {Key: "name", Rank: 1, Min: 12},
		{Key: "job"}, {Key: "state"}, {Key: "node"}, {Key: "restarts"}, {Key: "step"}, {Key: "checkpoint"},
		{Key: "text", Wide: true}}}
	for _, j := range jobs {
		st, err := spool.State(j.ID)
		if err != nil {
			return err
		}
		state, text := states[j.Number], st.Text
		ends := []string{cluster.Done, cluster.StoppedEarly, cluster.Failed, cluster.Stopped}
		switch {
		case state != "":
		case st.Number == j.Number && slices.Contains(ends, st.Status):
			state = st.Status
		case !j.OnSlurm():
			state = cmp.Or(st.Status, "submitted")
		default:
			state, text = "lost", fateText(spool, j, st)
		}
		t.Rows = append(t.Rows, []any{cli.HexID(j.RID.String()), j.Name, j.Number, state, st.Host, int64(st.Restarts),
			int64(st.Step), st.Checkpoint, text})
	}
	return a.Out.PrintTable(t)
}

func collectCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "collect",
		Category:  "Experiments",
		Usage:     "import what jobs have finished",
		ArgsUsage: "SPOOL",
		Description: "Imports the bundle of each run that is done and that the store lacks. Collecting twice " +
			"changes nothing. If two jobs made one stage with different bits, that is a divergence: it imports " +
			"nothing of the second, and exits with code 5. A bundle that it cannot import does not hold up the " +
			"others: it imports them, and then ends with the error.",
		UsageText: "exp collect /shared/spool # then exp ls, exp compare, exp report",
		Action: cli.WithArgs(1, 1, func(c *cli.Context, args []string) error {
			spool, err := spoolDir(args[0])
			if err != nil {
				return err
			}
			return cli.With(a.OpenStoreToWrite, func(db *store.DB) error {
				return a.collectJobs(c.Context, db, spool)
			})
		}),
	}
}

func (a *app) collectJobs(ctx context.Context, db *store.DB, spool cluster.Spool) error {
	done, err := a.collectDone(ctx, db, spool)
	if err == nil {
		err = done.Err()
	}
	if err != nil {
		return err
	}
	data := map[string]any{"added": len(done.Added), "waiting": len(done.Waiting), "left": done.Left}
	return a.Out.PrintText("exp.collect/1", data, "%s collected, %d not done\n",
		quantity.Plural(len(done.Added), "run"), done.Left+len(done.Waiting))
}

// collectDone imports what jobs have finished, and says which runs it added and which wait.
func (a *app) collectDone(ctx context.Context, db *store.DB, spool cluster.Spool) (*cluster.Collected, error) {
	done, err := cluster.Collect(ctx, db, spool)
	for _, j := range done.Added {
		a.Note("%s  collected", j.Name)
	}
	for _, j := range done.Waiting {
		a.Warn("%s %s", j.Name, j.Why())
	}
	return done, err
}

// waitingText says why a run that is done is not in the store.
const waitingText = "is done, but waits for the run whose stages it reuses"

// jobCommand is the command that the scripts of exp run --on slurm execute.
func jobCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "job",
		Hidden:    true,
		Usage:     "execute one job of a list, on a node",
		ArgsUsage: "LIST NUMBER",
		Action:    cli.WithArgs(2, 2, a.executeJob),
	}
}

// killPatience is how long a job that is in the queue again waits to be ended.
const killPatience = 10 * time.Minute

func (a *app) executeJob(c *cli.Context, args []string) error {
	i, err := strconv.Atoi(args[1])
	if err != nil {
		return a.Usagef("NUMBER %q: it must be a number", args[1])
	}
	entry, spool, err := cluster.ReadEntry(args[0], i)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	// Slurm's warning that the time limit is near.
	stop, cancel := signal.NotifyContext(c.Context, syscall.SIGUSR1)
	defer cancel()
	attempt := &cluster.Attempt{Entry: entry, Spool: spool, Program: program, Log: a.Stderr,
		Number: a.Getenv(cluster.JobVariable) + "_" + args[1]}
	if job := a.Getenv("SLURM_ARRAY_JOB_ID"); job != "" {
		attempt.Number = job + "_" + a.Getenv("SLURM_ARRAY_TASK_ID")
		a.onSlurm(attempt)
	}
	if strings.HasPrefix(attempt.Number, cluster.OverSSH) {
		stop = a.overSSH(stop, attempt)
	} else if a.Getenv(cluster.JobVariable) != "" {
		attempt.Uncounted = true
	}
	fmt.Fprintf(a.Stderr, "%s  job %s, restart %d\n", entry.Name, attempt.Number, attempt.Restarts)
	how, err := attempt.Run(stop)
	switch {
	case err != nil:
		return err
	case how.Waiting:
		time.Sleep(killPatience)
		return cli.Said(cli.ExitFailure)
	case how.Code != 0:
		return cli.Said(cli.ExitCode(how.Code))
	}
	return nil
}

// onSlurm makes an attempt one of Slurm's: it can queue its job again.
func (a *app) onSlurm(t *cluster.Attempt) {
	t.Restarts, _ = strconv.Atoi(a.Getenv("SLURM_RESTART_COUNT")) // unset at the first start
	t.Store = cmp.Or(t.Store, a.Getenv("SLURM_TMPDIR"))           // else TMPDIR or /tmp
	t.Requeue = func() error { return cluster.Slurm{}.Requeue(context.Background(), t.Number) }
	t.Fate = func() cluster.Fate {
		fate, err := cluster.Slurm{}.FateOf(context.Background(), t.Number, t.Restarts)
		if err != nil {
			fmt.Fprintln(a.Stderr, err)
		}
		return fate
	}
}

// overSSH makes an attempt one that ssh started: it reports progress, and it stops when its
// input ends, as it does when the connection breaks.
func (a *app) overSSH(ctx context.Context, t *cluster.Attempt) context.Context {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // else it would die without saving
	enc := json.NewEncoder(a.Stderr)
	t.Progress = func(e cluster.Event) { _ = enc.Encode(e) } // nobody may listen any more
	stop, lost := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, a.Stdin)
		lost()
	}()
	return stop
}
