package main

import (
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"exp/cmd/exp/term"
)

// Names of global flags that code refers to.
const (
	flagStore     = "store"
	flagOutput    = "output"
	flagJSON      = "json"
	flagFields    = "fields"
	flagNoHeader  = "no-header"
	flagColor     = "color"
	flagProgress  = "progress"
	flagQuiet     = "quiet"
	flagVerbose   = "verbose"
	flagLogFormat = "log-format"
	flagDir       = "C"
	flagJournal   = "store-journal"
	flagHelp      = "help"
	flagVersion   = "version"
)

// globalFlags are accepted before and after every command. Environment
// variables are read in configure, through system.getenv, and not by the
// library.
func globalFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagStore, Usage: "`DIR` of the experiment store (default: EXP_STORE, else the nearest .exp above)"},
		&cli.StringFlag{Name: flagOutput, Aliases: []string{"o"}, Usage: "print results as `FMT`: " + strings.Join(words(formats), ", ")},
		&cli.BoolFlag{Name: flagJSON, Usage: "same as -o json; errors are JSON too"},
		&cli.StringFlag{Name: flagFields, Usage: "print only these fields, in this order: `A,B,C`"},
		&cli.BoolFlag{Name: flagNoHeader, Usage: "leave out the header line"},
		&cli.StringFlag{Name: flagColor, Usage: "`WHEN` to use colour: " + strings.Join(words(colorModes), ", ")},
		&cli.StringFlag{Name: flagProgress, Usage: "show progress as `KIND`: " + strings.Join(words(progressKinds), ", ")},
		&cli.BoolFlag{Name: flagQuiet, Aliases: []string{"q"}, Usage: "no progress and no notes, only results, warnings and errors"},
		&cli.BoolFlag{Name: flagVerbose, Aliases: []string{"v"}, Usage: "log more on stderr; twice for debugging", Count: new(int)},
		&cli.StringFlag{Name: flagLogFormat, Usage: "`FMT` of the log: " + strings.Join(logFormats, ", ")},
		&cli.StringFlag{Name: flagDir, Usage: "work as if started in `DIR`"},
		// Hidden: only who was refused a network file system needs it, and is told.
		&cli.StringFlag{Name: flagJournal, Hidden: true, Usage: "`KIND` of journal of the store: wal, or rollback for network file systems, one process at a time"},
		&cli.BoolFlag{Name: flagHelp, Aliases: []string{"h"}, Usage: "explain a command"},
		&cli.BoolFlag{Name: flagVersion, Usage: "print the version"},
	}
}

var (
	colorModes    = []term.ColorMode{term.ColorAuto, term.ColorAlways, term.ColorNever}
	progressKinds = []term.Kind{term.KindAuto, term.KindTTY, term.KindPlain, term.KindJSON, term.KindNone}
	logFormats    = []string{"text", "json"}
)

// settings is what the global flags and the environment say.
type settings struct {
	store        string // --store, else EXP_STORE; empty: to be searched for
	journal      string // wal, rollback
	color        term.ColorMode
	progressKind term.Kind
	quiet        bool
	verbosity    int // number of -v
	jsonErrors   bool
}

func defaultSettings() settings {
	return settings{color: term.ColorAuto, progressKind: term.KindAuto}
}

// configure reads the global flags; it runs before every command.
func (a *app) configure(c *cli.Context) error {
	if dir := c.String(flagDir); dir != "" {
		if err := os.Chdir(dir); err != nil {
			return usagef("-C: %w", err)
		}
	}
	a.store = or(c.String(flagStore), a.getenv("EXP_STORE"))
	a.quiet = c.Bool(flagQuiet)
	a.verbosity = c.Count(flagVerbose)

	var err error
	if a.color, err = oneOf("--"+flagColor, c.String(flagColor), colorModes); err != nil {
		return err
	}
	if a.journal, err = oneOf("--"+flagJournal, c.String(flagJournal), []string{"wal", "rollback"}); err != nil {
		return err
	}
	if err := a.configureOutput(c); err != nil {
		return err
	}
	if err := a.configureProgress(c); err != nil {
		return err
	}
	return a.configureLog(c)
}

func (a *app) configureOutput(c *cli.Context) error {
	f, err := oneOf("--"+flagOutput, c.String(flagOutput), a.formats())
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		if c.IsSet(flagOutput) && f != formatJSON {
			return usagef("--json contradicts --output %s", f)
		}
		f = formatJSON
	}
	a.jsonErrors = f == formatJSON || f == formatJSONL
	a.out.format = f
	a.out.header = !c.Bool(flagNoHeader)
	a.out.stream = term.Inspect(a.stdout, a.color, a.getenv)
	a.out.fields = nil
	if list := c.String(flagFields); list != "" {
		a.out.fields = strings.Split(list, ",")
	}
	return nil
}

// formats are those that the command has.
func (a *app) formats() []format {
	if a.line.command() == "exp graph" {
		return append(slices.Clone(formats), formatDot)
	}
	return formats
}

func (a *app) configureProgress(c *cli.Context) error {
	name, value := "--"+flagProgress, c.String(flagProgress)
	if value == "" {
		name, value = "EXP_PROGRESS", a.getenv("EXP_PROGRESS")
	}
	kind, err := oneOf(name, value, progressKinds)
	if err != nil {
		return err
	}
	if a.quiet && !c.IsSet(flagProgress) {
		kind = term.KindNone
	}
	a.progressKind = kind
	return nil
}

// configureLog makes the log: warnings only, with -v what happens, with -vv
// details, with -q errors. EXP_LOG names a level where no flag does.
func (a *app) configureLog(c *cli.Context) error {
	level := slog.LevelWarn
	switch {
	case a.verbosity >= 2:
		level = slog.LevelDebug
	case a.verbosity == 1:
		level = slog.LevelInfo
	case a.quiet:
		level = slog.LevelError
	default:
		if v := a.getenv("EXP_LOG"); v != "" && level.UnmarshalText([]byte(v)) != nil {
			return usagef("EXP_LOG is %q, but must be debug, info, warn or error", v)
		}
	}
	f, err := oneOf("--"+flagLogFormat, c.String(flagLogFormat), logFormats)
	if err != nil {
		return err
	}
	options := &slog.HandlerOptions{Level: level}
	if f == "json" {
		a.log = slog.New(slog.NewJSONHandler(a.stderr, options))
	} else {
		a.log = slog.New(slog.NewTextHandler(a.stderr, options))
	}
	return nil
}

// oneOf checks the value of an enumeration; the empty value is the first.
func oneOf[T ~string](name, value string, allowed []T) (T, error) {
	if value == "" {
		return allowed[0], nil
	}
	if slices.Contains(allowed, T(value)) {
		return T(value), nil
	}
	err := usagef("%s is %q, but must be one of %s", name, value, strings.Join(words(allowed), ", "))
	if s := nearest(value, words(allowed)); s != "" {
		err.Help = "did you mean " + s + "?"
	}
	return "", err
}

func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
