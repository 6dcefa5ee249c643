package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	urfave "github.com/urfave/cli/v2"

	"exp/cmd/exp/term"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

// TestMain lets the test binary be a program of the sample commands, for tests that
// need a process.
func TestMain(m *testing.M) {
	if os.Getenv("EXP_TEST_AS_PROGRAM") != "" {
		os.Exit(Run(System{Args: os.Args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
			Clock: term.SystemClock()}, sampleProgram))
	}
	os.Exit(m.Run())
}

// golden compares got with testdata/name.golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// call is one execution of the program in a test.
type call struct {
	list    func(*App) []*Command // nil: sampleCommands
	env     map[string]string
	signals chan os.Signal
}

type ended struct {
	code           int
	stdout, stderr string
}

func (c call) run(args ...string) ended {
	p := sampleProgram
	if c.list != nil {
		p.Commands = c.list
	}
	var stdout, stderr bytes.Buffer
	code := Run(System{
		Args: append([]string{"exp"}, args...), Stdin: strings.NewReader(""),
		Stdout: &stdout, Stderr: &stderr,
		Getenv:  func(key string) string { return c.env[key] },
		Clock:   term.SystemClock(),
		Signals: c.signals,
	}, p)
	return ended{code, stdout.String(), stderr.String()}
}

// check compares what can be compared exactly; stderr must contain each text.
func (e ended) check(t *testing.T, code int, stdout string, stderr ...string) {
	t.Helper()
	if e.code != code {
		t.Errorf("exit code %d, want %d", e.code, code)
	}
	if e.stdout != stdout {
		t.Errorf("stdout %q, want %q", e.stdout, stdout)
	}
	for _, text := range stderr {
		if !strings.Contains(e.stderr, text) {
			t.Errorf("stderr %q lacks %q", e.stderr, text)
		}
	}
	if len(stderr) == 0 && e.stderr != "" {
		t.Errorf("stderr %q, want none", e.stderr)
	}
}

// sampleProgram is a program with every feature that the frame handles.
var sampleProgram = Program{Commands: sampleCommands, Known: sampleKnown, Examples: `exp run configs/smoke_cpu.yaml # train and evaluate a tiny model in seconds
exp show @last # what came of it
exp run configs/countdown_cpu_ppo.yaml configs/countdown_cpu_flowrl.yaml --seeds 0-2 # two arms
exp compare countdown-ppo countdown-flowrl # which is better, and how sure that is
exp report countdown-ppo countdown-flowrl --out report # figures and tables`,
	Topics: []Topic{{Name: "words", Usage: "explain the words", Text: "Some are rare.",
		Rows: [][2]string{{"seed", "where randomness begins"}, {"xid", "the id of an experiment"}}}},
}

// sampleKnown knows one error, and what to do about it.
func sampleKnown(err error) *Failure {
	if !errors.Is(err, syscall.ENOSPC) {
		return nil
	}
	return &Failure{Code: ExitResource, Err: err, Help: "free some space and run again: finished work is kept"}
}

