package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	urfave "github.com/urfave/cli/v2"

	"exp/cmd/exp/term"
)

// System is everything that the program touches outside itself.
type System struct {
	Args           []string // Args[0] is the program
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Clock          term.Clock
	Signals        <-chan os.Signal // nil: none come
	HookTime       time.Duration    // of a hook of completion; 0: CompletionTime
}

// Program is a program for the frame to run.
type Program struct {
	// Commands makes the commands, in the order of help. The frame adds version,
	// completion and help.
	Commands func(*App) []*Command
	// Known gives an error without an exit code its code and advice; nil if it does
	// not know the error.
	Known func(error) *Failure
	// Examples are the first commands for a newcomer, written as UsageText.
	Examples string
	// Topics are the help pages that are not about one command.
	Topics []Topic
}

// App is one execution of the program. Every constructor of a command gets it.
//
// The first SIGINT or SIGTERM cancels the context of an Action (c.Context). The command
// then saves its work and, if some is left, returns an error that wraps context.Canceled.
// A second signal ends the program at once. OnSignal changes that for a command.
type App struct {
	System
	settings
	Out Output
	Log *slog.Logger

	known  func(error) *Failure
	topics []Topic
	cli    *urfave.App
	line   argv
	word   Word // what the shell wants completed

	mu       sync.Mutex
	progress term.Progress // nil until Progress
	keeps    func() string // OnSecondSignal
	taker    func(os.Signal) bool
}

// Run executes the command of p that sys.Args names, and returns the exit code of the
// process.
func Run(sys System, p Program) int {
	a := newApp(sys, p)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	finished := make(chan ExitCode, 1)
	go func() { finished <- a.execute(ctx) }()

	signalled := false
	for {
		select {
		case code := <-finished:
			return int(code)
		case sig := <-sys.Signals:
			switch {
			case signalled:
				a.abandon(ctx)
				return int(signalCode(sig))
			case a.takes(sig):
			default:
				signalled = true
				cancel(&signalError{sig})
			}
		}
	}
}

func newApp(sys System, p Program) *App {
	a := &App{System: sys, known: p.Known, topics: p.Topics}
	a.settings = defaultSettings()
	a.Out = Output{W: sys.Stdout, Format: FormatTable, Header: true, note: a.Note}
	a.Log = slog.New(slog.DiscardHandler)
	a.cli = &urfave.App{
		Name:                      "exp",
		Usage:                     "run, record and compare RL experiments with language models",
		UsageText:                 p.Examples,
		Flags:                     globalFlags(),
		Commands:                  append(p.Commands(a), versionCommand(a), completionCommand(a), helpCommand(a)),
		Before:                    a.configure,
		Reader:                    sys.Stdin,
		Writer:                    sys.Stdout,
		ErrWriter:                 sys.Stderr,
		Compiled:                  time.Unix(1, 0), // else the library looks for the executable
		HideHelp:                  true,            // help.go
		HideVersion:               true,            // version.go
		Suggest:                   true,
		EnableBashCompletion:      true,
		DisableSliceFlagSeparator: true,                     // --set 'k=[1,8]' is one value
		ExitErrHandler:            func(*Context, error) {}, // else the library exits
		OnUsageError:              a.onUsageError,
	}
	a.cli.BashComplete = func(c *Context) { a.complete(c, nil, nil) }
	a.prepare(a.cli.Commands)
	return a
}

// Command returns the running command as typed: "exp config show".
func (a *App) Command() string { return a.line.command() }

// Usagef makes an error for bad arguments that points to the help of the running command.
func (a *App) Usagef(format string, args ...any) *Failure {
	return Usagef(format, args...).See(a.Command())
}

// prepare sets the hooks that the library wants on every command.
func (a *App) prepare(list []*Command) {
	for _, cmd := range list {
		hook := cmd.BashComplete
		cmd.BashComplete = func(c *Context) { a.complete(c, cmd, hook) }
		cmd.OnUsageError = a.onUsageError
		cmd.HideHelp = true // else "help" and "h" could not be names of runs
		a.prepare(cmd.Subcommands)
	}
}

// execute runs the command and reports how it ended. A panic with an error that the program knows
// is reported as that error.
func (a *App) execute(ctx context.Context) (code ExitCode) {
	defer func() {
		if v := recover(); v != nil {
			a.CloseProgress()
			if err, ok := v.(error); ok && a.known(err) != nil {
				code = a.report(ctx, err) // a device failed, for example
				return
			}
			code = a.reportPanic(v, debug.Stack())
		}
	}()
	if words, ok := completionRequest(a.Args); ok {
		a.completeWords(ctx, words)
		return ExitOK
	}
	err := a.dispatch(ctx)
	a.CloseProgress()
	a.flushWarnings()
	return a.report(ctx, err)
}

