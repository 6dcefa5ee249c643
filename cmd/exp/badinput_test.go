package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"exp/experiments/store"
)

// Bad input, end to end through the real commands: each test checks the exit code, that the
// message says where the error is and what to do, and the files left on disk.

const smokeRecipe = "../../configs/smoke_cpu.yaml"

// exp executes the program with an empty HOME.
func exp(t *testing.T, args ...string) ended {
	t.Helper()
	return call{env: map[string]string{"HOME": t.TempDir(), "NO_COLOR": "1"}}.run(args...)
}

// smoke executes the smoke recipe in a store.
func smoke(t *testing.T, dir string, args ...string) ended {
	t.Helper()
	return exp(t, append([]string{"-q", "run", smokeRecipe, "--store", dir}, args...)...)
}

// refuses checks that the program ended with a code and a message.
func (e ended) refuses(t *testing.T, code int, texts ...string) {
	t.Helper()
	if e.code != code {
		t.Errorf("exit code %d, want %d", e.code, code)
	}
	for _, text := range texts {
		if !strings.Contains(e.stderr, text) {
			t.Errorf("the message lacks %q", text)
		}
	}
	if e.stdout != "" {
		t.Errorf("stdout %q", e.stdout)
	}
	if t.Failed() {
		t.Logf("stderr:\n%s", e.stderr)
	}
}

// succeeds checks that the program did what it was asked to.
func (e ended) succeeds(t *testing.T) {
	t.Helper()
	if e.code != 0 {
		t.Fatalf("exit code %d\n%s", e.code, e.stderr)
	}
}

// writeFile writes a file of the test's own folder and returns its path.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBadConfig(t *testing.T) {
	folder := t.TempDir()
	many := writeFile(t, "many.yaml", "version: 1\nname: 3\nseed: x\nrollot: {n: 4}\ntask: {kind: countdwn}\nrollout: {n: yes, max_new_tokens: 2.5}\ntrain: [1]\n")
	for _, tt := range []struct {
		name string
		args []string
		want []string
	}{
		{"missing", []string{filepath.Join(folder, "none.yaml")}, []string{"none.yaml: error[E100]: no such file"}},
		{"folder", []string{folder}, []string{folder + ": error[E100]: is a directory"}},
		{"empty", []string{writeFile(t, "empty.yaml", "")}, []string{"empty.yaml: error[E100]: is empty", "help: a recipe starts with version: 1"}},
		{"binary", []string{writeFile(t, "run.yaml", "version: \xff\x00\x01")}, []string{"run.yaml: error[E100]: is not a text file", "offset 9"}},
		{"not YAML", []string{writeFile(t, "run.yaml", "version: 1\nname: {\n")}, []string{"run.yaml:2:", "error[E101]"}},
		{"many", []string{many}, []string{
			":2:7: error[E111]: name must be text, got the number 3", "    2 | name: 3\n      |       ^\n", ":3:7: error[E111]: seed must be an integer",
			`:4:1: error[E102]: unknown key "rollot"`, `did you mean "rollout"?`, `:5:14: error[E113]: task.kind must be one of`, `did you mean "countdown"?`,
			":6:14: error[E111]: rollout.n", ":6:35: error[E111]: rollout.max_new_tokens must be an integer, got 2.5", ":7:8: error[E116]: train is a block",
			"8 errors; nothing was run"}},
		{"two files", []string{many, "--set", "train.stps=3"}, []string{`--set #1`, `did you mean "train.steps"?`, "9 errors"}},
		{"updates do not divide", []string{smokeRecipe, "--set", "train.prompts_per_update=3"}, []string{"--set #1:26: error[E120]", "(3) does not divide train.prompts_per_step (8)"}},
		{"update above the step", []string{smokeRecipe, "--set", "train.prompts_per_update=16"}, []string{"(16) does not divide train.prompts_per_step (8)"}},
		{"threads", []string{smokeRecipe, "--threads", "-3"}, []string{"--threads: error[E110]: compute.threads must be"}},
		{"device", []string{smokeRecipe, "--set", "seed=1", "--device", "gpu"}, []string{"--device: error[E113]: compute.device must be"}},
		{"condition", []string{smokeRecipe, "--stop-if", "foo"}, []string{"--stop-if: error[E120]: run.stop_if: \"foo\", column 1"}},
		{"no prompts", []string{smokeRecipe, "--set", "train.prompts_per_step=0"}, []string{"train.prompts_per_step must be >= 1, got 0"}},
		{"negative", []string{smokeRecipe, "--set", "train.prompts_per_update=-4"}, []string{"must be >= 1, got -4", "did you mean 4?"}},
		{"no completions", []string{smokeRecipe, "--set", "rollout.n=0"}, []string{"rollout.n must be >= 1, got 0"}},
		{"nothing to compare", []string{smokeRecipe, "--set", "rollout.n=1"}, []string{"rollout.n is 1", "help: rollout.n: 2 or more"}},
		{"step above the data", []string{smokeRecipe, "--set", "train.prompts_per_step=128"}, []string{"(128) is above data.train.size (64)"}},
		{"sft above the data", []string{smokeRecipe, "--set", "sft.problems_per_step=65"}, []string{"sft.problems_per_step (65) is above data.train.size (64)"}},
		{"micro-batch below a sequence", []string{smokeRecipe, "--set", "compute.micro_batch_tokens=10"}, []string{
			"compute.micro_batch_tokens (10) is below the longest sequence", "= 56", "help: a sequence is never cut"}},
		{"pass@k without k samples", []string{smokeRecipe, "--set", "eval.final.pass_k=[1,8]"}, []string{"eval.final.pass_k has 8, above eval.final.n (4)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			exp(t, append([]string{"-q", "run", "--store", dir}, tt.args...)...).refuses(t, 2, append(tt.want, "nothing was run")...)
			if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a store was made: %v", err)
			}
		})
	}
	t.Run("as JSON", func(t *testing.T) {
		e := exp(t, "run", many, "--json", "--store", filepath.Join(t.TempDir(), "store"))
		var got jsonError
		if err := json.Unmarshal([]byte(e.stderr), &got); err != nil {
			t.Fatalf("%v:\n%s", err, e.stderr)
		}
		if e.code != 2 || got.Code != 2 || got.Kind != "config" || len(got.Errors) != 8 || got.Errors[1].Line != 2 || got.Errors[1].Column != 7 || got.Errors[1].ID != "E111" {
			t.Errorf("code %d, errors %+v", e.code, got)
		}
	})
}

