package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/convert"
	"exp/harness/inspect"
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
	exp(t, "eval", dir, "--suite", "test").refuses(t, 3, "exp merge SRC --out DIR --hf-config")
}

// What verl wrote is merged and described without a word about ranks that are not there.
func TestMergeRanks(t *testing.T) {
	golden := "../../../shared/data/models/verl/fsdp1_4"
	if _, err := os.Stat(golden); err != nil {
		t.Skipf("the golden checkpoints are not here: %v", err)
	}
	out := filepath.Join(t.TempDir(), "merged")
	exp(t, "merge", golden, "--out", out).says(t, "verl FSDP of 4 ranks, "+golden, "10 tensors of an auxiliary head: in "+
		"proj_z.safetensors", "37, F32")
	step := filepath.Join(t.TempDir(), "global_step_5", "actor")
	if err := os.MkdirAll(step, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, rank := range []string{"0", "1", "3"} {
		name := "model_world_size_4_rank_" + rank + ".pt"
		from, err := filepath.Abs(filepath.Join(golden, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(from, filepath.Join(step, name)); err != nil {
			t.Fatal(err)
		}
	}
	exp(t, "merge", filepath.Dir(step), "--out", out+"2", "--hf-config", out).refuses(t, 3, "rank 2 of 4", "fetch it")
	if _, err := os.Stat(out + "2"); err == nil {
		t.Error("a folder was left")
	}
	e := exp(t, "inspect", filepath.Dir(step))
	if !strings.Contains(e.stdout, "rank 2 of 4") || !strings.Contains(e.stdout, "verl FSDP") {
		t.Errorf("%s%s", e.stdout, e.stderr)
	}
}
