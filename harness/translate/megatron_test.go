package translate

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/harness/config"
)

const mathEnvironments = `- agent_type: examples.mine.GSM8KAgent
  agent_args: {answer_format: boxed, format_reward: 0.25, negative_reward: -0.5, partial_end_reward: 0.75}
  weight: 1.0
- agent_type: AIMEAgent
  agent_args: {}
  weight: 0.0
  evaluation_only: true
`

const megatronScript = `source $(dirname ${BASH_SOURCE[0]})/shared.sh
if [ "$(basename "$ENVS")" = "math.yaml" ]; then GROUP=${GROUP:-8}; else GROUP=2; fi
OPTIONS="\
  --seq-length 6000 --inference-max-seq-length 5000 --pretrained-checkpoint $CHECKPOINT --tokenizer-model org/small \
  --lr 2e-6 --min-lr 5e-7 --lr-decay-style cosine --lr-warmup-samples 640 --attention-dropout 0.0 --hidden-dropout 0.0 \
  --langrl-env-config $ENVS --num-layers 4 --swiglu "
torchrun --nproc-per-node=8 --nnodes 2 train_rl.py --perform-rl-step --mock-data \
    --grpo-prompts-per-step 32 --grpo-group-size $GROUP --grpo-iterations 3 --global-batch-size 64 --micro-batch-size 1 \
    --grpo-clamp-eps-lower 0.1 --grpo-clamp-eps-upper=0.3 --grpo-kl-beta 0.0 --grpo-entropy-term-weight 0.01 \
    --grpo-filter-groups-with-same-reward --rl-default-temperature 0.8 --rl-default-top-p 0.9 --rl-default-top-k -1 \
    --rl-partial-rollouts --rl-generation-lag 1.5 --rl-inference-logprobs-is-correction \
    --rl-importance-sampling-truncation-coef 4 --calculate-per-token-loss --train-samples 12800 --save-interval 24 \
    --eval-interval 12 --rl-prompts-per-eval 16 --moe-aux-loss-coeff 0.001 --moe-z-loss-coeff 0.0 --seed 7 \
    --wandb-exp-name "My Run" ${OPTIONS} ${SHARED} $@
`

func megatronTree(t *testing.T) string {
	t.Helper()
	return tree(t, map[string]string{
		"examples/rl/run.sh":    megatronScript,
		"examples/rl/shared.sh": `SHARED="--${PRECISION:-bf16} --adam-beta2 ${BETA:-0.95} --weight-decay 0.1 --recompute-activations"`,
		"examples/math.yaml":    mathEnvironments,
	})
}

