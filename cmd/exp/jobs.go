package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
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
	spool := cluster.Spool{Dir: dir}
	if !spool.Exists() {
		return spool, cli.Failf(cli.ExitNotFound,
			"%s is not a spool of exp run --on slurm or kubernetes", arg).
			Advise("name the directory of cluster.spool")
	}
	return spool, nil
}

func jobsCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "jobs",
		Category:  "Experiments",
		Usage:     "list the jobs of exp run --on slurm or kubernetes",
		ArgsUsage: "SPOOL",
		Description: "Lists each job with its number, its state, the node, how often it was restarted, its step " +
			"and the last checkpoint that it published. The state is Slurm's while the job waits or runs, then " +
			"what the job said last. A job is lost if it did not end and Slurm no longer knows it: the " +
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
	jobs, err := spool.Jobs(ctx)
	if err != nil {
		return err
	}
	t := cli.Table{Schema: "exp.jobs/1", Columns: []cli.Column{{Key: "run", ID: true}, {Key: "name", Rank: 1, Min: 12},
		{Key: "job"}, {Key: "state"}, {Key: "node"}, {Key: "restarts"}, {Key: "step"}, {Key: "checkpoint"},
		{Key: "text", Wide: true}}}
	for _, l := range jobs {
		t.Rows = append(t.Rows, []any{cli.HexID(l.Job.RID.String()), l.Job.Name, l.Job.Number, l.State, l.Said.Host,
			int64(l.Said.Restarts), int64(l.Said.Step), l.Said.Checkpoint, l.Text})
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
	program, err := os.Executable()
	if err != nil {
		return err
	}
	attempt, err := cluster.NewAttempt(args[0], i, program, a.Stderr, a.Getenv)
	if err != nil {
		return err
	}
	// Slurm's warning that the time limit is near.
	stop, cancel := signal.NotifyContext(c.Context, syscall.SIGUSR1)
	defer cancel()
	stop = attempt.FollowSSH(stop, a.Stdin)
	fmt.Fprintf(a.Stderr, "%s  job %s, restart %d\n", attempt.Name, attempt.Number, attempt.Restarts)
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
