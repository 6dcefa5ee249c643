package stage

import (
	"testing"

	"exp/harness/config"
)

// A run whose targets hold its tool's output, with nothing to mask it, is told so.
func TestWarnOutput(t *testing.T) {
	texts := []string{"6*7\n<interpreter>\n42\n</interpreter>\n", "<interpreter> alone", "none"}
	for _, tt := range []struct {
		format string
		mask   []string
		want   string
	}{
		{"tags", nil, `1 of 3 targets hold tool output, between "<interpreter>" and "</interpreter>", and SFT learns to write it; ` +
			`sft.mask: ["\n<interpreter>\n", "\n</interpreter>\n"] leaves it out`},
		{"tags", []string{"a", "b"}, ""},
		{"fence", nil, ""},
		{"hermes", nil, ""},
	} {
		got := ""
		e := &Env{Config: &config.Resolved{}}
		e.Hooks.Warn = func(text string) { got += text }
		e.Config.Run.SFT.Mask = tt.mask
		e.Config.Run.Rollout.Tools = config.Tools{Kind: "python", Format: tt.format, Answer: []string{"\n<interpreter>\n", "\n</interpreter>\n"}}
		if e.warnOutput("targets", texts); got != tt.want {
			t.Errorf("%s, %v: %q, want %q", tt.format, tt.mask, got, tt.want)
		}
	}
}
