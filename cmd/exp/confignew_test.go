package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"exp/harness/config"
)

// exp run plans each recipe that exp config new writes, without another flag; distillation lacks a teacher, GiGPO an
// agent, and what rewards steps a process reward model.
func TestConfigNew(t *testing.T) {
	dir := t.TempDir()
	help := strings.Join(strings.Fields(exp(t, "config", "new", "--help").stdout), " ")
	var files []string
	for i, algo := range config.StarterAlgos("") {
		if !strings.Contains(help, " "+algo) {
			t.Errorf("the help does not name %s", algo)
		}
		for _, task := range config.StarterTasks() {
			// Planning functions takes a second, for the sandbox; package config loads every task.
			if slices.Contains(config.StartersFromFiles(), task) || !slices.Contains(config.StarterAlgos(task), algo) ||
				algo == "distill" || algo == "gigpo" || algo == "grpo_process" || algo == "pure" || task == "functions" && i > 0 {
				continue
			}
			text, err := config.NewRecipe(config.Starter{Task: task, Algo: algo})
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, filepath.Join(dir, task+"-"+algo+".yaml"))
			if err := os.WriteFile(files[len(files)-1], []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	plan := exp(t, append([]string{"run", "--dry-run", "--store", filepath.Join(dir, "store")}, files...)...)
	plan.succeeds(t)
	if n := strings.Count(plan.stdout, "train  "); n < len(files) || len(files) < 100 {
		t.Errorf("%d trainings planned for %d recipes", n, len(files))
	}
	taught := filepath.Join(dir, "taught.yaml")
	exp(t, "config", "new", taught, "--task", "countdown", "--algo", "distill").succeeds(t)
	exp(t, "run", "--dry-run", "--store", filepath.Join(dir, "store"), taught).says(t,
		"the weights of the teacher models/teacher: no such folder", "--set algo.reference=PATH")
	agent := filepath.Join(dir, "agent.yaml")
	exp(t, "config", "new", agent, "--task", "countdown", "--algo", "gigpo").succeeds(t)
	exp(t, "run", "--dry-run", "--store", filepath.Join(dir, "store"), agent).refuses(t, 2,
		"the script of python3: stat agent.py: no such file", "agent.yaml:")
	exp(t, "run", "--dry-run", "--store", filepath.Join(dir, "store"), agent, "--set",
		"rollout.tools.command=[python3, "+writeFile(t, "agent.py", "")+"]").says(t, "train")
}

// A recipe on the user's files plans with them.
func TestConfigNewFromFiles(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "store")
	smoke(t, db).succeeds(t)
	found, err := filepath.Glob(filepath.Join(db, "runs", "*", "*", "config.json"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	model := filepath.Dir(found[0])
	data := map[string]string{
		"math":         `{"prompt":"2+%d","answer":"4"}`,
		"code":         `{"task_id":"HumanEval/0","prompt":"1,%d","entry_point":"f","canonical_solution":"","test":"def check(f):\n  assert f(1)==2"}`,
		"instructions": `{"prompt":"4+%d","instruction_id_list":["punctuation:no_comma"],"kwargs":[{}]}`,
		"prompts":      `{"prompt":"3+%d"}`,
		"mixed":        `{"question":"3+%d","answer":"7"}`,
	}
	for _, task := range config.StartersFromFiles() {
		exp(t, "config", "new", "--task", task).refuses(t, 2, "needs a model and problems", "--data FILE.jsonl")
		var rows []string
		for i := range 8 {
			rows = append(rows, fmt.Sprintf(data[task], i))
		}
		problems := writeFile(t, "rows.jsonl", strings.Join(rows, "\n"))
		file := filepath.Join(dir, task+".yaml")
		exp(t, "config", "new", file, "--task", task, "--algo", "grpo", "--model", model, "--data", problems).succeeds(t)
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "max_new_tokens: 32\n") {
			t.Errorf("%v: answers do not fit into the model's 64 positions:\n%s", err, text)
		}
		plan := []string{"run", file, "--dry-run", "--store", db}
		if task == "prompts" {
			exp(t, plan...).refuses(t, 2, "the script of python3: stat reward.py: no such file")
			plan = append(plan, "--set", "reward.command=[python3, "+writeFile(t, "reward.py", "")+"]")
		}
		exp(t, plan...).says(t, "eval.score test", "train")
	}
}

func TestConfigNewRefuses(t *testing.T) {
	exp(t, "config", "new", "--task", "countdwn").refuses(t, 2, "did you mean countdown?")
	exp(t, "config", "new", "--algo", "gropo").refuses(t, 2, "did you mean grpo?")
	exp(t, "config", "new", "--data", "x.jsonl").refuses(t, 2, "generates its problems")
	exp(t, "config", "new", "--task", "outcomes", "--algo", "gdpo").refuses(t, 2, "only one", "choose another --algo: ", "grpo")
	got := exp(t, "config", "new", "--task", "outcomes", "--algo", "gdpo")
	if strings.Contains(got.stderr, "--data") || strings.Contains(got.stderr, "gdpo,") {
		t.Errorf("advice that does not help:\n%s", got.stderr)
	}
	got = exp(t, "config", "new", "--task", "math")
	if _, generated, _ := strings.Cut(got.stderr, "generate their problems: "); !strings.HasPrefix(generated, "countdown, ") ||
		strings.Contains(generated, "math") || strings.Contains(generated, "code") {
		t.Errorf("tasks that generate their problems:\n%s", got.stderr)
	}
	missing := filepath.Join(t.TempDir(), "not there")
	exp(t, "config", "new", filepath.Join(missing, "x.yaml")).refuses(t, 2, missing+" does not exist", "mkdir -p '"+missing+"'")
	file := writeFile(t, "mine.yaml", "mine")
	exp(t, "config", "new", file).refuses(t, 2, "exists and is not overwritten")
	t.Chdir(t.TempDir())
	if got := exp(t, "config", "new", "-"); !strings.HasPrefix(got.stdout, "# flowrl on countdown") || got.code != 0 {
		t.Errorf("- is stdout: %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := exp(t, "config", "new"); !strings.HasPrefix(got.stdout, "# flowrl on countdown") || got.code != 0 {
		t.Errorf("to stdout: %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// The list of keys has a line per key in the width of the terminal, and --long says everything.
func TestConfigSchemaLines(t *testing.T) {
	wide := call{env: map[string]string{"EXP_FORCE_TTY": "80", "NO_COLOR": "1"}}
	lines := strings.Split(strings.TrimSpace(wide.run("config", "schema").stdout), "\n")
	if len(lines) != 1+len(config.Keys()) {
		t.Errorf("%d lines for %d keys", len(lines), len(config.Keys()))
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("%q is wider than 80 columns", line)
		}
	}
	long := exp(t, "config", "schema", "checkpoint", "--long")
	long.says(t, "checkpoint.keep\n", "  type      int >= 1", "nonsemantic: changes no result")
	if short := exp(t, "config", "schema", "checkpoint"); strings.Count(short.stdout, "\n") != 3 {
		t.Errorf("a pipe gets %q", short.stdout)
	}
}
