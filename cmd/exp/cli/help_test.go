package cli

import (
	"strings"
	"testing"

	"exp/cmd/exp/term"
)

// TestHelpPages shows the help texts as people see them.
func TestHelpPages(t *testing.T) {
	var out strings.Builder
	for _, args := range []string{"--help", "run --help", "config --help", "help config show", "completion -h", "help words"} {
		got := call{}.run(strings.Fields(args)...)
		if got.code != 0 || got.stderr != "" {
			t.Errorf("%s: %+v", args, got)
		}
		out.WriteString("-- exp " + args + "\n" + got.stdout)
	}
	golden(t, "help", out.String())
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
