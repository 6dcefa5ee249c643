package translate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/eval/task"
	"exp/harness/config"
	data "exp/harness/dataset"
)

// Rows as verl's and PRIME's preparation write them.
const (
	gsm8kRow = `{"data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": "6*%d?"}], "ability": "math", ` +
		`"reward_model": {"style": "rule", "ground_truth": "42"}, "extra_info": {"index": %[1]d, "split": "train"}}`
	mathRow = `{"data_source": "DigitalLearningGmbH/MATH-lighteval", "prompt": [{"role": "user", "content": "Find %d."}], ` +
		`"ability": "math", "reward_model": {"style": "rule", "ground_truth": "7"}, "extra_info": {"index": %[1]d}}`
	dapoRow = `{"data_source": "math_dapo", "prompt": [{"role": "user", "content": "Solve %d."}], "ability": "MATH", ` +
		`"reward_model": {"ground_truth": "34", "style": "rule-lighteval/MATH_v2"}, "extra_info": {"index": "%[1]d"}}`
	codeRow = `{"data_source": "codecontests", "prompt": [{"role": "user", "content": "Echo %d."}], "ability": "code", ` +
		`"reward_model": {"style": "rule", "ground_truth": "{\"inputs\": [\"1\"], \"outputs\": [\"1\"]}"}, ` +
		`"extra_info": {"index": %[1]d}}`
	ifevalRow = `{"data_source": "ifeval", "prompt": [{"role": "user", "content": "Write %d."}], "reward_model": ` +
		`{"style": "rule", "ground_truth": "[{\"instruction_id\": [\"punctuation:no_comma\"], \"kwargs\": [null]}]"}}`
	countdownRow = `{"data_source": "countdown", "prompt": [{"role": "user", "content": "Make %d."}], "reward_model": ` +
		`{"style": "rule", "ground_truth": {"numbers": [3, 5], "target": 8}}}`
	plainRow = `{"question": "6*%d?", "answer": "#### 42"}`
)

