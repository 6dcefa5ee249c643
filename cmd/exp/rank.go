package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/harness/cluster"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/fault"
	"exp/harness/forecast"
	"exp/harness/ranks/launch"
	"exp/harness/ranks/mpi"
	harness "exp/harness/run"
)

// ranksFlag is --ranks.
func ranksFlag() cli.Flag {
	return &cli.IntFlag{Name: "ranks", Value: 1, Usage: "compute with `N` processes that MPI joins, here or on " +
		"the machines of a Slurm job, each with its cores or its GPU; changes no bit (docs/ranks.md)"}
}

// rankTimeoutFlag is --rank-timeout.
func rankTimeoutFlag() cli.Flag {
	return &cli.StringFlag{Name: "rank-timeout", Usage: "with --ranks: a rank that gives no answer for `TIME` " +
		"(90s, 2h) ends the run", DefaultText: rankTimeoutVariable + ", else 30m"}
}

// These are the first argument of a process that a launcher starts: exp rank N DIR TIMEOUT
// ARGS. A rank runs stages, or the measurements of exp bench.
const (
	rankWord      = "rank"
	benchRankWord = "bench-rank"
)

// mpiVariable names the file of the MPI library.
const mpiVariable = "EXP_MPI"

// rankTimeout is how long a rank waits for another one; --rank-timeout and EXP_RANK_TIMEOUT
// change it.
const (
	rankTimeout         = 30 * time.Minute
	rankTimeoutVariable = "EXP_RANK_TIMEOUT"
)

// ranksFit returns an error if n ranks cannot compute the configurations.
func (a *app) ranksFit(configs []*config.Resolved, n int) error {
	if n < 1 {
		return a.Usagef("--ranks %d: it must be at least 1", n)
	}
	if n == 1 {
		return nil
	}
	for _, r := range configs {
		if err := forecast.CheckRanks(r, n); err != nil {
			return cli.Usagef("%w", err).Advise(fault.Hint(err))
		}
	}
	return nil
}

// processes returns the processes that compute a run on n ranks, which fit it (see ranksFit). Before
// they have met, the launcher tells how many are here.
func (a *app) processes(n int) harness.Processes {
	if a.ranks != nil {
		return harness.Processes{Ranks: n, Here: a.ranks.Here()}
	}
	return harness.Processes{Ranks: n, Here: launch.Here(a.Getenv, n)}
}

// launchRanks executes this command again on the ranks of --ranks, which fit the configurations
// (see ranksFit), unless this process is one of them; done says whether it did.
func (a *app) launchRanks(c *cli.Context, configs []*config.Resolved) (done bool, err error) {
	n := c.Int("ranks")
	if n == 1 || a.ranks != nil {
		return false, nil
	}
	timeout, err := a.rankTimeout(c)
	if err != nil {
		return true, err
	}
	launcher, err := a.checkMPI()
	if err != nil {
		return true, err
	}
	if slices.ContainsFunc(configs, func(r *config.Resolved) bool { return device.UsesGPU(&r.Run) }) {
		if _, err := harness.FindNCCL(a.Getenv); err != nil {
			return true, err
		}
	}
	store, _, err := a.FindStore()
	if err != nil {
		return true, err
	}
	parent := filepath.Join(store, "ranks")
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return true, err
	}
	dir, err := os.MkdirTemp(parent, "")
	if err != nil {
		return true, err
	}
	defer os.RemoveAll(dir)
	return true, a.launchJob(c, launcher, rankWord, n, dir, timeout)
}

// checkMPI returns the launcher of ranks, or an error if this machine cannot launch any.
func (a *app) checkMPI() (launcher launch.Launcher, err error) {
	if launcher, err = launch.Find(a.Getenv); err != nil {
		return launcher, err
	}
	_, err = mpi.Load(a.Getenv(mpiVariable))
	return launcher, err
}

// launchJob executes this command on n ranks that begin with a word and leave their cards in
// dir.
func (a *app) launchJob(c *cli.Context, launcher launch.Launcher, word string, n int, dir string,
	timeout time.Duration) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	args := append([]string{program, word, strconv.Itoa(n), dir, timeout.String()}, a.Args[1:]...)
	if !c.IsSet("threads") && a.Getenv("EXP_THREADS") == "" && a.Getenv("SLURM_JOB_ID") == "" {
		args = append(args, "--threads", strconv.Itoa(max(1, runtime.NumCPU()/n)))
	}
	job := launch.Job{Launcher: launcher, Ranks: n, Args: args, Dir: dir, Timeout: timeout, Stdout: a.Stdout,
		Stderr: a.Stderr}
	if !a.Stream(a.Stdout).Color {
		job.Env = []string{"NO_COLOR=1"} // a launcher may give the ranks a terminal
	}
	code, err := job.Run(c.Context)
	if err != nil {
		return err
	}
	if code != 0 {
		return cli.Said(cli.ExitCode(code))
	}
	return nil
}

