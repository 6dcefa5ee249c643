package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/cmd/exp/term"
)

// TestHelpPages shows the help texts as people see them.
func TestHelpPages(t *testing.T) {
	var out strings.Builder
	for _, args := range []string{"--help", "run --help", "config --help", "help config show", "completion -h"} {
		got := call{}.run(strings.Fields(args)...)
		if got.code != 0 || got.stderr != "" {
			t.Errorf("%s: %+v", args, got)
		}
		out.WriteString("-- exp " + args + "\n" + got.stdout)
	}
	golden(t, "help", out.String())
}

// TestHelpOfCommands shows the help of the commands that run and look at runs.
func TestHelpOfCommands(t *testing.T) {
	var out strings.Builder
	for _, name := range []string{"run", "ls", "show", "metrics", "samples", "diff", "grade", "config schema", "bench", "sandbox", "sandbox exec"} {
		got := call{list: commands, env: map[string]string{"EXP_FORCE_TTY": "80", "NO_COLOR": "1"}}.run(append([]string{"help"}, strings.Fields(name)...)...)
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

// TestProgramExamples: what help shows first can be typed.
func TestProgramExamples(t *testing.T) {
	a := newApp(system{}, commands)
	for _, row := range exampleRows(programExamples) {
		v := parseArgv(a.cli, strings.Fields(row[0]))
		if v.err != nil || len(v.unknown) > 0 || len(v.path) != 1 {
			t.Errorf("%s: %v, unknown flags %v", row[0], v.err, v.unknown)
		}
		for _, word := range v.positionals {
			if _, err := os.Stat(filepath.Join("..", "..", word)); strings.HasSuffix(word, ".yaml") && err != nil {
				t.Errorf("%s: %v", row[0], err)
			}
		}
	}
}

func TestHelpFitsTheTerminal(t *testing.T) {
	got := call{env: map[string]string{"EXP_FORCE_TTY": "60", "NO_COLOR": "1"}}.run("run", "--help")
	for line := range strings.Lines(got.stdout) {
		if w := term.Width(strings.TrimSuffix(line, "\n")); w > 60 {
			t.Errorf("%d columns: %q", w, line)
		}
	}
	if strings.Contains(got.stdout, "\x1b") {
		t.Error("escapes in spite of NO_COLOR")
	}
	got = call{env: map[string]string{"EXP_FORCE_TTY": "60"}}.run("run", "--help", "--color", "never")
	if strings.Contains(got.stdout, "\x1b") {
		t.Error("escapes in spite of --color never")
	}
	got = call{env: map[string]string{"EXP_FORCE_TTY": "60"}}.run("run", "--help")
	if !strings.Contains(got.stdout, "\x1b[1musage:\x1b[0m") {
		t.Error("no bold headings on a terminal")
	}
}

func TestHelpForms(t *testing.T) {
	want := call{}.run("config", "show", "--help").stdout
	for _, args := range []string{"help config show", "--help config show", "config -h show", "config show f --bogus --help"} {
		if got := (call{}).run(strings.Fields(args)...); got.stdout != want || got.code != 0 {
			t.Errorf("exp %s: code %d, differs from exp config show --help", args, got.code)
		}
	}
}

func TestValueName(t *testing.T) {
	tests := []struct{ in, name, text string }{
		{"`DIR` of the store", "DIR", "DIR of the store"},
		{"nothing", "", "nothing"},
		{"half `open", "", "half `open"},
	}
	for _, tt := range tests {
		if name, text := valueName(tt.in); name != tt.name || text != tt.text {
			t.Errorf("valueName(%q) = %q, %q, want %q, %q", tt.in, name, text, tt.name, tt.text)
		}
	}
}
