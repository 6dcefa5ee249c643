package cli

import urfave "github.com/urfave/cli/v2"

// Commands use the types of urfave/cli, which only this package imports.
type (
	// Command is a command. The frame uses some fields in its own way:
	// ArgsUsage names the positionals ("RUN [STAGE]"), Description is prose that
	// help wraps, UsageText holds examples, one per line, each followed by " # what
	// it does", and App.Completes makes BashComplete. Required must not be set
	// on a flag (the library prints help on stdout then): check in the Action and
	// return Usagef.
	Command = urfave.Command
	// Context gives an Action its flags, positionals and context.
	Context = urfave.Context
	// BashCompleteFunc is a command's hook for completion; App.Completes makes it.
	BashCompleteFunc = urfave.BashCompleteFunc
	// Flag is a flag of a command: one of the types below. Its Usage has the name of the
	// value in backquotes.
	Flag = urfave.Flag
	// BoolFlag takes no value.
	BoolFlag = urfave.BoolFlag
	// IntFlag takes an integer.
	IntFlag = urfave.IntFlag
	// Int64Flag takes an integer of 64 bits.
	Int64Flag = urfave.Int64Flag
	// Float64Flag takes a number.
	Float64Flag = urfave.Float64Flag
	// StringFlag takes a text.
	StringFlag = urfave.StringFlag
	// StringSliceFlag takes a text and may be given several times.
	StringSliceFlag = urfave.StringSliceFlag
)
