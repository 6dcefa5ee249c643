package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The process uses as much memory up to the end of a stage as the plan says, the program's own part included.
func TestPlannedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("trains in a separate process")
	}
	wide := []string{"--set", "prefer={steps: 2, max_tokens: 64, pairs_per_step: 12, source: " + longPairs(t) + "}", "--set", "train.slices=1",
		"--set", "model.arch={layers: 4, width: 256, heads: 4, kv_heads: 2, head_size: 64, ffn: 768}", "--set", "compute.micro_batch_tokens=1024"}
	program := copied(t)
	for _, tt := range []struct {
		name, recipe, stage string
		chance              float64 // how far below the plan the peak may be
		mapped              float64 // of the program's file at that peak
		sets                []string
	}{
		// Collections of so small a heap come a little earlier or later. The peak is at the start.
		{"as it is", smokeRecipe, "train", 12 << 20, 52 << 20, nil},
		// A collection before all completions are there lets the heap grow less, by up to half of what they take.
		{"many completions", smokeRecipe, "train", 24 << 20, 24 << 20, []string{"--set", "rollout={n: 4000, max_new_tokens: 6}",
			"--set", "train.steps=1", "--set", "eval.online.every_steps=0"}},
		// A short stage makes too little garbage to fill the heap's room.
		{"preferences", "../../configs/prefer_cpu.yaml", "prefer", 20 << 20, 21 << 20, wide},
		{"adapters", "../../configs/prefer_cpu.yaml", "prefer", 20 << 20, 16 << 20, append(wide, "--set", "prefer.lora.rank=8")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"run", tt.recipe, "--store", filepath.Join(t.TempDir(), "store"), "--set", "compute.threads=2"}, tt.sets...)
			planned, peak := plannedMemory(t, args), 0.0
			// When collections come differs from run to run: on a busy machine half of them miss the plan.
			for i := 0; i < 12 && peak < planned-tt.chance; i++ {
				args[3] = filepath.Join(t.TempDir(), "store")
				peak = max(peak, peakUntil(t, program, tt.stage, args, tt.mapped))
				t.Logf("planned %.0f MiB, peak %.0f", planned/(1<<20), peak/(1<<20))
			}
			if peak < planned-tt.chance || peak > 1.05*planned {
				t.Errorf("peak %.0f, planned %.0f: %.2f times", peak, planned, peak/planned)
			}
		})
	}
}

// longPairs writes pairs of 64 tokens a side and returns the file.
func longPairs(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for i := range 24 {
		fmt.Fprintf(&b, "{\"prompt\": \"%021d\", \"chosen\": %q, \"rejected\": %q}\n", i, strings.Repeat("b", 42), strings.Repeat("c", 42))
	}
	file := filepath.Join(t.TempDir(), "pairs.jsonl")
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// copied copies this program with cp, as make build does, and returns the copy. Linux maps more of the file that the
// linker wrote. It maps files in /dev/shm differently, so the copy goes into the program's folder.
func copied(t *testing.T) string {
	t.Helper()
	path := os.Args[0] + ".copy"
	if out, err := exec.Command("cp", os.Args[0], path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { os.Remove(path) })
	return path
}

// peakUntil executes exp run by a program and returns the peak of memory that a stage recorded, in bytes, as if Linux had
// mapped mapped bytes of the program's file. File systems with large folios map 16 to 26 MiB more, also of copies. A
// smaller excess counts in full: the program has grown.
func peakUntil(t *testing.T, program, stage string, args []string, mapped float64) float64 {
	t.Helper()
	p := startProgram(t, program, nil, append(args[:len(args):len(args)], "--until", stage)...)
	own := mappedAtPeak(p.Process.Pid)
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	peak, err := strconv.ParseFloat(strings.TrimSpace(exp(t, "query", "--store", args[3], "-o", "csv", "--no-header",
		"SELECT peak_mem FROM stages WHERE kind = '"+stage+"'").stdout), 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("peak %.0f MiB, of them %.0f mapped from files", peak/(1<<20), own/(1<<20))
	switch excess := own - mapped; {
	case excess > 16<<20:
		return peak - min(excess, 26<<20)
	case excess > 0:
		return peak
	default:
		return peak - excess
	}
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

// plannedMemory returns the bytes that exp run --dry-run plans for the stage that needs most.
func plannedMemory(t *testing.T, args []string) float64 {
	t.Helper()
	type parts []struct {
		Bytes     float64
		Untouched float64 `json:"untouched_bytes"`
	}
	var page struct {
		Data []struct {
			Estimate struct {
				Memory  parts
				SFT     parts   `json:"sft_memory"`
				Prefer  parts   `json:"prefer_memory"`
				Program float64 `json:"program_bytes"`
			}
		}
	}
	plan := exp(t, append(args[:len(args):len(args)], "--dry-run", "--json")...)
	if err := json.Unmarshal([]byte(plan.stdout), &page); err != nil || len(page.Data) != 1 {
		t.Fatal(err, plan.stdout)
	}
	e, most := page.Data[0].Estimate, 0.0
	for _, list := range []parts{e.Memory, e.SFT, e.Prefer} {
		planned := 0.0
		for _, part := range list {
			planned += part.Bytes - part.Untouched
		}
		most = max(most, planned)
	}
	return e.Program + most
}
