package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"exp/cmd/exp/term"
)

// commands is the list of all commands, in the order in which help shows them.
// A command is added by writing its constructor and naming it here.
//
// In a cli.Command the frame gives these fields a meaning of its own:
// ArgsUsage names the positionals ("RUN [STAGE]"), Description is prose that
// help wraps, UsageText holds examples, one a line, each followed by " # what
// it does", and BashComplete is made by app.completes. Required must not be set
// on a flag (the library prints help on stdout then): check in the Action and
// return usagef.
func commands(a *app) []*cli.Command {
	return []*cli.Command{
		runCommand(a),
		resumeCommand(a),
		verifyCommand(a),
		whyCommand(a),
		lsCommand(a),
		showCommand(a),
		metricsCommand(a),
		samplesCommand(a),
		diffCommand(a),
		compareCommand(a),
		evalCommand(a),
		inspectCommand(a),
		gradeCommand(a),
		suiteCommand(a),
		tokenizerCommand(a),
		reportCommand(a),
		logCommand(a),
		graphCommand(a),
		queryCommand(a),
		stopCommand(a),
		tagCommand(a),
		noteCommand(a),
		pinCommand(a),
		rmCommand(a),
		restoreCommand(a),
		gcCommand(a),
		fsckCommand(a),
		exportCommand(a),
		importCommand(a),
		configCommand(a),
		doctorCommand(a),
		benchCommand(a),
		sandboxCommand(a),
		versionCommand(a),
		completionCommand(a),
		helpCommand(a),
	}
}

// programExamples are what a newcomer may type first.
const programExamples = `exp run configs/smoke_cpu.yaml # train and evaluate a tiny model in seconds
exp show @last # what came of it
exp run configs/countdown_cpu_ppo.yaml configs/countdown_cpu_flowrl.yaml --seeds 0-2 # two arms
exp compare countdown-ppo countdown-flowrl # which is better, and how sure that is
exp report countdown-ppo countdown-flowrl --out report # figures and tables`

// system is all that the program touches outside itself.
type system struct {
	args           []string // args[0] is the program
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	clock          term.Clock
	signals        <-chan os.Signal // nil: none come
}

// app is one execution of the program, handed to the constructor of every
// command.
//
// The context of an Action (c.Context) is cancelled by the first SIGINT or
// SIGTERM: the command finishes what it must, and returns an error that wraps
// context.Canceled if it did not finish its work. A second signal ends the
// program at once.
type app struct {
	system
	cli  *cli.App
	line argv
	word word // what the shell wants completed
	settings
	out output
	log *slog.Logger

	// panicLog, if a command sets it, receives the stack of a panic, and returns
	// where it wrote it. Without it the stack goes to stderr.
	panicLog func(value any, stack []byte) (where string)

	mu       sync.Mutex
	progress term.Progress // nil until progressDisplay
}

// run executes the command that sys.args names, out of those that list returns,
// and returns the exit code of §5.2.
func run(sys system, list func(*app) []*cli.Command) int {
	a := newApp(sys, list)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	finished := make(chan exitCode, 1)
	go func() { finished <- a.execute(ctx) }()

	signalled := false
	for {
		select {
		case code := <-finished:
			return int(code)
		case sig := <-sys.signals:
			if signalled {
				a.abandon()
				return int(signalCode(sig))
			}
			signalled = true
			cancel(&signalError{sig})
		}
	}
}

func newApp(sys system, list func(*app) []*cli.Command) *app {
	a := &app{system: sys}
	a.settings = defaultSettings()
	a.out = output{w: sys.stdout, format: formatTable, header: true}
	a.log = slog.New(slog.DiscardHandler)
	a.cli = &cli.App{
		Name:                      "exp",
		Usage:                     "run, record and compare RL experiments with language models",
		UsageText:                 programExamples,
		Flags:                     globalFlags(),
		Commands:                  list(a),
		Before:                    a.configure,
		Reader:                    sys.stdin,
		Writer:                    sys.stdout,
		ErrWriter:                 sys.stderr,
		Compiled:                  time.Unix(1, 0), // else the library looks for the executable
		HideHelp:                  true,            // help.go
		HideVersion:               true,            // version.go
		Suggest:                   true,
		EnableBashCompletion:      true,
		DisableSliceFlagSeparator: true,                         // --set 'k=[1,8]' is one value
		ExitErrHandler:            func(*cli.Context, error) {}, // else the library exits
		OnUsageError:              a.onUsageError,
	}
	a.cli.BashComplete = func(c *cli.Context) { a.complete(c, nil, nil) }
	a.prepare(a.cli.Commands)
	return a
}

