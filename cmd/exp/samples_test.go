package main

import (
	"encoding/json"
	"strings"
	"testing"

	"exp/experiments/store"
)

func TestSamplesPages(t *testing.T) {
	dir := fixtureStore(t)
	golden(t, "samples_80", pages(t, fixtureCall(t, 80, false), dir, "samples flowrl-a#0", "samples flowrl-a#0 --text", "samples flowrl-a#0 --suite test@start --right",
		"samples flowrl-a#0 -n 1", "samples flowrl-a#0 --grep nothing"))
	golden(t, "samples_120_color", pages(t, fixtureCall(t, 120, true), dir, "samples flowrl-a#0", "samples flowrl-a#0 --text -n 2"))
	golden(t, "samples_json", pages(t, fixtureCall(t, 0, false), dir, "samples flowrl-a#0 -o jsonl", "samples flowrl-a#0 --json --item p2 --text", "samples flowrl-a#0 -o wide --wrong"))
}

func TestSamplesErrors(t *testing.T) {
	dir := fixtureStore(t)
	tests := []struct {
		args   string
		code   int
		stderr string
	}{
		{"samples flowrl-a#0 --suite tset", 3, "it has test@start, test, train"},
		{"samples flowrl-a#0 --suite train", 3, "kept no completions of train: store.samples.train was none (exit 3)\n  help: to keep them, rerun"},
		{"samples flowrl-a#0 --step 3", 3, "kept no completions of train"},
		{"samples ppo-b#0", 3, "has no final evaluation yet"},
		{"samples flowrl-a#0 --right --wrong", 2, "exclude each other"},
		{"samples flowrl-a#0 --step 0", 2, "steps count from 1"},
		{"samples flowrl-a#0 --suite test --step 3", 2, "--step is for training completions"},
		{"samples flowrl-a#0 --grep (", 2, "--grep: error parsing regexp"},
		{"samples flowrl-a", 3, "matches 3 runs"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			got := call{now: fixtureNow}.run(append(shellWords(tt.args), "--store", dir)...)
			if got.code != tt.code || !strings.Contains(got.stderr, tt.stderr) || got.stdout != "" {
				t.Errorf("got %+v, want code %d and %q", got, tt.code, tt.stderr)
			}
		})
	}
}

// TestSamplesSmoke: completions of real runs, by every way to choose them.
func TestSamplesSmoke(t *testing.T) {
	dir := smokeStore(t)
	read := func(args ...string) []map[string]any {
		t.Helper()
		got := call{}.run(append([]string{"samples", "smoke#0", "--store", dir, "-o", "jsonl"}, args...)...)
		if got.code != 0 {
			t.Fatalf("%q: %+v", args, got)
		}
		var list []map[string]any
		for line := range strings.Lines(got.stdout) {
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			list = append(list, m)
		}
		return list
	}
	all := read()
	if len(all) != 64 { // 16 problems, 4 samples each
		t.Fatalf("%d samples, want 64", len(all))
	}
	item := all[5]["item"].(string)
	for _, s := range read("--item", item) {
		if s["item"] != item || s["suite"] != "test" || !strings.HasPrefix(s["prompt"].(string), item) {
			t.Errorf("got %v", s)
		}
	}
	if n := len(read("--item", item)); n != 4 {
		t.Errorf("%d samples of a problem, want 4", n)
	}
	if right, wrong := len(read("--right")), len(read("--wrong")); right+wrong != 64 {
		t.Errorf("%d right, %d wrong, want 64 in all", right, wrong)
	}
	// Training: 4 steps of 8 problems with 4 samples each.
	if n := len(read("--suite", "train")); n != 128 {
		t.Errorf("%d samples of training, want 128", n)
	}
	for _, s := range read("--step", "2") {
		if s["step"] != 2.0 || s["suite"] != "train" {
			t.Errorf("got %v", s)
		}
	}
	if n := len(read("--step", "2", "-n", "7")); n != 7 {
		t.Errorf("%d samples, want 7", n)
	}
	for _, s := range read("--grep", `^\d+$`) {
		if strings.ContainsAny(s["completion"].(string), "+-*/()") {
			t.Errorf("got %v", s)
		}
	}
	start := read("--suite", "test@start")
	if len(start) != 64 || start[0]["suite"] != "test@start" {
		t.Errorf("got %d samples of the start", len(start))
	}
}

