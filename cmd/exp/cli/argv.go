package cli

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	urfave "github.com/urfave/cli/v2"

	"exp/experiments/spelling"
)

// argv is a command line in the order of urfave/cli: global flags, then
// each command with its flags, then positionals. The library takes everything
// after the first positional as a positional, and rejects global flags after the
// command; people write both.
//
// Flags are put under their first name and joined with their value
// ("--output=json"), so that -o and --output are one flag to the library, and a
// value that starts with a dash is still a value.
type argv struct {
	root *urfave.App
	prog string
	path []*Command // the commands named, outermost first

	flags       [][]string // per level, [0] the global ones
	positionals []string
	onlyWords   bool // "--" has been seen: no flags follow

	help, version bool
	unknown       []string // unknown flags, left in place for the parser to reject
	unknownAt     string   // the command so far when the first of them came
	pending       string   // name of a flag at the end that lacks its value
	err           error    // an error found before the parser runs
}

// parseArgv reads args; args[0] is the program. A flag is looked up in
// the innermost command first and in the globals last. "--" ends the flags; "-"
// alone is a positional. It understands --flag value, --flag=value, -f value,
// -fvalue, bundles such as -vqn5, and -flag for --flag as Go programs do.
func parseArgv(root *urfave.App, args []string) argv {
	v := argv{root: root, prog: root.Name, flags: make([][]string, 1)}
	if len(args) > 0 {
		v.prog, args = args[0], args[1:]
	}
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch {
		case v.err != nil && (v.onlyWords || len(word) < 2 || word[0] != '-'):
			// after an unknown command; flags still choose the format of the error
		case v.onlyWords || len(word) < 2 || word[0] != '-':
			v.word(word)
		case word == "--":
			v.onlyWords = true
		default:
			args = v.flag(word, args)
		}
	}
	v.check()
	return v
}

// args returns the arguments for the parser.
func (v *argv) args() []string {
	out := append([]string{v.prog}, v.flags[0]...)
	if len(v.path) == 0 {
		return out
	}
	for i, cmd := range v.path {
		out = append(append(out, cmd.Name), v.flags[i+1]...)
	}
	return append(append(out, "--"), v.positionals...)
}

// command is the command so far, as typed: "exp config show".
func (v *argv) command() string {
	words := []string{v.root.Name}
	for _, cmd := range v.path {
		words = append(words, cmd.Name)
	}
	return strings.Join(words, " ")
}

// global returns the last value of a global flag, without the parser; "true" for a flag
// without value.
func (v *argv) global(name string) string {
	value := ""
	if len(v.flags) == 0 {
		return value
	}
	for _, word := range v.flags[0] {
		flag, after, joined := strings.Cut(word, "=")
		switch {
		case flag != dashed(name):
		case joined:
			value = after
		default:
			value = "true"
		}
	}
	return value
}

// subcommands returns the commands that may follow.
func (v *argv) subcommands() []*Command {
	if len(v.path) == 0 {
		return v.root.Commands
	}
	return v.path[len(v.path)-1].Subcommands
}

// word takes a command name or a positional.
func (v *argv) word(word string) {
	list := v.subcommands()
	if len(list) == 0 || len(v.positionals) > 0 {
		v.positionals = append(v.positionals, word)
		return
	}
	for _, cmd := range list {
		if cmd.HasName(word) {
			v.path = append(v.path, cmd)
			v.flags = append(v.flags, nil)
			return
		}
	}
	if len(v.path) > 0 && v.path[len(v.path)-1].Action != nil {
		v.positionals = append(v.positionals, word)
		return
	}
	if len(v.unknown) == 0 { // else word may be the value of that flag
		v.err = v.unknownCommandError(word)
	}
}

// flag takes one flag or a bundle of flags, with its value from rest if needed, and
// returns the remaining rest.
func (v *argv) flag(word string, rest []string) []string {
	name, value, joined := strings.Cut(strings.TrimPrefix(word[1:], "-"), "=")
	f, level := v.lookup(name)
	if f == nil && word[1] != '-' {
		if left, ok := v.bundle(word[1:], rest); ok {
			return left
		}
	}
	switch {
	case f == nil:
		if len(v.unknown) == 0 {
			v.unknownAt = v.command()
		}
		v.unknown = append(v.unknown, word)
		v.flags[len(v.path)] = append(v.flags[len(v.path)], word)
	case !takesValue(f) && !joined:
		v.add(f, level, "")
	case joined:
		v.add(f, level, "="+value)
	case len(rest) == 0:
		v.pending = f.Names()[0]
	default:
		v.add(f, level, "="+rest[0])
		return rest[1:]
	}
	return rest
}

