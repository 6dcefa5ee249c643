package translate

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/harness/config"
)

// translated writes a script and returns its recipe.
func translated(t *testing.T, name, text string, set map[string]string) *Recipe {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := FromVerl(path, set)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// body is a recipe without its comments.
func body(r *Recipe) string {
	_, text, _ := strings.Cut(r.Text, "\n\n")
	return text
}

const grpoScript = `set -x
# variables, defaults, arithmetic, arrays
data=${DATA_ROOT:-/data}
max_response=$((1024 * 4))
EXTRA=(actor_rollout_ref.rollout.n=8)
EXTRA+=("actor_rollout_ref.rollout.temperature=0.6")
python3 -m verl.trainer.main_ppo --config-name='ppo_trainer' \
    algorithm.adv_estimator=grpo \
    data.train_files="['$data/a.parquet','$data/b.parquet']" \
    data.val_files=$data/test.parquet \
    data.max_response_length=${max_response} \
    +data.apply_chat_template_kwargs.enable_thinking=False \
    actor_rollout_ref.model.path=$MODEL \
    actor_rollout_ref.actor.ppo_mini_batch_size=128 \
    actor_rollout_ref.actor.use_kl_loss=True \
    actor_rollout_ref.actor.kl_loss_type=low_var_kl+ \
    actor_rollout_ref.actor.clip_ratio_high=0.28 \
    actor_rollout_ref.actor.optim.lr_warmup_steps_ratio=0.1 \
    actor_rollout_ref.actor.policy_loss.loss_mode=gspo \
    actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
    actor_rollout_ref.rollout.val_kwargs.do_sample=True \
    actor_rollout_ref.rollout.val_kwargs.temperature=0.7 \
    actor_rollout_ref.rollout.val_kwargs.n=4 \
    reward_model.reward_manager=dapo \
    +reward_model.reward_kwargs.overlong_buffer_cfg.enable=True \
    +reward_model.reward_kwargs.overlong_buffer_cfg.len=1024 \
    algorithm.new_thing=7 \
    trainer.test_freq=5 trainer.total_training_steps=200 \
    trainer.experiment_name="Qwen GRPO/1" "${EXTRA[@]}" $@
`

func TestScript(t *testing.T) {
	r := translated(t, "run.sh", grpoScript, map[string]string{"MODEL": "Qwen/Qwen2.5-7B"})
	if r.Errs != nil {
		t.Errorf("it is not complete: %v", r.Errs)
	}
	want := `version: 1
name: "qwen-grpo-1"
task:
  kind: math
  math:
    grader: verl
data:
  train:
    source: "/data/a.parquet"
    more: ["/data/b.parquet"]
  val:
    source: "/data/test.parquet"
  max_prompt_tokens: 512
  template_vars: {enable_thinking: false}
model:
  init: pretrained
  base: "hub:Qwen/Qwen2.5-7B@main"
  dtype: bf16
algo:
  kind: grpo
  loss: gspo
  clip:
    high: 0.28
  kl:
    loss_coef: 0.001
    loss_estimator: k3+
  overlong:
    buffer: 0.25
rollout:
  n: 8
  temperature: 0.6
  max_new_tokens: 4096
train:
  prompts_per_step: 1024
  prompts_per_update: 128
  steps: 200
  optim:
    lr: 1e-6
    warmup_steps: 20
eval:
  online:
    every_steps: 5
    n: 4
    temperature: 0.7
  final:
    suites: [val]
compute:
  micro_batch_tokens: 4608
  recompute: true
`
	if d := cmp.Diff(want, body(r)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if d := cmp.Diff([]string{"not translated: algorithm.new_thing=7"}, r.Notes); d != "" {
		t.Errorf("notes (-want +got)\n%s", d)
	}
	if _, err := config.Load(config.Input{File: "run.yaml", Data: []byte(r.Text)}); err != nil {
		t.Errorf("the recipe does not load: %v", err)
	}
	lacking := translated(t, "run.sh", grpoScript, nil)
	if len(lacking.Notes) < 2 || !strings.Contains(lacking.Notes[0], "does not set MODEL, which actor_rollout_ref.model.path needs") {
		t.Errorf("a variable that is not set: %q", lacking.Notes)
	}
}

// Defaults are verl's, not ours.
func TestDefaults(t *testing.T) {
	r := translated(t, "run.sh", "python3 -m verl.trainer.main_ppo data.train_files=t.parquet actor_rollout_ref.model.path=./m "+
		"trainer.total_training_steps=10", nil)
	for _, want := range []string{"kind: ppo", "max_prompt_tokens: 512", "max_new_tokens: 512", "prompts_per_step: 1024", "dtype: bf16",
		"n: 1", "suites: []", "lr: 1e-6", "loss_coef"} {
		if has := strings.Contains(r.Text, want); has == (want == "loss_coef") {
			t.Errorf("%q: %t in\n%s", want, has, r.Text)
		}
	}
	if r.Errs != nil {
		t.Error(r.Errs)
	}
}

func TestRecipes(t *testing.T) {
	base := "python3 -m verl.trainer.main_ppo data.train_files=t.parquet actor_rollout_ref.model.path=./m " +
		"actor_rollout_ref.rollout.n=4 trainer.total_training_steps=10 "
	for _, tt := range []struct {
		name, more string
		want       []string
	}{
		{"FlowRL", "algorithm.adv_estimator=grpo", []string{"kind: flowrl"}},
		{"an estimator without an algorithm", "algorithm.adv_estimator=rloo_vectorized", []string{"kind: grpo\n  advantage: rloo_vectorized"}},
		{"adapters", "actor_rollout_ref.model.lora_rank=32 actor_rollout_ref.model.target_modules=[q_proj,v_proj]",
			[]string{"rank: 32", "alpha: 16", "targets: [q_proj, v_proj]"}},
		{"KL in the reward", "algorithm.use_kl_in_reward=True algorithm.kl_ctrl.type=adaptive",
			[]string{"reward_coef: 0.001", "controller: adaptive"}},
		{"group filtering", "algorithm.adv_estimator=grpo algorithm.filter_groups.enable=True algorithm.filter_groups.max_num_gen_batches=5",
			[]string{"metric: acc", "max_batches: 5"}},
		{"a ratio that verl ignores", "actor_rollout_ref.actor.clip_ratio=0.3", []string{"clip_ratio 0.3 has no effect in verl"}},
		{"no lower bound", "algorithm.adv_estimator=grpo actor_rollout_ref.actor.policy_loss.loss_mode=cispo actor_rollout_ref.actor.clip_ratio_low=10",
			[]string{"loss: cispo", "low: 1"}},
		{"several turns", "actor_rollout_ref.rollout.multi_turn.enable=True", []string{"the policy answers in one turn here"}},
		{"bypass", "algorithm.adv_estimator=grpo algorithm.rollout_correction.bypass_mode=True algorithm.rollout_correction.rollout_rs=seq_mean_k1,token_k2 " +
			"algorithm.rollout_correction.rollout_rs_threshold=0.5_2.0,3", []string{"mode: bypass", "reject: [seq_mean_k1, token_k2]", `["0.5_2.0", "3"]`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := base + tt.more
			if tt.name == "FlowRL" {
				text = strings.Replace(text, "verl.trainer.main_ppo", "recipe.flowrl.main_flowrl", 1)
			}
			r := translated(t, "run.sh", text, nil)
			if r.Errs != nil {
				t.Errorf("it is not complete: %v", r.Errs)
			}
			for _, want := range tt.want {
				if !strings.Contains(r.Text, want) {
					t.Errorf("it lacks %q:\n%s", want, r.Text)
				}
			}
		})
	}
}

// What a shell does to words.
func TestShell(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		want         []string // in the recipe
		notes        []string
	}{
		{"defaults that assignments give", ": \"${LR:=2e-6}\"\n$RUN actor_rollout_ref.actor.optim.lr=$LR actor_rollout_ref.rollout.n=${N:=16}",
			[]string{"lr: 2e-6", "n: 16"}, nil},
		{"a process substitution", "$RUN data.val_files=<(ls) trainer.test_freq=5", nil, []string{"data.val_files is <(ls): only Hydra or a shell can compute it"}},
		{"a command substitution in an array", "A=(actor_rollout_ref.rollout.top_k=$(f))\n$RUN \"${A[@]}\"", nil,
			[]string{"actor_rollout_ref.rollout.top_k is $(f): only"}},
		{"a variable that an element of an array needs", "A=(actor_rollout_ref.actor.optim.lr=$LR actor_rollout_ref.rollout.n=4)\n$RUN \"${A[@]}\"",
			nil, []string{"does not set LR, which actor_rollout_ref.actor.optim.lr needs"}},
		{"a variable that is given", "GIVEN=$ROOT/8\n$RUN actor_rollout_ref.rollout.n=$GIVEN", []string{"n: 5"}, nil},
		{"a text that grows", "X=$ROOT\nX+=8\n$RUN actor_rollout_ref.rollout.n=$X", []string{"n: 8"}, []string{"does not set ROOT, which actor_rollout_ref.rollout.n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			script := strings.Replace(tt.script, "$RUN", "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=./m data.train_files=t.parquet "+
				"trainer.total_training_steps=1", 1)
			r := translated(t, "run.sh", script, map[string]string{"GIVEN": "5"})
			for _, want := range tt.want {
				if !strings.Contains(r.Text, want) {
					t.Errorf("it lacks %q:\n%s", want, r.Text)
				}
			}
			if len(r.Notes) != len(tt.notes) {
				t.Fatalf("notes %q, want %q", r.Notes, tt.notes)
			}
			for i, want := range tt.notes {
				if !strings.Contains(r.Notes[i], want) {
					t.Errorf("note %q, want %q", r.Notes[i], want)
				}
			}
		})
	}
}

