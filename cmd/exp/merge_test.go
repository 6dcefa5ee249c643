package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/convert"
	"exp/harness/inspect"
	"exp/train/tokenizer"
)

func TestMerge(t *testing.T) {
	dir, _, _ := tinyFolder(t)
	out := filepath.Join(t.TempDir(), "merged")
	e := exp(t, "merge", dir, "--out", out, "--dtype", "bf16", "--json")
	e.succeeds(t)
	var d struct {
		Schema string
		Data   convert.Merged
	}
	if err := json.Unmarshal([]byte(e.stdout), &d); err != nil {
		t.Fatal(err)
	}
	if m := d.Data; d.Schema != "exp.merge/1" || m.Source != dir || m.Container != "safetensors" || m.Out != out ||
		m.Class != "Qwen2ForCausalLM" || m.DType != "BF16" || m.Tensors != 2*12+3 || len(m.Files) != 3 || m.Bytes == 0 {
		t.Errorf("got %s %+v", d.Schema, d.Data)
	}
	e = exp(t, "inspect", out, "--json")
	e.succeeds(t)
	var i struct{ Data inspect.Report }
	if err := json.Unmarshal([]byte(e.stdout), &i); err != nil || !i.Data.Computable || len(i.Data.DTypes) != 1 ||
		i.Data.DTypes[0].DType != "BF16" {
		t.Errorf("%v, %+v", err, i.Data)
	}
	exp(t, "merge", dir, "--out", out).refuses(t, 2, "already exists", "--force")
	exp(t, "merge", dir, "--out", out, "--force").says(t, "from     safetensors "+dir, "27, F32", "config.json")
	exp(t, "merge", out, "--out", out, "--force").refuses(t, 2, "holds the source")
	exp(t, "merge", out, "--out", filepath.Dir(out), "--force").refuses(t, 2, "not a model's folder")
	exp(t, "merge", dir, "--out", filepath.Join(out, "more"), "--dtype", "f8").refuses(t, 2, "keep, bf16, f32")
	exp(t, "merge", dir).refuses(t, 2, "--out DIR")
	exp(t, "merge", filepath.Join(dir, "none"), "--out", out+"2").refuses(t, 3, "none")
	exp(t, "merge", filepath.Join(dir, "model.safetensors"), "--out", out+"3", "--hf-config", out).succeeds(t)
	if err := os.Remove(filepath.Join(dir, "config.json")); err != nil {
		t.Fatal(err)
	}
	exp(t, "merge", dir, "--out", out+"4").refuses(t, 1, "no config.json", "--hf-config DIR")
	exp(t, "eval", dir, "--suite", "test", "--store", filepath.Join(dir, "store")).refuses(t, 3,
		"/tiny --out DIR --hf-config")
}

// verlRun links golden files of ranks into the folders that verl makes, and returns the
// folder of steps and the actor's. The test is skipped without them.
func verlRun(t *testing.T, ranks ...string) (root, actor string) {
	t.Helper()
	golden, err := filepath.Abs("../../../shared/data/models/verl/fsdp1_4")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(golden); err != nil {
		t.Skipf("the golden checkpoints are not here: %v", err)
	}
	root = t.TempDir()
	actor = filepath.Join(root, "global_step_5", "actor")
	if err := os.MkdirAll(filepath.Join(actor, "huggingface"), 0o777); err != nil {
		t.Fatal(err)
	}
	names := []string{"huggingface/config.json"}
	for _, rank := range ranks {
		names = append(names, "model_world_size_4_rank_"+rank+".pt")
	}
	for _, name := range names {
		if err := os.Symlink(filepath.Join(golden, name), filepath.Join(actor, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "latest_checkpointed_iteration.txt"), []byte("5"), 0o666); err != nil {
		t.Fatal(err)
	}
	return root, actor
}

// The folder of steps, the actor's folder and the merged folder get the same scores.
func TestEvalRanks(t *testing.T) {
	root, actor := verlRun(t, "0", "1", "2", "3")
	chars, err := tokenizer.NewChar("0123456789+-*/()=<>answer thikUsgombd,.:TopuclyvqWR")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range chars.Files() {
		if err := os.WriteFile(filepath.Join(actor, "huggingface", name), content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	puzzles := filepath.Join(dir, "puzzles.jsonl")
	if err := os.WriteFile(puzzles, []byte(`{"nums":[3,4],"target":12}`+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) ended {
		return call{}.run(append(args, "--store", filepath.Join(dir, "store"))...)
	}
	run("suite", "add", "puzzles", puzzles).succeeds(t)
	merged := filepath.Join(dir, "merged")
	run("merge", root, "--out", merged).succeeds(t)
	var scores []string
	for _, path := range []string{root, actor, merged} {
		e := run("eval", path, "--suite", "puzzles", "--n", "2", "--set", "rollout.max_new_tokens=8", "-o", "csv",
			"--fields", "metric,value")
		e.succeeds(t)
		scores = append(scores, e.stdout)
	}
	if scores[0] != scores[1] || scores[0] != scores[2] || !strings.Contains(scores[0], "token_entropy") {
		t.Errorf("scores %q", scores)
	}
}

// What verl wrote is merged and described; a rank that is missing is named.
func TestMergeRanks(t *testing.T) {
	root, actor := verlRun(t, "0", "1", "2", "3")
	out := filepath.Join(t.TempDir(), "merged")
	exp(t, "merge", root, "--out", out).says(t, "verl FSDP of 4 ranks, "+actor, "10 tensors of an auxiliary head: in "+
		"proj_z.safetensors", "37, F32")
	_, actor = verlRun(t, "0", "1", "3")
	exp(t, "merge", filepath.Dir(actor), "--out", out+"2", "--hf-config", out).refuses(t, 3, "rank 2 of 4", "fetch it")
	if _, err := os.Stat(out + "2"); err == nil {
		t.Error("a folder was left")
	}
	e := exp(t, "inspect", filepath.Dir(actor))
	if text := strings.Join(strings.Fields(e.stdout), " "); !strings.Contains(text, "rank 2 of 4") ||
		!strings.Contains(text, "verl FSDP") {
		t.Errorf("%s%s", e.stdout, e.stderr)
	}
}
