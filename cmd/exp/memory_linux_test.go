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
	dir := filepath.Join(t.TempDir(), "store")
	p := start(t, "run", smokeRecipe, "--store", dir, "--until", "train", "--set", "compute.threads=2")
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	peak, err := strconv.ParseFloat(strings.TrimSpace(exp(t, "query", "--store", dir, "-o", "csv", "--no-header",
		"SELECT peak_mem FROM stages WHERE kind = 'train'").stdout), 64)
	if err != nil {
		t.Fatal(err)
	}
	var page struct {
		Data []struct {
			Estimate struct {
				Memory  []struct{ Bytes float64 }
				Program float64 `json:"program_bytes"`
			}
		}
	}
	plan := exp(t, "run", smokeRecipe, "--dry-run", "--json", "--store", dir, "--set", "compute.threads=2")
	if err := json.Unmarshal([]byte(plan.stdout), &page); err != nil || len(page.Data) != 1 {
		t.Fatal(err, plan.stdout)
	}
	planned := page.Data[0].Estimate.Program
	for _, part := range page.Data[0].Estimate.Memory {
		planned += part.Bytes
	}
	t.Logf("planned %.0f MiB, peak %.0f", planned/(1<<20), peak/(1<<20))
	// Linux maps up to so much more of a program that was just linked, and collections of so small a heap come
	// a little earlier or later.
	const chance = 12 << 20
	if peak < planned-chance || peak > 1.05*planned {
		t.Errorf("peak %.0f, planned %.0f: %.2f times", peak, planned, peak/planned)
	}
}
