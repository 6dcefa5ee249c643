package main

import (
	"context"
	_ "embed" // the scripts
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"exp/cmd/exp/term"
)

// completionFlag, as the last argument, asks for completions of the word before
// it. The scripts add it; the library knows it under the same name.
const completionFlag = "--generate-bash-completion"

// completionTime is what a hook may take, so that the shell does not feel slow.
const completionTime = 30 * time.Millisecond

// The scripts hold no knowledge of commands: they ask the program for each word.
// The answer is one candidate a line, with a note after a tab.
var (
	//go:embed completion.bash
	bashScript string
	//go:embed completion.zsh
	zshScript string
	//go:embed completion.fish
	fishScript string
)

func completionCommand(a *app) *cli.Command {
	shells := []candidate{{"bash", ""}, {"zsh", ""}, {"fish", ""}}
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a shell completion script",
		ArgsUsage: "bash|zsh|fish",
		Category:  "set up",
		Description: "The script completes commands, flags, runs, config keys and paths by asking exp itself. " +
			"Source it in the shell's start-up file, or save it where the shell looks for completions.",
		UsageText: "source <(exp completion bash)  # this shell; for all, put the line into ~/.bashrc\n" +
			"exp completion zsh > ~/.zfunc/_exp  # with fpath+=~/.zfunc before compinit in ~/.zshrc\n" +
			"exp completion fish > ~/.config/fish/completions/exp.fish  # all shells from now on",
		BashComplete: a.completes(func(_ *cli.Context, w word) []candidate {
			if len(w.Args) > 0 {
				return nil
			}
			return shells
		}),
		Action: func(c *cli.Context) error {
			shell, err := positionals(c, 1, 1)
			if err != nil {
				return err
			}
			script, err := completionScript(shell[0])
			if err != nil {
				return err
			}
			_, err = io.WriteString(a.stdout, script)
			return err
		},
	}
}

func completionScript(shell string) (string, error) {
	switch shell {
	case "bash":
		return bashScript, nil
	case "zsh":
		return zshScript, nil
	case "fish":
		return fishScript, nil
	}
	return "", usagef("no completion for %q, only for bash, zsh and fish", shell).see("exp completion")
}

// word is what is to be completed.
type word struct {
	Text string   // typed so far; may be empty
	Flag string   // the flag of which it is the value, by its first name; "" for a positional
	Args []string // the positionals before it

	prefix string // "--flag=", where Text follows it in one word
	noFlag bool   // after "--"
}

// candidate is a possible word with a note on what it means. A text that ends in
// "/" or "=" is not the whole word yet.
type candidate struct {
	Text, Note string
}

// completes makes the BashComplete of a command from a function that returns the
// possible words; those that do not begin with w.Text are dropped. c has the
// flags that stand before the word (--store!) and a context that ends soon. On
// any error the function returns nil: a shell prompt is no place for messages.
func (a *app) completes(f func(c *cli.Context, w word) []candidate) cli.BashCompleteFunc {
	return func(c *cli.Context) { a.propose(f(c, a.word)) }
}

// completionRequest returns the words of the command line so far, the last one
// unfinished, if args ask for completion.
func completionRequest(args []string) (words []string, ok bool) {
	n := len(args) - 1
	if n < 1 || args[n] != completionFlag {
		return nil, false
	}
	return args[:n], true
}

// completeWords proposes words for the last of words. The words before it are
// parsed as usual, and the library then calls the hook of the innermost command
// with the flags that it got.
func (a *app) completeWords(ctx context.Context, words []string) {
	defer func() { _ = recover() }() // silence, as for any other error
	text := ""
	if len(words) > 1 {
		text, words = words[len(words)-1], words[:len(words)-1]
	}
	line := parseArgv(a.cli, words)
	a.line = line
	a.word = word{Text: text, Flag: line.pending, Args: line.positionals, noFlag: line.onlyWords}
	if name, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(text, "-") && a.word.Flag == "" && !line.onlyWords {
		if f, _ := line.lookup(strings.TrimLeft(name, "-")); f != nil && takesValue(f) {
			a.word.prefix, a.word.Text, a.word.Flag = name+"=", value, f.Names()[0]
		}
	}

	// Both would keep the library from completing.
	args := slices.DeleteFunc(line.args(), func(s string) bool {
		return s == "--" || slices.Contains(line.unknown, s)
	})
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	_ = a.cli.RunContext(ctx, append(args, completionFlag))
}

