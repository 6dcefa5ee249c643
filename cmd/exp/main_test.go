package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/sandbox"
)

// update rewrites the golden files.
var update = flag.Bool("update", false, "rewrite testdata/*.golden")

// TestMain lets the test binary be exp itself, for tests that need a process.
func TestMain(m *testing.M) {
	if code, ok := sandbox.Enter(); ok {
		os.Exit(code)
	}
	if os.Getenv("EXP_TEST_AS_PROGRAM") != "" {
		main()
	}
	debug.SetGCPercent(400) // a fifteenth of the processor time goes into collecting garbage
	code := m.Run()
	if _, err := os.Stat(".exp"); err == nil {
		fmt.Fprintln(os.Stderr, "a test made a store among the sources: give it --store")
		os.RemoveAll(".exp")
		code = max(code, 1)
	}
	if smokeDir != "" {
		os.RemoveAll(smokeDir)
	}
	os.Exit(code)
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
	list    func(*app) []*cli.Command // nil: commands
	env     map[string]string
	signals chan os.Signal
	now     time.Time // zero: the real time
	stdin   string
	hurried bool // hooks of completion have no more time than in a shell
}

type ended struct {
	code           int
	stdout, stderr string
}

func (c call) run(args ...string) ended {
	if c.list == nil {
		c.list = commands
	}
	var stdout, stderr bytes.Buffer
	clock := term.SystemClock()
	if !c.now.IsZero() {
		clock.Now = func() time.Time { return c.now }
	}
	patience := time.Minute // a busy machine may take longer than a shell would wait
	if c.hurried {
		patience = 0
	}
	code := cli.Run(cli.System{
		Args: append([]string{"exp"}, args...), Stdin: strings.NewReader(c.stdin),
		Stdout: &stdout, Stderr: &stderr,
		Getenv: func(key string) string { return c.env[key] },
		Clock:  clock, HookTime: patience,
		Signals: c.signals,
	}, program(c.list))
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

// jsonError is the schema exp.error/1.
type jsonError struct {
	Code   int
	Kind   string
	Errors []cli.Problem
}

// commandList returns the commands, made for no execution.
func commandList() []*cli.Command { return commands(&app{App: &cli.App{}}) }

// rehearse runs a command line with Actions that do nothing. It returns the command
// whose Action it was, "exp config show", and the positionals.
func rehearse(args ...string) (e ended, command string, positionals []string) {
	list := func(a *app) []*cli.Command {
		var idle func(list []*cli.Command) []*cli.Command
		idle = func(list []*cli.Command) []*cli.Command {
			for _, cmd := range list {
				if cmd.Action != nil {
					cmd.Action = func(c *cli.Context) error {
						command, positionals = a.Command(), c.Args().Slice()
						return nil
					}
				}
				idle(cmd.Subcommands)
			}
			return list
		}
		return idle(commands(a))
	}
	e = call{list: list}.run(args...)
	return e, command, positionals
}

// TestCommandLists checks that every command has everything that the frame and the help
// rely on.
func TestCommandLists(t *testing.T) {
	help := call{}.run("--help").stdout
	_, globals, _ := strings.Cut(help, "global flags:")
	globals, _, _ = strings.Cut(globals, "environment:")
	for _, cmd := range commandList() {
		checkCommand(t, "exp "+cmd.Name, cmd, strings.FieldsFunc(globals, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' }))
	}
}

func checkCommand(t *testing.T, name string, cmd *cli.Command, globals []string) {
	if cmd.Usage == "" {
		t.Errorf("%s: no usage line", name)
	}
	if !cmd.Hidden && len(examplesOf(cmd.UsageText)) == 0 {
		t.Errorf("%s: no example in UsageText", name)
	}
	if len(cmd.Subcommands) == 0 && cmd.Action == nil {
		t.Errorf("%s: neither action nor subcommands", name)
	}
	for _, f := range cmd.Flags {
		if r, ok := f.(interface{ IsRequired() bool }); ok && r.IsRequired() {
			t.Errorf("%s: flag %s is Required: without it the library prints help on stdout", name, f.Names()[0])
		}
		for _, n := range f.Names() {
			if name == "exp figure" && n == "o" {
				continue // the file, as for other programs that draw; its help drops the global -o
			}
			if slices.Contains(globals, "--"+n) || slices.Contains(globals, "-"+n) {
				t.Errorf("%s: flag %s hides the global one", name, n)
			}
		}
	}
	for _, example := range examplesOf(cmd.UsageText) {
		checkExample(t, name, example)
	}
	for _, sub := range cmd.Subcommands {
		checkCommand(t, name+" "+sub.Name, sub, globals)
	}
}

// checkExample rehearses an example: the command must be the one explained, and all
// flags must exist and take their values.
func checkExample(t *testing.T, name, example string) {
	_, text, ok := strings.Cut(example, "exp ")
	text, _, _ = strings.Cut(text, " > ")
	text, _, _ = strings.Cut(text, " | ")
	if !ok {
		t.Errorf("%s: example %q does not call exp", name, example)
		return
	}
	got, command, _ := rehearse(shellWords(strings.Trim(text, ")"))...)
	if got.code != 0 {
		t.Errorf("%s: example %q: %s", name, example, got.stderr)
	}
	if !strings.HasPrefix(command, name) && !strings.HasPrefix(name, command) {
		t.Errorf("%s: example %q is of %q", name, example, command)
	}
}

// examplesOf returns the command lines of a UsageText, without their comments.
func examplesOf(usageText string) (list []string) {
	for line := range strings.Lines(usageText) {
		command, _, _ := strings.Cut(line, " # ")
		if command = strings.TrimSpace(command); command != "" {
			list = append(list, command)
		}
	}
	return list
}

// TestProgramExamples: what help shows first can be typed.
func TestProgramExamples(t *testing.T) {
	for _, example := range examplesOf(programExamples) {
		got, _, positionals := rehearse(strings.Fields(example)[1:]...)
		if got.code != 0 {
			t.Errorf("%s: %s", example, got.stderr)
		}
		for _, word := range positionals {
			if _, err := os.Stat(filepath.Join("..", "..", word)); strings.HasSuffix(word, ".yaml") && err != nil {
				t.Errorf("%s: %v", example, err)
			}
		}
	}
}

// BenchmarkStartup is the time of a whole process; the goal is 15 ms.
func BenchmarkStartup(b *testing.B) {
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		cmd := exec.Command(program, "version")
		cmd.Env = append(os.Environ(), "EXP_TEST_AS_PROGRAM=1")
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
	}
}