// rowsFile writes n rows of each form, in turns, and returns the path.
func rowsFile(t *testing.T, dir, name string, n int, forms ...string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i := range n {
		for _, form := range forms {
			fmt.Fprintf(&b, form+"\n", i)
		}
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// verlScript trains GRPO on files, with further settings.
func verlScript(train, val string, more ...string) string {
	return fmt.Sprintf(`set -x
math_train="%s"
test_files="['%s']"
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_files="['$math_train']" \
    data.val_files="$test_files" data.train_batch_size=4 data.max_prompt_length=1024 data.max_response_length=2048 \
    actor_rollout_ref.model.path=./m actor_rollout_ref.rollout.n=8 actor_rollout_ref.actor.ppo_mini_batch_size=4 \
    trainer.total_training_steps=3 %s`, strings.ReplaceAll(train, ",", "','"), val, strings.Join(more, " ")) + "\n"
}

// Mathematics and programs become a mixed task, whose kinds read every row.
func TestMixedKinds(t *testing.T) {
	dir := t.TempDir()
	train := strings.Join([]string{rowsFile(t, dir, "gsm8k/train.jsonl", 3, gsm8kRow), rowsFile(t, dir, "math/train.jsonl", 2, mathRow),
		rowsFile(t, dir, "eurus/train.jsonl", 4, codeRow, dapoRow)}, ",")
	val := rowsFile(t, dir, "gsm8k/test.jsonl", 1, gsm8kRow)
	r := translated(t, "run.sh", verlScript(train, val), nil)
	if r.Errs != nil {
		t.Fatalf("it is not complete: %v\n%s", r.Errs, r.Text)
	}
	want := `task:
  kind: mixed
  math:
    grader: verl
  code:
    partial: true
  mixed:
    kinds:
      "DigitalLearningGmbH/MATH-lighteval": math
      "codecontests": code
      "math_dapo": math
      "openai/gsm8k": math
data:
`
	if !strings.Contains(r.Text, want) {
		t.Errorf("got\n%s\nwant\n%s", r.Text, want)
	}
	notes := []string{"task.kind mixed: the files have problems of several kinds, math (DigitalLearningGmbH/MATH-lighteval, " +
		"math_dapo, openai/gsm8k), code (codecontests)",
		"a wrong answer scores reward.wrong, 0, on all problems; in verl -1 where data_source is math_dapo, math or aime…"}
	for _, want := range notes {
		if !slices.Contains(r.Notes, want) {
			t.Errorf("no note %q among %q", want, r.Notes)
		}
	}
	c, err := config.Load(config.Input{File: "run.yaml", Data: []byte(r.Text)})
	if err != nil {
		t.Fatal(err)
	}
	x, err := task.New(data.TaskConfig(&c.Run))
	if err != nil {
		t.Fatal(err)
	}
	problems, _, err := data.Splits(&c.Run)[0].Read(x)
	kinds := map[string]int{}
	for _, p := range problems {
		kinds[p.Kind]++
	}
	if err != nil || kinds["math"] != 9 || kinds["code"] != 4 || len(kinds) != 2 {
		t.Errorf("problems %v, %v", kinds, err)
	}
}

// Files of one kind, and rows that a reward of the user's scores, stay as they are.
func TestOneKind(t *testing.T) {
	dir := t.TempDir()
	maths := rowsFile(t, dir, "gsm8k.jsonl", 2, gsm8kRow) + "," + rowsFile(t, dir, "math.jsonl", 2, mathRow)
	programs := rowsFile(t, dir, "code.jsonl", 2, codeRow)
	for _, tt := range []struct {
		name, train, more, want string
	}{
		{"mathematics", maths, "", "task:\n  kind: math\n  math:\n    grader: verl\n"},
		{"programs", programs, "", "task:\n  kind: code\n  code:\n    partial: true\n"},
		{"not here", "/none/gsm8k/train.parquet,/none/math/train.parquet", "", "task:\n  kind: math\n"},
		{"names that tell nothing", "/none/a.parquet,/none/b.parquet", "", "task:\n  kind: math\n"},
		{"a function of the user's", maths + "," + programs, "custom_reward_function.path=mine.py", "task:\n  kind: prompts\n"},
		{"a reward model", maths + "," + programs, "reward_model.enable=True reward_model.model.path=./rm", "task:\n  kind: prompts\n"},
	} {
		val, _, _ := strings.Cut(tt.train, ",")
		r := translated(t, "run.sh", verlScript(tt.train, val, tt.more), nil)
		if r.Errs != nil || !strings.Contains(r.Text, tt.want) || strings.Contains(r.Text, "mixed") {
			t.Errorf("%s: %v\n%s", tt.name, r.Errs, r.Text)
		}
	}
}

// What the files or their names tell of each row's kind.
func TestKindsOfFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, forms ...string) string { return rowsFile(t, dir, name, 2, forms...) }
	gsm8k, both := file("gsm8k.jsonl", gsm8kRow), file("both.jsonl", gsm8kRow, codeRow)
	wrong := filepath.Join(dir, "math_wrong.jsonl")
	if err := os.WriteFile(wrong, []byte("no rows\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, train, val, more string
		kinds                  []string // lines
		note                   string
	}{
		{"one file", both, gsm8k, "", []string{`"codecontests": code`, `"openai/gsm8k": math`}, "math (openai/gsm8k), code (codecontests)"},
		{"validation on programs", gsm8k, file("code.jsonl", codeRow), "", []string{`"codecontests": code`, `"openai/gsm8k": math`}, ""},
		{"instructions", gsm8k + "," + file("if.jsonl", ifevalRow), gsm8k, "", []string{`"ifeval": instructions`, `"openai/gsm8k": math`},
			"verl's default_compute_score does not know them"},
		{"names", "/none/math/train.parquet,/none/code/train.parquet", "/none/math/test.parquet", "",
			[]string{`"code/train.parquet": code`, `"math/test.parquet": math`, `"math/train.parquet": math`},
			"not read, so names tell their kinds: math/train.parquet, code/train.parquet, math/test.parquet"},
		{"names of one folder", "/none/math__combined_54.4k.parquet,/none/codegen__leetcode2k_1.3k.parquet,/none/stem__web_3.6k.parquet",
			"/none/math__combined_54.4k.parquet", "", []string{`"codegen__leetcode2k_1.3k.parquet": code`,
				`"math__combined_54.4k.parquet": math`, `"stem__web_3.6k.parquet": math`},
			"/none/stem__web_3.6k.parquet was not read, and its name tells no kind: its rows are taken for math unless"},
		{"rows and names", both, "/none/taco/test.parquet", "",
			[]string{`"codecontests": code`, `"openai/gsm8k": math`, `"taco/test.parquet": code`}, ""},
		{"rows without a data source", both + "," + file("plain.jsonl", plainRow), gsm8k, "",
			[]string{`"codecontests": code`, `"openai/gsm8k": math`, `"plain.jsonl": math`}, "math (openai/gsm8k, plain.jsonl)"},
		{"a data source of two kinds", file("a.jsonl", gsm8kRow) + "," +
			file("b.jsonl", strings.Replace(ifevalRow, `"ifeval"`, `"openai/gsm8k"`, 1)), gsm8k, "",
			[]string{`"a.jsonl": math`, `"b.jsonl": instructions`, `"gsm8k.jsonl": math`}, ""},
		{"a data source of two kinds in a file", file("c.jsonl", gsm8kRow, gsm8kRow,
			strings.Replace(ifevalRow, `"ifeval"`, `"openai/gsm8k"`, 1)), gsm8k, "",
			[]string{`"c.jsonl": math`, `"gsm8k.jsonl": math`}, "c.jsonl has rows of the kinds instructions, math with one data source"},
		{"a data source that verl does not know", both + "," + file("odd.jsonl", countdownRow), gsm8k, "",
			[]string{`"codecontests": code`, `"countdown": math`, `"openai/gsm8k": math`},
			"verl's default_compute_score has no grader for data_source countdown: give these rows a kind"},
		{"another column", file("ability.jsonl", strings.ReplaceAll(codeRow, `"codecontests"`, `"taco"`), mathRow), gsm8k,
			"data.reward_fn_key=ability",
			[]string{`"code": code`, `"math": math`}, "data.reward_fn_key ability"},
		{"a file that cannot be read", both + "," + wrong, gsm8k, "",
			[]string{`"codecontests": code`, `"math_wrong.jsonl": math`, `"openai/gsm8k": math`},
			"math_wrong.jsonl cannot be read: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := translated(t, "run.sh", verlScript(tt.train, tt.val, tt.more), nil)
			want := "    kinds:\n      " + strings.Join(tt.kinds, "\n      ") + "\n"
			if r.Errs != nil || !strings.Contains(r.Text, want+"data:") && !strings.Contains(r.Text, want+"    column: \"ability\"\ndata:") {
				t.Errorf("%v\n%s\nwant\n%s", r.Errs, r.Text, want)
			}
			if !strings.Contains(strings.Join(r.Notes, "\n"), tt.note) {
				t.Errorf("no note says %q: %q", tt.note, r.Notes)
			}
		})
	}
}

