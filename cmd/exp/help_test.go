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
