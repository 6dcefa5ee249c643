package config

import (
	"fmt"
	"math/bits"
	"slices"

	"exp/train/rl"
)

func trainChecks() []check {
	return slices.Concat(primeChecks(), trackChecks(), demonstrationChecks(), stepChecks(), lossChecks(),
		advantageChecks(), filterChecks(), correctionChecks(), referenceChecks(), roomChecks(), towerChecks(),
		excludeChecks())
}

// excludeChecks checks the layers without an adapter against those that targets name.
func excludeChecks() []check {
	of := func(block string, lora func(r *Run) LoRA) check {
		targets, exclude := block+".lora.targets", block+".lora.exclude"
		return check{[]string{exclude, targets}, func(r *Run) (string, string) {
			l := lora(r)
			if slices.Contains(l.Targets, AllTargets) {
				return "", ""
			}
			left := slices.Clone(l.Targets)
			for _, name := range l.Exclude {
				if !slices.Contains(l.Targets, name) {
					return fmt.Sprintf("%s has %s, which gets no adapter anyway: %s does not name it", exclude, name,
						targets), "leave it out"
				}
				left = slices.DeleteFunc(left, func(target string) bool { return target == name })
			}
			if len(l.Exclude) > 0 && len(left) == 0 {
				return exclude + " has every layer that " + targets + " names, so none is left for an adapter",
					"leave some of them out"
			}
			return "", ""
		}}
	}
	return []check{
		of("train", func(r *Run) LoRA { return r.Train.LoRA }),
		of("prefer", func(r *Run) LoRA { return r.Prefer.LoRA }),
		of("reward_model", func(r *Run) LoRA { return r.RewardModel.LoRA }),
	}
}

// towerChecks checks what cannot learn together with the vision tower.
func towerChecks() []check {
	dropout := func(key string, lora func(r *Run) LoRA) check {
		return check{[]string{"model.vision", key}, func(r *Run) (string, string) {
			if l := lora(r); r.Model.TrainsTower() && l.Rank > 0 && l.Dropout > 0 {
				return "model.vision: trained, but adapters on the vision tower have no dropout, and " + key +
					" is not 0", key + ": 0, or model.vision: frozen"
			}
			return "", ""
		}}
	}
	return []check{
		dropout("train.lora.dropout", func(r *Run) LoRA { return r.Train.LoRA }),
		dropout("prefer.lora.dropout", func(r *Run) LoRA { return r.Prefer.LoRA }),
		{[]string{"model.vision", "algo.prime.model"}, func(r *Run) (string, string) {
			if r.Model.TrainsTower() && r.Algo.Prime.HasModel() {
				return "model.vision: trained, but the process reward model of another folder reads text alone",
					"algo.prime.model: start"
			}
			return "", ""
		}},
		{[]string{"model.vision", "reward_model.steps"}, func(r *Run) (string, string) {
			if r.Model.TrainsTower() && r.RewardModel.Steps > 0 {
				return "model.vision: trained, but the reward model of reward_model.steps reads text alone",
					"train the reward model in a run of its own, with model.vision: frozen"
			}
			return "", ""
		}},
	}
}

