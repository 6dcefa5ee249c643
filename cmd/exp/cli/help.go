package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"exp/cmd/exp/term"
)

// helpMaxWidth keeps prose readable on wide terminals.
const helpMaxWidth = 100

func helpCommand(a *App) *Command {
	return &Command{
		Name:      "help",
		Usage:     "explain a command or a topic",
		ArgsUsage: "[COMMAND… | TOPIC]",
		Category:  "set up",
		UsageText: "exp help completion  # the same as exp completion --help",
		BashComplete: a.Completes(func(_ *Context, w Word) []Candidate {
			list := a.cli.Commands
			for _, name := range w.Args {
				cmd := find(list, name)
				if cmd == nil {
					return nil
				}
				list = cmd.Subcommands
			}
			if len(w.Args) == 0 {
				return append(commandCandidates(list), a.topicCandidates()...)
			}
			return commandCandidates(list)
		}),
		Action: func(c *Context) error {
			line := argv{root: a.cli}
			if t := a.topic(c.Args().First()); t != nil && c.NArg() == 1 {
				return a.printTopic(t)
			}
			for _, name := range c.Args().Slice() {
				cmd := find(line.subcommands(), name)
				if cmd == nil {
					return line.unknownCommandError(name)
				}
				line.path = append(line.path, cmd)
			}
			return a.printHelp(a.Stdout, line.path)
		},
	}
}

func find(list []*Command, name string) *Command {
	for _, cmd := range list {
		if cmd.HasName(name) {
			return cmd
		}
	}
	return nil
}

// helpPage writes help in the width and colour of one stream.
type helpPage struct {
	out   *bufio.Writer
	width int
	color bool
}

func (a *App) newHelpPage(w io.Writer) *helpPage {
	s := term.Inspect(w, a.color, a.Getenv)
	return &helpPage{bufio.NewWriter(w), min(s.Width(), helpMaxWidth), s.Color}
}

func (a *App) printTopic(t *Topic) error {
	p := a.newHelpPage(a.Stdout)
	p.topic(a.cli.Name, t)
	return p.out.Flush()
}

// printHelp explains the last command of path, or the program if path is empty.
func (a *App) printHelp(w io.Writer, path []*Command) error {
	p := a.newHelpPage(w)
	if len(path) == 0 {
		p.program(a.cli)
		p.moreHelp(a.cli.Name, a.topics)
	} else {
		line := argv{root: a.cli, path: path}
		p.command(line.command(), path)
	}
	return p.out.Flush()
}

func (p *helpPage) program(root *urfave.App) {
	p.text("", root.Name+" – "+root.Usage)
	p.heading("usage")
	p.text("  ", root.Name+" COMMAND [flags] [arguments], flags anywhere")
	if examples := exampleRows(root.UsageText); len(examples) > 0 {
		p.heading("examples")
		p.rows(examples)
	}
	column := term.Widest(names(root.Commands)...)
	for _, category := range categories(root.Commands) {
		p.heading(strings.ToLower(cmp.Or(category, "commands")))
		for _, cmd := range root.Commands {
			if cmd.Category == category && !cmd.Hidden {
				p.row(column, cmd.Name, cmd.Usage)
			}
		}
	}
	p.heading("global flags")
	p.rows(flagRows(root.Flags))
	p.heading("environment")
	p.rows([][2]string{
		{"EXP_STORE", "the store, unless --store is given"},
		{"EXP_THREADS", "number of threads, unless --threads is given"},
		{"EXP_CPU", "the kernels: amx, avx512bf16, avx512, avx2 or portable (default: the best that " +
			"this machine supports)"},
		{"EXP_CONFIG", "your own configuration (default: ~/.config/exp/config.yaml)"},
		{"EXP_PROGRESS", "the kind of progress, unless --progress is given"},
		{"EXP_LOG", "level of the log: debug, info, warn, error"},
		{"EXP_FORCE_TTY", "number of columns; write as if to a terminal that wide"},
		{"NO_COLOR", "any value: no colour"},
	})
	p.heading("exit codes")
	p.rows([][2]string{
		{"0", "success"}, {"1", "unexpected failure"}, {"2", "bad usage or bad config"},
		{"3", "not found, or an ambiguous reference"}, {"4", "stored data is damaged"},
		{"5", "re-execution gave different bits"}, {"6", "the arms are not comparable"},
		{"7", "disk, memory, device or lock not available"}, {"8", "evaluation could not grade"},
		{"9", "a --fail-if or --stop-if condition held"},
		{"10", "a rank was lost or hung; can be resumed"}, {"130, 143", "stopped by a signal; can be resumed"},
	})
}