func sampleCommands(a *App) []*Command {
	return []*Command{
		{
			Name: "run", Usage: "run experiments", ArgsUsage: "CONFIG…", Category: "run",
			Description: "Runs all stages of each configuration.\nStages that are done are not run again.",
			UsageText:   "exp run a.yaml --seeds 0-2  # three seeds\nexp run a.yaml --set 'eval.k=[1,8]' --json",
			Flags: []Flag{
				&StringSliceFlag{Name: "set", Usage: "set a key: `K=V`"},
				&StringFlag{Name: "seeds", Aliases: []string{"s"}, Usage: "`LIST` of seeds", Value: "0"},
				&IntFlag{Name: "max-steps", Aliases: []string{"n"}, Usage: "stop after `N` steps"},
				&BoolFlag{Name: "dry-run", Aliases: []string{"d"}, Usage: "print the plan"},
			},
			BashComplete: a.Completes(func(c *Context, w Word) []Candidate {
				switch w.Flag {
				case "":
					return PathCandidates(w.Text, HasExt(".yaml"))
				case "set":
					return []Candidate{{"algo.kind=", "algorithm"}, {"algo.flowrl.beta=", "scale"}}
				}
				return nil
			}),
			Action: func(c *Context) error {
				_, err := fmt.Fprintf(a.Stdout, "args=%q set=%q seeds=%s n=%d dry=%v store=%s json=%v v=%d\n",
					c.Args().Slice(), c.StringSlice("set"), c.String("seeds"), c.Int("max-steps"), c.Bool("dry-run"),
					a.store, a.jsonErrors, a.verbosity)
				return err
			},
		},
		{
			Name: "show", Usage: "show one run", ArgsUsage: "RUN", Category: "look",
			UsageText: "exp show @last",
			BashComplete: a.Completes(func(c *Context, w Word) []Candidate {
				return []Candidate{{"xid:7c19ae02", "store " + c.String(flagStore)}, {"5e8d10b4", "done"}}
			}),
			Action: func(c *Context) error {
				list, err := Positionals(c, 1, 1)
				if err != nil {
					return err
				}
				return Failf(ExitNotFound, "no run %q", list[0])
			},
		},
		{
			Name: "config", Usage: "check and show configurations", Category: "look",
			UsageText: "exp config show a.yaml",
			Subcommands: []*Command{{
				Name: "show", Usage: "print a resolved configuration", ArgsUsage: "FILE", UsageText: "exp config show a.yaml --origin",
				Flags: []Flag{&BoolFlag{Name: "origin"}},
				Action: func(c *Context) error {
					_, err := fmt.Fprintf(a.Stdout, "config show %q origin=%v out=%s\n", c.Args().Slice(), c.Bool("origin"), a.Out.Format)
					return err
				},
			}, {
				Name: "check", Usage: "check files", ArgsUsage: "FILE…", UsageText: "exp config check a.yaml",
				Action: func(c *Context) error { return nil },
			}},
		},
		{
			Name: "fail", Usage: "fail as told", Hidden: true,
			Action: func(c *Context) error { return sampleError(a, c) },
		},
	}
}

func sampleError(a *App, c *Context) error {
	switch c.Args().First() {
	case "exit":
		return urfave.Exit("the library's own", 5)
	case "wrapped":
		return fmt.Errorf("verify 5e8d: %w", Failf(ExitDivergence, "step 12 differs"))
	case "full":
		return fmt.Errorf("blob: %w", &os.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC})
	case "plain":
		return errors.New("something odd")
	case "joined":
		return errors.Join(errors.New("one"), errors.New("two"))
	case "said":
		fmt.Fprintln(a.Stderr, "the table")
		return Said(ExitNotComparable)
	case "text":
		return &Failure{Code: ExitUsage, Kind: "config", Err: errors.New("2 errors"),
			Render:   func(bool) string { return "a.yaml:1:2: error[E102]: …" },
			Problems: []Problem{{Message: "unknown key", ID: "E102", File: "a.yaml", Line: 1, Column: 2}}}
	case "help":
		e := Failf(ExitNotFound, "no store")
		e.Help = "run: exp init"
		return e
	case "panic":
		panic("index out of range")
	case "panic-known":
		panic(fmt.Errorf("device: %w", syscall.ENOSPC))
	case "wait":
		a.Progress().Note("waiting")
		<-c.Context.Done()
		return Stoppedf(c.Context, "stopped after step 12; continue with: exp resume 5e8d")
	case "wait-raw":
		<-c.Context.Done()
		return c.Context.Err()
	case "wait-other":
		<-c.Context.Done()
		return Failf(ExitResource, "disk full while saving")
	}
	return nil
}

// The seven rules for urfave/cli v2, in their order.

func TestRule1FlagsAfterPositionals(t *testing.T) {
	got := call{}.run("run", "a.yaml", "--seeds", "0-2", "b.yaml", "-n", "7", "--dry-run", "--", "--c.yaml")
	got.check(t, 0, `args=["a.yaml" "b.yaml" "--c.yaml"] set=[] seeds=0-2 n=7 dry=true store= json=false v=0`+"\n")
}