// rankTimeout reads --rank-timeout and its variable.
func (a *app) rankTimeout(c *cli.Context) (time.Duration, error) {
	text, from := a.Getenv(rankTimeoutVariable), rankTimeoutVariable+"="
	if c.IsSet("rank-timeout") {
		text, from = c.String("rank-timeout"), "--rank-timeout "
	}
	if text == "" {
		return rankTimeout, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second {
		return 0, a.Usagef("%s%s: it must be a time of at least 1s, like 90s or 2h", from, text)
	}
	return d, nil
}

// checkRanks looks for what --ranks needs. It starts no rank.
func (a *app) checkRanks(d *diagnosis) {
	library, err := mpi.Load(a.Getenv(mpiVariable))
	if err != nil {
		d.ok("MPI", "none, and none needed: exp run computes in one process without --ranks")
		return
	}
	d.ok("MPI", "%s", library)
	launcher, err := launch.Find(a.Getenv)
	if err != nil {
		d.warn("launcher", (*launch.NoLauncherError)(nil).Hint(), "%v", err)
		return
	}
	if gpus, err := device.FindGPUs(); err == nil && len(gpus.List) > 0 {
		text, err := harness.FindNCCL(a.Getenv)
		if err != nil {
			d.warn("NCCL", fault.Hint(err), "%v", err)
		} else {
			d.ok("NCCL", "%s", text)
		}
	}
	text := launcher.Path + ": " + launcher.Version
	if !launcher.Starts(library.Kind == mpi.OpenMPI) {
		d.warn("launcher", "name the launcher's library with "+mpiVariable+"=FILE, or put the library's launcher "+
			"first in PATH", "%s; it does not belong to the library", text)
		return
	}
	d.ok("launcher", "%s", text)
}

// enterRank runs the program as a rank of a job; ok is false if no launcher started it.
func enterRank(args []string, signals chan os.Signal) (code int, ok bool) {
	if len(args) < 6 || args[1] != rankWord && args[1] != benchRankWord {
		return 0, false
	}
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return 0, false
	}
	timeout, err := time.ParseDuration(args[4])
	if err != nil {
		return 0, false
	}
	word, dir, args := args[1], args[3], slices.Concat(args[:1], args[5:])
	os.Args = args // the record shows them
	world, err := mpi.Open(os.Getenv(mpiVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return int(cli.ExitResource), true
	}
	world.Limit = timeout
	member := launch.Join(world, dir, timeout)
	defer member.Close()
	g := &harness.Ranks{Group: member, Phase: member.At, NCCL: os.Getenv(harness.NCCLVariable), Timeout: timeout,
		Explain: member.Explain, Wait: func(on bool) {
			world.Limit = timeout
			if on {
				world.Limit = 0
			}
		}}
	if err := g.Meet(n, cli.ReadBuild().String(), world.Library().String()); err != nil {
		fail(member, err)
		return refuse(world, dir, err), true
	}
	stayNear(g, os.Getenv)
	switch {
	case word == benchRankWord:
		return measureAsRank(world, member, args, signals, dir), true
	case world.Rank() > 0:
		return follow(world, g, member), true
	}
	go pollStop(dir, signals)
	code = cli.Run(cli.System{Args: args, Stdin: os.Stdin, Stdout: os.Stdout,
		Stderr: os.Stderr, Getenv: os.Getenv, Clock: term.SystemClock(), Signals: signals},
		program(func(a *app) []*cli.Command {
			a.ranks = g
			return commands(a)
		}))
	if err := launch.LeaveCode(dir, code); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	if g.End() != nil || world.Close() != nil {
		world.Abort(1) // others wait within a stage that failed here
	}
	return 0, true
}

// stayNear keeps this rank on the NUMA node of its share of the machine, where the memory is that
// its threads touch first. Slurm places its ranks itself.
func stayNear(g *harness.Ranks, getenv func(string) string) {
	if getenv("SLURM_JOB_ID") != "" {
		return
	}
	shares := cluster.Divide(os.DirFS("/sys"), cluster.Allowed(), g.Here())
	if err := cluster.StayOn(shares[g.Before()].CPUs); err != nil {
		fmt.Fprintln(os.Stderr, "this rank may compute far from its memory:", err)
	}
}

// follow executes what the first rank asks for. If this rank fails alone, it ends the job.
func follow(world *mpi.World, g *harness.Ranks, member *launch.Member) int {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM) // the first rank says when to stop
	err := harness.Follow(context.Background(), g, os.Getenv)
	if err == nil {
		err = world.Close()
	}
	if err == nil {
		return 0
	}
	fail(member, err)
	time.Sleep(3 * time.Second) // the first rank may know, and record it
	world.Abort(1)
	return 1
}

// fail notes why a rank ends the job, for the process that launched it.
func fail(member *launch.Member, err error) {
	f := lostDevice(describe(err, nil))
	member.Fail(err, int(f.Code), f.Help)
}

// lostDevice gives the error of a rank whose device is lost the code of a lost rank: on another device the run
// goes on, so that batch systems start the job again.
func lostDevice(f *cli.Failure) *cli.Failure {
	if fault.DeviceLost(f) {
		f.Code = cli.ExitRank
	}
	return f
}

// refuse ends a job that must not begin.
func refuse(world *mpi.World, dir string, err error) int {
	if world.Rank() == 0 {
		fmt.Fprintln(os.Stderr, "error:", err)
		_ = launch.LeaveCode(dir, int(cli.ExitResource)) // else the launcher's process says so
	}
	_ = world.Close() // every rank refuses
	return 0
}

// pollStop passes a stop of the launching process on: as SIGTERM if it got that, else as Ctrl-C.
func pollStop(dir string, signals chan<- os.Signal) {
	for !launch.Stopped(dir) {
		time.Sleep(200 * time.Millisecond)
	}
	if launch.StoppedBy(dir) == syscall.SIGTERM.String() {
		signals <- syscall.SIGTERM
		return
	}
	signals <- os.Interrupt
}
