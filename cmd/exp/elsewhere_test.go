package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A run with relative paths that is continued or verified from another folder is told where it was started, and a
// scorer's path which key has it.
func TestStartedElsewhere(t *testing.T) {
	recipe, err := os.ReadFile(filepath.Join("..", "..", "configs", "smoke_cpu.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	inFolder(t, map[string]string{"c.yaml": string(recipe), "score.sh": "cat", "test.jsonl": `{"nums":[3,4],"target":12}`})
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) ended { return call{}.run(append(args, "--store", filepath.Join(dir, "store"))...) }
	run("run", "c.yaml", "--set", "data.test={source: test.jsonl, size: 0}", "--set",
		"eval.final.scorer={kind: command, command: [sh, score.sh]}", "--until", "prepare").succeeds(t)
	t.Chdir(t.TempDir())
	const advice = "and relative paths count from the current directory: run it from there"
	for _, command := range []string{"resume", "verify"} {
		run(command, "smoke").refuses(t, 2, "test.jsonl", "the run was started in "+dir+", "+advice,
			"eval.final.scorer.command: the script of sh: ")
	}
}