func (p *helpPage) command(name string, path []*Command) {
	cmd := path[len(path)-1]
	p.text("", name+" – "+cmd.Usage)
	p.heading("usage")
	arguments := cmd.ArgsUsage
	if len(cmd.Subcommands) > 0 {
		arguments = "COMMAND [arguments]"
	}
	flags := ""
	if len(cmd.Flags) > 0 {
		flags = "[flags] "
	}
	p.text("  ", strings.TrimRight(name+" "+flags+arguments, " "))
	if cmd.Description != "" {
		p.text("", "")
		p.text("", cmd.Description)
	}
	if len(cmd.Subcommands) > 0 {
		p.heading("commands")
		p.rows(commandRows(cmd.Subcommands))
	}
	if examples := exampleRows(cmd.UsageText); len(examples) > 0 {
		p.heading("examples")
		p.rows(examples)
	}
	for i := len(path) - 1; i >= 0; i-- {
		if rows := flagRows(path[i].Flags); len(rows) > 0 {
			p.heading("flags")
			p.rows(rows)
		}
	}
	p.text("", "")
	global := "--store, -o, --json, …"
	if slices.ContainsFunc(cmd.Flags, func(f Flag) bool { return slices.Contains(f.Names(), "o") }) {
		global = "--store, --json, …" // -o is the command's own
	}
	p.text("", "Global flags ("+global+"): exp --help")
}

func (p *helpPage) heading(text string) {
	fmt.Fprintf(p.out, "\n%s\n", term.Strong.Paint(text+":", p.color))
}

// text prints wrapped paragraphs; a line that starts with a space keeps its columns.
func (p *helpPage) text(margin, text string) {
	for paragraph := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(paragraph, " ") {
			for _, line := range term.Hang(margin+paragraph, p.width) {
				fmt.Fprintf(p.out, "%s\n", line)
			}
			continue
		}
		for _, line := range term.Wrap(paragraph, p.width-len(margin)) {
			fmt.Fprintf(p.out, "%s\n", strings.TrimRight(margin+line, " "))
		}
	}
}

// rows prints words and their explanations in two columns.
func (p *helpPage) rows(rows [][2]string) {
	const most = 30 // a longer text gets its own line
	column := 0
	for _, r := range rows {
		if w := term.Width(r[0]); w <= most {
			column = max(column, w)
		}
	}
	for _, r := range rows {
		p.row(column, r[0], r[1])
	}
}

// row prints text, padded to column, and its explanation; below a longer text, the
// explanation starts on the next line.
func (p *helpPage) row(column int, text, explanation string) {
	const margin, gap = 2, 2
	lines := term.Wrap(explanation, max(p.width-margin-column-gap, 20))
	if term.Width(text) > column {
		lines = append([]string{""}, lines...)
	}
	first := term.Pad(text, column+gap, false) + lines[0]
	fmt.Fprintf(p.out, "%s%s\n", strings.Repeat(" ", margin), strings.TrimRight(first, " "))
	for _, line := range lines[1:] {
		if line != "" {
			fmt.Fprintf(p.out, "%s%s\n", strings.Repeat(" ", margin+column+gap), line)
		}
	}
}

// categories lists the categories in the order of the commands.
func categories(list []*Command) []string {
	var out []string
	seen := map[string]bool{}
	for _, cmd := range list {
		if !cmd.Hidden && !seen[cmd.Category] {
			seen[cmd.Category] = true
			out = append(out, cmd.Category)
		}
	}
	return out
}

func commandRows(list []*Command) [][2]string {
	var rows [][2]string
	for _, cmd := range list {
		if !cmd.Hidden {
			rows = append(rows, [2]string{strings.TrimRight(cmd.Name+" "+cmd.ArgsUsage, " "), cmd.Usage})
		}
	}
	return rows
}

// exampleRows splits each line of UsageText, "exp run a.yaml # a comment", into command and
// comment.
func exampleRows(usageText string) [][2]string {
	var rows [][2]string
	for line := range strings.Lines(usageText) {
		command, comment, _ := strings.Cut(line, " # ")
		if command = strings.TrimSpace(command); command != "" {
			rows = append(rows, [2]string{command, strings.TrimSpace(comment)})
		}
	}
	return rows
}

// flagRows returns each flag, such as "-o, --output FMT", with its description. Backquotes in
// the usage mark the name of the value.
func flagRows(list []Flag) [][2]string {
	var rows [][2]string
	for _, f := range list {
		d, ok := f.(urfave.DocGenerationFlag)
		if v, can := f.(urfave.VisibleFlag); !ok || can && !v.IsVisible() {
			continue
		}
		value, usage := valueName(d.GetUsage())
		var short, long []string
		for _, n := range f.Names() {
			if len(n) == 1 {
				short = append(short, "-"+n)
			} else {
				long = append(long, "--"+n)
			}
		}
		name := strings.Join(append(short, long...), ", ")
		if len(short) == 0 {
			name = "    " + name
		}
		if d.TakesValue() {
			name += " " + cmp.Or(value, "VALUE")
			if text := d.GetDefaultText(); text != "" && text != `""` && text != "[]" {
				usage += " (default: " + text + ")"
			}
		}
		rows = append(rows, [2]string{name, usage})
	}
	return rows
}

// valueName finds the name of the value in a usage text, and removes its backquotes.
func valueName(usage string) (name, text string) {
	before, rest, ok := strings.Cut(usage, "`")
	name, after, closed := strings.Cut(rest, "`")
	if !ok || !closed {
		return "", usage
	}
	return name, before + name + after
}
