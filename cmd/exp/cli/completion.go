package cli

import (
	"cmp"
	"context"
	_ "embed" // the scripts
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"exp/cmd/exp/term"
)

// CompletionFlag, as the last argument, asks for completions of the word before it. The
// scripts add it; the library uses the same name.
const CompletionFlag = "--generate-bash-completion"

// CompletionTime limits a hook, so that the shell does not feel slow.
const CompletionTime = 30 * time.Millisecond

// The scripts know nothing of commands: they ask the program for each word. The answer
// has one candidate per line, with a note after a tab.
var (
	//go:embed completion.bash
	bashScript string
	//go:embed completion.zsh
	zshScript string
	//go:embed completion.fish
	fishScript string
)

func completionCommand(a *App) *Command {
	shells := []Candidate{{"bash", ""}, {"zsh", ""}, {"fish", ""}}
	return &Command{
		Name:      "completion",
		Usage:     "print a shell completion script",
		ArgsUsage: "bash|zsh|fish",
		Category:  "set up",
		Description: "The script completes commands, flags, runs, config keys and paths by asking exp itself. " +
			"Source it in the shell's start-up file, or save it where the shell looks for completions.",
		UsageText: "source <(exp completion bash)  # this shell; for all, put the line into ~/.bashrc\n" +
			"exp completion zsh > ~/.zfunc/_exp  # with fpath+=~/.zfunc before compinit in ~/.zshrc\n" +
			"exp completion fish > ~/.config/fish/completions/exp.fish  # all shells from now on",
		BashComplete: a.Completes(func(_ *Context, w Word) []Candidate {
			if len(w.Args) > 0 {
				return nil
			}
			return shells
		}),
		Action: func(c *Context) error {
			shell, err := Positionals(c, 1, 1)
			if err != nil {
				return err
			}
			script, err := completionScript(shell[0])
			if err != nil {
				return err
			}
			_, err = io.WriteString(a.Stdout, script)
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
	return "", Usagef("no completion for %q; there is one for bash, zsh and fish", shell).See("exp completion")
}

// Word is the word to complete.
type Word struct {
	Text string   // typed so far; may be empty
	Flag string   // the flag whose value it is, by its first name; "" for a positional
	Args []string // the positionals before it

	prefix string // "--flag=", where Text follows it in one word
	noFlag bool   // after "--"
}

// Candidate is a word to propose, with a note that explains it. A Text ending in "/" or "="
// only begins a word.
type Candidate struct {
	Text, Note string
}

// Completes makes the BashComplete of a command from a function that proposes words. It
// filters out words that do not begin with w.Text. c has the flags before the word
// (--store!) and a context that ends soon. On an error the function returns nil: a
// shell prompt must not print messages.
func (a *App) Completes(f func(c *Context, w Word) []Candidate) BashCompleteFunc {
	return func(c *Context) { a.propose(f(c, a.word)) }
}

// completionRequest returns the words typed so far, the last one unfinished, if args ask
// for completion.
func completionRequest(args []string) (words []string, ok bool) {
	n := len(args) - 1
	if n < 1 || args[n] != CompletionFlag {
		return nil, false
	}
	return args[:n], true
}

// completeWords proposes words for the last of words. The words before it are
// parsed as usual, and the library then calls the hook of the innermost command
// with the flags that it got.
func (a *App) completeWords(ctx context.Context, words []string) {
	defer func() { _ = recover() }() // stay silent, as for any other error
	text := ""
	if len(words) > 1 {
		text, words = words[len(words)-1], words[:len(words)-1]
	}
	line := parseArgv(a.cli, words)
	a.line = line
	a.word = Word{Text: text, Flag: line.pending, Args: line.positionals, noFlag: line.onlyWords}
	if name, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(text, "-") && a.word.Flag == "" &&
		!line.onlyWords {
		if f, _ := line.lookup(strings.TrimLeft(name, "-")); f != nil && takesValue(f) {
			a.word.prefix, a.word.Text, a.word.Flag = name+"=", value, f.Names()[0]
		}
	}

	// Both would keep the library from completing.
	args := slices.DeleteFunc(line.args(), func(s string) bool {
		return s == "--" || slices.Contains(line.unknown, s)
	})
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(a.HookTime, CompletionTime))
	defer cancel()
	_ = a.cli.RunContext(ctx, append(args, CompletionFlag))
}

// complete is called by the library for cmd, or nil for the program. hook is the
// command's own, or nil.
func (a *App) complete(c *Context, cmd *Command, hook BashCompleteFunc) {
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

// propose prints the candidates that begin with the typed text.
func (a *App) propose(list []Candidate) {
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
	_, _ = io.WriteString(a.Stdout, out.String())
}

// globalValues proposes values of a global flag; false if w.Flag is not global.
func globalValues(w Word, formats []Format) (list []Candidate, ok bool) {
	switch w.Flag {
	case flagOutput:
		return Candidates(Words(formats)), true
	case flagColor:
		return Candidates(Words(colorModes)), true
	case flagProgress:
		return Candidates(Words(progressKinds)), true
	case flagLogFormat:
		return Candidates(logFormats), true
	case flagStore, flagDir:
		return PathCandidates(w.Text, func(e os.DirEntry) bool { return e.IsDir() }), true
	case flagFields:
		return nil, true
	}
	return nil, false
}

// Candidates makes candidates without notes.
func Candidates(list []string) []Candidate {
	out := make([]Candidate, len(list))
	for i, s := range list {
		out[i].Text = s
	}
	return out
}

func commandCandidates(list []*Command) []Candidate {
	var out []Candidate
	for _, cmd := range list {
		if !cmd.Hidden {
			out = append(out, Candidate{cmd.Name, cmd.Usage})
		}
	}
	return out
}

// flagCandidates proposes the flags of the typed commands, innermost first, then the
// global ones.
func (a *App) flagCandidates() []Candidate {
	var out []Candidate
	for level := len(a.line.path); level >= 0; level-- {
		for _, f := range a.line.flagsOf(level) {
			if v, ok := f.(urfave.VisibleFlag); ok && !v.IsVisible() {
				continue
			}
			usage := ""
			if d, ok := f.(urfave.DocGenerationFlag); ok {
				_, usage = valueName(d.GetUsage())
			}
			for _, name := range f.Names() {
				if len(name) > 1 || !strings.HasPrefix(a.word.Text, "--") {
					out = append(out, Candidate{dashed(name), usage})
				}
			}
		}
	}
	return out
}

// PathCandidates proposes directories, with a slash at the end, and the files that keep
// accepts, in the directory of text. It proposes hidden files once a dot is typed, and
// keeps "~/".
func PathCandidates(text string, keep func(os.DirEntry) bool) []Candidate {
	dir, base := filepath.Split(text)
	at := cmp.Or(dir, ".")
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
	var out []Candidate
	for _, e := range entries {
		hidden := strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(base, ".")
		switch {
		case hidden || !strings.HasPrefix(e.Name(), base):
		case e.IsDir():
			out = append(out, Candidate{Text: dir + e.Name() + "/"})
		case keep(e):
			out = append(out, Candidate{Text: dir + e.Name()})
		}
	}
	return out
}

// HasExt is a filter for PathCandidates: files with one of these extensions, ".yaml".
func HasExt(exts ...string) func(os.DirEntry) bool {
	return func(e os.DirEntry) bool { return slices.Contains(exts, filepath.Ext(e.Name())) }
}
