package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/sandbox"
)

func sandboxCommand(a *app) *cli.Command {
	level := []cli.Flag{
		&cli.StringFlag{Name: "require", Usage: "refuse to run with less isolation than `LEVEL`: full, " +
			"namespaces, landlock", DefaultText: string(sandbox.Namespaces)},
		&cli.StringFlag{Name: "most", Usage: "use at most `LEVEL`, to try a lower one",
			DefaultText: "the best available"},
		&cli.StringFlag{Name: "python", Usage: "run programs by this `INTERPRETER`", DefaultText: "python3"},
		&cli.IntFlag{Name: "workers", Usage: "run `N` programs at once", DefaultText: "one per core"},
	}
	return &cli.Command{
		Name:     "sandbox",
		Category: "set up",
		Usage:    "run untrusted programs, and test the isolation",
		Description: "A program runs without network, without this machine's files, without other processes and " +
			"within limits. Verdicts: ok, wrong_answer, runtime_error, time_limit, memory_limit, output_limit, " +
			"compile_error, security_violation, and infra_error if the sandbox failed, not the program.",
		UsageText: "exp sandbox exec program.py # run it, with this command's stdin\n" +
			"exp sandbox selftest # does the sandbox hold on this machine?",
		Subcommands: []*cli.Command{
			{
				Name: "exec", ArgsUsage: "[FILE [ARGUMENT...]]", Usage: "run a program, or the requests of a file",
				Description: "FILE is a program in Python or, by its extension, in C (.c), C++ (.cpp, .cc, " +
					".cxx), Go (.go) or JavaScript (.js), if this machine has the toolchain. It is compiled in " +
					"the sandbox too, and gets this command's stdin. With --in, requests are read from a file, " +
					"one JSON object per line, and one result per request is written, in the same order. A " +
					"request has source, and may have id, language (" + strings.Join(sandbox.Languages(), ", ") +
					"), stdin, args, files, limits, tests with stdin and stdout; or mode \"call\" with entry " +
					"and tests with args and expect; or mode \"asserts\" with entry and test_code, a program " +
					"that calls entry. For FILE the exit code is 0 if the verdict is ok, 8 if the sandbox " +
					"failed, else 1; for requests it does not depend on verdicts.",
				UsageText: "exp sandbox exec program.py < input.txt\n" +
					"exp sandbox exec --limits cpu_ms=1000,memory_mb=128 program.py --json # with times and memory\n" +
					"exp sandbox exec --in requests.jsonl --out results.jsonl # - is stdin, stdout",
				Flags: append([]cli.Flag{
					&cli.StringSliceFlag{Name: "limits", Usage: "change limits: `NAME=N,...` of " + limitNames()},
					&cli.StringFlag{Name: "in", Usage: "read requests from `FILE`"},
					&cli.StringFlag{Name: "out", Usage: "write results to `FILE`", DefaultText: "stdout"},
				}, level...),
				BashComplete: a.Completes(func(_ *cli.Context, w cli.Word) []cli.Candidate {
					return cli.PathCandidates(w.Text, cli.HasExt(".py", ".c", ".cpp", ".cc", ".cxx", ".go", ".js",
						".jsonl"))
				}),
				Action: a.sandboxExec,
			},
			{
				Name: "check", Usage: "show the isolation and languages available here, and the missing ones",
				UsageText: "exp sandbox check # exit code 8 below --require",
				Flags:     level,
				Action:    a.sandboxCheck,
			},
			{
				Name: "selftest", Usage: "run hostile programs and check that each is contained",
				Description: "Runs hostile programs in every available language that exhaust resources, hide " +
					"processes, read files, use the network, raise privileges, flood the output or cheat, and " +
					"an honest program after each. Fails with 8 if a program gets the wrong verdict, reaches " +
					"anything on this machine, or leaves a process behind.",
				UsageText: "exp sandbox selftest # half a minute\n" +
					"exp sandbox selftest --most namespaces # the level without cgroups",
				Flags:  level,
				Action: a.sandboxSelftest,
			},
			a.sandboxBenchCommand(level),
		},
	}
}

func limitNames() string {
	var names []string
	for _, l := range sandbox.DefaultLimits().List() {
		names = append(names, l.Name)
	}
	return strings.Join(names, ", ")
}

// sandboxConfig reads the flags shared by all subcommands.
func sandboxConfig(c *cli.Context) (sandbox.Config, error) {
	levels := sandbox.Levels()
	cfg := sandbox.Config{Require: sandbox.Namespaces, Python: c.String("python"), Slots: c.Int("workers")}
	for name, to := range map[string]*sandbox.Level{"require": &cfg.Require, "most": &cfg.Most} {
		if c.IsSet(name) {
			level, err := cli.OneOf("--"+name, c.String(name), levels)
			if err != nil {
				return cfg, err
			}
			*to = level
		}
	}
	if cfg.Slots < 0 || cfg.Slots > 1024 {
		return cfg, cli.Usagef("--workers %d: from 1 to 1024", cfg.Slots)
	}
	return cfg, nil
}