// bundle reads "vqn5" as -v -q -n 5. It reports false, and takes nothing, if a letter is
// not a flag.
func (v *argv) bundle(letters string, rest []string) (left []string, ok bool) {
	type found struct {
		f     Flag
		level int
	}
	var list []found
	value := ""
	for i, r := range letters {
		f, level := v.lookup(string(r))
		if f == nil {
			return rest, false
		}
		list = append(list, found{f, level})
		if takesValue(f) {
			value = letters[i+utf8.RuneLen(r):]
			break
		}
	}
	last := list[len(list)-1]
	for _, b := range list[:len(list)-1] {
		v.add(b.f, b.level, "")
	}
	switch {
	case !takesValue(last.f):
		v.add(last.f, last.level, "")
	case value != "":
		v.add(last.f, last.level, "="+strings.TrimPrefix(value, "="))
	case len(rest) > 0:
		v.add(last.f, last.level, "="+rest[0])
		return rest[1:], true
	default:
		v.pending = last.f.Names()[0]
	}
	return rest, true
}

// add records a flag; value is "" or starts with "=".
func (v *argv) add(f Flag, level int, value string) {
	name := f.Names()[0]
	if level == 0 && (name == flagHelp || name == flagVersion) {
		on := value != "=false" && v.err == nil // an unknown command has no help
		v.help = v.help || on && name == flagHelp
		v.version = v.version || on && name == flagVersion
		return
	}
	v.flags[level] = append(v.flags[level], dashed(name)+value)
}

// lookup finds the flag called name, and its level.
func (v *argv) lookup(name string) (Flag, int) {
	for level := len(v.path); level >= 0; level-- {
		for _, f := range v.flagsOf(level) {
			for _, n := range f.Names() {
				if n == name {
					return f, level
				}
			}
		}
	}
	return nil, 0
}

func (v *argv) flagsOf(level int) []Flag {
	if level == 0 {
		return v.root.Flags
	}
	return v.path[level-1].Flags
}

// check finds missing commands and values at the end.
func (v *argv) check() {
	switch {
	case v.err != nil:
	case v.pending != "":
		v.err = Usagef("%s needs a value", dashed(v.pending)).See(v.command())
	case len(v.unknown) == 0 && v.badValue() != nil:
		v.err = v.badValue()
	case len(v.path) > 0 && len(v.unknown) == 0 && len(v.positionals) == 0:
		if last := v.path[len(v.path)-1]; last.Action == nil {
			v.err = Usagef("%q needs a command: %s", v.command(),
				strings.Join(names(last.Subcommands), ", ")).See(v.command())
		}
	}
}

// badValue returns an error for the first value that does not fit the type of its flag.
// The parser would print the flag with one dash, and "parse error".
func (v *argv) badValue() error {
	for level, flags := range v.flags {
		for _, word := range flags {
			name, value, joined := strings.Cut(word, "=")
			if !joined {
				continue
			}
			for _, f := range v.flagsOf(level) {
				if want := wanted(f, value); want != "" && dashed(f.Names()[0]) == name {
					return Usagef("%s %q: it must be %s", name, value, want).See(v.command())
				}
			}
		}
	}
	return nil
}

// wanted says what a flag's value should be; empty if value is right.
func wanted(f Flag, value string) string {
	var err error
	want := ""
	switch f.(type) {
	case *IntFlag:
		want = "a whole number"
		_, err = strconv.ParseInt(value, 0, 0)
	case *Float64Flag:
		want = "a number"
		_, err = strconv.ParseFloat(value, 64)
	case *BoolFlag:
		want = "true or false"
		_, err = strconv.ParseBool(value)
	}
	if err == nil {
		return ""
	}
	return want
}

// otherWords maps what other programs call a command to its name here.
var otherWords = map[string]string{"list": "ls", "status": "ls", "ps": "ls", "delete": "rm", "remove": "rm",
	"describe": "show", "info": "show", "train": "run", "evaluate": "eval", "plot": "report", "download": "get",
	"fetch": "get", "logs": "log", "dir": "ls", "tail": "log"}

