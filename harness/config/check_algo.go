package config

import (
	"fmt"
	"slices"
	"strings"

	"exp/train/rl"
)

// lossChecks checks what a loss needs of the advantages.
func lossChecks() []check {
	return []check{
		{[]string{"algo.kl.loss_weighted", "algo.kl.loss_estimator"}, func(r *Run) (string, string) {
			if k := r.Algo.KL; k.LossWeighted && strings.HasSuffix(k.LossEstimator, "+") {
				return "algo.kl.loss_weighted gives the estimate a gradient of its own, and so does the + of " +
					"algo.kl.loss_estimator (" + k.LossEstimator + ")", "leave one of them out"
			}
			return "", ""
		}},
		{[]string{"rollout.n", "algo.flowrl.reward"}, func(r *Run) (string, string) {
			l, _ := rl.PolicyLossNamed(r.Algo.Loss)
			if e, _ := l.Advantages(r.Algo.Settings); r.Rollout.N < 2 && e.Groups {
				return "rollout.n is 1, but algo.flowrl.reward " + r.Algo.Settings.Word(rl.FlowReward) +
					" compares the completions of a problem", "rollout.n: 2 or more, or algo.flowrl.reward: raw"
			}
			return "", ""
		}},
		{[]string{"algo.flowrl.logz.from", "algo.flowrl.terms", "rollout.n"}, func(r *Run) (string, string) {
			switch s := r.Algo.Settings; {
			case s.Word(rl.FlowLogZFrom) != "group":
			case s.Word(rl.FlowTerms) != "row":
				return "algo.flowrl.logz.from group estimates log Z for completions, but algo.flowrl.terms is " +
					s.Word(rl.FlowTerms), "algo.flowrl.terms: row, or algo.flowrl.logz.from: head"
			case r.Rollout.N < 2:
				return "rollout.n is 1, but algo.flowrl.logz.from group compares the completions of a problem",
					"rollout.n: 2 or more, or algo.flowrl.logz.from: head"
			}
			return "", ""
		}},
		{[]string{"algo.loss", "algo.kind"}, func(r *Run) (string, string) {
			l, _ := rl.PolicyLossNamed(r.Algo.Loss)
			if l.Advantages == nil {
				return "", ""
			}
			own, _ := l.Advantages(rl.Defaults("", l.Name))
			for _, a := range rl.Algorithms() {
				if a.Name == r.Algo.Kind && a.Advantage.Name != "" && a.Advantage.Name != own.Name {
					return fmt.Sprintf("algo.kind %s stands for the advantage %s, but the loss %s brings its own",
						a.Name, a.Advantage.Name, l.Name), "algo.kind: " + l.Name
				}
			}
			return "", ""
		}},
	}
}

// advantageChecks checks what an advantage needs: several completions, parts of a reward, or another teacher.
func advantageChecks() []check {
	return []check{
		{[]string{"rollout.n", "algo.advantage"}, func(r *Run) (string, string) {
			a := r.Algo.Advantage
			if e, _ := rl.EstimatorNamed(a); e.Groups && r.Rollout.N < 2 {
				return "rollout.n is 1, but " + a + " compares the completions of a problem", "rollout.n: 2 or more"
			}
			return "", ""
		}},
		{[]string{"rollout.tools.kind", "algo.advantage"}, func(r *Run) (string, string) {
			e, _ := rl.EstimatorNamed(r.Algo.Advantage)
			switch {
			case !e.Turns || r.Rollout.Tools.Agent():
				return "", ""
			case r.Rollout.Source == "recorded":
				return e.Name + " compares the turns of an agent's episodes, which recorded rollouts do not tell " +
					"apart", "rollout.source: policy with rollout.tools.kind: agent, or algo.kind: grpo"
			}
			return fmt.Sprintf("%s compares the turns of an agent's episodes, but rollout.tools.kind is %s", e.Name,
					r.Rollout.Tools.Kind),
				"rollout.tools: {kind: agent, command: [python3, agent.py]}, with a program of yours (exp config " +
					"explain rollout.tools.conversations), or algo.kind: grpo"
		}},
		{[]string{"algo.advantage", "algo.kind"}, func(r *Run) (string, string) {
			a := r.Algo
			if a.Advantage != rl.NoAdvantage || a.IsTaught() && (a.Distill.Coef > 0 || a.KL.LossCoef > 0) {
				return "", ""
			}
			if a.Distill.Coef == 0 && a.KL.LossCoef == 0 {
				return "algo.advantage none learns nothing from rewards, and nothing else teaches the policy",
					"algo.reference: FOLDER with algo.distill.coef: 1, or another algo.advantage"
			}
			return "the policy would learn from the weights that it starts from: algo.reference is start",
				"algo.reference: FOLDER, a model with the same tokens that knows more"
		}},
		{[]string{"algo.gdpo.weights", "reward.components"}, func(r *Run) (string, string) {
			if n, w := len(r.Reward.Components), len(r.Algo.Settings.Floats(rl.GDPOWeights)); w > 0 && w != n {
				return fmt.Sprintf("algo.gdpo.weights has %d numbers, reward.components %d names", w, n),
					"one weight for each part, or none"
			}
			return "", ""
		}},
		{[]string{"algo.advantage", "reward.components"}, func(r *Run) (string, string) {
			a := r.Algo.Advantage
			if e, _ := rl.EstimatorNamed(a); e.Components && len(r.Reward.Components) == 0 {
				return a + " adds the advantages of the parts of a reward, but reward.components names none",
					"reward.components: [correct, format]"
			}
			return "", ""
		}},
		unreadReward("algo.kl.reward_coef", func(a Algo) bool { return a.KL.RewardCoef > 0 }, "seq_final_reward"),
		unreadReward("algo.overlong.buffer", func(a Algo) bool { return a.Overlong.Buffer > 0 }, "seq_reward",
			"seq_final_reward"),
	}
}