// TestSamplesManyRows reads more than one page of rows.
func TestSamplesManyRows(t *testing.T) {
	dir := t.TempDir()
	db, err := store.Open(dir, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	b := builder{t: t, db: db}
	r := b.run("many", "ppo", 0, "")
	st := b.stage(r, "train", "", nil)
	const n = 2_010 // more than two pages of rows
	var rows []store.Sample
	for i := range n {
		rows = append(rows, store.Sample{Stage: st.Home, Scope: "train", Step: int64(1 + i/100), Item: "p", K: i % 100, Finish: "stop"})
	}
	b.must(db.AddSamples(b.ctx(), rows, nil))
	b.must(db.Close())
	for limit, want := range map[string]int{"0": n, "1000": 1000, "1001": 1001, "2010": n, "9999": n} {
		got := call{}.run("samples", "many", "--suite", "train", "--store", dir, "-o", "csv", "--no-header", "-n", limit)
		if lines := strings.Count(got.stdout, "\n"); lines != want || strings.Contains(got.stderr, "there are more") != (want < n) {
			t.Errorf("-n %s: %d lines, stderr %q", limit, lines, got.stderr)
		}
	}
}

// TestSamplesComponents: the parts of a reward, and what turns earned, show where completions have them.
func TestSamplesComponents(t *testing.T) {
	dir := t.TempDir()
	db, err := store.Open(dir, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	b := builder{t: t, db: db}
	st := b.stage(b.run("parts", "gdpo", 0, ""), "train", "", nil)
	pack := db.Blobs.NewPackWriter()
	b.must(pack.Add(map[string]any{"prompt": "3,4=12:", "text": "3*4", "components": map[string]float64{"format": 0.5, "correct": 1},
		"acts": []map[string]any{{"end": 2, "reward": 0.5, "state": "3fa9c2d1aa"},
			{"start": 3, "end": 4, "state": "3fa9c2d1aa", "conversation": "n"}}}))
	b.must(pack.Add(map[string]any{"prompt": "3,4=12:", "text": "?"}))
	refs, packs, err := pack.Close()
	b.must(err)
	var rows []store.Sample
	for k, ref := range refs {
		rows = append(rows, store.Sample{Stage: st.Home, Scope: "train", Step: 1, Item: "p", K: k, Finish: "stop", Ref: ref})
	}
	b.must(db.AddSamples(b.ctx(), rows, packs))
	b.must(db.Close())
	read := func(args ...string) string {
		got := call{}.run(append([]string{"samples", "parts", "--suite", "train", "--store", dir}, args...)...)
		if got.code != 0 {
			t.Fatalf("%q: %+v", args, got)
		}
		return got.stdout
	}
	lines := strings.Split(read("-o", "jsonl"), "\n")
	if !strings.Contains(lines[0], `"components":{"correct":1,"format":0.5}`) || !strings.Contains(lines[1], `"components":null`) {
		t.Errorf("lines %q", lines)
	}
	want := `"turns":[{"start":0,"end":2,"reward":0.5,"state":"3fa9c2d1aa"},` +
		`{"start":3,"end":4,"reward":0,"state":"3fa9c2d1aa","conversation":"n"}]`
	if !strings.Contains(lines[0], want) || !strings.Contains(lines[1], `"turns":[]`) {
		t.Errorf("lines %q, want %s", lines, want)
	}
	text := read("--text", "-o", "table")
	for _, once := range []string{"correct 1.00, format 0.50", "0.50 in 3fa9c2d1, 0.00 in 3fa9c2d1"} {
		if strings.Count(text, once) != 1 {
			t.Errorf("text %q, want %q once", text, once)
		}
	}
	if list := read("-o", "jsonl", "-n", "0", "--grep", "[?]"); strings.Contains(list, "components") {
		t.Errorf("parts of a completion that has none: %q", list)
	}
}