// dispatch sorts the arguments and runs the command.
func (a *App) dispatch(ctx context.Context) error {
	a.line = parseArgv(a.cli, a.Args)
	if mode, err := OneOf("", a.line.global(flagColor), colorModes); err == nil {
		a.color = mode // for help and for errors that come before configure
	}
	switch {
	case a.line.help:
		return a.printHelp(a.Stdout, a.line.path)
	case a.line.version:
		return a.printVersion()
	case a.line.err != nil:
		return a.line.err
	case len(a.line.path) == 0 && len(a.line.unknown) == 0:
		return a.noCommand()
	}
	return a.cli.RunContext(ctx, a.line.args())
}

// noCommand lists the commands. It is still an error: a script with an empty variable
// must not continue as if something had been done.
func (a *App) noCommand() error {
	if len(a.line.flags[0]) > 0 {
		return Usagef("no command given").See(a.line.command())
	}
	if err := a.printHelp(a.Stderr, nil); err != nil {
		return err
	}
	return Said(ExitUsage)
}

// onUsageError replaces the library's answer to a bad flag: the whole help on stdout.
func (a *App) onUsageError(_ *Context, err error, _ bool) error {
	if len(a.line.unknown) > 0 {
		return a.line.unknownFlagError()
	}
	f := &Failure{Code: ExitUsage, Kind: "usage", Err: err}
	return f.See(a.Command())
}

// Progress returns the progress display that --progress and the terminal ask for.
// There is one per execution; the frame closes it before it reports an error.
func (a *App) Progress() term.Progress {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.progress == nil {
		a.progress = term.New(a.progressKind, a.Stderr, a.errStream(), a.Clock, a.Getenv)
	}
	return a.progress
}

// CloseProgress ends the progress display before results are printed.
func (a *App) CloseProgress() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.progress != nil {
		a.progress.Close()
	}
}

// OnSecondSignal sets what a second signal prints when it ends the program at once: what
// is saved and how to continue. keeps runs while the command continues or ends.
func (a *App) OnSecondSignal(keeps func() string) {
	a.mu.Lock()
	a.keeps = keeps
	a.mu.Unlock()
}

// OnSignal gives signals to a command before they stop it: in a conversation Ctrl-C ends the answer, not the program.
// take runs concurrently with the command and reports whether it handled the signal; nil restores the default.
func (a *App) OnSignal(take func(os.Signal) bool) {
	a.mu.Lock()
	a.taker = take
	a.mu.Unlock()
}

// takes reports whether the command took a signal.
func (a *App) takes(sig os.Signal) bool {
	a.mu.Lock()
	take := a.taker
	a.mu.Unlock()
	return take != nil && take(sig)
}

// abandon cleans up the terminal while the command is still running, and prints what was
// saved. It does not wait for a command that is stuck writing to the terminal.
func (a *App) abandon(ctx context.Context) {
	closed := make(chan struct{})
	go func() {
		a.CloseProgress()
		a.mu.Lock()
		keeps := a.keeps
		a.mu.Unlock()
		text := "stopped at once"
		if keeps != nil {
			text += "; " + keeps()
		}
		a.report(ctx, Stoppedf(ctx, "%s", text))
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(300 * time.Millisecond):
	}
}

// Warn prints a warning: at once on stderr, or in the "warnings" of a JSON or YAML result.
// Only the command's own goroutine may call it.
func (a *App) Warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if a.Out.HasEnvelope() {
		a.Out.warnings = append(a.Out.warnings, text)
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

// Note prints a remark on stderr, unless -q is given. A terminal wraps it, except lines that
// start with a space: commands, which people copy. --progress json makes it a line like its others.
func (a *App) Note(format string, args ...any) {
	if a.quiet {
		return
	}
	s := a.errStream()
	if a.progressKind == term.KindJSON {
		term.New(term.KindJSON, a.Stderr, s, a.Clock, a.Getenv).Note(fmt.Sprintf(format, args...))
		return
	}
	for line := range strings.SplitSeq(term.CleanLines(fmt.Sprintf(format, args...)), "\n") {
		lines := []string{line}
		if s.TTY && !strings.HasPrefix(line, " ") {
			lines = term.Wrap(line, s.Width())
		}
		for _, text := range lines {
			fmt.Fprintln(a.Stderr, term.Faint.Paint(text, s.Color))
		}
	}
}

// flushWarnings prints the warnings that no envelope carried.
func (a *App) flushWarnings() {
	for _, text := range a.Out.warnings {
		a.printWarning(text)
	}
	a.Out.warnings = nil
}

func (a *App) printWarning(text string) {
	s := a.errStream()
	fmt.Fprintf(a.Stderr, "%s %s\n", term.Warn.Paint("warning:", s.Color), term.Clean(text))
}

// Stream describes a stream: whether it is a terminal, how wide, and with colour or not.
func (a *App) Stream(w io.Writer) term.Stream {
	return term.Inspect(w, a.color, a.Getenv)
}

// errStream describes stderr.
func (a *App) errStream() term.Stream { return a.Stream(a.Stderr) }