// A script of Megatron-LM's: variables, a sourced file, a branch, units of iterations and completions.
func TestMegatron(t *testing.T) {
	dir := megatronTree(t)
	r, err := From(filepath.Join(dir, "examples/rl/run.sh"), Options{Set: map[string]string{"ENVS": "/repo/examples/math.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	// 64 completions are 8 problems; a step has 32/8·3 = 12 updates. 12800 samples are 200 updates, 16 steps;
	// 640 are 10, one step. Of 5000 tokens a prompt has 1024.
	want := `version: 1
name: "my-run"
task:
  kind: math
  math:
    grader: exp
data:
  train:
    source: "hub:openai/gsm8k/main/train-00000-of-00001.parquet@main"
  val:
    source: "hub:openai/gsm8k/main/test-00000-of-00001.parquet@main"
    more: ["hub:Maxwell-Jia/AIME_2024/aime_2024_problems.parquet@main"]
  max_prompt_tokens: 1024
  system: "Think step by step. Put the final answer into \\boxed{}."
model:
  init: pretrained
  base: "hub:org/small@main"
  dtype: bf16
algo:
  kind: megatron_grpo
  epochs: 3
  clip:
    low: 0.1
    high: 0.3
  kl:
    loss_coef: 0.0
  entropy_coef: 0.01
  filter_groups:
    metric: score
    max_batches: 1000
  rollout_correction:
    weights: token
    weight_high: 4
rollout:
  n: 8
  temperature: 0.8
  top_p: 0.9
  max_new_tokens: 3976
  staleness: 2
reward:
  wrong: -0.5
  format: 0.25
train:
  prompts_per_step: 32
  prompts_per_update: 8
  steps: 16
  optim:
    lr: 2e-06
    beta2: 0.95
    weight_decay: 0.1
    warmup_steps: 1
    schedule: cosine
    min_lr_ratio: 0.25
checkpoint:
  every_steps: 2
eval:
  online:
    every_steps: 1
    problems: 16
    temperature: 0.8
  final:
    suites: [val]
    n: 1
    temperature: 0.8
compute:
  device: auto
  micro_batch_tokens: 5000
  recompute: true
`
	if d := cmp.Diff(want, body(r)); d != "" || r.Errs != nil {
		t.Errorf("%v (-want +got)\n%s", r.Errs, d)
	}
	for _, want := range []string{"does not set CHECKPOINT, which --pretrained-checkpoint needs", "partial_end_reward 0.75",
		"Megatron mixes ages; here all completions are 2 steps old", "not offered: --moe-aux-loss-coeff 0.001: experts have no auxiliary loss",
		"--seed 7: seeds are given to exp run, --seeds 7", "the model's own files say what these do: --num-layers --swiglu\n",
		"about other data and losses than RL's: --mock-data\n", "what to write: --moe-z-loss-coeff", "read " + dir, "biases and norms",
		"compute log-probs at temperature 1"} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("no note says %q:\n%s", want, r.Text)
		}
	}
	if _, err := config.Load(config.Input{File: "run.yaml", Data: []byte(r.Text)}); err != nil {
		t.Errorf("the recipe does not load: %v", err)
	}
}

// megatronRecipe translates arguments.
func megatronRecipe(t *testing.T, name, text string) *Recipe {
	t.Helper()
	dir := tree(t, map[string]string{name: text, "count.yaml": "- agent_type: CountdownAgent\n  agent_args: {}\n  weight: 1.0\n" +
		"- agent_type: OpenMathInstructAgent\n  agent_args: {}\n  weight: 1.0\n- agent_type: mine.Other\n  agent_args: {}\n  weight: 1.0\n",
		"maths.yaml": "- {agent_type: DAPOAgent, agent_args: {}, weight: 0.5}\n- {agent_type: BigMathAgent, agent_args: {}, weight: 0.5}\n"})
	r, err := From(filepath.Join(dir, name), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range r.Notes {
		if slices.Contains(r.Notes[:i], n) {
			t.Errorf("the note %q is repeated", n)
		}
	}
	return r
}

// Defaults are Megatron's; arguments may stand in a script's variables, in lines or in a test's configuration.
func TestMegatronForms(t *testing.T) {
	base := "--langrl-env-config count.yaml\n--perform-rl-step\n--tokenizer-model org/m\n--lr 1e-6\n--train-iters 10\n--global-batch-size 64\n"
	yaml := "MODEL_ARGS:\n  --langrl-env-config: count.yaml\n  --perform-rl-step: true\n  --tokenizer-model: ${ROOT}/m\n  --lr: 0.000001\n" +
		"  --train-iters: 10\n  --global-batch-size: 64\n  --lr: 0.000001\n  --bf16: false\n  --rl-inference-parsers: [qwen, other]\n"
	variables := "OPTIONS=\"" + strings.ReplaceAll(base, "\n", " \\\n") + "\"\n"
	for name, text := range map[string]string{"args.txt": base, "model_config.yaml": yaml, "options.sh": variables} {
		t.Run(name, func(t *testing.T) {
			r := megatronRecipe(t, name, text)
			if r.Errs != nil {
				t.Errorf("it is not complete: %v", r.Errs)
			}
			for _, want := range []string{"kind: countdown", "use: all", "Jiayi-Pan/Countdown", "max_samples: 327680",
				"kind: megatron_grpo", "n: 2", "prompts_per_step: 32", "steps: 5\n", "format: 0.1", "max_prompt_tokens: 1024", "max_new_tokens: 1536",
				"OpenMathInstructAgent: a run has one task, countdown", "mine.Other is none of Megatron's examples",
				"schedule: linear", "--hidden-dropout 0.1, Megatron's default",
				"without --calculate-per-token-loss"} {
				if !strings.Contains(r.Text, want) {
					t.Errorf("it lacks %q:\n%s", want, r.Text)
				}
			}
			if told := strings.Contains(r.Text, "not offered: --rl-inference-parsers qwen other: "); told != (name == "model_config.yaml") {
				t.Errorf("a list of values: %t\n%s", told, r.Text)
			}
			for _, absent := range []string{"dtype: bf16", "staleness", "epochs:", "loss_coef", "clip:", "top_p", "--perform-rl-step is not"} {
				if strings.Contains(r.Text, absent) {
					t.Errorf("it has %q, which repeats a default:\n%s", absent, r.Text)
				}
			}
			if lacks := strings.Contains(r.Text, "does not set ROOT, which --tokenizer-model needs"); lacks != (name == "model_config.yaml") {
				t.Errorf("a variable of a test's configuration: %t\n%s", lacks, r.Text)
			}
		})
	}
}

func TestMegatronArguments(t *testing.T) {
	base := "torchrun train_rl.py --perform-rl-step --tokenizer-model org/m --lr 1e-6 --train-iters 100 --global-batch-size 64 " +
		"--langrl-env-config maths.yaml --calculate-per-token-loss --use-checkpoint-args "
	for _, tt := range []struct {
		name, more string
		want       []string
	}{
		{"several files", "", []string{"dapo-math-17k.parquet@main\"\n    more: [\"hub:SynthLabsAI", "suites: []", "several environments", "cuts that request"}},
		{"a mean of each micro-batch", "--no-calculate-per-token-loss --micro-batch-size 1", []string{"aggregation: seq-mean-token-mean"}},
		{"packed", "--no-calculate-per-token-loss --micro-batch-size 1 --rl-use-sequence-packing", []string{"without --calculate-per-token-loss"}},
		{"a flag that is taken back", "--rl-use-sequence-packing --no-rl-use-sequence-packing --no-calculate-per-token-loss --micro-batch-size 1",
			[]string{"aggregation: seq-mean-token-mean"}},
		{"parts of groups", "--grpo-group-size 3", []string{"--global-batch-size 64 is not a multiple", "prompts_per_update: 21\n"}},
		{"a temperature of 0, which Megatron takes for none", "--rl-default-temperature 0", []string{"!temperature: 0"}},
		{"more than a step", "--global-batch-size 640", []string{"more than the 64 completions", "prompts_per_update: 32"}},
		{"no size of an update", "--global-batch-size $NONE", []string{"--global-batch-size is not given", "prompts_per_update: 32"}},
		{"requests in flight", "--rl-partial-rollouts --rl-max-inflight-requests 192", []string{"staleness: 2"}}, // 192/64 − 1
		{"an age that the engine decides", "--rl-partial-rollouts", []string{"takes what its engine can hold"}},
		{"no bound of the weights", "--rl-inference-logprobs-is-correction", []string{"weights: token", "weight_high: 1000000000"}},
		{"half precision", "--fp16", []string{"dtype: bf16", "--fp16: products"}},
		{"another optimizer", "--optimizer lion --lion-beta1 0.9", []string{"--optimizer lion: adamw, sgd and muon", "not offered: --lion-beta1 0.9: adamw"}},
		{"muon", "--optimizer muon --muon-momentum 0.9 --muon-scale-mode unit_rms_norm --muon-num-ns-steps 6 --muon-no-split-qkv",
			[]string{"kind: muon", "momentum: 0.9", "--muon-nesterov is not given", "--muon-scale-mode unit_rms_norm, --muon-extra-scale-factor 1: the scale",
				"--muon-coefficient-type quintic", "--muon-num-ns-steps 6: the iteration", "--muon-no-split-qkv: queries"}},
		{"muon as here", "--optimizer muon --muon-nesterov --muon-extra-scale-factor 0.2 --muon-coefficient-type simple",
			[]string{"kind: muon", "--muon-momentum is not given", "!--muon-nesterov is not", "!--muon-scale-mode", "!--muon-coefficient-type", "!momentum: "}},
		{"sgd", "--optimizer sgd --weight-decay 0.1", []string{"kind: sgd", "momentum: 0.9", "the decay is decoupled", "!beta1"}},
		{"settings of another optimizer", "--muon-momentum 0.9", []string{"not offered: --muon-momentum 0.9: --optimizer is not muon"}},
		{"a rate that is constant in effect", "--min-lr 1e-6", []string{"!lr-decay-style"}},
		{"a style of the rate that we lack", "--lr-decay-style inverse-square-root", []string{"inverse-square-root is not offered: Megatron's rate falls to 0 over 100 iterations"}},
		{"wsd", "--lr-decay-style WSD --lr-decay-iters 50 --lr-warmup-fraction 0.1 --lr-warmup-init 1e-8",
			[]string{"schedule: wsd", "over 50 of its 100 iterations", "warmup_steps: 3", "--lr-warmup-init 1e-08"}}, // 50·0.1 iterations of 2 a step
		{"no value", "--clip-grad --fp8-format", []string{"--clip-grad has no value: Megatron's default, 1.0", "not offered: --fp8-format: products"}},
		{"no number", "--weight-decay much", []string{`--weight-decay is "much", not a number`}},
		{"a command", "--grpo-kl-beta $(compute)", []string{"--grpo-kl-beta is $(compute): only a shell"}},
		{"environments that are not here", "--langrl-env-config none.yaml", []string{"the environments' file none.yaml is not here"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := megatronRecipe(t, "run.sh", base+tt.more)
			for _, want := range tt.want {
				text, absent := strings.CutPrefix(want, "!")
				if strings.Contains(r.Text, text) == absent {
					t.Errorf("%q in\n%s", want, r.Text)
				}
			}
		})
	}
}

// Arguments that Megatron does not have are errors, with the nearest name.
func TestMegatronRefuses(t *testing.T) {
	dir := tree(t, map[string]string{"run.sh": "python train_rl.py --perform-rl-step --grpo-groupsize 4 --no-such-thing --nnodes 2 --lr 1e-6"})
	_, err := From(filepath.Join(dir, "run.sh"), Options{})
	if err == nil || !strings.Contains(err.Error(), "--grpo-groupsize (did you mean --grpo-group-size?)") || !strings.Contains(err.Error(), "--no-such-thing") ||
		strings.Contains(err.Error(), "--nnodes") {
		t.Errorf("%v", err)
	}
}

// Every group of arguments is told apart, and names of ours are in none.
func TestMegatronKinds(t *testing.T) {
	for name, want := range map[string]string{"num-layers": "shape", "no-masked-softmax-fusion": "shape", "disable-bias-linear": "shape",
		"tensor-model-parallel-size": "computing", "no-load-optim": "computing", "rl-inference-tensor-model-parallel-size": "computing",
		"inference-dynamic-batching-buffer-size-gb": "computing", "data-path": "pretraining", "fp8-format": "refused", "grpo-new": "", "rl-new": ""} {
		if got, _ := kindOf(name); got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
	for _, name := range strings.Fields(translatedArgs) {
		if kind, _ := kindOf(name); kind == "" {
			continue
		} else if name != "fp16" && name != "save-interval" && name != "micro-batch-size" && name != "load" && name != "tokenizer-model" &&
			name != "use-checkpoint-args" && name != "inference-max-seq-length" && name != "wandb-exp-name" {
			t.Errorf("--%s is translated and %s", name, kind)
		}
	}
}