// unreadReward checks that something reads what the key at path subtracts from a reward: the
// advantages, unless they are of the reward's parts or of none, or the filter of groups by one of these metrics.
func unreadReward(path string, set func(a Algo) bool, metrics ...string) check {
	return check{[]string{path, "algo.advantage"}, func(r *Run) (string, string) {
		e, _ := rl.EstimatorNamed(r.Algo.Advantage)
		unread := ""
		switch {
		case e.Components:
			unread = r.Algo.Advantage + " reads its parts alone (reward.components)"
		case e.Name == rl.NoAdvantage:
			unread = "algo.advantage none reads no reward"
		}
		if unread == "" || !set(r.Algo) || slices.Contains(metrics, r.Algo.FilterGroups.Metric) {
			return "", ""
		}
		return fmt.Sprintf("%s changes the reward, but %s", path, unread), path + ": 0"
	}}
}

// filterChecks checks the filter of groups.
func filterChecks() []check {
	return []check{
		{[]string{"algo.filter_groups.low", "algo.filter_groups.high"}, func(r *Run) (string, string) {
			if f := r.Algo.FilterGroups; f.Low > f.High {
				return fmt.Sprintf("algo.filter_groups.low (%g) is above algo.filter_groups.high (%g): no problem "+
					"passes", f.Low, f.High), "PRIME keeps problems with 0.2 to 0.8 of their completions right"
			}
			return "", ""
		}},
		{[]string{"rollout.n", "algo.filter_groups.max_batches"}, func(r *Run) (string, string) {
			if r.Rollout.N < 2 {
				return "rollout.n is 1, but algo.filter_groups compares the completions of a problem",
					"rollout.n: 2 or more, or algo.filter_groups.metric: none"
			}
			return "", ""
		}},
	}
}

// correctionChecks checks the correction for what sampled.
func correctionChecks() []check {
	return []check{
		{[]string{"algo.off_policy_bound", "algo.rollout_correction.mode"}, func(r *Run) (string, string) {
			if r.Algo.OffPolicyBound > 0 && r.Algo.RolloutCorrection.Mode == "bypass" {
				return "algo.off_policy_bound has no effect on the loss of algo.rollout_correction.mode bypass",
					"algo.rollout_correction.reject leaves out completions there"
			}
			return "", ""
		}},
		{[]string{"algo.top_entropy", "algo.rollout_correction.mode"}, func(r *Run) (string, string) {
			if r.Algo.TopEntropy < 1 && r.Algo.RolloutCorrection.Mode == "bypass" {
				return "algo.top_entropy has no effect on the loss of algo.rollout_correction.mode bypass",
					"another mode, or algo.top_entropy: 1"
			}
			return "", ""
		}},
		{[]string{"algo.rollout_correction.weight_low", "algo.rollout_correction.weight_high"},
			func(r *Run) (string, string) {
				if c := r.Algo.RolloutCorrection; c.WeightLow > c.WeightHigh {
					return fmt.Sprintf("algo.rollout_correction.weight_low (%s) is above "+
							"algo.rollout_correction.weight_high (%s)", formatFloat(c.WeightLow),
							formatFloat(c.WeightHigh)),
						""
				}
				return "", ""
			}},
		{[]string{"algo.rollout_correction.reject_bounds", "algo.rollout_correction.reject"},
			func(r *Run) (string, string) {
				c := r.Algo.RolloutCorrection
				if _, err := rl.ParseRejections(strings.Join(c.Reject, ","),
					strings.Join(c.RejectBounds, ",")); err != nil {
					return "algo.rollout_correction.reject_bounds: " + err.Error(),
						"one bound for all of algo.rollout_correction.reject, or one for each"
				}
				return "", ""
			}},
		{[]string{"algo.rollout_correction.mode", "algo.rollout_correction.preset", "algo.loss"},
			func(r *Run) (string, string) {
				c, loss := r.Algo.RolloutCorrection, r.Algo.Loss
				if c.Mode != "bypass" {
					return "", ""
				}
				have, _ := rl.PolicyLossNamed(loss)
				bypass := rl.CorrectionPresets()[c.Preset].Bypass
				forms := losses(func(l rl.PolicyLoss) bool {
					return l.Bypass != 0 &&
						(bypass == 0 || l.Bypass == bypass)
				})
				switch {
				case bypass != 0 && have.Bypass != bypass:
					return fmt.Sprintf("algo.rollout_correction.preset %s is for the loss %s, not for %s", c.Preset,
						forms[0], loss), "algo.loss: " + forms[0]
				case have.Bypass == 0:
					return "algo.rollout_correction.mode is bypass, but the loss " + loss + " does not support it",
						"algo.loss: " + strings.Join(forms, " or ") + ", or algo.rollout_correction.mode: decoupled"
				}
				return "", ""
			}},
	}
}

