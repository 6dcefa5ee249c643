package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/harness/bench"
	"exp/harness/device"
	"exp/harness/ranks/launch"
	"exp/harness/ranks/mpi"
	harness "exp/harness/run"
)

// benchRanksTimeout is how long a rank may take to answer.
const benchRanksTimeout = time.Minute

// rankBenchmark is the schema exp.bench_ranks/1.
type rankBenchmark struct {
	CPU     string    `json:"cpu"`
	Cores   int       `json:"cores"`
	Library string    `json:"mpi"`
	Build   cli.Build `json:"build"`
	bench.RanksReport
	Ratio float64 `json:"ratio"` // of both to all_reduce
}

// benchRanksFlags are --ranks and --floats.
func benchRanksFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "ranks", Usage: "measure how `N` processes sum a vector of each, next to the MPI " +
			"library's all-reduce, and nothing else", DefaultText: "none"},
		&cli.IntFlag{Name: "floats", Usage: "with --ranks: the vector has `N` floats",
			DefaultText: strconv.Itoa(bench.DefaultRanksOptions().Floats)},
	}
}

// benchRanks measures how fast ranks sum, on --ranks processes.
func (a *app) benchRanks(c *cli.Context, args []string) error {
	for _, f := range []string{"model", "only", "batch", "length", "sequences", "prompt", "new", "dtype"} {
		if len(args) > 0 || c.IsSet(f) {
			return a.Usagef("--ranks measures the ranks' sums alone; leave --%s and FOLDER out", f)
		}
	}
	n := c.Int("ranks")
	if n < 2 {
		return a.Usagef("--ranks %d: sums need at least 2", n)
	}
	o := bench.DefaultRanksOptions()
	setInts(c, map[string]*int{"floats": &o.Floats, "repeat": &o.Repeat})
	if err := o.Validate(); err != nil {
		return cli.Usagef("bench: %w", err)
	}
	if a.rankBench == nil {
		launcher, err := a.checkMPI()
		if err != nil {
			return err
		}
		parent := ""
		if a.Getenv("SLURM_JOB_ID") != "" {
			parent = "." // which all machines see
		}
		dir, err := os.MkdirTemp(parent, "exp-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		return a.launchJob(c, launcher, benchRankWord, n, dir, benchRanksTimeout)
	}
	d, err := a.benchDevice(c)
	if err != nil {
		return err
	}
	be, err := device.OpenCPU(d, a.Getenv)
	if err != nil {
		return err
	}
	defer be.Close()
	r, err := bench.RunRanks(be, a.rankBench, a.rankBench.world.AllReduce, o)
	if err != nil || a.rankBench.Rank() > 0 {
		return err
	}
	m := harness.ThisMachine()
	b := &rankBenchmark{CPU: m.CPU, Cores: m.Cores, Library: a.rankBench.world.Library().String(),
		Build: cli.ReadBuild(), RanksReport: *r, Ratio: r.Ratio()}
	return a.Out.PrintDocument(cli.Document{Schema: "exp.bench_ranks/1", Data: b, Human: func(w io.Writer) error {
		return writeRankBench(a.Out.NewPage(w), b, o.Repeat)
	}})
}

// writeRankBench writes the measurements for people.
func writeRankBench(p *cli.Page, b *rankBenchmark, repeat int) error {
	p.Heading("bench ranks")
	p.Facts(
		cli.Fact{Name: "processor", Text: fmt.Sprintf("%s, %d cores", b.CPU, b.Cores)},
		cli.Fact{Name: "ranks", Text: fmt.Sprintf("%d, joined by %s", b.Ranks, b.Library)},
		cli.Fact{Name: "vector", Text: quantity.Count(int64(b.Floats)) + " floats on each"},
		cli.Fact{Name: "figures", Text: fmt.Sprintf("median (least–greatest) of %d, in turns", repeat)},
	)
	row := func(what string, s bench.Spread) []any {
		return []any{what, s.Median, between(s), "ms", s.Median / b.AllReduce.Median}
	}
	rows := [][]any{row("reduce-scatter in the fixed tree", b.ReduceScatter), row("gather", b.Gather),
		row("both", b.Both), row("the library's all-reduce", b.AllReduce)}
	err := p.Table([]cli.Column{{Title: "what"}, {Title: "median"}, {Title: "range"}, {Title: "unit"},
		{Title: "of the library's"}}, rows)
	if err != nil {
		return err
	}
	return p.Close()
}

// measuring is a rank of exp bench --ranks.
type measuring struct {
	*launch.Member
	world *mpi.World
}

// measureAsRank executes exp bench as a rank; the first one prints.
func measureAsRank(world *mpi.World, member *launch.Member, args []string, signals chan os.Signal, dir string) int {
	s := cli.System{Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
		Clock: term.SystemClock(), Signals: signals}
	if world.Rank() > 0 {
		s.Stdout, s.Stderr = io.Discard, io.Discard
	}
	code := cli.Run(s, program(func(a *app) []*cli.Command {
		a.rankBench = &measuring{member, world}
		return commands(a)
	}))
	if world.Rank() == 0 {
		if err := launch.LeaveCode(dir, code); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
		}
	}
	if code != 0 || world.Close() != nil {
		world.Abort(1)
	}
	return 0
}
