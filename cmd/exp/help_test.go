package main

import (
	"strings"
	"testing"

	"exp/cmd/exp/term"
)

// TestHelpOfCommands shows the help of the commands that run and look at runs.
func TestHelpOfCommands(t *testing.T) {
	var out strings.Builder
	for _, name := range []string{"run", "ls", "show", "metrics", "samples", "diff", "grade", "config schema", "bench", "sandbox", "sandbox exec", "glossary"} {
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