// What Hydra does to words, and texts that are no plain scalars of YAML.
func TestHydra(t *testing.T) {
	base := "python3 -m verl.trainer.main_ppo --config-name=mine actor_rollout_ref.model.path=./m trainer.total_training_steps=10 " +
		"data.train_files=\"['data/a,b.parquet', data/c.parquet]\" actor_rollout_ref.actor.use_kl_loss=True "
	r := translated(t, "run.sh", base+`~actor_rollout_ref.actor.use_kl_loss=True +data.apply_chat_template_kwargs.x='a: b # c' `+
		`actor_rollout_ref.actor.clip_ratio=0.3 actor_rollout_ref.actor.clip_ratio_high=null trainer.experiment_name=测试 `+
		`data.val_files='${data.train_files}' actor_rollout_ref.actor.ppo_mini_batch_size='${oc.select:data.none,32}' `+
		`data.seed='${oc.env:SEED,7}' actor_rollout_ref.actor.entropy_coeff=0.`, nil)
	for _, want := range []string{"name: \"verl\"", "    source: \"data/a,b.parquet\"\n    more: [\"data/c.parquet\"]\n  val:\n    source: \"data/a,b.parquet\"",
		`template_vars: {x: "a: b # c"}`, "high: 0.3", "prompts_per_update: 32", "# - data.seed is ${oc.env:SEED,7}: only Hydra",
		"# - the settings of mine.yaml, from which it starts", "# - not translated: ~actor_rollout_ref.actor.use_kl_loss=True\n"} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("it lacks %q:\n%s", want, r.Text)
		}
	}
	if strings.Contains(r.Text, "loss_coef") {
		t.Errorf("a setting that ~ removes:\n%s", r.Text)
	}
	r = translated(t, "run.sh", base+"algorithm.gamma='1 # x\nname: evil' actor_rollout_ref.actor.grad_clip=0.5 actor_rollout_ref.actor.optim.clip_grad=1.0", nil)
	if r.Errs == nil || !strings.Contains(r.Text, `gamma: "1 # x\nname: evil"`) || !strings.Contains(r.Text, "grad_clip: 0.5") {
		t.Errorf("%v:\n%s", r.Errs, r.Text)
	}
}