func TestBadProblems(t *testing.T) {
	good := `{"nums": [2, 3, 4], "target": 10}` + "\n" + `{"nums": [5, 3, 4], "target": 12}` + "\n"
	stored := `{"id":"a","prompt":"2,3=5:","target":"2+3","data":{"numbers":[2,3],"target":5}}` + "\n"
	for _, tt := range []struct {
		name, text string
		sets       []string
		want       []string
	}{
		{"broken line", good + `{"nums": [1, 2], "target":` + "\n", nil, []string{"bad.jsonl:3: not JSON: text ends inside a value"}},
		{"wrong type", good + `{"nums": "1 2", "target": 3}` + "\n", nil, []string{`bad.jsonl:3: "nums" is a JSON string`}},
		{"list", good + "[1]\n", nil, []string{"bad.jsonl:3: a list, not an object"}},
		{"not UTF-8", good + "{\"nums\": [1], \"x\": \"\xff\"}\n", nil, []string{"bad.jsonl:3: not UTF-8"}},
		{"binary", "\x00\x01\x02\n", nil, []string{"bad.jsonl:1: not JSON"}},
		{"id twice", stored + stored, nil, []string{`bad.jsonl:2: second problem with id "a"`}},
		{"empty", "", nil, []string{"bad.jsonl holds no problems"}},
		{"blank", "\n\n", nil, []string{"bad.jsonl holds no problems"}},
		{"too few for data.train.size", good, []string{"data.train.size=100"}, []string{"bad.jsonl has 2 problems, data.train.size asks for 100"}},
		{"too few for a step", good, nil, []string{"bad.jsonl has 2 problems, train.prompts_per_step asks for 8"}},
		{"prompt too long", good, []string{"train.prompts_per_step=2", "train.prompts_per_update=1", "sft.problems_per_step=2", "data.max_prompt_tokens=5"},
			[]string{"bad.jsonl: problem ", "data.max_prompt_tokens is 5; raise it, or set data.truncate"}},
		{"unknown character", `{"id":"a","prompt":"2±3","target":"2+3","data":{"numbers":[2,3],"target":5}}` + "\n", []string{"train.prompts_per_step=1", "train.prompts_per_update=1", "sft.problems_per_step=1"},
			[]string{"bad.jsonl: problem a: ", "±"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, file := filepath.Join(t.TempDir(), "store"), writeFile(t, "bad.jsonl", tt.text)
			args := []string{"--set", "data.train={source: " + file + ", size: 0}"}
			for _, s := range tt.sets {
				args = append(args, "--set", s)
			}
			smoke(t, dir, args...).refuses(t, 2, append(tt.want, "--set #1:", "1 error; nothing was run")...)
			if r := consistent(t, dir); len(r.runs) != 0 {
				t.Errorf("recorded runs: %v", r.runs)
			}
		})
	}
	t.Run("several files", func(t *testing.T) {
		missing := filepath.Join(t.TempDir(), "none.jsonl")
		args := []string{"--set", "data={train: {source: " + writeFile(t, "bad.jsonl", "{") + ", size: 0}, val: {source: " + writeFile(t, "bad2.jsonl", "[]") + ", size: 0}}"}
		smoke(t, filepath.Join(t.TempDir(), "store"), args...).refuses(t, 2, "bad.jsonl:1:", "bad2.jsonl holds no problems", "2 errors")
		smoke(t, filepath.Join(t.TempDir(), "store"), "--set", "data.test={source: "+missing+", size: 0}").refuses(t, 7, "none.jsonl cannot be read", "--set data.test.source=PATH")
		smoke(t, filepath.Join(t.TempDir(), "store"), "--set", "data.test={source: "+writeFile(t, "good.jsonl", "")+", more: ["+missing+"], size: 0}").refuses(t, 7,
			"none.jsonl cannot be read", "--set data.test.more=[PATH]")
		smoke(t, filepath.Join(t.TempDir(), "store"), "--set", "data.test.source=[a.jsonl, b.jsonl]").refuses(t, 2, "the others are data.test.more")
		smoke(t, filepath.Join(t.TempDir(), "store"), "--set", "data.test={source: a.jsonl, size: 0}", "--set", "data.test.more=['hub:a/b/c.jsonl@main', 'hub:d']").refuses(t, 2, "data.test.more: hub:d: a data set is ORG/NAME")
	})
	// Generated problems are not looked at before they are made; then they are, and
	// nothing is trained.
	t.Run("generated prompt too long", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "store")
		smoke(t, dir, "--set", "data.max_prompt_tokens=4").refuses(t, 2, "--set #1:", "data.train: problem ", "data.max_prompt_tokens is 4; raise it, or set data.truncate")
		r := consistent(t, dir)
		if len(r.runs) != 1 || r.runs[0].Status != store.Failed || len(r.outputs) != 3 {
			t.Errorf("runs %+v, outputs %v; want a failed run that made its problems", r.runs, r.outputs)
		}
	})
}

