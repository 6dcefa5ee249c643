package translate

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree writes files and returns their folder. A .git folder ends the search above it.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[name]), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// checkRecipe translates a script and looks for texts in the recipe; those that begin with ! must be absent.
func checkRecipe(t *testing.T, script string, opt Options, complete bool, want ...string) {
	t.Helper()
	r, err := From(script, opt)
	if err != nil {
		t.Fatal(err)
	}
	if (r.Errs == nil) != complete {
		t.Errorf("complete: %t, %v", r.Errs == nil, r.Errs)
	}
	for _, w := range want {
		text, absent := strings.CutPrefix(w, "!")
		if strings.Contains(r.Text, text) == absent {
			t.Errorf("%q: present %t in\n%s", text, absent, r.Text)
		}
	}
}

const hydraMain = `
hydra:
  searchpath: ["file://base/config"]
defaults:
  - ppo_trainer
  - extra@algorithm: kl
  - optional missing: null
  - _self_
data: {max_prompt_length: 300, max_response_length: 700, train_batch_size: 64}
actor_rollout_ref:
  model: {path: "${oc.env:MODEL,./m}"}
  actor: {ppo_mini_batch_size: "${data.train_batch_size}", entropy_coeff: 0.5, optim: {lr: "${oc.select:none.lr,3e-6}"}}
  rollout: {n: 4, multi_turn: {enable: true, max_assistant_turns: 6, max_tool_response_length: "${data.max_response_length}",
    tool_config_path: ./examples/agent/config/tools.yaml}}
trainer: {experiment_name: "at-${trainer.total_training_steps}"}
`

// The files that a script names lie under the command line and over verl's base; the file wins over entries
// below _self_ in a list of defaults.
func TestHydraFiles(t *testing.T) {
	dir := tree(t, map[string]string{
		"examples/agent/config/agent.yaml": hydraMain,
		"examples/agent/config/tools.yaml": "tools:\n  - class_name: verl.tools.sandbox_fusion_tools.SandboxFusionTool\n    config: {default_timeout: 20}\n" +
			fmt.Sprintf(schema, "code_interpreter"),
		"base/config/extra/kl.yaml": "use_kl_in_reward: true\nkl_ctrl: {kl_coef: 0.25}\n",
		"examples/agent/late.yaml":  "defaults: [_self_, config/agent]\ndata: {max_prompt_length: 9, truncation: left}\n",
		"examples/agent/none.yaml":  "defaults: [config/agent]\nactor_rollout_ref: {rollout: {n: 3, multi_turn: null}}\n",
		"examples/agent/run.sh": `PROJECT_DIR="$(pwd)"
CONFIG="$PROJECT_DIR/examples/agent/config"
python3 -m verl.trainer.main_ppo --config-path="$CONFIG" --config-name='agent' algorithm.adv_estimator=grpo \
	data.train_files=t.parquet actor_rollout_ref.actor.entropy_coeff=0.125 trainer.total_training_steps=10 "$@"
`,
		"examples/agent/far.sh": `python3 -m verl.trainer.main_ppo --config-path "$AUTHORS/checkout/examples/agent" --config-name ${NAME:-late} \
	algorithm.adv_estimator=grpo data.train_files=t.parquet trainer.total_training_steps=10
`,
	})
	want := []string{"max_prompt_tokens: 300", "prompts_per_step: 64", "entropy_coef: 0.125", "reward_coef: 0.25", `base: "./m"`, "lr: 3e-6",
		`name: "at-10"`, "read " + filepath.Join(dir, "examples/agent/config/agent.yaml"), "kl.yaml, which agent.yaml starts from",
		"kind: python", "cpu_limit: 20s", "max_turns: 6", "max_output: 700", "code_interpreter", "!only Hydra", "!not translated"}
	checkRecipe(t, filepath.Join(dir, "examples/agent/run.sh"), Options{}, true, want...)
	checkRecipe(t, filepath.Join(dir, "examples/agent/run.sh"), Options{Set: map[string]string{"MODEL": "./other"}}, true, `base: "./other"`)
	// Its list has _self_ first: what follows is above it.
	checkRecipe(t, filepath.Join(dir, "examples/agent/far.sh"), Options{}, true, "max_prompt_tokens: 300", "truncate: left", "late.yaml")

	// A value in the place of a block takes the block away.
	checkRecipe(t, filepath.Join(dir, "examples/agent/far.sh"), Options{Set: map[string]string{"NAME": "none"}}, true, "n: 3", "!max_turns", "!tools:")

	alone := filepath.Join(tree(t, map[string]string{"run.sh": "python3 -m verl.trainer.main_ppo --config-name agent algorithm.adv_estimator=grpo " +
		"data.train_files=t.parquet actor_rollout_ref.model.path=./m actor_rollout_ref.rollout.n=2 trainer.total_training_steps=10"}), "run.sh")
	checkRecipe(t, alone, Options{}, true, "agent.yaml, from which it starts, is not here", "--config-path FOLDER", "max_prompt_tokens: 512")
	checkRecipe(t, alone, Options{Folders: []string{filepath.Join(dir, "examples/agent/config")}}, true, "max_prompt_tokens: 300", "n: 2")
}