// complete is called by the library for cmd, or nil for the program. hook is the
// command's own, or nil.
func (a *app) complete(c *cli.Context, cmd *cli.Command, hook cli.BashCompleteFunc) {
	if err := a.configure(c); err != nil {
		return
	}
	w := a.word
	if w.Flag != "" {
		if list, ok := globalValues(w, a.formats()); ok {
			a.propose(list)
			return
		}
	}
	switch {
	case w.Flag == "" && !w.noFlag && strings.HasPrefix(w.Text, "-"):
		a.propose(a.flagCandidates())
	case w.Flag == "" && cmd == nil:
		a.propose(commandCandidates(a.cli.Commands))
	case w.Flag == "" && len(cmd.Subcommands) > 0 && len(w.Args) == 0:
		a.propose(commandCandidates(cmd.Subcommands))
	case hook != nil:
		hook(c)
	}
}

// propose prints the candidates that begin with what is typed.
func (a *app) propose(list []candidate) {
	var out strings.Builder
	for _, cand := range list {
		if !strings.HasPrefix(cand.Text, a.word.Text) || strings.ContainsAny(cand.Text, "\n\t") {
			continue
		}
		out.WriteString(a.word.prefix + cand.Text)
		if cand.Note != "" {
			out.WriteString("\t" + term.Clean(cand.Note))
		}
		out.WriteByte('\n')
	}
	_, _ = io.WriteString(a.stdout, out.String())
}

// globalValues proposes values of global flags; false if w.Flag is not one.
func globalValues(w word, formats []format) (list []candidate, ok bool) {
	switch w.Flag {
	case flagOutput:
		return texts(words(formats)), true
	case flagColor:
		return texts(words(colorModes)), true
	case flagProgress:
		return texts(words(progressKinds)), true
	case flagLogFormat:
		return texts(logFormats), true
	case flagStore, flagDir:
		return pathCandidates(w.Text, func(e os.DirEntry) bool { return e.IsDir() }), true
	case flagFields:
		return nil, true
	}
	return nil, false
}

func texts(list []string) []candidate {
	out := make([]candidate, len(list))
	for i, s := range list {
		out[i].Text = s
	}
	return out
}

func commandCandidates(list []*cli.Command) []candidate {
	var out []candidate
	for _, cmd := range list {
		if !cmd.Hidden {
			out = append(out, candidate{cmd.Name, cmd.Usage})
		}
	}
	return out
}

// flagCandidates proposes the flags of the commands named, innermost first, then
// the global ones.
func (a *app) flagCandidates() []candidate {
	var out []candidate
	for level := len(a.line.path); level >= 0; level-- {
		for _, f := range a.line.flagsOf(level) {
			if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
				continue
			}
			usage := ""
			if d, ok := f.(cli.DocGenerationFlag); ok {
				_, usage = valueName(d.GetUsage())
			}
			for _, name := range f.Names() {
				if len(name) > 1 || !strings.HasPrefix(a.word.Text, "--") {
					out = append(out, candidate{dashed(name), usage})
				}
			}
		}
	}
	return out
}

// pathCandidates proposes directories, with a slash at the end, and the files
// that keep accepts, in the directory of the text typed so far. Hidden files are
// proposed once a dot is typed; "~/" is kept as it is.
func pathCandidates(text string, keep func(os.DirEntry) bool) []candidate {
	dir, base := filepath.Split(text)
	at := or(dir, ".")
	if rest, ok := strings.CutPrefix(at, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil
		}
		at = filepath.Join(home, rest)
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return nil
	}
	var out []candidate
	for _, e := range entries {
		hidden := strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(base, ".")
		switch {
		case hidden || !strings.HasPrefix(e.Name(), base):
		case e.IsDir():
			out = append(out, candidate{Text: dir + e.Name() + "/"})
		case keep(e):
			out = append(out, candidate{Text: dir + e.Name()})
		}
	}
	return out
}

// hasExt is a filter for pathCandidates: files whose name ends in one of exts,
// ".yaml".
func hasExt(exts ...string) func(os.DirEntry) bool {
	return func(e os.DirEntry) bool { return slices.Contains(exts, filepath.Ext(e.Name())) }
}
