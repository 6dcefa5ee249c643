package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"exp/cmd/exp/cli"
)

// TestCompleteRuns: references to runs come from the store, newest first.
func TestCompleteRuns(t *testing.T) {
	dir := fixtureStore(t)
	id := digestOf("ridflowrl-a1").Short()
	tests := []struct {
		name  string
		words []string
		want  []string // texts of the proposals
	}{
		{"runs", []string{"ls", ""}, []string{"@last", "grpo-c", "ppo-b", "flowrl-a", "tag:baseline", "tag:v2"}},
		{"one run", []string{"show", ""}, []string{"@last", "grpo-c", "ppo-b#1", "ppo-b#0", "flowrl-a#2", "flowrl-a#1", "flowrl-a#0", "tag:baseline", "tag:v2"}},
		{"seeds of a name", []string{"metrics", "flowrl-a"}, []string{"flowrl-a", "flowrl-a#2", "flowrl-a#1", "flowrl-a#0"}},
		{"seeds after the sign", []string{"samples", "ppo-b#"}, []string{"ppo-b#1", "ppo-b#0"}},
		{"last", []string{"show", "@"}, []string{"@last"}},
		{"ids", []string{"show", id[:3]}, []string{id}},
		{"tags", []string{"ls", "tag:b"}, []string{"tag:baseline"}},
		{"first of two", []string{"diff", "grp"}, []string{"grpo-c"}},
		{"second of two", []string{"diff", "@last", "grp"}, []string{"grpo-c"}},
		{"third of two", []string{"diff", "@last", "@last", "grp"}, nil},
		{"second of one", []string{"show", "@last", ""}, nil},
		{"metrics of a run", []string{"metrics", "ppo-b#1", "-m", "actor/"}, []string{"actor/entropy", "actor/lr"}},
		{"suites of a run", []string{"samples", "flowrl-a#0", "--suite", ""}, []string{"test@start", "test", "train"}},
		{"field to sort by", []string{"ls", "--sort", "-cre"}, []string{"-created"}},
		{"more columns", []string{"ls", "--cols", "seed,config.algo.k"}, []string{"seed,config.algo.kind"}},
		{"groups", []string{"ls", "--group", "algo.la"}, []string{"algo.lambda", "algo.lambda_alpha"}},
		{"no store", []string{"show", "--store", filepath.Join(dir, "nowhere"), ""}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			words := tt.words
			if tt.name != "no store" {
				words = append([]string{words[0], "--store", dir}, words[1:]...)
			}
			got := call{now: fixtureNow}.run(append(words, cli.CompletionFlag)...)
			var texts []string
			for line := range strings.Lines(got.stdout) {
				text, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
				texts = append(texts, text)
			}
			if tt.name == "more columns" { // keys below algo.kind, if any come, are fine
				texts = texts[:min(1, len(texts))]
			}
			if got.code != 0 || got.stderr != "" || strings.Join(texts, " ") != strings.Join(tt.want, " ") {
				t.Errorf("exp %q: got  %q %q\nwant %q", tt.words, texts, got.stderr, tt.want)
			}
		})
	}
}

// TestCompleteRunsInTime gives the hook, which stops when its time is up, a store with more
// runs than it looks at. A busy machine may need several tries.
func TestCompleteRunsInTime(t *testing.T) {
	if testing.Short() {
		t.Skip("makes many runs")
	}
	dir := t.TempDir()
	manyRuns(t, dir, 2*recentRuns)
	most := 0
	for end := time.Now().Add(20 * time.Second); most != 1+recentRuns && time.Now().Before(end); {
		got := call{hurried: true}.run("show", "--store", dir, "", cli.CompletionFlag)
		most = max(most, strings.Count(got.stdout, "\n"))
	}
	if most != 1+recentRuns {
		t.Errorf("at most %d proposals in %v, want %d", most, cli.CompletionTime, 1+recentRuns)
	}
}