// A file with a list of defaults may stand alone, and flags have short names.
func TestHydraAlone(t *testing.T) {
	rest := "data: {train_files: t.parquet}\nactor_rollout_ref: {model: {path: ./m}, rollout: {n: 4}}\ntrainer: {total_training_steps: 10}\n"
	command := " algorithm.adv_estimator=grpo data.train_files=t.parquet actor_rollout_ref.model.path=./m actor_rollout_ref.rollout.n=4 " +
		"trainer.total_training_steps=10 reward_model.overlong_buffer.enable=True reward_model.overlong_buffer.len=128 reward_model.overlong_buffer.penalty_factor=1.0"
	dir := tree(t, map[string]string{
		"a/main.yaml":  "defaults:\n  - one/b\n  - _self_\nalgorithm: {adv_estimator: rloo}\n" + rest,
		"a/one/b.yaml": "defaults:\n  - override /one@algorithm: [none, null]\nalgorithm: {adv_estimator: gae}\ndata: {max_prompt_length: 77}\n",
		"run.sh":       "python3 recipe/main_x.py -cp a -cn one/b --config-dir nowhere" + command,
		"dapo.sh":      "python3 -m recipe.dapo.main_dapo" + command,
		"sppo.sh": "python3 -m recipe.sppo.main_sppo" + command +
			" algorithm.adv_estimator=null algorithm.sppo_eta=2 actor_rollout_ref.actor.sppo_eta=4",
		"spin.sh": "python3 -m recipe.spin.main_spin" + command + " algorithm.adv_estimator=null algorithm.dpo_beta=0.05 " +
			"trainer.ref_update_freq=1 algorithm.dpo_label_smoothing=0.1",
		"spin_far.sh": "python3 -m recipe.spin.main_spin" + command + " algorithm.adv_estimator=null algorithm.dpo_loss_type=ipo " +
			"trainer.ref_update_freq=3",
		"spo.sh": "python3 -m recipe.spo.spo_main_ppo" + command + " algorithm.adv_estimator=grpo trainer.spo.enable=True " +
			"trainer.spo.offline_values=v.json data.gen_batch_size=14000 data.shuffle=False",
		"spo_constant.sh": "python3 -m recipe.spo.spo_main_ppo" + command + " algorithm.adv_estimator=grpo trainer.spo.enable=True " +
			"trainer.spo.rho.type=constant trainer.spo.rho.value=0.9 trainer.spo.offline_N=4",
		"spo_off.sh":    "python3 -m recipe.spo.spo_main_ppo" + command + " algorithm.adv_estimator=grpo trainer.spo.enable=False",
		"a/broken.yaml": "defaults: [\n",
	})
	checkRecipe(t, filepath.Join(dir, "a/main.yaml"), Options{}, true, "kind: rloo", "77", "one/b.yaml, which main.yaml starts from",
		"one/none, which", "!defaults=")
	checkRecipe(t, filepath.Join(dir, "run.sh"), Options{}, true, "kind: grpo", "77", "the reward manager is naive, not dapo", "!main_x.py starts")
	// DAPO's trainer starts from its own reward manager, even if its files are not here.
	checkRecipe(t, filepath.Join(dir, "dapo.sh"), Options{}, true, "buffer: 0.25", "!the reward manager is naive")
	checkRecipe(t, filepath.Join(dir, "sppo.sh"), Options{}, true, "kind: sppo", "eta: 4", "algorithm.sppo_eta is 2",
		"twice the loss", "!advantage:", "!main_sppo")
	checkRecipe(t, filepath.Join(dir, "spin.sh"), Options{}, true, "kind: dpo", "beta: 0.05", "smoothing: 0.1", "reference: old", "n: 2",
		"rollout.n is 4", "!advantage:", "!main_spin", "!ref_update_freq")
	checkRecipe(t, filepath.Join(dir, "spin_far.sh"), Options{}, true, "loss: ipo", "trainer.ref_update_freq is 3",
		"reference_every: 3", "!smoothing:", "! reference: old")
	checkRecipe(t, filepath.Join(dir, "spo.sh"), Options{}, true, "kind: spo", " n: 1", "rollout.n is 4",
		"gen_batch_size 14000", "v.json", "!advantage:", "!order:", "!spo_main_ppo", "!not translated")
	checkRecipe(t, filepath.Join(dir, "spo_constant.sh"), Options{}, true, "first: 4", "rho_min: 0.9", "rho_max: 0.9", "clip_lower 0.875")
	checkRecipe(t, filepath.Join(dir, "spo_off.sh"), Options{}, true, "kind: grpo", "!spo:")
	if _, err := From(filepath.Join(dir, "a/broken.yaml"), Options{}); err == nil || !strings.Contains(err.Error(), "is not YAML") {
		t.Errorf("%v", err)
	}
}