// bend changes a file, whatever its permissions.
func bend(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(path, 0o644), os.WriteFile(path, change(b), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func truncated(b []byte) []byte { return b[:len(b)/2] }

func flipped(b []byte) []byte {
	b = slices.Clone(b)
	b[len(b)/2] ^= 1
	return b
}

func TestBadModel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	smoke(t, dir, "--until", "merge").succeeds(t)
	source := filepath.Join(dir, "runs", consistent(t, dir).runs[0].RID.String(), "model")
	for _, tt := range []struct {
		name   string
		damage func(dir string)
		code   int
		want   []string
	}{
		{"no folder", func(dir string) { os.RemoveAll(dir) }, 7, []string{"no such folder", "--set model.base=PATH"}},
		{"no config", func(dir string) { os.Remove(filepath.Join(dir, "config.json")) }, 2, []string{"config.json", "no such file"}},
		{"broken config", func(dir string) { bend(t, filepath.Join(dir, "config.json"), truncated) }, 2, []string{"config.json"}},
		{"another architecture", func(dir string) {
			bend(t, filepath.Join(dir, "config.json"), func(b []byte) []byte { return bytes.Replace(b, []byte(`"LlamaForCausalLM"`), []byte(`"BertModel"`), 1) })
		}, 2, []string{"config.json", "BertModel"}},
		{"no weights", func(dir string) { os.Remove(filepath.Join(dir, "model.safetensors")) }, 2, []string{"model.safetensors"}},
		{"truncated weights", func(dir string) { bend(t, filepath.Join(dir, "model.safetensors"), truncated) }, 2, []string{"model.safetensors", "corrupt file"}},
		{"no tokenizer", func(dir string) { os.Remove(filepath.Join(dir, "tokenizer.json")) }, 2, []string{"tokenizer.json"}},
		{"broken tokenizer", func(dir string) { bend(t, filepath.Join(dir, "tokenizer.json"), truncated) }, 2, []string{"tokenizer.json"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			model, dir := filepath.Join(t.TempDir(), "model"), filepath.Join(t.TempDir(), "store")
			if err := os.CopyFS(model, os.DirFS(source)); err != nil {
				t.Fatal(err)
			}
			tt.damage(model)
			smoke(t, dir, "--set", "model={init: pretrained, base: "+model+"}", "--set", "tokenizer.kind=model").refuses(t, tt.code, tt.want...)
			if _, err := os.Stat(dir); err == nil && len(consistent(t, dir).runs) != 0 {
				t.Error("a run was recorded")
			}
		})
	}
}

func TestBadStore(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "store")
	smoke(t, whole, "--until", "prepare").succeeds(t)
	for _, tt := range []struct {
		name   string
		damage func(dir string) // a copy of a good store
		code   int
		want   []string
	}{
		{"not a database", func(dir string) {
			bend(t, filepath.Join(dir, "exp.db"), func([]byte) []byte { return []byte(strings.Repeat("text ", 999)) })
		}, 4,
			[]string{"exp.db: damaged or not a store", "help: restore it from a backup"}},
		{"truncated database", func(dir string) { bend(t, filepath.Join(dir, "exp.db"), func(b []byte) []byte { return b[:5000] }) }, 4, []string{"exp.db: damaged or not a store"}},
		{"lost database", func(dir string) { os.Remove(filepath.Join(dir, "exp.db")) }, 4, []string{"exp.db is empty but there are blobs"}},
		{"newer version", func(dir string) { newerStore(t, dir) }, 7, []string{"exp.db: schema version 99 was written by a newer exp, this one knows up to " + strconv.Itoa(store.Version()), "help: use a newer exp, or another store with --store"}},
		{"another program's", func(dir string) {
			bend(t, filepath.Join(dir, "exp.db"), func(b []byte) []byte { copy(b[68:], "ABCD"); return b }) // the header's application id
		}, 4, []string{"belongs to another program"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			tt.damage(dir)
			before := contents(t, dir)
			smoke(t, dir).refuses(t, tt.code, tt.want...)
			exp(t, "ls", "--store", dir).refuses(t, tt.code)
			if after := contents(t, dir); after != before {
				t.Errorf("the store was changed:\n%s\nto\n%s", before, after)
			}
		})
	}
	t.Run("file in the way", func(t *testing.T) {
		file := writeFile(t, "store", "a file")
		smoke(t, file).refuses(t, 7, file, "not a directory", "--store")
		smoke(t, filepath.Join(file, "deeper")).refuses(t, 7, file, "not a directory", "--store")
	})
	t.Run("unwritable", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "store")
		if err := os.Mkdir(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		if f, err := os.Create(filepath.Join(dir, "try")); err == nil {
			f.Close()
			t.Skip("this user may write anywhere")
		}
		smoke(t, dir).refuses(t, 7, dir, "permission")
	})
}

// newerStore gives a store the version of a later program.
func newerStore(t *testing.T, dir string) {
	t.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(dir, "exp.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
}
