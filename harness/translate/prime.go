package translate

import (
	"math"
	"strconv"
	"strings"
)

// processModel is the block of the process reward model in verl's recipe prime.
const processModel = "reward_model.model."

// primeDefaults returns what the recipe's own file has beyond verl's base (verl-recipe at 48ea0a7).
func primeDefaults() overrides {
	return overrides{"data.filter_accuracy": "True", "data.accuracy_lower_bound": "0.2",
		"data.accuracy_upper_bound": "0.8", "data.oversample_factor": "4.0", "data.filter_truncate": "True",
		"data.truncation": "right", rollout + "n": "4", actor + "entropy_coeff": "0.001",
		"reward_model.enable": "True", processModel + "update": "before", processModel + "optim.lr": "1e-6",
		processModel + "optim.weight_decay": "0.", processModel + "optim.grad_clip": "10.0",
		processModel + "beta_train": "0.05", processModel + "loss_type": "ce",
		"reward_model.prime_granularity": "token", "reward_model.prime_norm": "batch_norm",
		"reward_model.mini_batch_size": "${" + actor + "ppo_mini_batch_size}",
		"reward_model.reward_manager":  "prime", "algorithm.adv_estimator": "rloo",
		"algorithm.reward_gt_coef": "5", "algorithm.reward_dpo_coef": "5"}
}

// oversampled returns how many times its problems a step draws.
func (t *verl) oversampled() float64 {
	if !t.prime {
		return 1
	}
	return max(1, t.number("data.oversample_factor", 1))
}

// processReward translates the settings of verl's recipe prime, after the algorithm and the KL terms.
func (t *verl) processReward(estimator string) {
	if estimator != "rloo" {
		t.note("algorithm.adv_estimator %s: the recipe prime knows rloo alone, which is in algo.kind prime", estimator)
	}
	if !t.on("reward_model.enable", true) {
		t.note("reward_model.enable is false: algo.kind prime has a process reward model; without one it is " +
			"algo.kind rloo")
	}
	t.putNumber("algo.prime.outcome_coef", t.number("algorithm.reward_gt_coef", 0))
	t.putNumber("algo.prime.process_coef", t.number("algorithm.reward_dpo_coef", 0))
	t.putNumber("algo.prime.beta", t.number(processModel+"beta_train", 0.05))
	t.put("algo.prime.loss", t.text(processModel+"loss_type", "ce"))
	t.put("algo.prime.granularity", t.text("reward_model.prime_granularity", "token"))
	norm := "none"
	if t.text("reward_model.prime_norm", "batch_norm") == "batch_norm" {
		norm = "batch"
	}
	t.put("algo.prime.norm", norm)
	t.processOrder()
	if lambda := t.number("reward_model.lambda", 0); lambda != 0 {
		t.note("reward_model.lambda %g: a token's process reward is its own log-ratio here", lambda)
	}
	if heat := t.number(rollout+"temperature", 1); heat != 1 {
		t.note("%stemperature %g divides the logits of the process reward model and its reference, too; in verl they "+
			"stay", rollout, heat)
	}
	t.processWeights()
	t.processOptimizer()
	t.processBatch()
	for key := range t.in { // how the model is held, and what the resolved file has of it
		name := strings.TrimPrefix(key, "reward_model.")
		part, _, _ := strings.Cut(strings.TrimPrefix(name, "model."), ".")
		switch part {
		case "ref_type", "tokenizer_path", "enable_gradient_checkpointing", "input_tokenizer", "use_remove_padding",
			"use_fused_kernels", "fused_kernel_options", "fsdp_config", "prime_use_gt":
			t.used[key] = t.used[key] || name != key
		}
	}
}

// processOrder translates when the process reward model learns.
func (t *verl) processOrder() {
	switch order := t.text(processModel+"update", "none"); order {
	case "before":
		t.put("algo.prime.update", "before")
	case "after", "reverse":
		t.put("algo.prime.update", "after")
		t.note("%supdate %s: here a step's process rewards come before its updates; in verl a mini-batch's "+
			"come after the updates of the earlier ones", processModel, order)
	default:
		t.note("%supdate %s: the process reward model always learns here", processModel, order)
	}
}

// processWeights translates the models that the process reward model starts from and is compared with.
func (t *verl) processWeights() {
	base := t.text(policy+"path", "")
	path := t.text(processModel+"path", base)
	ref := path
	if key := processModel + "ref_path"; t.in[key] == "${"+processModel+"path}" { // of the recipe's own file
		t.used[key] = true
	} else {
		ref = t.text(key, path)
	}
	if path != base {
		t.putText("algo.prime.model", weights(path))
	}
	if ref == base {
		return
	}
	t.putText("algo.reference", weights(ref))
	if t.on(actor+"use_kl_loss", false) {
		t.note("%suse_kl_loss: the policy's one reference here is the process reward model's, %s",
			actor, ref)
	}
}

// processOptimizer translates the optimizer, whose rate verl keeps constant after its warm-up.
func (t *verl) processOptimizer() {
	const from, to = processModel + "optim.", "algo.prime.optim."
	t.optimizer(from, to, "1e-6")
	t.put(to+"grad_clip", t.text(from+"grad_clip", "10.0"))
	if kind := t.out[to+"schedule"]; kind != "constant" {
		t.note("%slr_scheduler_type %s has no effect in verl", from, kind)
	}
	t.put(to+"schedule", "constant")
	delete(t.out, to+"min_lr_ratio")
	if t.number(from+"lr_warmup_steps", -1) < 0 {
		delete(t.out, to+"warmup_steps") // a share of steps that verl does not know
	}
}

// processBatch translates the mini-batches of the process reward model, which verl counts in completions.
func (t *verl) processBatch() {
	n := t.number(rollout+"n", 1)
	rows := t.number("reward_model.mini_batch_size", 256)
	all := float64(t.problems())
	problems := min(all, max(1, math.Floor(rows/n)))
	for math.Mod(all, problems) != 0 {
		problems--
	}
	t.put("algo.prime.prompts_per_update", strconv.Itoa(int(problems)))
	if problems*n != rows && rows < all*n {
		t.note("reward_model.mini_batch_size %g counts completions: here an update has %g problems of %g each", rows,
			problems, n)
	}
}

// filterAccuracy translates the filters of the recipe prime, which draws data.oversample_factor times the problems of
// a step and prefers those that pass.
func (t *verl) filterAccuracy() {
	accuracy, complete := t.on("data.filter_accuracy", false), t.on("data.filter_truncate", false)
	low, high := t.number("data.accuracy_lower_bound", 0), t.number("data.accuracy_upper_bound", 1)
	if !accuracy && !complete {
		t.put("algo.filter_groups.metric", "none")
		return
	}
	t.put("algo.filter_groups.metric", "acc")
	t.putNumber("algo.filter_groups.max_batches", math.Ceil(t.oversampled()))
	t.put("algo.filter_groups.complete", strconv.FormatBool(complete))
	if accuracy {
		t.putNumber("algo.filter_groups.low", low)
		t.putNumber("algo.filter_groups.high", high)
		return
	}
	t.putNumber("algo.filter_groups.low", 0)
	t.putNumber("algo.filter_groups.high", 1)
	t.note("data.filter_accuracy is false: a filter for data.filter_truncate also replaces problems that all or no " +
		"completions solve")
}
