package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
)

// The help of every command fits a terminal of 80 columns.
func TestHelpFitsTheTerminal(t *testing.T) {
	var walk func(path string, list []*cli.Command)
	walk = func(path string, list []*cli.Command) {
		for _, cmd := range list {
			name := strings.TrimSpace(path + " " + cmd.Name)
			env := map[string]string{"EXP_FORCE_TTY": "80", "NO_COLOR": "1"}
			got := call{env: env}.run(append([]string{"help"}, strings.Fields(name)...)...)
			if got.code != 0 {
				t.Errorf("exp help %s: %s", name, got.stderr)
			}
			fits(t, got.stdout)
			walk(name, cmd.Subcommands)
		}
	}
	walk("", commands(&app{App: &cli.App{}}))
	for name, footer := range map[string]string{"figure": "(--store, --json, …)", "ls": "(--store, -o, --json, …)"} {
		if got := (call{}).run("help", name); !strings.Contains(got.stdout, "Global flags "+footer) {
			t.Errorf("the footer of %s is not %s", name, footer)
		}
	}
}

// TestFlagSpellings: a flag that commands call by two names has both in each of them.
func TestFlagSpellings(t *testing.T) {
	find := func(words ...string) (flags []cli.Flag) {
		list := commandList()
		for _, word := range words {
			i := slices.IndexFunc(list, func(c *cli.Command) bool { return c.Name == word })
			flags, list = list[i].Flags, list[i].Subcommands
		}
		return flags
	}
	for _, tt := range []struct {
		commands string
		names    []string
	}{
		{"eval chat diversity", []string{"max-tokens", "max-new-tokens"}}, {"eval", []string{"n", "samples"}},
		{"diversity endpoint", []string{"key-env", "api-key-env"}}, {"run", []string{"seed", "seeds"}},
		{"compare metrics", []string{"m", "metric"}}, {"ls", []string{"cols", "columns"}},
		{"convert", []string{"to", "format"}}, {"export", []string{"to", "format"}}, {"figure", []string{"o", "file", "out"}},
		{"ls samples problems", []string{"n", "limit"}}, {"ls samples problems", []string{"all"}},
	} {
		for name := range strings.FieldsSeq(tt.commands) {
			if !slices.ContainsFunc(find(name), func(f cli.Flag) bool {
				return !slices.ContainsFunc(tt.names, func(n string) bool { return !slices.Contains(f.Names(), n) })
			}) {
				t.Errorf("exp %s has no flag with the names %q", name, tt.names)
			}
		}
	}
}

// A folder for -o is taken for a format; the error names the flag that was meant.
func TestFolderAsFormat(t *testing.T) {
	for args, want := range map[string]string{
		"report x -o dir": "help: -o is the format of the result; --out says where files go",
		"ls -o jso":       "did you mean json?",
	} {
		if got := (call{}).run(strings.Fields(args)...); got.code != 2 || !strings.Contains(got.stderr, want) {
			t.Errorf("exp %s: %+v", args, got)
		}
	}
}

// fits requires lines of at most 80 columns.
func fits(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if w := term.Width(strings.TrimSuffix(line, "\n")); w > 80 {
			t.Errorf("%d columns: %q", w, line)
		}
	}
}

// Other texts fit too: a caption, a long error, the description of a key.
func TestOutputFitsTheTerminal(t *testing.T) {
	env := map[string]string{"EXP_FORCE_TTY": "80", "NO_COLOR": "1"}
	file := t.TempDir() + "/a.svg"
	for _, args := range [][]string{
		{"figure", "entropy", "smoke", "--store", smokeStore(t), "-o", file},
		{"figure", "entrpy", "smoke", "--store", smokeStore(t), "-o", file, "--force"},
		{"config", "schema", "algo.flowrl", "--long"},
	} {
		got := call{env: env}.run(args...)
		text := strings.ReplaceAll(got.stdout+got.stderr, file, "FILE") // which nothing can shorten
		if text == "" {
			t.Errorf("%q prints nothing", args)
		}
		fits(t, text)
	}
}

// TestHelpOfCommands shows the help of the commands that run and look at runs.
func TestHelpOfCommands(t *testing.T) {
	var out strings.Builder
	for _, name := range []string{"run", "ls", "show", "metrics", "samples", "diff", "chat", "endpoint", "grade", "config schema", "bench", "sandbox", "sandbox exec", "glossary"} {
		got := call{env: map[string]string{"EXP_FORCE_TTY": "80", "NO_COLOR": "1"}}.run(append([]string{"help"}, strings.Fields(name)...)...)
		if got.code != 0 || got.stderr != "" {
			t.Errorf("%s: %+v", name, got)
		}
		for line := range strings.Lines(got.stdout) {
			if w := term.Width(strings.TrimSuffix(line, "\n")); w > 80 {
				t.Errorf("exp help %s: %d columns: %q", name, w, line)
			}
		}
		out.WriteString("-- exp help " + name + "\n" + got.stdout)
	}
	golden(t, "help_commands", out.String())
}

// TestDocumentedCommandsExist checks the commands that README.md and docs name in code.
func TestDocumentedCommandsExist(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	names := []string{"help", "completion"} // which package cli adds
	for _, cmd := range commandList() {
		names = append(names, cmd.Name)
	}
	named := regexp.MustCompile("(?m)(?:`|^ *\\$? ?)exp ([a-z]+)")
	found := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			if found++; !slices.Contains(names, m[1]) {
				t.Errorf("%s: exp has no command %s", filepath.Base(page), m[1])
			}
		}
	}
	if found < 50 {
		t.Errorf("found %d commands in the documentation", found)
	}
}