func TestRule2GlobalFlagsAnywhere(t *testing.T) {
	want := `args=["a.yaml"] set=[] seeds=0 n=0 dry=false store=S json=true v=2` + "\n"
	for _, args := range [][]string{
		{"--store", "S", "--json", "-vv", "run", "a.yaml"},
		{"run", "--store=S", "-o", "json", "-v", "a.yaml", "--verbose"},
		{"run", "a.yaml", "-vv", "--store", "S", "-ojson"},
	} {
		call{}.run(args...).check(t, 0, want)
	}
	call{}.run("config", "-o", "yaml", "show", "f", "--origin").check(t, 0, `config show ["f"] origin=true out=yaml`+"\n")
}

func TestRule3NoSplittingAtCommas(t *testing.T) {
	got := call{}.run("run", "a", "--set", "k=[1,8]", "--set", "x=1,2")
	got.check(t, 0, `args=["a"] set=["k=[1,8]" "x=1,2"] seeds=0 n=0 dry=false store= json=false v=0`+"\n")
}

func TestRule4NoExitInsideRun(t *testing.T) {
	// If the library exited, the test binary would end here.
	call{}.run("fail", "exit").check(t, 5, "", "error: the library's own (exit 5)\n")
}

func TestRule5UsageErrorsOnStderr(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"run", "--sedes", "1"}, "error: unknown flag --sedes for \"exp run\"; did you mean --seeds?\nsee exp run --help\n"},
		{[]string{"run", "-n", "many"}, "error: --max-steps \"many\": it must be a whole number\nsee exp run --help\n"},
		{[]string{"run", "--dry-run=maybe"}, "error: --dry-run \"maybe\": it must be true or false\nsee exp run --help\n"},
		{[]string{"run", "a", "--store"}, "error: --store needs a value\nsee exp run --help\n"},
		{[]string{"run", "--max", "9"}, "error: unknown flag --max for \"exp run\"; did you mean --max-steps?\nsee exp run --help\n"},
		{[]string{"run", "--override", "k=1"}, "error: unknown flag --override for \"exp run\"; did you mean --set?\nsee exp run --help\n"},
		{[]string{"--bogus", "x", "run"}, "error: unknown flag --bogus for \"exp\"\nsee exp --help\n"},
		{[]string{"--dry-run", "run"}, "error: unknown flag --dry-run for \"exp\"; it must follow \"exp run\"\nsee exp --help\n"},
		{[]string{"--seeds", "1", "run"}, "error: unknown flag --seeds for \"exp\"; it must follow \"exp run\"\nsee exp --help\n"},
		{[]string{"config", "show", "-z"}, "error: unknown flag -z for \"exp config show\"\nsee exp config show --help\n"},
		{[]string{"show"}, "error: exp show needs RUN\nsee exp show --help\n"},
		{[]string{"show", "a", "b"}, "error: exp show takes no argument \"b\"\nsee exp show --help\n"},
		{[]string{"--color", "blue", "run"}, "error: --color is \"blue\", but must be one of auto, always, never\n"},
		{[]string{"run", "-o", "jsn"}, "help: did you mean json?\n"},
		{[]string{"run", "--json", "-o", "csv"}, `{"schema":"exp.error/1","code":2,"kind":"usage","errors":[{"message":"--json contradicts --output csv"}]}`},
		{[]string{"-C", "/no/such/dir", "run"}, "error: -C: chdir /no/such/dir: no such file or directory\n"},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			got := call{}.run(tt.args...)
			got.check(t, 2, "", tt.want)
			if n := strings.Count(got.stderr, "\n"); n > 2 {
				t.Errorf("%d lines on stderr, want at most 2:\n%s", n, got.stderr)
			}
		})
	}
}