// The configurations that Hydra leaves of a run.
func TestYAML(t *testing.T) {
	list := translated(t, "overrides.yaml", "- algorithm.adv_estimator=rloo\n- data.train_files=t.parquet\n- actor_rollout_ref.model.path=./m\n"+
		"- actor_rollout_ref.rollout.n=4\n- trainer.total_training_steps=3\n", nil)
	tree := translated(t, "config.yaml", "algorithm: {adv_estimator: rloo}\ndata:\n  train_files: [t.parquet]\nactor_rollout_ref:\n"+
		"  model: {path: ./m}\n  rollout: {n: 4}\ntrainer: {total_training_steps: 3, total_epochs: null, new: null, newer: '${trainer.new}'}\n", nil)
	if d := cmp.Diff(body(list), body(tree)); d != "" || list.Errs != nil {
		t.Errorf("%v (-list +tree)\n%s", list.Errs, d)
	}
	if d := cmp.Diff(list.Notes, tree.Notes); d != "" {
		t.Errorf("notes (-list +tree)\n%s", d)
	}
}

// Passes over files that are here give the number of steps.
func TestPasses(t *testing.T) {
	data := filepath.Join(t.TempDir(), "train.jsonl")
	if err := os.WriteFile(data, []byte(strings.Repeat(`{"question":"q","answer":"#### 1"}`+"\n", 10)), 0o644); err != nil {
		t.Fatal(err)
	}
	script := "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=./m data.train_batch_size=4 actor_rollout_ref.actor.ppo_mini_batch_size=4 " +
		"trainer.total_epochs=3 data.train_files="
	if r := translated(t, "run.sh", script+data, nil); !strings.Contains(r.Text, "steps: 6\n") {
		t.Errorf("3 passes over 10 rows, 4 a step:\n%s", r.Text)
	}
	r := translated(t, "run.sh", script+"/none/train.parquet", nil)
	if strings.Contains(r.Text, " steps:") || !strings.Contains(strings.Join(r.Notes, "\n"), "trainer.total_epochs (3) times the problems, divided by 4") {
		t.Errorf("of a file that is not here:\n%s%v", r.Text, r.Errs)
	}
}

