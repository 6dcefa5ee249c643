package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a folder's generation_config.json recommends is told, and applied on request: with the same answers, and the same
// evaluation, as the flags of that name.
func TestGenerationConfig(t *testing.T) {
	dir := chatFolder(t, 256)
	path := filepath.Join(dir, "generation_config.json")
	var file map[string]any
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &file)
	}
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if file == nil {
		file = map[string]any{}
	}
	file["temperature"], file["top_k"], file["repetition_penalty"] = 0.7, 20, 1.3
	if b, err = json.Marshal(file); err == nil {
		err = os.WriteFile(path, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	recommended := []string{"--temperature", "0.7", "--top-k", "20", "--repetition-penalty", "1.3"}
	const note = "recommends temperature 0.7, top_k 20, repetition_penalty 1.3; --generation-config auto"

	storeDir := filepath.Join(t.TempDir(), "store")
	run := func(args ...string) ended { return call{}.run(append(args, "--store", storeDir)...) }
	chat := func(flags ...string) ended {
		e := run(append([]string{"chat", dir, "hi", "--max-tokens", "40", "--seed", "7"}, flags...)...)
		e.succeeds(t)
		return e
	}
	plain, flags, auto := chat(), chat(recommended...), chat("--generation-config", "auto")
	if !strings.Contains(plain.stderr, note) || !strings.Contains(auto.stderr, "sampling as generation_config.json recommends") {
		t.Errorf("%s\n%s", plain.stderr, auto.stderr)
	}
	if plain.stdout == flags.stdout || auto.stdout != flags.stdout {
		t.Errorf("plain %q, with flags %q, with the file %q", plain.stdout, flags.stdout, auto.stdout)
	}
	if one := chat("--generation-config", "auto", "--repetition-penalty", "1"); one.stdout != chat(recommended[:4]...).stdout {
		t.Errorf("a flag beside the file: %q", one.stdout)
	}
	run("chat", dir, "hi", "--generation-config", "vllm").refuses(t, 2, "--generation-config vllm: want auto, or none")

	suite := filepath.Join(t.TempDir(), "sums.jsonl")
	writeRows(t, suite, `{"id":"a","problem":"1+1?","answer":"2"}`, `{"id":"b","problem":"2+2?","answer":"4"}`)
	eval := func(flags ...string) ended {
		e := run(append([]string{"eval", dir, "--suite", suite, "-n", "2", "--max-new-tokens", "20", "--json"}, flags...)...)
		e.succeeds(t)
		return e
	}
	const sampled = "stage=eval.gen label=sums start"
	if e := eval(); !strings.Contains(e.stderr, note) {
		t.Errorf("%s", e.stderr)
	}
	if e := eval("--generation-config", "auto"); !strings.Contains(e.stderr, sampled) {
		t.Errorf("sampled as before:\n%s", e.stderr)
	}
	if e := eval(recommended...); strings.Contains(e.stderr, sampled) {
		t.Errorf("flags of the same values are another evaluation:\n%s", e.stderr)
	}
	run("eval", dir, "--suite", "sums", "--generation-config", "auto", "--protocol", "flowrl-math").refuses(t, 2, "both say how to sample")
	run("eval", dir, "--suite", "sums", "--generation-config", "auto", "--protocol", "none",
		"--max-new-tokens", "8", "--dry-run").succeeds(t)
	run("eval", "@last", "--suite", "sums", "--generation-config", "auto").refuses(t, 2, "--generation-config needs a FOLDER")
}