// referenceChecks checks the reference policy: the start, renewed or not, or teachers.
func referenceChecks() []check {
	return []check{
		{[]string{"algo.teacher_sources", "algo.teachers"}, func(r *Run) (string, string) {
			sources, n := r.Algo.TeacherSources, len(r.Algo.Teachers)
			if len(sources) != n {
				return fmt.Sprintf("algo.teachers has %d models, algo.teacher_sources %d data sources", n,
					len(sources)), "for each teacher the data_source of the problems that it teaches"
			}
			for i, source := range sources {
				if slices.Contains(sources[:i], source) {
					return fmt.Sprintf("algo.teacher_sources has %q twice", source), "one teacher for each"
				}
			}
			return "", ""
		}},
		{[]string{"algo.reference_every", "train.steps"}, func(r *Run) (string, string) {
			if n, steps := r.Algo.ReferenceEvery, r.Train.Steps; n > 0 && steps > 0 && n >= steps {
				return fmt.Sprintf("algo.reference_every (%d) does not end before train.steps (%d): no step would "+
					"see the new reference", n, steps), "a smaller number, or 0: the reference stays the start"
			}
			return "", ""
		}},
		{[]string{"algo.reference_every", "algo.teachers"}, func(r *Run) (string, string) {
			if r.Algo.ReferenceEvery > 0 && len(r.Algo.Teachers) > 0 {
				return "algo.reference_every renews the reference policy, but algo.teachers are other models",
					"algo.reference_every: 0"
			}
			return "", ""
		}},
		{[]string{"algo.reference_every", "algo.advantage"}, func(r *Run) (string, string) {
			if e, _ := rl.EstimatorNamed(r.Algo.Advantage); r.Algo.ReferenceEvery > 0 && e.Process {
				return "algo.reference_every: process rewards are ratios to the reference that their model learns " +
					"against, and would jump with it", "algo.reference_every: 0"
			}
			return "", ""
		}},
		{[]string{"algo.reference_every", "train.lora.rank"}, func(r *Run) (string, string) {
			if r.Algo.ReferenceEvery > 0 && r.Train.LoRA.Rank > 0 {
				return "algo.reference_every: the reference of adapters is the weights under them, which do not " +
					"change", "train.lora.rank: 0, or algo.reference_every: 0"
			}
			return "", ""
		}},
		{[]string{"algo.teacher_key"}, func(r *Run) (string, string) {
			key := r.Algo.TeacherKey
			column, _, _ := strings.Cut(key, ".")
			if key == "" || key == DataSource || slices.Contains(r.Data.Keep, key) ||
				slices.Contains(r.Data.Keep, column) {
				return "", ""
			}
			return fmt.Sprintf("algo.teacher_key %s: problems do not keep the column %s", key, column),
				"data.keep: [" + column + "] (task math only)"
		}},
	}
}

// primeChecks checks the settings of the process reward model.
func primeChecks() []check {
	return []check{
		warmup("algo.prime.optim.warmup_steps", "train.steps",
			func(r *Run) (int, int) { return r.Algo.Prime.Optim.WarmupSteps, r.Train.Steps }),
		{[]string{"algo.prime.prompts_per_update", "train.prompts_per_step"}, func(r *Run) (string, string) {
			if n := r.Algo.Prime.PromptsPerUpdate; r.Train.PromptsPerStep%n != 0 {
				return fmt.Sprintf("algo.prime.prompts_per_update (%d) does not divide train.prompts_per_step (%d)", n,
					r.Train.PromptsPerStep), "all updates of a step have the same number of problems"
			}
			return "", ""
		}},
		{[]string{"algo.prime.model", "train.lora.rank"}, func(r *Run) (string, string) {
			if r.Algo.Prime.HasModel() && r.Train.LoRA.Rank > 0 {
				return "with train.lora the process reward model is adapters on the policy's base, so " +
					"algo.prime.model cannot be another model", "algo.prime.model: start, or train.lora.rank: 0"
			}
			return "", ""
		}},
		{[]string{"algo.prime.model", "algo.teachers"}, func(r *Run) (string, string) {
			if len(r.Algo.Teachers) > 0 {
				return "the rewards of a process reward model are log-ratios to one reference, but algo.teachers " +
					"names others for some problems", "leave algo.teachers out, or take another algo.advantage"
			}
			return "", ""
		}},
		{[]string{"algo.prime.model", "reward.kind"}, func(r *Run) (string, string) {
			if r.Reward.Self() {
				return "the process reward model learns from verdicts, which reward.kind " + r.Reward.Kind +
					" does without", "use algo.advantage grpo or rloo, or another reward.kind"
			}
			return "", ""
		}},
	}
}
