package peer

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
)

// testdata/shares.jsonl has scores of lmms-eval 0.7.3: its functions anls (api/metrics.py), vqav2_process_results and
// textvqa_process_results on answers drawn at random from words that its rules treat apart, the golds variants of each
// other.
func TestSharesAsPublished(t *testing.T) {
	data, err := os.ReadFile("testdata/shares.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	scores := map[string]func([]string, string) float64{"anls": anls, "vqav2": vqav2, "textvqa": textvqa}
	wrong := 0
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var c struct {
			Grader, Said string
			Golds        []string
			Score        float64
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		if got := scores[c.Grader](c.Golds, c.Said); math.Abs(got-c.Score) > 1e-12 {
			if wrong++; wrong < 10 {
				t.Errorf("%s scores %q by %q %v, want %v", c.Grader, c.Said, c.Golds, got, c.Score)
			}
		}
	}
	if wrong >= 10 {
		t.Errorf("%d are wrong", wrong)
	}
}

func TestShares(t *testing.T) {
	people := "nokia|nokia|nok|nok|nok|n95|n95|none|a|the"
	for _, tt := range []struct {
		grader, golds, response, said string
		share                         float64
		right                         bool
	}{
		{"anls", "May 1st|1 May", "may  1s", "may  1s", 1 - 1.0/7, true},
		{"anls", "May 1st|1 May", "The date is at the top. The answer is 1 May.", "1 May", 1, true},
		{"anls", "May 1st|1 May", "It is long ago. \\boxed{1 Mai}", "1 Mai", 0.8, true},
		{"anls", "4021", "\\boxed{40}", "40", 0.5, true},
		{"anls", "4021", "\\boxed{9}", "9", 0, false},
		{"anls", "4021", "", "", 0, false},
		{"textvqa", people, "Nokia.", "Nokia", (2*1.0/3 + 8*2.0/3) / 10, true},
		{"vqav2", people, "After some thought: \\boxed{nok}", "nok", (3*2.0/3 + 7) / 10, true},
		{"vqav2", people, "0", "0", 9 * (1.0 / 3) / 10, false}, // none is 0, and its own vote does not count
		{"vqav2", "two", "2", "2", 1, true},
		{"textvqa", "two", "three", "three", 0, false},
	} {
		g, err := ByName(tt.grader)
		if err != nil {
			t.Fatal(err)
		}
		v := g.Posed(Question{Golds: strings.Split(tt.golds, "|"), Right: -1}, tt.response)
		if !v.Shared || math.Abs(v.Share-tt.share) > 1e-12 || v.Correct != tt.right || v.Extracted != tt.said {
			t.Errorf("%s of %q: %+v, want %v of %q", tt.grader, tt.response, v, tt.share, tt.said)
		}
	}
	if GivesShares("chartqa") || GivesShares("union") || !GivesShares("textvqa") {
		t.Error("GivesShares")
	}
}
