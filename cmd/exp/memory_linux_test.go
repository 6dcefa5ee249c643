package main

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The process uses as much memory in training as the plan says, the program's own part included.
func TestPlannedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("trains in a separate process")
	}
	for _, tt := range []struct {
		name   string
		chance float64 // how far below the plan the peak may be
		sets   []string
	}{
		// Linux maps up to so much more of a program that was just linked, and collections of so small a heap come
		// a little earlier or later.
		{"as it is", 12 << 20, nil},
		// An early collection saves up to half of what the completions take.
		{"many completions", 24 << 20, []string{"--set", "rollout={n: 4000, max_new_tokens: 6}", "--set", "train.steps=1", "--set", "eval.online.every_steps=0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"run", smokeRecipe, "--store", filepath.Join(t.TempDir(), "store"), "--set", "compute.threads=2"}, tt.sets...)
			planned, peak := plannedMemory(t, args), 0.0
			for i := 0; i < 3 && peak < planned-tt.chance; i++ { // when collections come differs from run to run
				args[3] = filepath.Join(t.TempDir(), "store")
				peak = max(peak, peakOfTraining(t, args))
				t.Logf("planned %.0f MiB, peak %.0f", planned/(1<<20), peak/(1<<20))
			}
			if peak < planned-tt.chance || peak > 1.05*planned {
				t.Errorf("peak %.0f, planned %.0f: %.2f times", peak, planned, peak/planned)
			}
		})
	}
}

// peakOfTraining executes exp run in a separate process and returns the bytes that training recorded as its peak.
func peakOfTraining(t *testing.T, args []string) float64 {
	t.Helper()
	p := start(t, append(args[:len(args):len(args)], "--until", "train")...)
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	peak, err := strconv.ParseFloat(strings.TrimSpace(exp(t, "query", "--store", args[3], "-o", "csv", "--no-header",
		"SELECT peak_mem FROM stages WHERE kind = 'train'").stdout), 64)
	if err != nil {
		t.Fatal(err)
	}
	return peak
}

// plannedMemory returns the bytes of all parts that exp run --dry-run plans.
func plannedMemory(t *testing.T, args []string) float64 {
	t.Helper()
	var page struct {
		Data []struct {
			Estimate struct {
				Memory  []struct{ Bytes float64 }
				Program float64 `json:"program_bytes"`
			}
		}
	}
	plan := exp(t, append(args[:len(args):len(args)], "--dry-run", "--json")...)
	if err := json.Unmarshal([]byte(plan.stdout), &page); err != nil || len(page.Data) != 1 {
		t.Fatal(err, plan.stdout)
	}
	planned := page.Data[0].Estimate.Program
	for _, part := range page.Data[0].Estimate.Memory {
		planned += part.Bytes
	}
	return planned
}