// stepChecks checks the steps of training and their updates.
func stepChecks() []check {
	return []check{
		{[]string{"train.slices"}, func(r *Run) (string, string) {
			if n := r.Train.Slices; n&(n-1) != 0 {
				return fmt.Sprintf("train.slices (%d) is not a power of two", n), fmt.Sprintf("%d or %d", below2(n),
					2*below2(n))
			}
			return "", ""
		}},
		{[]string{"train.prompts_per_update", "train.prompts_per_step"}, func(r *Run) (string, string) {
			if t := r.Train; t.PromptsPerStep%t.PromptsPerUpdate != 0 {
				return fmt.Sprintf("train.prompts_per_update (%d) does not divide train.prompts_per_step (%d)",
						t.PromptsPerUpdate, t.PromptsPerStep),
					"all updates of a step have the same number of problems"
			}
			return "", ""
		}},
		wholeMatrices("train.optim.kind", func(r *Run) string { return r.Train.Optim.Kind }),
		wholeMatrices("sft.optim.kind", func(r *Run) string { return r.SFT.Optim.Kind }),
		wholeMatrices("reward_model.optim.kind", func(r *Run) string { return r.RewardModel.Optim.Kind }),
		wholeMatrices("prefer.optim.kind", func(r *Run) string { return r.Prefer.Optim.Kind }),
		wholeMatrices("algo.critic.optim.kind", func(r *Run) string { return r.Algo.Critic.Optim.Kind }),
		wholeMatrices("algo.prime.optim.kind", func(r *Run) string { return r.Algo.Prime.Optim.Kind }),
		warmup("train.optim.warmup_steps", "train.steps",
			func(r *Run) (int, int) { return r.Train.Optim.WarmupSteps, r.Train.Steps }),
		warmup("sft.optim.warmup_steps", "sft.steps",
			func(r *Run) (int, int) { return r.SFT.Optim.WarmupSteps, r.SFT.Steps }),
		warmup("reward_model.optim.warmup_steps", "reward_model.steps",
			func(r *Run) (int, int) { return r.RewardModel.Optim.WarmupSteps, r.RewardModel.Steps }),
		warmup("prefer.optim.warmup_steps", "prefer.steps",
			func(r *Run) (int, int) { return r.Prefer.Optim.WarmupSteps, r.Prefer.Steps }),
		warmup("algo.critic.optim.warmup_steps", "train.steps",
			func(r *Run) (int, int) { return r.Algo.Critic.Optim.WarmupSteps, r.Train.Steps }),
		warmup("algo.critic.warmup_steps", "train.steps", func(r *Run) (int, int) {
			return r.Algo.Settings.Int(rl.CriticWarmup), r.Train.Steps
		}),
		{[]string{"train.optim.warmup_steps", "algo.critic.warmup_steps", "train.steps"},
			func(r *Run) (string, string) {
				warm, critic, all := r.Train.Optim.WarmupSteps, r.Algo.Settings.Int(rl.CriticWarmup), r.Train.Steps
				if warm == 0 || warm >= all || critic >= all || warm+critic < all {
					return "", "" // fine, or told above
				}
				return fmt.Sprintf("train.optim.warmup_steps (%d) does not end before train.steps (%d): it begins "+
					"after algo.critic.warmup_steps (%d)", warm, all, critic), ""
			}},
	}
}

// wholeMatrices refuses muon where ranks hold parts of matrices.
func wholeMatrices(key string, kind func(r *Run) string) check {
	return check{[]string{key, "compute.tensor_parallel"}, func(r *Run) (string, string) {
		if kind(r) == "muon" && r.Compute.TensorParallel > 1 {
			return fmt.Sprintf("%s: muon needs whole matrices, but compute.tensor_parallel (%d) cuts them", key,
					r.Compute.TensorParallel),
				"compute.tensor_parallel: 1; more --ranks then share the problems, if train.slices is at least as many"
		}
		return "", ""
	}}
}

// roomChecks checks the sizes of pages and micro-batches.
func roomChecks() []check {
	return []check{
		{[]string{"rollout.page_tokens"}, func(r *Run) (string, string) {
			const lanes = 16 // kernels.Lanes, which attention adds at once
			if n := r.Rollout.PageTokens; n%lanes != 0 {
				return fmt.Sprintf("rollout.page_tokens (%d) is not a multiple of %d", n, lanes),
					fmt.Sprintf("%d", (n/lanes+1)*lanes)
			}
			return "", ""
		}},
		{[]string{"compute.micro_batch_tokens", "data.max_prompt_tokens", "rollout.max_new_tokens"},
			func(r *Run) (string, string) {
				if need := r.Data.MaxPromptTokens + r.Rollout.MaxNewTokens; r.Compute.MicroBatchTokens < need {
					return fmt.Sprintf("compute.micro_batch_tokens (%d) is below the longest sequence: "+
							"data.max_prompt_tokens (%d) + rollout.max_new_tokens (%d) = %d",
							r.Compute.MicroBatchTokens, r.Data.MaxPromptTokens, r.Rollout.MaxNewTokens, need),
						"a sequence is never cut: give the micro-batch at least that"
				}
				return "", ""
			}},
	}
}

// below2 returns the largest power of two below n; n is not one.
func below2(n int) int { return 1 << (bits.Len(uint(n)) - 1) }

// warmup checks that the warm-up ends before the steps do. Zero steps mean no training.
func warmup(path, steps string, values func(r *Run) (warm, all int)) check {
	return check{[]string{path, steps}, func(r *Run) (string, string) {
		if warm, all := values(r); all > 0 && warm > 0 && warm >= all {
			return fmt.Sprintf("%s (%d) does not end before %s (%d)", path, warm, steps, all), ""
		}
		return "", ""
	}}
}
