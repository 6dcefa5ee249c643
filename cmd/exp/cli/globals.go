package cli

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"

	"exp/cmd/exp/term"
	"exp/experiments/spelling"
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

// globalFlags are accepted before and after every command. configure, not the library,
// reads environment variables, through System.Getenv.
func globalFlags() []Flag {
	return []Flag{
		&StringFlag{Name: flagStore, Usage: "`DIR` of the experiment store (default: EXP_STORE, else the nearest " +
			".exp above)"},
		&StringFlag{Name: flagOutput, Aliases: []string{"o"}, Usage: "print results as `FMT`: " +
			strings.Join(Words(Formats), ", ")},
		&BoolFlag{Name: flagJSON, Usage: "same as -o json; errors are JSON too"},
		&StringFlag{Name: flagFields, Usage: "print only these fields, in this order: `A,B,C`"},
		&BoolFlag{Name: flagNoHeader, Usage: "leave out the header line"},
		&StringFlag{Name: flagColor, Usage: "`WHEN` to use colour: " + strings.Join(Words(colorModes), ", ")},
		&StringFlag{Name: flagProgress, Usage: "show progress as `KIND`: " + strings.Join(Words(progressKinds), ", ")},
		&BoolFlag{Name: flagQuiet, Aliases: []string{"q"},
			Usage: "print only results, warnings and errors: no progress and no notes"},
		&BoolFlag{Name: flagVerbose, Aliases: []string{"v"}, Usage: "log more on stderr; twice for debugging",
			Count: new(int)},
		&StringFlag{Name: flagLogFormat, Usage: "`FMT` of the log: " + strings.Join(logFormats, ", ")},
		&StringFlag{Name: flagDir, Usage: "work as if started in `DIR`"},
		// Hidden: needed only on network file systems, whose error message names it.
		&StringFlag{Name: flagJournal, Hidden: true, Usage: "`KIND` of journal of the store: wal, or rollback for " +
			"network file systems, one process at a time"},
		&BoolFlag{Name: flagHelp, Aliases: []string{"h"}, Usage: "explain a command"},
		&BoolFlag{Name: flagVersion, Usage: "print the version"},
	}
}

var (
	colorModes    = []term.ColorMode{term.ColorAuto, term.ColorAlways, term.ColorNever}
	progressKinds = []term.Kind{term.KindAuto, term.KindTTY, term.KindPlain, term.KindJSON, term.KindNone}
	logFormats    = []string{"text", "json"}
)

// settings holds the global flags and the environment.
type settings struct {
	store        string   // --store, else EXP_STORE; empty: to be searched for
	place        []string // -C and --store with their values, as given
	journal      string   // wal, rollback
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
func (a *App) configure(c *Context) error {
	if dir := c.String(flagDir); dir != "" {
		if err := os.Chdir(dir); err != nil {
			return Usagef("-C: %w", err)
		}
	}
	a.store = cmp.Or(c.String(flagStore), a.Getenv("EXP_STORE"))
	a.place = nil
	if dir := c.String(flagDir); dir != "" {
		a.place = append(a.place, "-"+flagDir, dir)
	}
	if dir := c.String(flagStore); dir != "" {
		a.place = append(a.place, "--"+flagStore, dir)
	}
	a.quiet = c.Bool(flagQuiet)
	a.verbosity = c.Count(flagVerbose)

	var err error
	if a.color, err = OneOf("--"+flagColor, c.String(flagColor), colorModes); err != nil {
		return err
	}
	if a.journal, err = OneOf("--"+flagJournal, c.String(flagJournal), []string{"wal", "rollback"}); err != nil {
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

// Place returns the global flags of this command that say where another one finds the store.
func (a *App) Place() []string { return a.place }

func (a *App) configureOutput(c *Context) error {
	f, err := OneOf("--"+flagOutput, c.String(flagOutput), a.formats())
	if err != nil {
		var wrong *Failure
		if out, _ := a.line.lookup("out"); out != nil && errors.As(err, &wrong) && wrong.Help == "" {
			wrong.Help = "-o is the format of the result; --out says where files go"
		}
		return err
	}
	if c.Bool(flagJSON) {
		if c.IsSet(flagOutput) && f != FormatJSON {
			return Usagef("--json contradicts --output %s", f)
		}
		f = FormatJSON
	}
	a.jsonErrors = f == FormatJSON || f == FormatJSONL
	a.Out.Format = f
	a.Out.Header = !c.Bool(flagNoHeader)
	a.Out.Stream = term.Inspect(a.Stdout, a.color, a.Getenv)
	a.Out.Fields = nil
	if list := c.String(flagFields); list != "" {
		a.Out.Fields = strings.Split(list, ",")
	}
	return nil
}

// formats returns the formats of the command.
func (a *App) formats() []Format {
	switch a.line.command() {
	case "exp graph":
		return append(slices.Clone(Formats), FormatDot)
	case "exp compare":
		return append(slices.Clone(Formats), FormatLaTeX, FormatTypst)
	}
	return Formats
}

func (a *App) configureProgress(c *Context) error {
	name, value := "--"+flagProgress, c.String(flagProgress)
	if value == "" {
		name, value = "EXP_PROGRESS", a.Getenv("EXP_PROGRESS")
	}
	kind, err := OneOf(name, value, progressKinds)
	if err != nil {
		return err
	}
	if a.quiet && !c.IsSet(flagProgress) {
		kind = term.KindNone
	}
	a.progressKind = kind
	return nil
}

// configureLog makes the log: warnings by default, info with -v, debug with -vv, errors
// with -q. EXP_LOG sets the level if no flag does.
func (a *App) configureLog(c *Context) error {
	level := slog.LevelWarn
	switch {
	case a.verbosity >= 2:
		level = slog.LevelDebug
	case a.verbosity == 1:
		level = slog.LevelInfo
	case a.quiet:
		level = slog.LevelError
	default:
		if v := a.Getenv("EXP_LOG"); v != "" && level.UnmarshalText([]byte(v)) != nil {
			return Usagef("EXP_LOG is %q, but must be debug, info, warn or error", v)
		}
	}
	f, err := OneOf("--"+flagLogFormat, c.String(flagLogFormat), logFormats)
	if err != nil {
		return err
	}
	options := &slog.HandlerOptions{Level: level}
	if f == "json" {
		a.Log = slog.New(slog.NewJSONHandler(a.Stderr, options))
	} else {
		a.Log = slog.New(slog.NewTextHandler(a.Stderr, options))
	}
	return nil
}

// OneOf checks the value of an enumeration; the empty value is the first.
func OneOf[T ~string](name, value string, allowed []T) (T, error) {
	if value == "" {
		return allowed[0], nil
	}
	if slices.Contains(allowed, T(value)) {
		return T(value), nil
	}
	err := Usagef("%s is %q, but must be one of %s", name, value, strings.Join(Words(allowed), ", "))
	if s := spelling.Nearest(value, Words(allowed)); s != "" {
		err.Help = "did you mean " + s + "?"
	}
	return "", err
}

// Words returns the values of an enumeration as strings.
func Words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}
