package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The process uses as much memory in training as the plan says, the program's own part included.
func TestPlannedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("trains in a separate process")
	}
	for _, tt := range []struct {
		name   string
		chance float64 // how far below the plan the peak may be
		mapped float64 // of the program's file, as a program that was just linked has it at that peak
		sets   []string
	}{
		// Collections of so small a heap come a little earlier or later. The peak is at the start.
		{"as it is", 12 << 20, 70 << 20, nil},
		// A collection before all completions are there lets the heap grow less, by up to half of what they take.
		{"many completions", 24 << 20, 46 << 20, []string{"--set", "rollout={n: 4000, max_new_tokens: 6}", "--set", "train.steps=1", "--set", "eval.online.every_steps=0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"run", smokeRecipe, "--store", filepath.Join(t.TempDir(), "store"), "--set", "compute.threads=2"}, tt.sets...)
			planned, peak := plannedMemory(t, args), 0.0
			// When collections come differs from run to run: on a busy machine half of them miss the plan.
			for i := 0; i < 12 && peak < planned-tt.chance; i++ {
				args[3] = filepath.Join(t.TempDir(), "store")
				peak = max(peak, peakOfTraining(t, args, tt.mapped))
				t.Logf("planned %.0f MiB, peak %.0f", planned/(1<<20), peak/(1<<20))
			}
			if peak < planned-tt.chance || peak > 1.05*planned {
				t.Errorf("peak %.0f, planned %.0f: %.2f times", peak, planned, peak/planned)
			}
		})
	}
}

// peakOfTraining executes exp run in a separate process and returns the peak of memory that training recorded, in bytes.
// Linux maps more of a program that was just linked than of a copy. If it maps less than program bytes, peakOfTraining
// adds the rest.
func peakOfTraining(t *testing.T, args []string, program float64) float64 {
	t.Helper()
	p := start(t, append(args[:len(args):len(args)], "--until", "train")...)
	mapped := mappedAtPeak(p.Process.Pid)
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	peak, err := strconv.ParseFloat(strings.TrimSpace(exp(t, "query", "--store", args[3], "-o", "csv", "--no-header",
		"SELECT peak_mem FROM stages WHERE kind = 'train'").stdout), 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("peak %.0f MiB, of them %.0f mapped from files", peak/(1<<20), mapped/(1<<20))
	return peak + max(0, program-mapped)
}

// mappedAtPeak watches a process until it ends and returns the bytes of files, or of shared memory, that it had mapped
// when its resident memory was largest.
func mappedAtPeak(pid int) (mapped float64) {
	for largest := 0; ; time.Sleep(time.Millisecond) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		kB := map[string]int{}
		for line := range strings.Lines(string(status)) {
			if f := strings.Fields(line); len(f) == 3 {
				kB[f[0]], _ = strconv.Atoi(f[1])
			}
		}
		if err != nil || kB["VmHWM:"] == 0 { // it has ended
			return mapped
		}
		if kB["VmHWM:"] > largest {
			largest, mapped = kB["VmHWM:"], float64((kB["RssFile:"]+kB["RssShmem:"])<<10)
		}
	}
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