// aliases doubles the first of names once for each of the others.
func aliases(names string) (text string) {
	for i := range len(names) - 1 {
		text += fmt.Sprintf("  %c: &%[1]c {x: *%c, y: *%[2]c}\n", names[i+1], names[i])
	}
	return text
}

func TestRefuses(t *testing.T) {
	for name, tt := range map[string][2]string{
		"another program": {"run.sh", "echo hello"},
		"sft":             {"run.sh", "torchrun -m verl.trainer.fsdp_sft_trainer data.train_files=a.parquet optim.lr=1e-4 model.lora_rank=8"},
		"no script":       {"run.sh", "if then ("},
		"no YAML":         {"run.yaml", "a: [b"},
		"many aliases":    {"run.yaml", "algorithm:\n  a: &a {x: 1, y: 1}\n" + aliases("abcdefghijklmnopqrs")},
	} {
		path := filepath.Join(t.TempDir(), tt[0])
		if err := os.WriteFile(path, []byte(tt[1]), 0o644); err != nil {
			t.Fatal(err)
		}
		if r, err := FromVerl(path, nil); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	if _, err := FromVerl("none.sh", nil); err == nil {
		t.Error("a missing file is no error")
	}
}

// Nothing of a script is executed.
func TestExecutesNothing(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made")
	translated(t, "run.sh", "touch "+made+"\nX=$(touch "+made+")\npython3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo "+
		"data.train_files=$(touch "+made+") > "+made, nil)
	if _, err := os.Stat(made); err == nil {
		t.Error("a command was executed")
	}
}

// The program that stands for a compute_score of verl's answers reward.command's lines.
func TestAdapter(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	path := filepath.Join(t.TempDir(), "score.py")
	code := "def mine(data_source, solution_str, ground_truth, extra_info=None):\n    print('noise')\n" +
		"    return {'score': float(solution_str == ground_truth) + extra_info['bonus'], 'acc': 1}\n"
	if err := os.WriteFile(path, []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	r := translated(t, "run.sh", "python3 -m verl.trainer.main_ppo data.train_files=t.parquet actor_rollout_ref.model.path=./m "+
		"trainer.total_training_steps=3 custom_reward_function.path="+path+" custom_reward_function.name=mine", nil)
	if r.Errs != nil {
		t.Fatal(r.Errs)
	}
	c, err := config.Load(config.Input{File: "run.yaml", Data: []byte(r.Text)})
	if err != nil {
		t.Fatal(err)
	}
	argv := c.Run.Reward.Command
	if len(argv) != 5 || argv[3] != path || argv[4] != "mine" || c.Run.Data.Keep[0] != "extra_info" {
		t.Fatalf("command %q, kept %q", argv, c.Run.Data.Keep)
	}
	cmd := exec.Command(python, argv[1:]...)
	cmd.Stdin = strings.NewReader(`{"id":"7","response":"x","gold":"x","data_source":"s","extra":{"columns":{"extra_info":{"bonus":0.5}}}}` + "\n")
	out, err := cmd.Output()
	if got := string(out); err != nil || got != `{"id": "7", "score": 1.5}`+"\n" {
		t.Errorf("%q, %v", got, err)
	}
}
