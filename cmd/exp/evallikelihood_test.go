package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// exp eval compares likelihoods of options, as the suite's definition or a flag says, with examples; the scores are
// recorded like any others, and exp verify computes them again.
func TestEvalLikelihood(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "bytes")
	writeByteModel(t, model, 160, "")
	file := func(name string, rows ...string) string {
		path := filepath.Join(dir, name)
		writeRows(t, path, rows...)
		return path
	}
	run := func(args ...string) ended {
		return call{}.run(append(args, "--store", filepath.Join(dir, "store"))...)
	}
	file("arc.jsonl", `{"id":"a","question":"Gas?","choices":["air","stone"],"answer":0,"subject":"sky"}`,
		`{"id":"b","question":"Wet?","choices":["sea","sand","dust"],"answer":0,"subject":"land"}`)
	dev := file("dev.jsonl", `{"question":"Hot?","choices":["sun","ice"],"answer":0,"subject":"sky"}`,
		`{"question":"Dry?","choices":["rain","sand"],"answer":1,"subject":"land"}`)
	arc := file("arc.yaml", "name: arc", "file: arc.jsonl", "likelihood: option", "shots: 1", "shots_suite: dev",
		`prompt: "{problem}\nA:"`)
	sums := file("sums.jsonl", `{"question":"1+1?","answer":"two\n#### 2"}`)
	run("suite", "add", arc).succeeds(t)
	run("suite", "add", "sums", sums, "--solutions").succeeds(t)
	if e := run("suite", "show", "arc"); !strings.Contains(e.stdout, `asked    {"likelihood":"option","shots":1`) {
		t.Errorf("%s%s", e.stdout, e.stderr)
	}
	file("arc.yaml", "name: arc", "file: arc.jsonl", "likelihood: letter")
	run("suite", "add", arc).refuses(t, 2, `asks them another way: {"likelihood":"option"`)
	run("eval", model, "--suite", arc).refuses(t, 2, `as arc, and asks them another way: {"likelihood":"option"`)

	eval := func(args ...string) ended {
		return run(append([]string{"eval", model, "--json"}, args...)...)
	}
	eval("--suite", "arc").refuses(t, 7, "the suite dev: it is not in the store")
	run("suite", "add", dev).succeeds(t)
	metrics := func(e ended) string {
		t.Helper()
		e.succeeds(t)
		var got struct {
			Data []struct{ Suite, Metric string }
		}
		if err := json.Unmarshal([]byte(e.stdout), &got); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range got.Data {
			names = append(names, r.Metric)
		}
		return strings.Join(names, " ")
	}
	const options = "pass@1 not_graded option_prob option_brier source/land source/sky accuracy/likelihood accuracy/likelihood_per_char"
	if got := metrics(eval("--suite", "arc")); got != options {
		t.Errorf("by the definition: %s", got)
	}
	if e := eval("--suite", "arc", "--likelihood", "option"); metrics(e) != options || strings.Contains(e.stderr, "label=arc start") {
		t.Errorf("the same by a flag was computed again:\n%s", e.stderr)
	}
	letters := eval("--suite", "arc", "--likelihood", "letter", "--description", "On {source}.", "--grader", "likelihood_per_byte")
	if got := metrics(letters); got != "pass@1 not_graded option_prob option_brier source/land source/sky" {
		t.Errorf("letters: %s", got)
	}
	shown := run("samples", "@last", "-n", "1", "-o", "jsonl")
	if !strings.Contains(shown.stdout, `"prompt":"On sky.\n\nHot?\n\nA) sun\nB) ice\nA: A\n\nGas?\n\nA) air\nB) stone\nA:"`) ||
		!strings.Contains(shown.stdout, `"reason":"A -`) {
		t.Errorf("%s%s", shown.stdout, shown.stderr)
	}
	// A flag wins over the definition, even if its text is the default of the key.
	for _, flags := range [][]string{{"--prompt", "{problem}"}, {"--prompt", "none"}} {
		alone := eval(append([]string{"--suite", "arc", "--shots", "0", "--description", ""}, flags...)...)
		alone.succeeds(t)
		if shown := run("samples", "@last", "-n", "1", "-o", "jsonl"); !strings.Contains(shown.stdout, `"prompt":"Gas?"`) {
			t.Errorf("%v: %s%s", flags, shown.stdout, shown.stderr)
		}
	}
	eval("--suite", "arc", "--shots-suite", "").refuses(t, 2, "--shots 0 asks without examples")
	sampled := metrics(eval("--suite", "arc", "--likelihood", "off", "--n", "1", "--max-new-tokens", "2"))
	if !strings.Contains(sampled, "length_mean") {
		t.Errorf("sampled: %s", sampled)
	}
	if e := run("verify", "@last"); e.code != 0 || !strings.Contains(e.stderr+e.stdout, "8 completions of 4 evaluations sampled again") {
		t.Errorf("%d\n%s%s", e.code, e.stdout, e.stderr)
	}

	run("suite", "rm", "dev").refuses(t, 2, "dev has the examples of other suites' evaluations")
	bundle := filepath.Join(dir, "bundle.tar")
	run("export", "@last", bundle).succeeds(t)
	other := filepath.Join(dir, "other")
	call{}.run("import", bundle, "--store", other).succeeds(t)
	if e := (call{}).run("suite", "ls", "--store", other); !strings.Contains(e.stdout, "dev") {
		t.Errorf("the bundle lacks the examples:\n%s%s", e.stdout, e.stderr)
	}

	eval("--suite", "arc", "--likelihood", "letter", "--n", "2").refuses(t, 2, "--n is about sampled answers")
	eval("--suite", "sums", "--likelihood", "letter").refuses(t, 2, "suite sums: problem 0 has no options")
	eval("--suite", "sums", "--shots", "1").refuses(t, 2, "no suite has the examples")
	eval("--suite", "arc", "--shots", "2").refuses(t, 2, "only 1 example of source")
	eval("--suite", "sums", "--grader", "likelihood").refuses(t, 2, "answers are sampled, and the grader likelihood compares")
	eval("--suite", "arc", "--description", strings.Repeat("x", 150)).refuses(t, 2, "the model has 160")
}
