package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"exp/kernels"
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

	file("blanks.jsonl", `{"sentence":"It _ was.","option1":"is","option2":"were","answer":"2"}`,
		`{"sentence":"The _ and more.","option1":"sea","option2":"sand","answer":"1"}`,
		`{"sentence":"An _ ends.","option1":"air","option2":"air","answer":"1"}`)
	blanks := filepath.Join(dir, "blanks.jsonl")
	filled := eval("--suite", blanks, "--likelihood", "blank", "--shots", "1", "--shots-suite", "blanks")
	if got := metrics(filled); got != "pass@1 not_graded option_prob option_brier" ||
		!strings.Contains(filled.stderr, "blanks: 1 of 3 problems have two options with the same text") {
		t.Errorf("blanks: %s\n%s", got, filled.stderr)
	}
	shown = run("samples", "@last", "--suite", "blanks", "-n", "1", "-o", "jsonl")
	if !strings.Contains(shown.stdout, `"prompt":"The sea and more.\n\nIt "`) || !strings.Contains(shown.stdout, `"reason":"A -`) ||
		!strings.Contains(shown.stdout, ` was."`) {
		t.Errorf("%s%s", shown.stdout, shown.stderr)
	}
	_, reason, _ := strings.Cut(shown.stdout, `"reason":"A `)
	reason, _, _ = strings.Cut(reason, `"`)
	if one, two, ok := strings.Cut(reason, ", B "); !ok || one == two { // each option has its own prompt
		t.Errorf("reason %q", reason)
	}
	if e := run("verify", "@last"); e.code != 0 {
		t.Errorf("%d\n%s%s", e.code, e.stdout, e.stderr)
	}
	eval("--suite", blanks, "--likelihood", "blank", "--prompt", "{problem}!").refuses(t, 2, "the prompt does not end with {problem}")
	eval("--suite", "arc", "--likelihood", "blank", "--shots", "0").refuses(t, 2, "problem a has no blank (_) in its question")

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

// The plan of an evaluation knows how long a benchmark's prompts and options are.
func TestPlanOfSuites(t *testing.T) {
	dir := t.TempDir()
	model, many := filepath.Join(dir, "bytes"), filepath.Join(dir, "many.jsonl")
	writeByteModel(t, model, 160, "")
	var rows []string
	for i := range 40 { // prompts of 47 bytes, which share none of three pages, and options of 2 and 20
		rows = append(rows, fmt.Sprintf(`{"question":"%02d%s","choices":["b","%s"],"answer":0}`, i,
			strings.Repeat("x", 45), strings.Repeat("c", 19)))
	}
	writeRows(t, many, rows...)
	run := func(args ...string) ended {
		return call{}.run(append(args, "--store", filepath.Join(dir, "store"))...)
	}
	run("suite", "add", many).succeeds(t)
	planned := func(args ...string) (cache, touched float64) {
		t.Helper()
		var page struct {
			Data []struct {
				Estimate struct {
					Memory []struct {
						Name      string
						Bytes     float64
						Untouched float64 `json:"untouched_bytes"`
					}
				}
			}
		}
		e := run(append([]string{"eval", model, "--suite", "many", "--dry-run", "--json"}, args...)...)
		e.succeeds(t)
		if err := json.Unmarshal([]byte(e.stdout), &page); err != nil || len(page.Data) != 1 {
			t.Fatal(err, e.stdout)
		}
		for _, p := range page.Data[0].Estimate.Memory {
			if p.Name == string(kernels.CacheRoom) {
				return p.Bytes, p.Bytes - p.Untouched
			}
		}
		t.Fatal(e.stdout)
		return
	}
	const page = 16 * 256 // bytes
	if cache, touched := planned("--likelihood", "option"); cache != touched || cache != page*(40*(3+1+3)+1) {
		t.Errorf("options: a cache of %v pages, of which %v are touched", cache/page, touched/page)
	}
	cache, touched := planned("--n", "2", "--max-new-tokens", "8")
	if cache <= touched || touched != page*(40*(5+2*2)+1) { // prompts show the options
		t.Errorf("completions: a cache of %v pages, of which %v are touched", cache/page, touched/page)
	}
	if cache, touched := planned("--likelihood", "option", "--set", "rollout.cache_tokens=800"); cache != touched || cache != page*50 {
		t.Errorf("a cache of 800 tokens: %v pages, of which %v are touched", cache/page, touched/page)
	}
}