// The recipe prime starts from its own settings, even if its file is not here.
func TestPrime(t *testing.T) {
	command := func(more string) string {
		return "python3 -m recipe.prime.main_prime data.train_files=t.parquet actor_rollout_ref.model.path=./m data.train_batch_size=64 " +
			"actor_rollout_ref.actor.ppo_mini_batch_size=64 trainer.total_training_steps=10 reward_model.model.path=./m " +
			"reward_model.micro_batch_size_per_gpu=1 reward_model.model.input_tokenizer=null algorithm.kl_penalty=kl " + more
	}
	dir := tree(t, map[string]string{
		"plain.sh": command("reward_model.mini_batch_size=64 algorithm.use_kl_in_reward=True algorithm.kl_ctrl.kl_coef=0.001"),
		"far.sh": command("reward_model.model.update=reverse reward_model.model.loss_type=bon_acc reward_model.mini_batch_size=50 " +
			"reward_model.model.path=./prm reward_model.model.ref_path=./sft reward_model.prime_granularity=whole reward_model.prime_norm=none " +
			"algorithm.reward_dpo_coef=2 reward_model.model.optim.lr_scheduler_type=cosine reward_model.model.optim.lr=3e-6 " +
			"data.accuracy_lower_bound=0.1 data.filter_truncate=False data.oversample_factor=2.5 actor_rollout_ref.rollout.temperature=0.8 " +
			"reward_model.model.optim.lr_warmup_steps=3 actor_rollout_ref.actor.use_kl_loss=True reward_model.lambda=0.5"),
		"off.sh": command("data.filter_accuracy=False data.filter_truncate=False reward_model.enable=False algorithm.adv_estimator=remax " +
			"reward_model.model.update=none"),
		"cut.sh": command("data.filter_accuracy=False"),
		"left.yaml": "data: {train_files: t.parquet, train_batch_size: 64}\nactor_rollout_ref: {model: {path: ./m}, actor: {ppo_mini_batch_size: 64}, rollout: {n: 4}}\n" +
			"reward_model: {prime_norm: none, model: {ref_path: '${reward_model.model.path}', update: after}}\ntrainer: {total_training_steps: 9}\n",
	})
	checkRecipe(t, filepath.Join(dir, "plain.sh"), Options{}, true, "kind: prime", "prompts_per_update: 16", "complete: true", "n: 4",
		"entropy_coef: 0.001", "truncate: right", "use_kl_in_reward has no effect", "!reward_coef", "!kind: model", "!not translated", "!main_prime",
		"!advantage:", "!counts completions", "!weight_decay: 0", "!reference:", "!low:", "!max_batches:")
	checkRecipe(t, filepath.Join(dir, "far.sh"), Options{}, true, "update: after", "loss: bon_acc", "prompts_per_update: 8",
		"counts completions: here an update has 8 problems of 4", `model: "./prm"`, `reference: "./sft"`, "granularity: whole", "norm: none",
		"process_coef: 2", "lr: 3e-6", "low: 0.1", "max_batches: 3", "temperature 0.8 divides", "lr_scheduler_type cosine has no effect",
		"warmup_steps: 3", "the policy's one reference here", "reward_model.lambda 0.5", "!complete:", "!schedule:", "!not translated")
	checkRecipe(t, filepath.Join(dir, "off.sh"), Options{}, true, "metric: none", "reward_model.enable is false", "adv_estimator remax",
		"update none: the process reward model always learns")
	checkRecipe(t, filepath.Join(dir, "left.yaml"), Options{}, true, "kind: prime", "update: after", "norm: none", "!reference:", "!only Hydra", "!model: \"")
	checkRecipe(t, filepath.Join(dir, "cut.sh"), Options{}, true, "complete: true", "low: 0", "high: 1", "data.filter_accuracy is false")
}