// Of a long file rows of all parts are read. Sources that take turns are all seen, also where they take as many turns
// as there are rows to one that is read.
func TestReadsLongFiles(t *testing.T) {
	for _, kinds := range [][]string{{gsm8kRow, codeRow, ifevalRow, mathRow}, {gsm8kRow, codeRow, ifevalRow}} {
		path := rowsFile(t, t.TempDir(), "long.jsonl", 3*mostRead/len(kinds), kinds...)
		f := dataFile{path: path, rows: map[sourceKind]int{}}
		if err := f.read("data_source"); err != nil || f.every != 3 {
			t.Fatalf("one row in %d, %v", f.every, err)
		}
		read := 0
		for row, n := range f.rows {
			if read += n; n < mostRead/5 {
				t.Errorf("%v: %d rows", row, n)
			}
		}
		if len(f.rows) != len(kinds) || read > mostRead {
			t.Errorf("%d rows: %v", read, f.rows)
		}
		r := translated(t, "run.sh", verlScript(path, path), nil)
		if want := "one row in 3 was read for its data source"; !strings.Contains(strings.Join(r.Notes, "\n"), want) {
			t.Errorf("no note says %q: %q", want, r.Notes)
		}
	}
}

func TestKindNamed(t *testing.T) {
	for path, want := range map[string]string{
		"/data/gsm8k/train.parquet": "math", "~/data/math500.parquet": "math", "deep/aime-2024.parquet": "math",
		"/data/code/train.parquet": "code", "codecontests.jsonl": "code", "/data/apps/train.parquet": "code",
		"livecodebench_v5.parquet": "code", "data/ifeval/train.jsonl": "instructions",
		"/home/code/data/gsm8k/train.parquet": "math", "/code/data/x/train.parquet": "", "math_and_code.parquet": "",
		"math_and_code/train.parquet": "", "data/train.parquet": "", "t.parquet": "", "mapped.parquet": "",
	} {
		if got := kindNamed(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// Other settings fit a mixed task.
func TestMixedSettings(t *testing.T) {
	dir := t.TempDir()
	both := rowsFile(t, dir, "both.jsonl", 4, dapoRow, codeRow)
	for _, tt := range []struct{ name, more, want string }{
		{"FlowRL's released code", "+actor_rollout_ref.actor.tb_type=tempered_important_sampling +actor_rollout_ref.actor.porj_layer=3",
			"grader: math_dapo_original"},
		{"a system of tools", "actor_rollout_ref.rollout.multi_turn.enable=True " +
			"actor_rollout_ref.rollout.multi_turn.tool_config_path=none.yaml", "keep: [extra_info]"},
		{"first rows", "data.train_max_samples=3 data.shuffle=False", "max_samples: 3"},
	} {
		r := translated(t, "run.sh", verlScript(both, both, tt.more), nil)
		if r.Errs != nil || !strings.Contains(r.Text, tt.want) || !strings.Contains(r.Text, "kind: mixed") {
			t.Errorf("%s: %v\n%s", tt.name, r.Errs, r.Text)
		}
	}
}

// A resolved configuration lists its files as YAML.
func TestMixedYAML(t *testing.T) {
	dir := t.TempDir()
	maths, programs := rowsFile(t, dir, "maths.jsonl", 2, gsm8kRow), rowsFile(t, dir, "programs.jsonl", 2, codeRow)
	r := translated(t, "config.yaml", "algorithm: {adv_estimator: grpo}\ndata:\n  train_files:\n  - "+maths+"\n  - "+programs+
		"\n  val_files: "+maths+"\n  train_batch_size: 2\nactor_rollout_ref:\n  model: {path: ./m}\n  rollout: {n: 4}\n"+
		"  actor: {ppo_mini_batch_size: 2}\ntrainer: {total_training_steps: 3}\n", nil)
	if r.Errs != nil || !strings.Contains(r.Text, "kind: mixed") || !strings.Contains(r.Text, "\"codecontests\": code\n") {
		t.Errorf("%v\n%s", r.Errs, r.Text)
	}
}