// parseLimits reads NAME=N,....
func parseLimits(list []string) (l sandbox.Limits, err error) {
	for _, text := range list {
		for part := range strings.SplitSeq(text, ",") {
			name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
			n, err := strconv.ParseInt(value, 10, 64)
			if !ok || err != nil {
				return l, cli.Usagef("--limits %s: want NAME=NUMBER", part)
			}
			if err := l.Set(name, n); err != nil {
				return l, cli.Usagef("--limits: %w", err)
			}
		}
	}
	return l, nil
}

func (a *app) sandboxExec(c *cli.Context) (err error) {
	cfg, err := sandboxConfig(c)
	if err != nil {
		return err
	}
	if cfg.Limits, err = parseLimits(c.StringSlice("limits")); err != nil {
		return err
	}
	in := c.String("in")
	most := 0
	if in == "" {
		most = -1
		if c.String("out") != "" {
			return cli.Usagef("--out needs --in: it is for requests").See(c.Command.HelpName)
		}
	}
	args, err := cli.Positionals(c, 0, most)
	if err != nil {
		return err
	}
	if in != "" {
		return a.sandboxServe(c.Context, cfg, in, c.String("out"))
	}
	if len(args) == 0 {
		return cli.Usagef("%s needs FILE or --in REQUESTS", c.Command.HelpName).See(c.Command.HelpName)
	}
	return a.sandboxProgram(c.Context, cfg, args)
}

// sandboxResult is the schema exp.sandbox.exec/1.
type sandboxResult struct {
	Verdict   sandbox.Verdict `json:"verdict"`
	Isolation sandbox.Level   `json:"isolation"`
	Run       sandbox.RunRow  `json:"run"`
}

// sandboxProgram runs one program for a person.
func (a *app) sandboxProgram(ctx context.Context, cfg sandbox.Config, args []string) error {
	source, err := readNamed(args[0])
	if err != nil {
		return err
	}
	r := sandbox.Request{ID: args[0], Language: sandbox.LanguageOf(args[0]), Source: string(source), Args: args[1:]}
	if !a.Stream(asWriter(a.Stdin)).TTY {
		stdin, err := io.ReadAll(a.Stdin)
		if err != nil {
			return fmt.Errorf("stdin: %w", err)
		}
		r.Stdin = string(stdin)
	}
	cfg.Slots = 1
	p, err := sandbox.Open(ctx, cfg)
	if err != nil {
		return err
	}
	result := p.Run(ctx, r)
	if err := errors.Join(ctx.Err(), p.Close()); err != nil {
		return err
	}
	run := result.Runs[0]
	err = a.Out.PrintDocument(cli.Document{Schema: "exp.sandbox.exec/1",
		Data: sandboxResult{result.Verdict, result.Isolation, run.Row()}, Human: func(w io.Writer) error {
			_, err := w.Write(run.Stdout)
			if err == nil {
				_, err = a.Stderr.Write(run.Stderr)
			}
			return err
		}})
	if err != nil {
		return err
	}
	resources := fmt.Sprintf("wall %.1f ms, CPU %.1f ms, %s, level %s", 1e3*run.Wall.Seconds(), 1e3*run.CPU.Seconds(),
		quantity.Bytes(run.MemoryKB<<10), result.Isolation)
	switch result.Verdict {
	case sandbox.OK:
		a.Note("%s: %s", result.Verdict, resources)
		return nil
	case sandbox.InfraError:
		return cli.Failf(cli.ExitEvaluation, "%s: %s", result.Verdict, run.Detail)
	}
	return cli.Failf(cli.ExitFailure, "%s: %s (%s)", result.Verdict, run.Detail, resources)
}

// readNamed reads a file named by the user.
func readNamed(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cli.Failf(cli.ExitNotFound, "%w", err)
	}
	return text, err
}

// asWriter lets term inspect an input like an output.
func asWriter(r io.Reader) io.Writer {
	if w, ok := r.(io.Writer); ok {
		return w
	}
	return io.Discard
}