// A trainer's Python file names the settings from which it starts. It is read, never run.
func TestHydraTrainer(t *testing.T) {
	const command = "python3 -m recipe.mine.main_mine algorithm.adv_estimator=grpo data.train_files=t.parquet actor_rollout_ref.model.path=./m " +
		"actor_rollout_ref.rollout.n=4 trainer.total_training_steps=10 "
	dir := tree(t, map[string]string{
		"recipe/mine/main_mine.py":     "@hydra.main(config_path=\"conf\", config_name=\"mine\", version_base=None)\ndef main(config):\n    raise SystemExit\n",
		"recipe/mine/conf/mine.yaml":   "defaults: [ppo_megatron_trainer, _self_]\nactor_rollout_ref: {actor: {clip_ratio_high: 0.3, optim: {clip_grad: 0.5}}}\n",
		"recipe/mine/conf/g/more.yaml": "# @package _global_\ndata: {truncation: left}\n",
		"recipe/mine/run.sh":           command,
		"recipe/mine/more.sh":          command + "+g=more",
		"recipe/mine/none.sh":          command + "+g@data=none",
		"recipe/mine/circle.sh":        command + "--config-name=a",
		"recipe/mine/conf/a.yaml":      "defaults: [b]\n",
		"recipe/mine/conf/b.yaml":      "defaults: [a]\n",
		"elsewhere/run.sh":             strings.ReplaceAll(command, "mine", "other"),
	})
	// The clip is Megatron's: it stands in optim there.
	checkRecipe(t, filepath.Join(dir, "recipe/mine/run.sh"), Options{}, true, "high: 0.3", "grad_clip: 0.5", "mine.yaml")
	checkRecipe(t, filepath.Join(dir, "recipe/mine/more.sh"), Options{}, true, "high: 0.3", "truncate: left", "which +g=more names")
	checkRecipe(t, filepath.Join(dir, "recipe/mine/none.sh"), Options{}, true, "the file that +g@data=none names is not here")
	checkRecipe(t, filepath.Join(dir, "elsewhere/run.sh"), Options{}, true, "the settings from which main_other.py starts are not known here")
	if _, err := From(filepath.Join(dir, "recipe/mine/circle.sh"), Options{}); err == nil || !strings.Contains(err.Error(), "nest over") {
		t.Errorf("a circle: %v", err)
	}
}

