package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/experiments/query"
)

// exp eval RUN adds the scores of a suite to a run and leaves the rest of it alone.
func TestEvalRun(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a model")
	}
	dir := t.TempDir()
	puzzles := filepath.Join(dir, "puzzles.jsonl")
	writeRows(t, puzzles, `{"nums":[3,4],"target":12}`, `{"nums":[5,6],"target":11}`)
	letters := filepath.Join(dir, "letters.jsonl")
	writeRows(t, letters, `{"problem":"What is seven?","answer":"7"}`)
	run := func(args ...string) ended {
		return call{}.run(append(args, "--store", filepath.Join(dir, "store"))...)
	}
	run("run", "../../configs/smoke_cpu.yaml").succeeds(t)
	before := run("ls", "--json", "--fields", "pass@1,pass@4")
	if e := run("samples", "@last", "-n", "1", "-o", "jsonl"); e.code != 0 || strings.Contains(e.stdout, `"gold":null`) {
		t.Errorf("without a right answer: %s%s", e.stdout, e.stderr)
	}
	run("suite", "add", "puzzles", puzzles).succeeds(t)

	rows := func(args ...string) map[string]float64 {
		e := run(append([]string{"eval", "@last", "--suite", "puzzles", "--json"}, args...)...)
		e.succeeds(t)
		var got struct {
			Schema string
			Data   []struct {
				Suite, Metric string
				N, Items      int
				Value         float64
			}
		}
		if err := json.Unmarshal([]byte(e.stdout), &got); err != nil || got.Schema != "exp.eval.run/1" || len(got.Data) == 0 {
			t.Fatalf("%v\n%s", err, e.stdout)
		}
		m := map[string]float64{"n": float64(got.Data[0].N), "items": float64(got.Data[0].Items)}
		for _, r := range got.Data {
			m[r.Metric] = r.Value
			m["rows of "+r.Suite]++
		}
		if strings.Contains(e.stderr, "stage=train start") {
			t.Errorf("an evaluation trained:\n%s", e.stderr)
		}
		return m
	}
	if m := rows("--n", "3", "--temperature", "0.5"); m["n"] != 3 || m["items"] != 2 {
		t.Errorf("%v", m)
	}
	if m := rows("--n", "3", "--temperature", "0.5", "--rescore"); m["n"] != 3 {
		t.Errorf("%v", m)
	}
	if e := run("eval", "@last", "--suite", "puzzles", "-n", "3", "-k", "1,2,3"); e.code != 0 || !strings.Contains(e.stdout, "pass@2 ") {
		t.Errorf("the chosen k is not shown:\n%s", e.stdout)
	}
	// A protocol sets all its settings, though the run's configuration has them, and flags win over it.
	greedy := []string{"--protocol", "flowrl-validation", "--max-new-tokens", "24"}
	if m := rows(greedy...); m["n"] != 1 {
		t.Errorf("by the protocol: %v", m)
	}
	if m := rows(append(greedy, "--n", "2", "--temperature", "1")...); m["n"] != 2 {
		t.Errorf("by the protocol and a flag: %v", m)
	}
	if m := rows("--protocol", "none"); m["n"] != 4 {
		t.Errorf("by no protocol: %v", m)
	}
	if after := run("ls", "--json", "--fields", "pass@1,pass@4"); after.stdout != before.stdout {
		t.Errorf("the run's headline changed:\n%s\n%s", before.stdout, after.stdout)
	}
	// Several suites at once, and a suite that the model cannot read, which leaves the run
	// as it was.
	run("suite", "add", "letters", letters).succeeds(t)
	if m := rows("--suite", "test", "--n", "3", "--temperature", "0.5"); m["items"] != 2 || m["rows of countdown/test"] == 0 {
		t.Errorf("%v", m)
	}
	run("eval", "@last", "--suite", "letters").refuses(t, 2, "suite letters")
	if e := run("ls", "--json", "--fields", "status"); !strings.Contains(e.stdout, `"done"`) {
		t.Errorf("the run's status changed:\n%s", e.stdout)
	}

	// A file named like the run's own data is scored, not that data.
	published := filepath.Join(dir, "published", "test.jsonl")
	if err := os.Mkdir(filepath.Dir(published), 0o755); err != nil {
		t.Fatal(err)
	}
	writeRows(t, published, `{"nums":[2,4],"target":8}`)
	if e := run("eval", "@last", "--suite", published, "--json"); !strings.Contains(e.stdout, `"published-test"`) {
		t.Errorf("%s\n%s", e.stdout, e.stderr)
	}
	run("suite", "add", "test", published).refuses(t, 2, "stands for a run's own data")
	run("suite", "verify").succeeds(t) // the run's own data too
	run("suite", "verify", "countdown/test@start").refuses(t, 2, "they keep it")
	if e := run("suite", "show", "countdown/test"); !strings.Contains(e.stdout, "items    16") {
		t.Errorf("%s\n%s", e.stdout, e.stderr)
	}

	// A folder of weights is scored as a separate run, on part of the suite, with the
	// same results as the run.
	model, err := filepath.Glob(filepath.Join(dir, "store", "runs", "*", "model"))
	if err != nil || len(model) != 1 {
		t.Fatal(model, err)
	}
	weights := func(args ...string) ended {
		return run(append([]string{"eval", model[0], "--suite", "puzzles", "--n", "3", "--max-new-tokens", "24", "--json"}, args...)...)
	}
	whole := weights()
	whole.succeeds(t)
	if !strings.Contains(whole.stdout, `"items": 2`) && !strings.Contains(whole.stdout, `"items":2`) {
		t.Errorf("%s", whole.stdout)
	}
	if again := weights(); again.stdout != whole.stdout || strings.Contains(again.stderr, "stage=eval.gen label=puzzles start") {
		t.Errorf("the same again was sampled again:\n%s", again.stderr)
	}
	part := weights("--limit", "1")
	part.succeeds(t)
	if !strings.Contains(part.stdout, `"puzzles.first1"`) {
		t.Errorf("%s", part.stdout)
	}
	// What was sampled is graded again from what exp samples prints.
	sampled := filepath.Join(dir, "sampled.jsonl")
	out := run("samples", "@last", "--suite", "puzzles.first1", "-n", "0", "-o", "jsonl")
	if err := os.WriteFile(sampled, []byte(out.stdout), 0o644); err != nil {
		t.Fatal(err)
	}
	e := run("eval", "--responses", sampled, "--suite", "puzzles.first1")
	if !strings.Contains(e.stdout, "1 problem, 3 responses") || !strings.Contains(e.stdout, "file:verdict") {
		t.Errorf("%s%s", e.stdout, e.stderr)
	}
	weights("--limit", "0").refuses(t, 2, "--limit 0")

	// A prompt that does not fit with its answer is found before the weights are touched.
	tight := run("eval", model[0], "--suite", "puzzles", "--n", "3", "--max-new-tokens", "60")
	tight.refuses(t, 2, "positions (a prompt of ", "eval.final.max_new_tokens 60), the model has 64", "lower eval.final.max_new_tokens to ")
	if strings.Contains(tight.stderr, "stage=init start") {
		t.Errorf("the model was loaded first:\n%s", tight.stderr)
	}
	run("show", "@last").says(t, "evaluation on math")
	run("chat", "@last", "1+1?").refuses(t, 2, "evaluated a model and trained none", "name the model: "+model[0])

	// A custom template changes the prompts, and the plan shows it.
	template := filepath.Join(dir, "chat.jinja")
	if err := os.WriteFile(template, []byte("{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}"), 0o644); err != nil {
		t.Fatal(err)
	}
	plan := run("eval", model[0], "--suite", "puzzles", "--max-new-tokens", "16", "--dry-run")
	plan.says(t, "prompts  plain text: the tokenizer's folder has no chat template", "stop ids 0 <|endoftext|> (generation_config.json", "weights")
	run("eval", model[0], "--suite", "puzzles", "--truncate", "left", "--set", "data.filter_overlong=true",
		"--max-new-tokens", "16", "--dry-run").says(t, " tokens are cut on the left\n")
	run("run", "../../configs/smoke_cpu.yaml", "--dry-run", "--set", "eval.final={suites: [test, puzzles], truncate: middle}").says(t,
		" tokens are an error; of suites, they are cut in the middle\n")
	run("eval", model[0], "--suite", "puzzles", "--template", template, "--set", "rollout.stop_ids=[3]", "--max-new-tokens", "16", "--dry-run").says(t,
		"prompts  chat template "+template+" (sha256 ", "stop ids 3 ", "(rollout.stop_ids)")
	asked := weights("--template", template)
	asked.succeeds(t)
	if !strings.Contains(asked.stderr, "stage=eval.gen label=puzzles start") {
		t.Errorf("another prompt was not sampled:\n%s", asked.stderr)
	}
	run("eval", "@last", "--suite", "puzzles", "--template", template).refuses(t, 2, "--template needs a FOLDER", "/model …")

	// Adapters are named next to the model, or alone if they name a model that is here: one
	// evaluation, other than the plain model's.
	adapter := tinyAdapters(t, model[0])
	run("eval", model[0], "--adapter", adapter, "--suite", "puzzles", "--max-new-tokens", "16", "--dry-run").says(t, "note     adapter "+adapter+" (rank 1 on q_proj, up_proj): computed next to the weights", "adapters")
	adapted := weights("--adapter", adapter)
	adapted.succeeds(t)
	if !strings.Contains(adapted.stderr, "stage=eval.gen label=puzzles start") {
		t.Errorf("adapters were not sampled with:\n%s", adapted.stderr)
	}
	alone := run("eval", adapter, "--suite", "puzzles", "--n", "3", "--max-new-tokens", "24", "--json")
	if alone.succeeds(t); alone.stdout != adapted.stdout {
		t.Errorf("adapters alone:\n%s, with their model:\n%s", alone.stdout, adapted.stdout)
	}
	run("eval", "@last", "--suite", "puzzles", "--adapter", adapter).refuses(t, 2, "--adapter needs a FOLDER")
	run("eval", "weights/nothing", "--suite", "puzzles", "--dry-run").refuses(t, 3, "and no such folder exists")
	run("eval", filepath.Base(model[0])+"s", "--suite", "puzzles").refuses(t, 3)

	// A file for a missing run, or a dry run, leaves the store unchanged.
	fresh := filepath.Join(dir, "fresh.jsonl")
	writeRows(t, fresh, `{"nums":[2,7],"target":14}`)
	run("eval", "nosuch", "--suite", fresh).refuses(t, 3)
	run("eval", model[0], "--suite", fresh, "--dry-run").refuses(t, 2, "exp suite add")
	if e := run("suite", "ls"); strings.Contains(e.stdout, "fresh") {
		t.Errorf("a suite was added:\n%s", e.stdout)
	}

	// A file joins the store's suites, once, unless its name went to other problems.
	more := filepath.Join(dir, "more.jsonl")
	writeRows(t, more, `{"nums":[2,9],"target":18}`)
	first := run("eval", "@last", "--suite", more, "--n", "3")
	first.says(t, "more", "pass@1")
	if !strings.Contains(first.stderr, "the store now has suite more, 1 problem from") {
		t.Errorf("stderr %q", first.stderr)
	}
	second := run("eval", "@last", "--suite", more, "--n", "3")
	if second.succeeds(t); second.stdout != first.stdout || strings.Contains(second.stderr, "now has") {
		t.Errorf("stdout %q, stderr %q", second.stdout, second.stderr)
	}
	known := filepath.Join(dir, "gsm8k.jsonl") // in name only
	writeRows(t, known, `{"question":"1+1=","answer":"two\n#### 2"}`)
	named := run("eval", model[0], "--suite", known, "-n", "1", "--max-new-tokens", "2")
	own := filepath.Base(dir) + "-gsm8k"
	if !strings.Contains(named.stderr, "has 1 different problems; gsm8k has 1319: they are the suite "+own) {
		t.Errorf("stderr %q", named.stderr)
	} else {
		named.says(t, own, "pass@1")
	}
	other := filepath.Join(dir, "other.jsonl")
	writeRows(t, other, `{"nums":[2,8],"target":16}`)
	run("suite", "add", "more", other).succeeds(t)
	run("eval", "@last", "--suite", more, "--n", "3").refuses(t, 2, "older suite more")

	run("eval", "@last", "--suite", filepath.Join(dir, "nix")).refuses(t, 3, "nix: no such file")
	run("eval", "@last", "--suite", "nix.jsonl").refuses(t, 3, "nix.jsonl: no such file")
	run("eval", "@last", "--suite", "nix").refuses(t, 7, "exp suite add nix FILE")
	run("eval", "@last").refuses(t, 2, "--suite NAME is needed")
	run("eval", "@last", "--suite", "puzzles", "--out", "x").refuses(t, 2, "--out needs --responses")
	run("eval", dir, "--suite", "puzzles").refuses(t, 3, "no config.json")
	run("eval", "--n", "3").refuses(t, 2, "--n needs a RUN or a FOLDER")

	// The file that a run has its own problems from is a suite, too; the run's scores keep their name.
	mine := filepath.Join(dir, "mine.jsonl")
	writeRows(t, mine, `{"nums":[3,7],"target":21}`)
	run("run", "../../configs/smoke_cpu.yaml", "--set", "name=mined", "--set", "data.test={source: "+mine+", size: 0}",
		"--set", "train.steps=1", "--set", "eval.online.every_steps=0").succeeds(t)
	run("eval", model[0], "--suite", mine, "--n", "1", "--max-new-tokens", "24").says(t, "  mine  ")
	run("show", "mined").says(t, "results on countdown/test")

	// The plan of a run on a model's folder counts its positions, and an evaluation leaves out no long prompt.
	run("run", "../../configs/smoke_cpu.yaml", "--dry-run", "--set", "model={init: pretrained, base: "+model[0]+"}",
		"--set", "tokenizer.kind=model", "--set", "sft.steps=0", "--set", "data.train={source: "+mine+", size: 0}",
		"--set", "train={prompts_per_step: 1, prompts_per_update: 1}", "--set", "rollout.max_new_tokens=60").refuses(t, 2,
		"data.train: problem ", "the model has 64", "lower rollout.max_new_tokens to ")
	run("eval", model[0], "--suite", mine, "--set", "data.max_prompt_tokens=3", "--max-new-tokens", "24").refuses(t, 2,
		"set eval.final.truncate (exp eval --truncate); data.filter_overlong leaves out no problem of a benchmark")
	run("eval", model[0], "--suite", mine, "--set", "data.max_prompt_tokens=3", "--max-new-tokens", "2", "-n", "1", "--truncate",
		"left").says(t, "longer than data.max_prompt_tokens (3) and were cut (eval.final.truncate: left)")
	run("samples", "@last", "-o", "jsonl", "--fields", "item,tokens").succeeds(t)
}

// writeRows writes a file of lines.
func writeRows(t *testing.T, path string, rows ...string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Join(rows, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A run that another program trained is scored as a folder, and the error says so.
func TestEvalRunOfOtherSources(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(dir, os.DirFS(smokeStore(t))); err != nil {
		t.Fatal(err)
	}
	if _, err := openRaw(t, dir).Exec(`UPDATE stages SET code = (SELECT code FROM stages WHERE kind = 'eval.score' LIMIT 1) WHERE kind = 'train'`); err != nil {
		t.Fatal(err)
	}
	exp(t, "eval", "smoke#0", "--suite", "test", "--n", "2", "--store", dir).refuses(t, 7, "made by other sources",
		"score its folder, as a run of its own: exp eval "+dir, "--source DIR")
}

// A name of several runs is not taken for a missing folder.
func TestNoFolder(t *testing.T) {
	several := &query.AmbiguousError{Ref: "nothing#0"}
	if err := noFolder("nothing#0", several); err != error(several) {
		t.Error(err)
	}
	if err := noFolder("nothing", errors.New("no run")); err.Error() != "no run, and no such folder exists" {
		t.Error(err)
	}
}