func TestRule6UnknownCommand(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"rnu", "a.yaml"}, "error: unknown command \"rnu\"; did you mean \"exp run\"?\nsee exp --help\n"},
		{[]string{"config", "shwo"}, "error: unknown command \"config shwo\"; did you mean \"exp config show\"?\nsee exp config --help\n"},
		{[]string{"xyzzy"}, "error: unknown command \"xyzzy\"\nsee exp --help\n"},
		{[]string{"config"}, "error: \"exp config\" needs a command: show, check\nsee exp config --help\n"},
		{[]string{"help", "rum"}, "error: unknown command \"rum\"; did you mean \"exp run\"?\n"},
		{[]string{"--quiet"}, "error: no command given\nsee exp --help\n"},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			call{}.run(tt.args...).check(t, 2, "", tt.want)
		})
	}
	call{}.run("rnu", "a.yaml", "--json").check(t, 2, "", `{"schema":"exp.error/1","code":2,"kind":"usage","errors":[{"message":"unknown command \"rnu\""`)
	// A run may be called "help" or "h", which the library takes for a command.
	call{}.run("show", "help").check(t, 3, "", `no run "help"`)
	call{}.run("show", "h").check(t, 3, "", `no run "h"`)
}

func TestRule7SuggestAndComplete(t *testing.T) {
	a := newApp(System{}, sampleProgram)
	if !a.cli.Suggest || !a.cli.EnableBashCompletion {
		t.Error("Suggest or EnableBashCompletion is off")
	}
	call{}.run("sho", CompletionFlag).check(t, 0, "show\tshow one run\n")
}

func TestBareProgramShowsHelpAndFails(t *testing.T) {
	got := call{}.run()
	got.check(t, 2, "", "usage:", "global flags:")
}

// TestCommandLists checks that the sample commands and the frame's own have everything
// that the frame and the help rely on.
func TestCommandLists(t *testing.T) {
	a := newApp(System{Stdout: io.Discard, Stderr: io.Discard}, sampleProgram)
	for _, cmd := range a.cli.Commands {
		checkCommand(t, a, []*Command{cmd})
	}
}

func checkCommand(t *testing.T, a *App, path []*Command) {
	cmd := path[len(path)-1]
	line := argv{root: a.cli, path: path}
	name := line.command()
	if cmd.Usage == "" {
		t.Errorf("%s: no usage line", name)
	}
	if !cmd.Hidden && len(exampleRows(cmd.UsageText)) == 0 {
		t.Errorf("%s: no example in UsageText", name)
	}
	if len(cmd.Subcommands) == 0 && cmd.Action == nil {
		t.Errorf("%s: neither action nor subcommands", name)
	}
	for _, f := range cmd.Flags {
		if r, ok := f.(urfave.RequiredFlag); ok && r.IsRequired() {
			t.Errorf("%s: flag %s is Required: without it the library prints help on stdout", name, f.Names()[0])
		}
		for _, n := range f.Names() {
			if g, _ := (&argv{root: a.cli}).lookup(n); g != nil {
				t.Errorf("%s: flag %s hides the global one", name, dashed(n))
			}
		}
	}
	for _, row := range exampleRows(cmd.UsageText) {
		checkExample(t, a, name, row[0])
	}
	for _, sub := range cmd.Subcommands {
		checkCommand(t, a, append(path[:len(path):len(path)], sub))
	}
}

// checkExample parses an example: the command must be the one explained and all
// flags must exist.
func checkExample(t *testing.T, a *App, name, example string) {
	_, text, ok := strings.Cut(example, "exp ")
	text, _, _ = strings.Cut(text, " > ")
	text, _, _ = strings.Cut(text, " | ")
	if !ok {
		t.Errorf("%s: example %q does not call exp", name, example)
		return
	}
	v := parseArgv(a.cli, append([]string{"exp"}, strings.Fields(strings.Trim(text, ")"))...))
	if v.err != nil || len(v.unknown) > 0 {
		t.Errorf("%s: example %q: %v, unknown flags %v", name, example, v.err, v.unknown)
	}
	if got := v.command(); !strings.HasPrefix(got, name) && !strings.HasPrefix(name, got) {
		t.Errorf("%s: example %q is of %q", name, example, got)
	}
}