// Settings that refer to each other in a circle end.
func TestInterpolationCircles(t *testing.T) {
	r := translated(t, "config.yaml", "algorithm: {adv_estimator: grpo, gamma: '${algorithm.lam}${algorithm.lam}', lam: '${algorithm.gamma}'}\n"+
		"data: {train_files: t.parquet, train_max_samples: 9, seed: '${oc.decode:${oc.env:SEED,5}}', prompt_key: '${mul:2,3}'}\nactor_rollout_ref: {model: {path: ./m}, rollout: {n: 2}}\n"+
		"trainer: {total_training_steps: '${oc.select:trainer.none}', total_epochs: 1}\n", nil)
	for _, want := range []string{"algorithm.gamma is ", "only Hydra or a shell", "seed: 5", "data.prompt_key is ${mul:2,3}"} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("it lacks %q:\n%s", want, r.Text)
		}
	}
}

// Of branches that the script's text decides, only the one that runs counts.
func TestBranches(t *testing.T) {
	base := "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_files=t.parquet actor_rollout_ref.model.path=./m " +
		"actor_rollout_ref.rollout.n=4 trainer.total_training_steps=10 actor_rollout_ref.actor.optim.lr=$LR"
	for condition, want := range map[string]string{
		`[ "$(basename "$ENV")" = "b.yaml" ]`:            "1e-5",
		`[ "$(basename "$ENV")" = "c.yaml" ]`:            "2e-5",
		`[[ -z "$NOBODY" && $N -ge 3 ]]`:                 "1e-5",
		`[[ ! ( $N == 3 || -n "" ) ]]`:                   "2e-5",
		`[ $N -le 3 ] && [ $N -gt 2 ] && [ "$N" -ne 4 ]`: "1e-5",
		`[ $N -like 3 ]`:                                 "2e-5",
		`test $N -lt 3 || ! [ "$N" != 3 ]`:               "1e-5",
		`[ ! -z "$N" ]`:                                  "1e-5",
		`${LOW:-false}`:                                  "2e-5",
		`[ $(hostname) = a ]`:                            "2e-5", // a shell's: the last counts
		`[ -f nowhere ]`:                                 "2e-5",
		`[ "$1" = "" ]`:                                  "2e-5",
		`[[ $ENV == *b.yaml ]]`:                          "2e-5",
		`X=$(date); [ -z "$X" ]`:                         "2e-5",
		`[ "$N" = 3 ]; then :; fi; if [ $N -eq 3 ]`:      "1e-5",
	} {
		t.Run(condition, func(t *testing.T) {
			script := "ENV=a/b.yaml\nN=3\nif " + condition + "; then\n  LR=${LR:-1e-5}\nelse\n  LR=2e-5\nfi\n" + base
			if r := translated(t, "run.sh", script, nil); !strings.Contains(r.Text, "lr: "+want) {
				t.Errorf("not %s:\n%s", want, r.Text)
			}
		})
	}
	// A command in a branch that does not run is read all the same: a caller's variable leads there.
	if r := translated(t, "run.sh", "if [ \"$TRAIN\" = 1 ]; then\n  LR=3e-5\n  "+base+"\nfi\n", nil); !strings.Contains(r.Text, "lr: 3e-5") {
		t.Errorf("in a branch:\n%s", r.Text)
	}
	dir := tree(t, map[string]string{"env/common.sh": "LR=4e-5\nsource circle.sh\n", "env/circle.sh": "source common.sh\n",
		"jobs/run.sh": "source $(dirname ${BASH_SOURCE[0]})/../env/common.sh\n" + base})
	checkRecipe(t, filepath.Join(dir, "jobs/run.sh"), Options{}, true, "lr: 4e-5")
}