// prepare gives every command what the library wants per command.
func (a *app) prepare(list []*cli.Command) {
	for _, cmd := range list {
		hook := cmd.BashComplete
		cmd.BashComplete = func(c *cli.Context) { a.complete(c, cmd, hook) }
		cmd.OnUsageError = a.onUsageError
		cmd.HideHelp = true // else "help" and "h" could not be names of runs
		a.prepare(cmd.Subcommands)
	}
}

// execute runs the command and reports how it ended.
func (a *app) execute(ctx context.Context) (code exitCode) {
	defer func() {
		if v := recover(); v != nil {
			a.closeProgress()
			code = a.reportPanic(v, debug.Stack())
		}
	}()
	if words, ok := completionRequest(a.args); ok {
		a.completeWords(ctx, words)
		return exitOK
	}
	err := a.dispatch(ctx)
	a.closeProgress()
	a.flushWarnings()
	return a.report(ctx, err)
}

// dispatch brings the arguments into order and runs what they ask for.
func (a *app) dispatch(ctx context.Context) error {
	a.line = parseArgv(a.cli, a.args)
	if mode, err := oneOf("", a.line.global(flagColor), colorModes); err == nil {
		a.color = mode // for help and for errors that come before configure
	}
	switch {
	case a.line.help:
		return a.printHelp(a.stdout, a.line.path)
	case a.line.version:
		return a.printVersion()
	case a.line.err != nil:
		return a.line.err
	case len(a.line.path) == 0 && len(a.line.unknown) == 0:
		return a.noCommand()
	}
	return a.cli.RunContext(ctx, a.line.args())
}

// noCommand shows what commands there are. It is an error all the same: a script
// whose variable is empty must not go on as if something had been done.
func (a *app) noCommand() error {
	if len(a.line.flags[0]) > 0 {
		return usagef("no command given").see(a.line.command())
	}
	if err := a.printHelp(a.stderr, nil); err != nil {
		return err
	}
	return errSaid(exitUsage)
}

// onUsageError replaces the library's answer to a flag it does not accept,
// which is the whole help on stdout.
func (a *app) onUsageError(_ *cli.Context, err error, _ bool) error {
	if len(a.line.unknown) > 0 {
		return a.line.unknownFlagError()
	}
	return &failure{Code: exitUsage, Kind: "usage", Err: err, See: a.line.command()}
}

// progressDisplay returns the progress display that --progress and the terminal
// ask for. There is one per execution; the frame closes it before it reports
// anything.
func (a *app) progressDisplay() term.Progress {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.progress == nil {
		a.progress = term.New(a.progressKind, a.stderr, a.errStream(), a.clock, a.getenv)
	}
	return a.progress
}

func (a *app) closeProgress() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.progress != nil {
		a.progress.Close()
	}
}

// abandon leaves the terminal clean while the command is still running. It does
// not wait for a command that is stuck in writing to that terminal.
func (a *app) abandon() {
	closed := make(chan struct{})
	go func() {
		a.closeProgress()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(100 * time.Millisecond):
	}
}

// warn tells the user something that is no error: at once on stderr, or among
// the "warnings" of a JSON or YAML result. Only the goroutine of the command
// may call it.
func (a *app) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if a.out.hasEnvelope() {
		a.out.warnings = append(a.out.warnings, text)
		return
	}
	a.mu.Lock()
	p := a.progress
	a.mu.Unlock()
	if p != nil && a.progressKind != term.KindNone {
		p.Warn(text)
		return
	}
	a.printWarning(text)
}

// note tells the user something that is neither a result nor a warning, on
// stderr; with -q it does not.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		text := term.Clean(fmt.Sprintf(format, args...))
		fmt.Fprintln(a.stderr, term.Faint.Paint(text, a.errStream().Color))
	}
}

// flushWarnings prints the warnings that no envelope took along.
func (a *app) flushWarnings() {
	for _, text := range a.out.warnings {
		a.printWarning(text)
	}
	a.out.warnings = nil
}

func (a *app) printWarning(text string) {
	s := a.errStream()
	fmt.Fprintf(a.stderr, "%s %s\n", term.Warn.Paint("warning:", s.Color), term.Clean(text))
}

// errStream is what is known about stderr.
func (a *app) errStream() term.Stream {
	return term.Inspect(a.stderr, a.color, a.getenv)
}