// sandboxServe runs requests from a file into a file; "-" is stdin or stdout.
func (a *app) sandboxServe(ctx context.Context, cfg sandbox.Config, from, to string) (err error) {
	in := a.Stdin
	if from != "-" {
		f, err := os.Open(from)
		if errors.Is(err, fs.ErrNotExist) {
			return cli.Failf(cli.ExitNotFound, "%w", err)
		} else if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	p, err := sandbox.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	out := a.Stdout
	if to != "" && to != "-" {
		f, err := os.Create(to)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
	}
	if err := p.ServeLines(ctx, in, out, p.Slots()); err != nil {
		return err
	}
	if n, err := p.InfraErrors(); n > 0 {
		a.Warn("the sandbox failed %s, and each program was retried once; most recently: %v",
			quantity.Plural(int(n), "time"), err)
	}
	return nil
}

// sandboxState is the schema exp.sandbox.check/1.
type sandboxState struct {
	Level  sandbox.Level   `json:"level"`
	Probes []sandbox.Probe `json:"probes"`

	Languages []sandbox.Probe `json:"languages"` // except Python, which every level needs
}

func (a *app) sandboxCheck(c *cli.Context) error {
	cfg, err := sandboxConfig(c)
	if err != nil {
		return err
	}
	if _, err := cli.Positionals(c, 0, 0); err != nil {
		return err
	}
	level, probes, err := sandbox.Check(c.Context, cfg)
	if err != nil {
		return err
	}
	languages := sandbox.Toolchains(c.Context)
	err = a.Out.PrintDocument(cli.Document{Schema: "exp.sandbox.check/1", Data: sandboxState{level, probes, languages},
		Human: func(w io.Writer) error {
			fmt.Fprintf(w, "level %s\n", level)
			for _, p := range append(slices.Clone(probes), languages...) {
				mark := "yes"
				if !p.OK {
					mark = "no"
				}
				if _, err := fmt.Fprintf(w, "  %s %s %s\n", term.Pad(mark, 4, false), term.Pad(p.Name, 11, false),
					term.CleanLines(p.Text)); err != nil {
					return err
				}
				if p.Help != "" {
					fmt.Fprintf(w, "  %s%s\n", strings.Repeat(" ", 17), p.Help)
				}
			}
			return nil
		}})
	if err != nil || level.AtLeast(cfg.Require) {
		return err
	}
	return cli.Failf(cli.ExitEvaluation, "level %s is required, and this machine gives %s", cfg.Require, level)
}

func (a *app) sandboxSelftest(c *cli.Context) (err error) {
	cfg, err := sandboxConfig(c)
	if err != nil {
		return err
	}
	if _, err := cli.Positionals(c, 0, 0); err != nil {
		return err
	}
	p, err := sandbox.Open(c.Context, cfg)
	if err != nil {
		return err
	}
	var list []sandbox.Outcome
	failed, unpromised := 0, 0
	after := p.SelfTest(c.Context, func(o sandbox.Outcome) {
		list = append(list, o)
		switch {
		case o.Unpromised:
			unpromised++
		case !o.OK:
			failed++
		}
	})
	if err := errors.Join(p.Close(), c.Context.Err()); err != nil {
		return err
	}
	slices.SortFunc(list, func(x, y sandbox.Outcome) int {
		return strings.Compare(x.Kind+"\x00"+x.Name, y.Kind+"\x00"+y.Name)
	})
	t := cli.Table{Schema: "exp.sandbox.selftest/1", Columns: []cli.Column{
		{Key: "kind"}, {Key: "name"}, {Key: "held"}, {Key: "verdict"}, {Key: "wall_ms"}, {Key: "what"},
		{Key: "problem"},
	}}
	for _, o := range list {
		var held any = o.OK
		if o.Unpromised {
			held, o.Problem = nil, fmt.Sprintf("not promised at level %s: %s", p.Level(), o.Problem)
		}
		t.Rows = append(t.Rows, []any{o.Kind, o.Name, held, string(o.Verdict), o.WallMS, o.What, o.Problem})
	}
	if err := a.Out.PrintTable(t); err != nil {
		return err
	}
	if after != nil {
		return cli.Failf(cli.ExitEvaluation, "%w", after)
	}
	if failed > 0 {
		return cli.Failf(cli.ExitEvaluation, "%d of %d hostile programs were not contained", failed, len(list))
	}
	a.Note("%d hostile programs held at level %s", len(list)-unpromised, p.Level())
	for _, text := range p.Level().Unpromised() {
		a.Note("level %s: %s", p.Level(), text)
	}
	return nil
}

// checkSandbox is doctor's check of the sandbox.
func checkSandbox(ctx context.Context, d *diagnosis) {
	level, probes, err := sandbox.Check(ctx, sandbox.Config{})
	if err != nil {
		return // the command was stopped
	}
	for _, p := range probes {
		if p.OK {
			d.ok(p.Name, "%s", p.Text)
			continue
		}
		help := p.Help
		if help == "" {
			help = "exp sandbox check says more"
		}
		d.warn(p.Name, help, "%s", p.Text)
	}
	there, missing := []string{"python"}, ""
	for _, l := range sandbox.Toolchains(ctx) {
		if l.OK {
			there = append(there, fmt.Sprintf("%s (%s)", l.Name, l.Text))
		} else {
			missing += fmt.Sprintf("; no %s: %s", l.Name, l.Text)
		}
	}
	d.ok("languages", "%s%s", strings.Join(there, ", "), missing)
	if level.AtLeast(sandbox.Namespaces) {
		d.ok("level", "%s; exp sandbox selftest tries to break out", level)
	} else if level == sandbox.Landlock {
		d.warn("level", "recipes whose rewards run programs need namespaces; exp sandbox exec --require landlock "+
			"does with this", "%s; not promised: %s", level, strings.Join(level.Unpromised(), "; "))
	} else {
		d.warn("level", "recipes whose rewards run programs need it; all others do not", "none: programs are refused")
	}
}