func (v *argv) unknownCommandError(word string) error {
	full := strings.TrimPrefix(v.command()+" "+word, v.root.Name+" ")
	err := Usagef("unknown command %q", full).See(v.command())
	known := names(v.subcommands())
	s := spelling.Nearest(word, known)
	if other := otherWords[word]; slices.Contains(known, other) {
		s = other
	}
	if s != "" {
		err.Help = "did you mean \"" + strings.TrimSuffix(v.command()+" "+s, " ") + "\"?"
	}
	return err
}

// otherFlags maps what other programs call a flag to its names here; a command has at most one of them.
var otherFlags = map[string][]string{"num-samples": {"n"}, "n-samples": {"n"}, "num-return-sequences": {"n"},
	"output-dir": {"out"}, "output-file": {"out"}, "output-path": {"out"}, "outdir": {"out"}, "dir": {"out", "store"},
	"gpu": {"device"}, "cuda": {"device"}, "workers": {"jobs", "concurrent"}, "num-workers": {"jobs", "concurrent"},
	"parallel": {"jobs", "concurrent"}, "where": {"filter"}, "port": {"addr"}, "host": {"addr"}, "lora": {"adapter"},
	"max-length": {"max-new-tokens", "max-tokens"}, "max-samples": {"limit"}, "override": {"set"}, "param": {"set"},
	"dry": {"dry-run"}, "tasks": {"suite"}, "task": {"suite"}, "baseline": {"vs"}, "reset": {"no-cache"}}

// onlyWithPrefix returns the one name that begins with word, such as vocab-size for vocab; empty for none or several.
func onlyWithPrefix(word string, known []string) (found string) {
	for _, name := range known {
		if len(word) > 2 && strings.HasPrefix(name, word) {
			if found != "" {
				return ""
			}
			found = name
		}
	}
	return found
}

func (v *argv) unknownFlagError() error {
	word, _, _ := strings.Cut(v.unknown[0], "=")
	err := Usagef("unknown flag %s for %q", word, v.unknownAt).See(v.unknownAt)
	name := strings.TrimLeft(word, "-")
	if f, _ := v.lookup(name); f != nil {
		err.Help = "it must follow \"" + v.command() + "\""
		return err
	}
	var known []string
	for level := range len(v.path) + 1 {
		for _, f := range v.flagsOf(level) {
			known = append(known, f.Names()...)
		}
	}
	s := spelling.Nearest(name, known)
	if s == "" {
		s = onlyWithPrefix(name, known)
	}
	for _, other := range otherFlags[strings.ReplaceAll(name, "_", "-")] {
		if slices.Contains(known, other) {
			s = other
			break
		}
	}
	if s != "" {
		err.Help = "did you mean " + dashed(s) + "?"
	}
	return err
}

// Positionals returns the arguments of a command and checks that there are at least least
// and at most most; most < 0 means any number.
func Positionals(c *Context, least, most int) ([]string, error) {
	list := c.Args().Slice()
	name := c.Command.HelpName
	switch {
	case len(list) < least && len(list) == 0:
		return nil, Usagef("%s needs %s", name, c.Command.ArgsUsage).See(name)
	case len(list) < least:
		return nil, Usagef("%s needs %s, but only %d given", name, c.Command.ArgsUsage, len(list)).See(name)
	case most >= 0 && len(list) > most:
		return nil, Usagef("%s takes no argument %q", name, list[most]).See(name)
	}
	return list, nil
}

// ActionFunc executes a command.
type ActionFunc = func(c *Context) error

// WithArgs returns an action whose arguments Positionals checks.
func WithArgs(least, most int, do func(c *Context, args []string) error) ActionFunc {
	return func(c *Context) error {
		args, err := Positionals(c, least, most)
		if err != nil {
			return err
		}
		return do(c, args)
	}
}

// names lists the commands that are not hidden.
func names(list []*Command) []string {
	var out []string
	for _, cmd := range list {
		if !cmd.Hidden {
			out = append(out, cmd.Name)
		}
	}
	return out
}

func takesValue(f Flag) bool {
	d, ok := f.(urfave.DocGenerationFlag)
	return ok && d.TakesValue()
}

// dashed returns a flag as typed: -o, --output.
func dashed(name string) string {
	if utf8.RuneCountInString(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
