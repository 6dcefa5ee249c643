package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exp eval RUN adds the scores of a suite to a run and leaves the rest of it alone.
func TestEvalRun(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a model")
	}
	dir := t.TempDir()
	puzzles := filepath.Join(dir, "puzzles.jsonl")
	if err := os.WriteFile(puzzles, []byte(`{"nums":[3,4],"target":12}`+"\n"+`{"nums":[5,6],"target":11}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) ended {
		return call{list: commands}.run(append(args, "--store", filepath.Join(dir, "store"))...)
	}
	run("run", "../../configs/smoke_cpu.yaml").succeeds(t)
	before := run("ls", "--json", "--fields", "pass@1,pass@4")
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
	if after := run("ls", "--json", "--fields", "pass@1,pass@4"); after.stdout != before.stdout {
		t.Errorf("the run's headline changed:\n%s\n%s", before.stdout, after.stdout)
	}
	run("eval", "@last", "--suite", "nix").refuses(t, 7, "exp suite add nix FILE")
	run("eval", "@last").refuses(t, 2, "--suite NAME is needed")
	run("eval", "@last", "--suite", "puzzles", "--out", "x").refuses(t, 2, "--out is for --responses")
	run("eval", dir, "--suite", "puzzles").refuses(t, 2, "is a folder", "model.init: pretrained")
	run("eval", "--n", "3").refuses(t, 2, "--n is of a run")
}
