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
	r, err := From(path, Options{Set: set})
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
  aggregation: seq-mean-token-mean
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
    problems: 0
    n: 4
    temperature: 0.7
  final:
    suites: [val]
    n: 4
    temperature: 0.7
compute:
  device: auto
  micro_batch_tokens: 4608
  recompute: true
`
	if d := cmp.Diff(want, body(r)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	wantNotes := []string{"verl 0.9.1 averages the loss gspo as loss_agg_mode says: for it, set algo.aggregation: token-mean",
		"verl averages the loss gspo by seq-mean-token-mean whatever loss_agg_mode is, but its other terms by " +
			"token-mean; here algo.aggregation is of all terms",
		"a wrong answer scores reward.wrong, 0; in verl -1 where data_source is math_dapo, math or aime…",
		"not translated: algorithm.new_thing=7"}
	if d := cmp.Diff(wantNotes, r.Notes); d != "" {
		t.Errorf("notes (-want +got)\n%s", d)
	}
	if _, err := config.Load(config.Input{File: "run.yaml", Data: []byte(r.Text)}); err != nil {
		t.Errorf("the recipe does not load: %v", err)
	}
	lacking := translated(t, "run.sh", grpoScript, nil)
	two := translated(t, "run.sh", strings.ReplaceAll(grpoScript, "data=${DATA_ROOT:-/data}", "data=$1"), nil)
	if want := "does not set 1, which data.train_files, data.val_files need: give it, 1=VALUE"; !strings.Contains(strings.Join(two.Notes, "\n"), want) {
		t.Errorf("an argument: %q lack %q", two.Notes, want)
	}
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

// A name does not make a trainer: the started file does, or settings that only FlowRL's released code has.
func TestFlowRLScripts(t *testing.T) {
	const settings = " data.train_files=/data/flowrl/dapo-math-17k.parquet actor_rollout_ref.model.path=./m " +
		"algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=4 trainer.total_training_steps=10 " +
		"trainer.project_name=flowrl trainer.experiment_name=fully_async_flowrl_grpo "
	const released = "+actor_rollout_ref.actor.tb_type=tempered_important_sampling +actor_rollout_ref.actor.porj_layer=4"
	for _, tt := range []struct {
		name, script string
		want, not    []string
	}{
		{"GRPO in FlowRL's project", "python3 -m verl.trainer.main_ppo" + settings, []string{"kind: grpo"}, []string{"kind: flowrl", "staleness"}},
		{"GRPO in a folder", "python3 /data/flowrl/verl/trainer/main_ppo.py" + settings, []string{"kind: grpo"}, []string{"kind: flowrl"}},
		{"the released code", "python3 -m verl.trainer.main_ppo" + settings + released,
			[]string{"kind: flowrl", "preset: release", "layers: 4", "grader: math_dapo_original", "its weight is unclipped"}, []string{"not translated"}},
		{"verl's recipe", "python3 -m recipe.flowrl.main_flowrl" + settings + "+actor_rollout_ref.actor.proj_layer=2 data.train_batch_size=512 " +
			"data.gen_batch_size=1536 algorithm.filter_groups.enable=True",
			[]string{"kind: flowrl", "layers: 2", "grader: verl", "prompts_per_step: 1536", "filter_groups has no effect"}, []string{"preset", "metric: acc"}},
		{"a variant", "export FLOWRL_LOSS_VARIANT=flowrl_clip\npython3 -m recipe.flowrl.main_flowrl" + settings, []string{"preset: flowrl_clip"}, nil},
	} {
		r := translated(t, "run.sh", tt.script, nil)
		if r.Errs != nil {
			t.Errorf("%s: it is not complete: %v", tt.name, r.Errs)
		}
		for _, want := range tt.want {
			if !strings.Contains(r.Text, want) {
				t.Errorf("%s: it lacks %q:\n%s", tt.name, want, r.Text)
			}
		}
		for _, not := range tt.not {
			if strings.Contains(r.Text, not) {
				t.Errorf("%s: it has %q:\n%s", tt.name, not, r.Text)
			}
		}
	}
}

// Where the files are not here, a comment counts as verl does: its passes draw gen_batch_size problems at a time.
func TestPassesCountDrawnProblems(t *testing.T) {
	r := translated(t, "run.sh", "python3 -m recipe.dapo.main_dapo data.train_files=/nowhere/t.parquet actor_rollout_ref.model.path=./m "+
		"algorithm.adv_estimator=grpo algorithm.filter_groups.enable=True data.train_batch_size=512 data.gen_batch_size=1536 "+
		"actor_rollout_ref.rollout.n=4", nil)
	if want := "times the problems, divided by 1536"; !strings.Contains(r.Text, want) {
		t.Errorf("it lacks %q:\n%s", want, r.Text)
	}
}

func TestRecipes(t *testing.T) {
	base := "python3 -m verl.trainer.main_ppo data.train_files=t.parquet actor_rollout_ref.model.path=./m " +
		"actor_rollout_ref.rollout.n=4 trainer.total_training_steps=10 "
	for _, tt := range []struct {
		name, more string
		want       []string // in the recipe; not there after !
	}{
		{"FlowRL", "algorithm.adv_estimator=grpo", []string{"kind: flowrl"}},
		{"FlowRL without the deviation", "algorithm.adv_estimator=grpo algorithm.norm_adv_by_std_in_grpo=False", []string{"kind: flowrl", "reward: adv_no_std"}},
		{"FlowRL on another advantage", "algorithm.adv_estimator=rloo", []string{"kind: flowrl", "adv_estimator rloo: the reward in FlowRL's residual is GRPO's"}},
		{"GDPO without the deviation", "algorithm.adv_estimator=gdpo algorithm.norm_adv_by_std_in_grpo=False",
			[]string{"kind: gdpo", "!scale_std", "norm_adv_by_std_in_grpo has no effect in verl"}},
		{"an estimator without an algorithm", "algorithm.adv_estimator=rloo_vectorized", []string{"kind: grpo\n  advantage: rloo_vectorized"}},
		{"adapters but some", "actor_rollout_ref.model.lora_rank=32 actor_rollout_ref.model.exclude_modules=[down_proj,o_proj]",
			[]string{"exclude: [down_proj, o_proj]", "!not translated: actor_rollout_ref.model.exclude_modules"}},
		{"adapters but some of theirs", "actor_rollout_ref.model.lora_rank=32 actor_rollout_ref.model.target_modules=[q_proj,o_proj] " +
			"actor_rollout_ref.model.exclude_modules=[down_proj,o_proj]",
			[]string{"exclude: [o_proj]", "!not translated: actor_rollout_ref.model.exclude_modules"}},
		{"adapters but none of theirs", "actor_rollout_ref.model.lora_rank=32 actor_rollout_ref.model.target_modules=[q_proj] " +
			"actor_rollout_ref.model.exclude_modules=[down_proj]",
			[]string{"targets: [q_proj]", "!exclude", "!not translated: actor_rollout_ref.model.exclude_modules"}},
		{"adapters", "actor_rollout_ref.model.lora_rank=32 actor_rollout_ref.model.target_modules=[q_proj,v_proj]",
			[]string{"rank: 32", "alpha: 16", "targets: [q_proj, v_proj]"}},
		{"KL in the reward", "algorithm.use_kl_in_reward=True algorithm.kl_ctrl.type=adaptive",
			[]string{"reward_coef: 0.001", "controller: adaptive"}},
		{"RLPR", "algorithm.adv_estimator=grpo reward_model.reward_manager=prob +reward_model.compute_score_name=mean_exp_log_softmax " +
			"+reward_model.reward_manager_shaping_function_name=threshold_0 +reward_model.format_mode=R1 +data.filter_accuracy=True " +
			"+data.filter_mode=EMA +data.filter_target=final_reward_std +data.std_filter_beta=0.5 +data.filter_start_step=11",
			[]string{"grader: exp", "kind: likelihood", "baseline: true", "metric: score", "max_batches: 1000", "spread: 0.5", "!measure", "in RLPR in step 11"}},
		{"RLPR with another reward and filter", "algorithm.adv_estimator=grpo reward_model.reward_manager=prob +reward_model.compute_score_name=exp_sum_log_softmax " +
			"+reward_model.reward_manager_shaping_function_name=sigmoid_6 +data.filter_accuracy=True +data.filter_target=scoreB",
			[]string{"measure: product", "sigmoid_6: differences are clipped", "!spread", "filter_target scoreB: see algo.filter_groups"}},
		{"group filtering", "algorithm.adv_estimator=grpo algorithm.filter_groups.enable=True algorithm.filter_groups.max_num_gen_batches=5",
			[]string{"metric: acc", "max_batches: 5", "main_ppo filters only since it has trainer.use_v1"}},
		{"group filtering in other batches", "algorithm.adv_estimator=grpo algorithm.filter_groups.enable=True " +
			"algorithm.filter_groups.max_num_gen_batches=5 data.train_batch_size=512 data.gen_batch_size=1280",
			[]string{"prompts_per_step: 512", "max_batches: 13"}}, // 5·1280/512 = 12.5
		{"group filtering without a limit", "algorithm.adv_estimator=grpo algorithm.filter_groups.enable=True", []string{"max_batches: 1000"}},
		{"more problems than trained on", "algorithm.adv_estimator=grpo data.train_batch_size=512 data.gen_batch_size=1536",
			[]string{"prompts_per_step: 1536", "trains on all problems that it draws, not on data.train_batch_size (512)"}},
		// fit updates the policy where critic_warmup <= global_steps, which starts at 1.
		{"the critic alone", "trainer.critic_warmup=3", []string{"critic:\n    warmup_steps: 2\n"}},
		{"PF-PPO", "algorithm.use_pf_ppo=True", []string{"kind: pf_ppo"}},
		{"PF-PPO without GAE", "algorithm.adv_estimator=rloo algorithm.use_pf_ppo=True", []string{"kind: rloo", "no effect in verl with the estimator rloo"}},
		{"rows from the start", "data.shuffle=False data.train_max_samples=100", []string{"order: sequential", "select: first"}},
		{"validation without do_sample", "data.val_files=v.parquet trainer.test_freq=2 actor_rollout_ref.rollout.val_kwargs.temperature=0.6 " +
			"actor_rollout_ref.rollout.val_kwargs.top_p=0.95",
			[]string{"verl's agent loop samples at actor_rollout_ref.rollout.val_kwargs.temperature 0.6", "top_p: 0.95", "n: 1\n    temperature: 0.6\n    top_p: 0.95\n"}},
		{"penalties", "actor_rollout_ref.rollout.repetition_penalty=1.05 +actor_rollout_ref.rollout.min_p=0.02",
			[]string{"repetition_penalty: 1.05", "min_p: 0.02", "verl's agent loop samples without penalties all the same", "!presence_penalty"}},
		{"penalties of validations", "data.val_files=v.parquet trainer.test_freq=2 actor_rollout_ref.rollout.presence_penalty=0.5 " +
			"actor_rollout_ref.rollout.val_kwargs.repetition_penalty=1.2",
			[]string{"\n  presence_penalty: 0.5\n", "    repetition_penalty: 1.2\n    presence_penalty: 0.5\n"}},
		{"a penalty that is off", "actor_rollout_ref.rollout.repetition_penalty=1.0", []string{"!repetition_penalty", "!agent loop"}},
		{"another key of the grader", "data.reward_fn_key=grader", []string{"data.reward_fn_key grader: the grader of a row follows its data_source"}},
		{"the usual key of the grader", "data.reward_fn_key=data_source", []string{"!reward_fn_key"}},
		{"no critic", "algorithm.adv_estimator=grpo critic.enable=False", []string{"!critic.enable"}},
		{"a checkpoint that is not read", "trainer.resume_from_path=checkpoints/", []string{"!resume_from_path"}},
		{"a checkpoint", "trainer.resume_mode=resume_path trainer.resume_from_path=c/global_step_4",
			[]string{"not translated: trainer.resume_from_path=c/global_step_4"}},
		{"validation alone", "trainer.val_only=True", []string{"steps: 0"}},
		{"DAPO's buffer without its manager", "+reward_model.reward_kwargs.overlong_buffer_cfg.enable=True +reward_model.reward_kwargs.overlong_buffer_cfg.len=100",
			[]string{"the reward manager is naive, not dapo"}},
		{"DAPO's buffer", "reward.reward_manager.name=dapo reward_model.overlong_buffer.enable=True reward_model.overlong_buffer.len=128 " +
			"reward_model.overlong_buffer.penalty_factor=0.5", []string{"buffer: 0.25", "penalty: 0.5"}}, // of 512 tokens
		{"Megatron's adapters", "actor_rollout_ref.model.lora.rank=8 actor_rollout_ref.model.lora.target_modules=[linear_qkv,linear_fc2]",
			[]string{"rank: 8", "targets: [q_proj, k_proj, v_proj, down_proj]", "critic.model.lora_rank is 0", "!alpha"}},
		{"a smaller type", "actor_rollout_ref.actor.fsdp_config.model_dtype=bf16", []string{"master weights and moments are float32 here"}},
		{"IcePop", "algorithm.adv_estimator=grpo algorithm.rollout_correction.rollout_is=token algorithm.rollout_correction.rollout_is_threshold=0.5_5.0",
			[]string{"weight_low: 0.5", "weight_high: 5.0"}},
		{"criteria of older versions", "algorithm.adv_estimator=grpo algorithm.rollout_correction.rollout_is=geometric " +
			"algorithm.rollout_correction.rollout_rs=geometric algorithm.rollout_correction.rollout_rs_threshold=1.001 " +
			"algorithm.rollout_correction.rollout_rs_threshold_lower=0.999 algorithm.rollout_correction.rollout_token_veto_threshold=1e-4",
			[]string{"weights: sequence_mean", "reject: [geometric, token_veto]", `reject_bounds: ["0.999_1.001", "1e-4"]`}},
		// 4·2·32 problems between two copies of the weights; 1024/256 steps
		{"fully asynchronous", "algorithm.adv_estimator=grpo data.train_batch_size=0 data.gen_batch_size=1 actor_rollout_ref.actor.ppo_mini_batch_size=32 " +
			"async_training.require_batches=2 async_training.trigger_parameter_sync_step=4 async_training.staleness_threshold=0.5 " +
			"rollout.total_rollout_steps=1024 rollout.test_freq=3 data.val_files=v.parquet trainer.total_epochs=10",
			[]string{"prompts_per_step: 256", "prompts_per_update: 32", " steps: 4\n", "staleness: 1", "mode: bypass", "every_steps: 3", "!total_epochs"}},
		{"fully asynchronous, with a recomputed old policy", "algorithm.adv_estimator=grpo actor_rollout_ref.actor.ppo_mini_batch_size=32 " +
			"algorithm.rollout_correction.bypass_mode=False algorithm.rollout_correction.rollout_is=token",
			[]string{"staleness: 1", "weights: token", "!mode: bypass"}},
		{"asynchronous by its settings", "algorithm.adv_estimator=grpo data.gen_batch_size=1 actor_rollout_ref.actor.ppo_mini_batch_size=32 " +
			"async_training.trigger_parameter_sync_step=2", []string{"prompts_per_step: 64", "staleness: 1", "mode: bypass", "!not translated"}},
		{"one step ahead", "algorithm.adv_estimator=grpo", []string{"staleness: 1", "mode: bypass"}},
		{"one step ahead, with a recomputed old policy", "algorithm.adv_estimator=grpo algorithm.rollout_correction.bypass_mode=False",
			[]string{"staleness: 1", "!mode: bypass"}},
		// The second trainer reads gen_batch_size problems at a time, and trains on train_batch_size.
		{"verl's second trainer", "algorithm.adv_estimator=grpo trainer.use_v1=True data.train_batch_size=64 data.gen_batch_size=1 " +
			"actor_rollout_ref.actor.ppo_mini_batch_size=16 trainer.v1.trainer_mode=separate_async trainer.v1.separate_async.num_warmup_batches=2 " +
			"trainer.v1.separate_async.parameter_sync_step=4 trainer.v1.sampler.max_off_policy_threshold=8",
			[]string{"prompts_per_step: 64", "prompts_per_update: 16", "staleness: 2", "verl mixes ages", "!gen_batch_size", "!not translated"}},
		{"verl's second trainer in step", "algorithm.adv_estimator=grpo trainer.v1.trainer_mode=sync data.train_batch_size=64 data.gen_batch_size=16 " +
			"actor_rollout_ref.actor.ppo_mini_batch_size=16", []string{"prompts_per_step: 64", "!staleness"}},
		{"verl's first trainer", "algorithm.adv_estimator=grpo trainer.use_v1=False trainer.v1.trainer_mode=colocate_async data.train_batch_size=64 " +
			"data.gen_batch_size=256", []string{"prompts_per_step: 256", "!staleness"}},
		{"group filtering by the second trainer", "algorithm.adv_estimator=grpo trainer.use_v1=True algorithm.filter_groups.enable=True " +
			"algorithm.filter_groups.max_num_gen_batches=5", []string{"max_batches: 1000", "!main_ppo filters"}},
		{"SAPO", "algorithm.adv_estimator=grpo actor_rollout_ref.actor.policy_loss.loss_mode=sapo",
			[]string{"loss: sapo", "aggregation: seq-mean-token-mean", "!loss_agg_mode"}},
		{"GSPO that bypass ignores", "algorithm.adv_estimator=grpo algorithm.rollout_correction.bypass_mode=True " +
			"actor_rollout_ref.actor.policy_loss.loss_mode=gspo", []string{"mode: bypass", "!aggregation"}},
		{"bypass by its loss", "algorithm.adv_estimator=grpo algorithm.rollout_correction.bypass_mode=True " +
			"actor_rollout_ref.actor.policy_loss.loss_mode=bypass_mode", []string{"mode: bypass", "!no effect"}},
		{"GVPO", "algorithm.adv_estimator=grpo algorithm.norm_adv_by_std_in_grpo=False actor_rollout_ref.actor.policy_loss.loss_mode=gvpo actor_rollout_ref.actor.gvpo_beta=0.2",
			[]string{"loss: gvpo", "beta: 0.2", "scale_std: false", "its gradient is larger"}},
		{"GiGPO", "algorithm.adv_estimator=gigpo algorithm.gamma=0.9 algorithm.gigpo.step_advantage_w=0.5 algorithm.gigpo.mode=mean_norm " +
			"algorithm.gigpo.enable_similarity=True env.env_name=alfworld/AlfredTWEnv env.max_steps=30 env.rollout.n=8 env.seed=0 " +
			"actor_rollout_ref.actor.ppo_mini_batch_size=256",
			[]string{"kind: gigpo", "weight: 0.5", "gamma: 0.9\n", "scale_std: false", "kind: agent", "max_turns: 30", "n: 8",
				"write the environment as a program ./agent", "counts steps of episodes in verl-agent", "!prompts_per_update:", "enable_similarity: states are equal"}},
		{"DRO", "algorithm.adv_estimator=grpo actor_rollout_ref.actor.policy_loss.loss_mode=dro actor_rollout_ref.actor.policy_loss.dro_beta=0.3",
			[]string{"loss: dro", "beta: 0.3"}},
		{"a teacher alone", "algorithm.adv_estimator=grpo actor_rollout_ref.actor.entropy_coeff=0.01 distillation.enabled=True distillation.n_gpus_per_node=4 " +
			"distillation.teacher_models.teacher_model.model_path=./t distillation.teacher_models.teacher_model.inference.tensor_model_parallel_size=2 " +
			"distillation.distillation_loss.loss_mode=k1 distillation.distillation_loss.use_task_rewards=False distillation.distillation_loss.topk=64 " +
			"distillation.distillation_loss.use_policy_gradient=True distillation.distillation_loss.loss_max_clamp=10.0",
			[]string{"kind: distill", "max: 10", `reference: "./t"`}},
		{"a teacher beside rewards", "algorithm.adv_estimator=grpo actor_rollout_ref.actor.use_kl_loss=True distillation.enabled=True distillation.distillation_loss.loss_mode=k2 " +
			"distillation.teacher_models.teacher_model.model_path=./t distillation.distillation_loss.distillation_loss_coef=0.25 actor_rollout_ref.rollout.n=4",
			[]string{"kind: grpo", "loss_coef: 0.25", "loss_estimator: k2", `reference: "./t"`, "the KL from the start is left out"}},
		{"several teachers", "algorithm.adv_estimator=grpo distillation.enabled=True distillation.distillation_loss.use_policy_gradient=True actor_rollout_ref.rollout.n=4 " +
			"distillation.distillation_loss.loss_mode=forward_kl_topk distillation.teacher_models.teacher_model.model_path=./t " +
			"+distillation.teacher_models.b.model_path=./b +distillation.teacher_models.a.model_path=./a +distillation.teacher_models.c.model_path=./c " +
			"+distillation.teacher_models.a.key=gsm8k +distillation.teacher_models.b.key=code +distillation.teacher_models.d.model_path=./d +distillation.teacher_models.d.key=aime",
			[]string{"coef: 1", `reference: "./a"`, `teachers: ["./d", "./b"]`, `teacher_sources: ["aime", "code"]`, "teacher c has no key",
				`have the first one, "./a"`, "top_k: 32", "the forward KL is a loss here"}},
		{"teachers by another column", "algorithm.adv_estimator=grpo distillation.enabled=True distillation.teacher_key=ability data.train_files=t.parquet " +
			"+distillation.teacher_models.b.model_path=./b +distillation.teacher_models.a.model_path=./a +distillation.teacher_models.b.key=code " +
			"custom_reward_function.path=r.py", []string{`teacher_key: "ability"`, "keep: [ability, extra_info, reward_model]", `teacher_sources: ["code"]`}},
		{"a teacher's likeliest tokens", "algorithm.adv_estimator=grpo distillation.enabled=True distillation.distillation_loss.use_task_rewards=False " +
			"distillation.distillation_loss.loss_mode=forward_kl_topk distillation.teacher_models.teacher_model.model_path=./t " +
			"distillation.distillation_loss.topk=64 distillation.distillation_loss.loss_max_clamp=10 distillation.distillation_loss.log_prob_min_clamp=-10",
			[]string{"kind: distill", "top_k: 64", "max: 10", "floor: -10", `reference: "./t"`}},
		{"the optimizer", "algorithm.adv_estimator=grpo actor_rollout_ref.actor.optim.lr=2e-6 actor_rollout_ref.actor.optim.min_lr=2e-7 " +
			"actor_rollout_ref.actor.optim.lr_decay_style=cosine actor_rollout_ref.actor.optim.override_optimizer_config.eps=1e-5 " +
			"actor_rollout_ref.actor.optim.num_cycles=1.5 actor_rollout_ref.actor.optim.lr_warmup_steps_ratio=0.2",
			[]string{"schedule: cosine", "min_lr_ratio: 0.1", "eps: 1e-5", "num_cycles 1.5", "warmup_steps: 2\n"}},
		{"sgd", "algorithm.adv_estimator=grpo actor_rollout_ref.actor.optim.optimizer=SGD actor_rollout_ref.actor.optim.override_optimizer_config.momentum=0.8",
			[]string{"kind: sgd", "momentum: 0.8", "optim.weight_decay: sgd of torch"}},
		{"muon", "algorithm.adv_estimator=grpo actor_rollout_ref.actor.optim.optimizer=Muon", []string{"kind: muon", "optim.optimizer Muon: here with Nesterov"}},
		{"an optimizer that is not here", "algorithm.adv_estimator=grpo actor_rollout_ref.actor.optim.optimizer=Lion", []string{"Lion: adamw, sgd and muon"}},
		{"a ratio that verl ignores", "actor_rollout_ref.actor.clip_ratio=0.3", []string{"clip_ratio 0.3 has no effect in verl"}},
		{"no lower bound", "algorithm.adv_estimator=grpo actor_rollout_ref.actor.policy_loss.loss_mode=cispo actor_rollout_ref.actor.clip_ratio_low=10",
			[]string{"loss: cispo", "low: 1"}},
		{"a loss that bypass ignores", "algorithm.adv_estimator=grpo algorithm.rollout_correction.bypass_mode=True " +
			"actor_rollout_ref.actor.policy_loss.loss_mode=geo_mean", []string{"mode: bypass", "loss_mode gmpo has no effect in verl"}},
		{"checkpoints", "trainer.save_freq=20", []string{"checkpoint:\n  every_steps: 20\n"}},
		{"validation", "data.val_files=v.parquet trainer.test_freq=2 actor_rollout_ref.rollout.val_kwargs.temperature=0.7 " +
			"actor_rollout_ref.rollout.val_kwargs.do_sample=True actor_rollout_ref.rollout.val_kwargs.top_p=0.9",
			[]string{"temperature: 0.7\n    top_p: 0.9\n  final:", "temperature: 0.7\n    top_p: 0.9\n"}},
		{"copies of one completion", "data.val_files=v.parquet trainer.test_freq=2 actor_rollout_ref.rollout.val_kwargs.n=5",
			[]string{"n: 1\n    temperature: 0", "val_kwargs.n 5: at temperature 0 all completions"}},
		{"group filtering to infinity", "algorithm.adv_estimator=grpo algorithm.filter_groups.enable=True " +
			"algorithm.filter_groups.max_num_gen_batches=inf", []string{"max_batches: 1000"}},
		{"another model", "actor_rollout_ref.model.override_config.rope_theta=1e6", []string{"not translated: actor_rollout_ref.model.override_config.rope_theta=1e6"}},
		{"several turns without tools", "actor_rollout_ref.rollout.multi_turn.enable=True", []string{"the policy answers in one turn"}},
		{"tools that are not here", "actor_rollout_ref.rollout.multi_turn.enable=True actor_rollout_ref.rollout.multi_turn.tool_config_path=/nowhere/tools.yaml",
			[]string{"the tools' file is not here", "kind: command", "max_turns: 1000", "max_output: 256"}},
		{"Python by name", "actor_rollout_ref.rollout.multi_turn.tool_config_path=recipe/retool/sandbox_fusion_tool_config.yaml",
			[]string{"kind: python", "its name says that it runs Python"}},
		{"a user", "actor_rollout_ref.rollout.multi_turn.enable=True actor_rollout_ref.rollout.multi_turn.interaction_config_path=i.yaml " +
			"actor_rollout_ref.rollout.multi_turn.max_user_turns=2 actor_rollout_ref.rollout.multi_turn.max_assistant_turns=9",
			[]string{"format: user", "max_turns: 3", "write a program ./interaction"}},
		{"bypass", "algorithm.adv_estimator=grpo algorithm.rollout_correction.bypass_mode=True algorithm.rollout_correction.rollout_rs=seq_mean_k1,token_k2 " +
			"algorithm.rollout_correction.rollout_rs_threshold=0.5_2.0,3", []string{"mode: bypass", "reject: [seq_mean_k1, token_k2]", `["0.5_2.0", "3"]`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := base + tt.more
			for start, module := range map[string]string{"FlowRL": "recipe.flowrl.main_flowrl",
				"fully asynchronous": "verl.experimental.fully_async_policy.fully_async_main",
				"one step ahead":     "verl.experimental.one_step_off_policy.main_ppo"} {
				if strings.HasPrefix(tt.name, start) {
					text = strings.Replace(text, "verl.trainer.main_ppo", module, 1)
				}
			}
			r := translated(t, "run.sh", text, nil)
			if r.Errs != nil {
				t.Errorf("it is not complete: %v", r.Errs)
			}
			for _, want := range tt.want {
				if not, ok := strings.CutPrefix(want, "!"); ok && strings.Contains(r.Text, not) {
					t.Errorf("it has %q:\n%s", not, r.Text)
				} else if !ok && !strings.Contains(r.Text, want) {
					t.Errorf("it lacks %q:\n%s", want, r.Text)
				}
			}
		})
	}
}

// verl refuses two teachers of one key; here none is dropped, and the recipe does not load.
func TestTwoTeachersOfAKey(t *testing.T) {
	r := translated(t, "run.sh", "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_files=t.parquet "+
		"actor_rollout_ref.model.path=./m actor_rollout_ref.rollout.n=4 trainer.total_training_steps=10 "+
		"data.train_batch_size=8 distillation.enabled=True +distillation.teacher_models.b.model_path=./b "+
		"+distillation.teacher_models.a.model_path=./a +distillation.teacher_models.b.key=code +distillation.teacher_models.a.key=code", nil)
	for _, want := range []string{`teachers a and b have the key "code": verl refuses that`, `teachers: ["./a", "./b"]`, `teacher_sources: ["code", "code"]`} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("it lacks %q:\n%s", want, r.Text)
		}
	}
	if r.Errs == nil || !strings.Contains(r.Errs.Error(), `algo.teacher_sources has "code" twice`) {
		t.Errorf("errors %v", r.Errs)
	}
}

// Settings in blocks without a counterpart here that change what a run learns are named, or translated.
func TestPlacelessEffects(t *testing.T) {
	const base = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_files=t.parquet " +
		"actor_rollout_ref.model.path=./m actor_rollout_ref.rollout.n=4 trainer.total_training_steps=10 "
	for _, tt := range []struct {
		name, more string
		want       []string // in the recipe; not there after !
	}{
		{"losses of experts", "+actor_rollout_ref.actor.megatron.override_transformer_config.moe_aux_loss_coeff=0.01 " +
			"+actor_rollout_ref.actor.megatron.override_transformer_config.moe_z_loss_coeff=0.0 " +
			"+actor_rollout_ref.actor.megatron.override_transformer_config.moe_permute_fusion=True",
			[]string{"not translated: actor_rollout_ref.actor.megatron.override_transformer_config.moe_aux_loss_coeff=0.01",
				"!moe_z_loss_coeff", "!moe_permute_fusion"}},
		{"quantized training", "actor_rollout_ref.actor.fsdp_config.qat.enable=True",
			[]string{"not translated: actor_rollout_ref.actor.fsdp_config.qat.enable=True"}},
		{"an agent of its own", "actor_rollout_ref.rollout.agent.agent_loop_config_path=agent.yaml " +
			"actor_rollout_ref.rollout.agent.default_agent_loop=mine actor_rollout_ref.rollout.agent.num_workers=4",
			[]string{"kind: agent", "command: [./agent]", "max_turns: 1000", "!num_workers", "!not translated: actor_rollout_ref.rollout.agent",
				"actor_rollout_ref.rollout.agent.agent_loop_config_path=agent.yaml, default_agent_loop=mine: write the loop as a program ./agent"}},
		{"an agent by a name that is nowhere", "actor_rollout_ref.rollout.agent.default_agent_loop=mine",
			[]string{"not translated: actor_rollout_ref.rollout.agent.default_agent_loop=mine", "!kind: agent"}},
		{"an agent of verl's", "actor_rollout_ref.rollout.agent.default_agent_loop=tool_agent", []string{"!agent_loop"}},
		{"another reference model", "actor_rollout_ref.actor.use_kl_loss=True +actor_rollout_ref.ref.model.path=./r",
			[]string{`reference: "./r"`, "loss_coef: 0.001"}},
		{"a reference model that nothing reads", "+actor_rollout_ref.ref.model.path=./r", []string{"!./r"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := translated(t, "run.sh", base+tt.more, nil)
			if r.Errs != nil {
				t.Errorf("it is not complete: %v", r.Errs)
			}
			for _, want := range tt.want {
				text, absent := strings.CutPrefix(want, "!")
				if strings.Contains(r.Text, text) == absent {
					t.Errorf("want %q in:\n%s", want, r.Text)
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
		{"a case", "SIZE=7B\ncase $SIZE in\n1.5B) LR=3e-6 ;;\n7B|14B) LR=2e-6 ;;\n3*) LR=1e-5 ;;\n*) LR=1e-4 ;;\nesac\n" +
			"$RUN actor_rollout_ref.actor.optim.lr=$LR", []string{"lr: 2e-6"}, nil},
		{"a case without a match", "LR=2e-6\ncase x in\ny) LR=3e-6 ;;\nesac\n$RUN actor_rollout_ref.actor.optim.lr=$LR", []string{"lr: 2e-6"}, nil},
		{"a function", "run() {\n$RUN actor_rollout_ref.actor.optim.lr=$1 \"${@:2}\"\n}\nother() {\nexit\n}\nrun 2e-6 actor_rollout_ref.rollout.n=16",
			[]string{"lr: 2e-6", "n: 16"}, nil},
		{"a function that another script calls", "LR=2e-6\nrun() {\n$RUN actor_rollout_ref.actor.optim.lr=$LR\n}", []string{"lr: 2e-6"}, nil},
		{"a function that calls itself", "run() {\nrun \"$@\"\n}\nrun a\n$RUN actor_rollout_ref.rollout.n=16", []string{"n: 16"}, nil},
		{"a script in a word", "LR=2e-6\ndocker run image bash -lc \"cd /w && $RUN actor_rollout_ref.actor.optim.lr=$LR\"", []string{"lr: 2e-6"}, nil},
		{"an array with keys", "declare -A LR=([7B]=2e-6 [\"32B\"]=5e-7) N\nN[7B]=16\nN[32B]=8\nSIZE=7B\n" +
			"$RUN actor_rollout_ref.actor.optim.lr=${LR[$SIZE]} actor_rollout_ref.rollout.n=${N[7B]}", []string{"lr: 2e-6", "n: 16"}, nil},
		{"an element of an array", "N=(4 8)\nN[0]=16\n$RUN actor_rollout_ref.rollout.n=${N[0]}", nil, []string{"does not set N, which actor_rollout_ref.rollout.n needs"}},
		{"a text that grows", "X=$ROOT\nX+=8\n$RUN actor_rollout_ref.rollout.n=$X", []string{"n: 8"}, []string{"does not set ROOT, which actor_rollout_ref.rollout.n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			script := strings.Replace(tt.script, "$RUN", "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=./m data.train_files=gsm8k.parquet "+
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

// Hydra's syntax, and texts that YAML needs in quotes.
func TestHydra(t *testing.T) {
	base := "python3 -m verl.trainer.main_ppo --config-name=mine actor_rollout_ref.model.path=./m trainer.total_training_steps=10 " +
		"data.train_files=\"['data/a,b.parquet', data/c.parquet]\" actor_rollout_ref.actor.use_kl_loss=True "
	r := translated(t, "run.sh", base+`~actor_rollout_ref.actor.use_kl_loss=True +data.apply_chat_template_kwargs.x='a: b # c' `+
		`actor_rollout_ref.actor.clip_ratio=0.3 actor_rollout_ref.actor.clip_ratio_high=null trainer.experiment_name=测试 `+
		`data.val_files='${data.train_files}' actor_rollout_ref.actor.ppo_mini_batch_size='${oc.select:data.none,32}' `+
		`data.seed='${oc.env:SEED,7}' data.train_max_samples=9 actor_rollout_ref.actor.entropy_coeff=0.`, nil)
	for _, want := range []string{"name: \"verl\"", "    source: \"data/a,b.parquet\"\n    more: [\"data/c.parquet\"]\n    max_samples: 9\n  val:\n    source: \"data/a,b.parquet\"",
		`template_vars: {x: "a: b # c"}`, "high: 0.3", "prompts_per_update: 32", "seed: 7",
		"# - mine.yaml, from which it starts, is not here", "# - not translated: ~actor_rollout_ref.actor.use_kl_loss=True\n"} {
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

// Words for true and false in a file that a person wrote.
func TestYAMLBooleans(t *testing.T) {
	r := translated(t, "config.yaml", "algorithm: {adv_estimator: grpo, norm_adv_by_std_in_grpo: off}\ndata: {train_files: t.parquet}\nactor_rollout_ref:\n"+
		"  model: {path: ./m}\n  rollout: {n: 4}\n  actor: {use_kl_loss: yes, kl_loss_coef: 0.25}\ntrainer: {total_training_steps: 3}\n", nil)
	for _, want := range []string{"scale_std: false", "loss_coef: 0.25"} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("it lacks %q:\n%s", want, r.Text)
		}
	}
}

// Of a resolved configuration, only what has an effect is noted.
func TestResolved(t *testing.T) {
	const base = "algorithm: {adv_estimator: gae, pf_ppo: {weight_pow: 2.0}, use_pf_ppo: false}\ndata: {train_files: t.parquet, sampler: {class_path: null}}\n" +
		"trainer: {total_training_steps: 3, esi_redundant_time: 0}\n" +
		"reward_model: {enable: false, model: {path: ~/rm}, launch_reward_fn_async: false}\n"
	quiet := translated(t, "config.yaml", base+"actor_rollout_ref:\n  model: {path: ./m, mtp: {enable: false, method: mtp}, lora: {rank: 0, alpha: 32}}\n"+
		"  actor: {ppo_epochs: 2, shuffle: false, optim: {optimizer_impl: torch.optim, total_training_steps: -1}}\n"+
		"  rollout: {multi_turn: {enable: false, format: hermes}, ignore_eos: false}\n"+
		"critic: {ppo_epochs: 2, ppo_mini_batch_size: '${oc.select:actor_rollout_ref.actor.ppo_mini_batch_size,256}', loss_agg_mode: token-mean}\n", nil)
	if len(quiet.Notes) > 1 || !strings.Contains(quiet.Notes[0], "a wrong answer scores") {
		t.Errorf("notes of defaults: %q", quiet.Notes)
	}
	loud := translated(t, "config.yaml", base+"actor_rollout_ref:\n  model: {path: ./m, mtp: {enable: true, method: mtp}}\n"+
		"  actor: {ppo_epochs: 2, shuffle: true}\n  rollout: {multi_turn: {enable: true, format: hermes}, ignore_eos: true}\n"+
		"critic: {ppo_epochs: 4}\n", nil)
	for _, want := range []string{"critic.ppo_epochs is 4, the policy's 2", "actor.shuffle=true", "multi_turn.format=hermes", "mtp.method=mtp",
		"ignore_eos=true"} {
		if !strings.Contains(strings.Join(loud.Notes, "\n"), want) {
			t.Errorf("no note says %q: %q", want, loud.Notes)
		}
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
	if r := translated(t, "run.sh", script+data+" data.train_max_samples=5", nil); !strings.Contains(r.Text, " steps: 3\n") {
		t.Errorf("3 passes over 5 of the rows:\n%s", r.Text)
	}
	r := translated(t, "run.sh", script+data+" trainer.total_training_steps=9 actor_rollout_ref.actor.optim.lr_warmup_steps_ratio=0.34", nil)
	if !strings.Contains(r.Text, " steps: 6\n") || !strings.Contains(r.Text, "verl ends after trainer.total_epochs, 6 steps") ||
		!strings.Contains(r.Text, "warmup_steps: 3\n") {
		t.Errorf("more steps than the passes have:\n%s", r.Text)
	}
	r = translated(t, "run.sh", script+data+" data.filter_overlong_prompts=True", nil)
	if !strings.Contains(r.Text, "without them verl's passes are shorter") {
		t.Errorf("with a filter:\n%s", r.Text)
	}
	r = translated(t, "run.sh", script+"/none/train.parquet", nil)
	if strings.Contains(r.Text, " steps:") || !strings.Contains(strings.Join(r.Notes, "\n"), "trainer.total_epochs (3) times the problems, divided by 4") {
		t.Errorf("of a file that is not here:\n%s%v", r.Text, r.Errs)
	}
}

// A wrong answer scores what verl's grader of the data gives.
func TestWrongAnswers(t *testing.T) {
	dir := t.TempDir()
	list := func(sources ...string) string {
		var paths []string
		for _, s := range sources {
			path := filepath.Join(dir, strings.ReplaceAll(s, "/", "_")+".jsonl")
			row := `{"data_source":"` + s + `","prompt":[{"role":"user","content":"q"}],"reward_model":{"ground_truth":"1"}}` + "\n"
			if err := os.WriteFile(path, []byte(row), 0o644); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
		return "'data.train_files=[" + strings.Join(paths, ",") + "]'"
	}
	script := "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=./m actor_rollout_ref.rollout.n=2 " +
		"trainer.total_training_steps=3 "
	for _, tt := range []struct {
		files      string
		minus, say bool
	}{
		{list("math_dapo", "aime24"), true, false},
		{list("openai/gsm8k"), false, false},
		{list("openai/gsm8k", "math_dapo"), false, true},
		{list("math_dapo") + " custom_reward_function.path=mine.py", false, false},
		{"data.train_files=/none/t.parquet", false, true},
		{"data.train_files=/none/dapo-math-17k.parquet", true, false},
		{"data.train_files=/none/gsm8k/train.parquet", false, false},
		{"data.train_files=/none/geo3k/train.parquet", false, false},
		{list("hiyouga/geometry3k"), false, false},
		{list("hiyouga/geometry3k", "openai/gsm8k"), false, false},
	} {
		r := translated(t, "run.sh", script+tt.files, nil)
		if got := strings.Contains(r.Text, "wrong: -1"); got != tt.minus {
			t.Errorf("%s: a wrong answer scores -1: %t\n%s", tt.files, got, r.Text)
		}
		if got := strings.Contains(r.Text, "a wrong answer scores"); got != tt.say {
			t.Errorf("%s: a note says so: %t\n%s", tt.files, got, r.Text)
		}
		geometry, alone := strings.Contains(tt.files, "geo"), !strings.Contains(tt.files, ",")
		if got := strings.Contains(r.Text, "format: 0.1"); got != (geometry && alone) {
			t.Errorf("%s: the form of Geometry3K scores 0.1: %t\n%s", tt.files, got, r.Text)
		}
		if got := strings.Contains(r.Text, "the form <think>…</think> … \\boxed{…} scores nothing"); got != (geometry && !alone) {
			t.Errorf("%s: a note says that the form scores nothing: %t\n%s", tt.files, got, r.Text)
		}
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
		if r, err := From(path, Options{Set: nil}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	if _, err := From("none.sh", Options{Set: nil}); err == nil {
		t.Error("a missing file gives no error")
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

// The program around a compute_score for verl answers reward.command's lines. It passes on what verl's
// reward managers pass.
func TestAdapter(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	base := "python3 -m verl.trainer.main_ppo data.train_files=t.parquet actor_rollout_ref.model.path=./m trainer.total_training_steps=3 "
	row := `{"id":"7","response":"x","gold":"x","data_source":"s","extra":{"columns":{"extra_info":{"bonus":0.5}}}}` + "\n"
	for _, tt := range []struct{ name, code, more, in, want, kept string }{
		{"a dictionary", "def mine(data_source, solution_str, ground_truth, extra_info=None):\n    print('noise')\n" +
			"    return {'score': float(solution_str == ground_truth) + extra_info['bonus'], 'acc': 1, 'pred': 'y'}\n", "", row, `1.5, "correct": true, "answer": "y"`, "[extra_info reward_model]"},
		{"extra_info is never None", "def mine(data_source, solution_str, ground_truth, extra_info=None):\n" +
			"    return extra_info.get('bonus', 3) + extra_info['num_turns'] + len(extra_info['rollout_reward_scores'])\n",
			"", `{"id":"7","response":"x","gold":"x","data_source":"s","extra":null}` + "\n", "5.0", "[extra_info]"},
		{"a ground truth in parts", "def mine(data_source, solution_str, ground_truth, extra_info=None):\n    return len(ground_truth['target'])\n", "",
			`{"id":"7","response":"x","gold":"{}","data_source":"s","extra":{"columns":{"reward_model":{"style":"rule","ground_truth":{"target":["a","b"]}}}}}` +
				"\n", "2.0", "[reward_model]"},
		{"reward_kwargs", "def mine(data_source, solution_str, ground_truth, extra_info=None, scale=1, names=None, deep=None):\n" +
			"    return scale * len(names) + deep['x'] + (data_source == 'other')\n",
			"+custom_reward_function.reward_kwargs.scale=2.5 '+custom_reward_function.reward_kwargs.names=[a,b]' " +
				"+custom_reward_function.reward_kwargs.deep.x=4 +custom_reward_function.reward_kwargs.data_source=other", row, "10.0", "[]"},
		{"awaited", "async def mine(data_source, solution_str, ground_truth, extra_info=None):\n    return [0.25, 'why']\n", "", row, "0.25", "[]"},
		{"the batch manager's", "def mine(data_sources, solution_strs, ground_truths, extra_infos):\n" +
			"    return [{'score': len(s) + e['bonus']} for s, e in zip(solution_strs, extra_infos, strict=True)]\n", "reward_model.reward_manager=batch", row, "1.5", "[extra_info]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "score.py")
			if err := os.WriteFile(path, []byte(tt.code), 0o644); err != nil {
				t.Fatal(err)
			}
			r := translated(t, "run.sh", base+"custom_reward_function.path="+path+" custom_reward_function.name=mine "+tt.more, nil)
			if r.Errs != nil {
				t.Fatal(r.Errs)
			}
			c, err := config.Load(config.Input{File: "run.yaml", Data: []byte(r.Text)})
			if err != nil {
				t.Fatal(err)
			}
			argv := c.Run.Reward.Command
			if len(argv) < 5 || argv[3] != path || argv[4] != "mine" ||
				fmt.Sprint(c.Run.Data.Keep) != tt.kept || !c.Run.JudgesAlone() || len(r.Notes) > 0 {
				t.Fatalf("command %q, kept %q, notes %q", argv, c.Run.Data.Keep, r.Notes)
			}
			cmd := exec.Command(python, argv[1:]...)
			cmd.Stdin, cmd.Stderr = strings.NewReader(tt.in), os.Stderr
			out, err := cmd.Output()
			if got, want := string(out), `{"id": "7", "score": `+tt.want+"}\n"; err != nil || got != want {
				t.Errorf("%q, %v, want %q", got, err, want)
			}
		})
	}
}
