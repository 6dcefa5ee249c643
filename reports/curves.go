package reports

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"exp/experiments/store"
	"exp/reports/figure"
)

// curveKind is a metric that a report draws against the training step.
type curveKind struct {
	Name, Title string
	Metric      string // series of the store
	Axis        figure.Axis
	Group       string // gallery
	About       string // what the metric is, in one sentence
	Missing     string // why a run may not have it
	Noisy       bool   // a value per batch: long curves are smoothed
	Start       string // metric of the start's evaluation, drawn as a line to compare with
}

// Galleries of curves; the first four are parts of the section on curves.
const (
	groupLearning  = "Learning"
	groupPolicy    = "The policy"
	groupOptimizer = "Optimization"
	groupMethod    = "What only one method has"
	groupCost      = "Cost"
)

var curveGroups = []string{groupLearning, groupPolicy, groupOptimizer, groupMethod}

func count0(label, unit string) figure.Axis { return figure.Axis{Label: label, Unit: unit, Zero: true} }

const (
	onlyOnline = "eval.online.every_steps is 0"
	onlyFlowRL = "only FlowRL has it"
	onlyCritic = "only PPO has a critic"
	onlyClip   = "only losses that clip the ratio have it"
	onlyMixed  = "only FlowRL with a surrogate beside the balance has it"
	onlyMega   = "only the loss of Megatron-LM has it"
	onlyMix    = "only FlowRL with a surrogate beside the balance has it"
)

// curveKinds are all curves in the order of the report.
var curveKinds = []curveKind{
	{Name: "reward", Title: "Mean reward", Metric: "critic/score/mean", Axis: figure.Axis{Label: "reward"}, Group: groupLearning, Noisy: true,
		About: "The task's reward of the completions sampled in a step, before any KL penalty, mean over the batch (critic/score/mean)"},
	{Name: "accuracy", Title: "Accuracy on validation problems", Metric: "val/pass@1", Axis: count0("accuracy", "share of completions"), Group: groupLearning,
		Missing: onlyOnline, Start: "pass@1",
		About: "Share of right completions on held-out validation problems, sampled from the weights after the step (val/pass@1)"},
	{Name: "train-accuracy", Title: "Accuracy on training batches", Metric: "train/accuracy", Axis: count0("accuracy", "share of completions"), Group: groupLearning, Noisy: true,
		About: "Share of right completions among those sampled for training, before the step's updates (train/accuracy)"},
	{Name: "train-solved", Title: "Problems solved in training batches", Metric: "train/solved", Axis: count0("solved", "share of problems"), Group: groupLearning, Noisy: true,
		About: "Share of a step's problems with at least one right completion (train/solved)"},
	{Name: "val-diversity", Title: "Different right answers on validation problems", Metric: "val/distinct_correct", Axis: count0("right answers", "per problem"),
		Group: groupLearning, Missing: onlyOnline,
		About: "Different right answers among the samples of a validation problem, mean over problems (val/distinct_correct)"},
	{Name: "val-clusters", Title: "Groups of similar solutions on validation problems", Metric: "val/solution_clusters", Axis: count0("effective groups", "per problem"),
		Group: groupLearning, Missing: onlyOnline,
		About: "Effective number of groups of similar texts among the samples of a validation problem, mean over problems (val/solution_clusters)"},
	{Name: "entropy", Title: "Policy entropy", Metric: "actor/entropy", Axis: count0("entropy", "nats per token"), Group: groupPolicy, Noisy: true,
		About: "Entropy of the next-token distribution where tokens were sampled, mean over the batch's tokens (actor/entropy)"},
	{Name: "kl", Title: "Divergence from the reference policy", Metric: "kl/ref_k3", Axis: figure.Axis{Label: "KL to the reference", Unit: "nats per token"}, Group: groupPolicy, Noisy: true,
		Missing: "only methods that use the reference policy compute it",
		About:   "Estimate k3 of KL(policy‖reference) at the sampled tokens, mean over the batch's tokens (kl/ref_k3)"},
	{Name: "length", Title: "Response length", Metric: "response_length/mean", Axis: count0("response length", "tokens"), Group: groupPolicy, Noisy: true,
		About: "Sampled tokens per completion, the end token included, mean over the batch (response_length/mean)"},
	{Name: "truncation", Title: "Truncated responses", Metric: "response_length/clip_ratio", Axis: count0("truncated", "share of completions"), Group: groupPolicy, Noisy: true,
		About: "Share of completions as long as the token limit (response_length/clip_ratio)"},
	{Name: "mismatch", Title: "Sampler against trainer", Metric: "training/rollout_probs_diff_mean", Axis: count0("difference", "probability"), Group: groupPolicy, Noisy: true,
		About: "Absolute difference of the probabilities that sampler and trainer give the sampled tokens, mean over tokens (training/rollout_probs_diff_mean); 0 where both compute the same"},
	{Name: "flowrl-loss", Title: "FlowRL loss", Metric: "actor/final_loss", Axis: figure.Axis{Label: "loss"}, Group: groupOptimizer, Noisy: true, Missing: onlyFlowRL,
		About: "Weighted squared residual of the flow balance, mean over the batch (actor/final_loss)"},
	{Name: "policy-loss", Title: "Clipped policy loss", Metric: "actor/pg_loss", Axis: figure.Axis{Label: "loss"}, Group: groupOptimizer, Noisy: true, Missing: onlyClip,
		About: "Clipped surrogate loss of the policy, aggregated as algo.aggregation says (actor/pg_loss)"},
	{Name: "megatron-loss", Title: "Loss of Megatron-LM", Metric: "lm loss", Axis: figure.Axis{Label: "loss"}, Group: groupOptimizer, Noisy: true, Missing: onlyMega,
		About: "Megatron-LM's GRPO loss with its KL and entropy terms, as it is minimized (lm loss)"},
	{Name: "balance-loss", Title: "Flow balance beside the surrogate", Metric: "actor/tb_loss", Axis: figure.Axis{Label: "loss"}, Group: groupOptimizer, Noisy: true, Missing: onlyMixed,
		About: "The balance's part of FlowRL's loss (actor/tb_loss)"},
	{Name: "surrogate-loss", Title: "Surrogate beside the flow balance", Metric: "actor/ppo_loss", Axis: figure.Axis{Label: "loss"}, Group: groupOptimizer, Noisy: true, Missing: onlyMixed,
		About: "The clipped surrogate's part of FlowRL's loss (actor/ppo_loss)"},
	{Name: "grad-norm", Title: "Gradient norm", Metric: "actor/grad_norm", Axis: count0("gradient norm", ""), Group: groupOptimizer, Noisy: true,
		About: "L2 norm of the gradient before clipping, mean over the step's updates (actor/grad_norm)"},
	{Name: "ppo-kl", Title: "Divergence from the sampling policy", Metric: "actor/ppo_kl", Axis: figure.Axis{Label: "KL to the old policy", Unit: "nats per token"}, Group: groupOptimizer, Noisy: true,
		About: "Estimate k1 of KL(old‖policy) while the step's updates are made, mean over tokens (actor/ppo_kl)"},
	{Name: "clip-fraction", Title: "Clipped tokens", Metric: "actor/pg_clipfrac", Axis: count0("clipped", "share of tokens"), Group: groupOptimizer, Noisy: true, Missing: onlyClip,
		About: "Share of tokens whose probability ratio was clipped in the loss (actor/pg_clipfrac)"},
	{Name: "truncated-above", Title: "Tokens clipped from above", Metric: "rl/truncated_from_above", Axis: count0("clipped", "share of tokens"), Group: groupOptimizer, Noisy: true, Missing: onlyMega,
		About: "Share of tokens whose probability ratio is above the upper clip (rl/truncated_from_above)"},
	{Name: "truncated-below", Title: "Tokens clipped from below", Metric: "rl/truncated_from_below", Axis: count0("clipped", "share of tokens"), Group: groupOptimizer, Noisy: true, Missing: onlyMega,
		About: "Share of tokens whose probability ratio is below the lower clip (rl/truncated_from_below)"},
	{Name: "bounded", Title: "Bounded log-probs", Metric: "actor/clip_rate", Axis: count0("bounded", "share of terms"), Group: groupOptimizer, Noisy: true,
		Missing: "only FlowRL with a bound on its mean log-probs has it", About: "Share of FlowRL's terms whose log-prob was bounded (actor/clip_rate)"},
	{Name: "dropped", Title: "Tokens dropped", Metric: "actor/cispo_mask_ratio", Axis: count0("dropped", "share of tokens"), Group: groupOptimizer, Noisy: true,
		Missing: "only FlowRL with CISPO's mask has it", About: "Share of tokens that the mask of CISPO leaves out of FlowRL's loss (actor/cispo_mask_ratio)"},
	{Name: "weight", Title: "Importance weight", Metric: "actor/importance_weight", Axis: figure.Axis{Label: "importance weight"}, Group: groupMethod, Noisy: true, Missing: onlyFlowRL,
		About: "FlowRL's importance weight of a completion after its limits, mean over the batch (actor/importance_weight)"},
	{Name: "weight-raw", Title: "Importance weight before its limits", Metric: "actor/importance_weight_raw", Axis: figure.Axis{Label: "importance weight"}, Group: groupMethod, Noisy: true, Missing: onlyFlowRL,
		About: "FlowRL's importance weight of a completion before its limits, mean over the batch (actor/importance_weight_raw)"},
	{Name: "rollout-weight", Title: "Weight of sampler against trainer", Metric: "actor/tis_weight", Axis: figure.Axis{Label: "weight"}, Group: groupMethod, Noisy: true,
		Missing: "only FlowRL with a rollout correction has it", About: "Truncated importance weight of trainer over sampler, mean over completions (actor/tis_weight)"},
	{Name: "ratio", Title: "Probability ratio", Metric: "rl/pi_over_pi_old", Axis: figure.Axis{Label: "π / π_old"}, Group: groupMethod, Noisy: true, Missing: onlyMega,
		About: "Ratio of the policy's to the old policy's probability of a sampled token, mean over tokens (rl/pi_over_pi_old)"},
	{Name: "kl-term", Title: "KL term of Megatron-LM's loss", Metric: "rl/kl_term", Axis: figure.Axis{Label: "KL to the reference", Unit: "nats per token"}, Group: groupMethod, Noisy: true, Missing: onlyMega,
		About: "Estimate k3 of KL(policy‖reference) without its coefficient, mean over tokens (rl/kl_term)"},
	{Name: "entropy-term", Title: "Entropy term of Megatron-LM's loss", Metric: "rl/entropy_term", Axis: figure.Axis{Label: "−p ln p"}, Group: groupMethod, Noisy: true, Missing: onlyMega,
		About: "−p ln p of the sampled token, which is no estimate of the entropy, without its coefficient, mean over tokens (rl/entropy_term)"},
	{Name: "log-z", Title: "Learned log partition function", Metric: "actor/log_z", Axis: figure.Axis{Label: "log Z", Unit: "nats"}, Group: groupMethod, Noisy: true, Missing: onlyFlowRL,
		About: "FlowRL's learned log Z of a prompt, mean over the batch (actor/log_z)"},
	{Name: "residual", Title: "Residual of the flow balance", Metric: "actor/residual_abs", Axis: count0("|residual|", ""), Group: groupMethod, Noisy: true, Missing: onlyFlowRL,
		About: "Absolute residual of FlowRL's balance, |log Z + log π − β·reward − log π_ref| with log-probs averaged over tokens, mean over completions (actor/residual_abs)"},
	{Name: "residual-spread", Title: "Spread of the flow balance's residual", Metric: "actor/residual_std", Axis: count0("residual", "standard deviation"), Group: groupMethod, Noisy: true, Missing: onlyFlowRL,
		About: "Sample standard deviation over completions of the residual of FlowRL's balance (actor/residual_std)"},
	{Name: "value-loss", Title: "Value loss", Metric: "critic/vf_loss", Axis: count0("loss", ""), Group: groupMethod, Noisy: true, Missing: onlyCritic,
		About: "Clipped squared error of the critic's values, mean over tokens (critic/vf_loss)"},
	{Name: "value-clip", Title: "Clipped values", Metric: "critic/vf_clipfrac", Axis: count0("clipped", "share of tokens"), Group: groupMethod, Noisy: true, Missing: onlyCritic,
		About: "Share of tokens whose value's change was clipped in the critic's loss (critic/vf_clipfrac)"},
	{Name: "explained-variance", Title: "Explained variance of the critic", Metric: "critic/vf_explained_var", Axis: figure.Axis{Label: "explained variance", Cut: true, Least: -1}, Group: groupMethod, Noisy: true, Missing: onlyCritic,
		About: "1 − Var(return − value) / Var(return) over the batch's tokens: 1 for a perfect critic, 0 for one that knows the mean only (critic/vf_explained_var)"},
	{Name: "throughput", Title: "Throughput", Metric: "perf/throughput", Axis: count0("throughput", "tokens/s"), Group: groupCost, Noisy: true,
		About: "Prompt and completion tokens of a step over its wall-clock time (perf/throughput); it depends on the machine and on what else ran there"},
}

// smoothFrom is the number of points from which a noisy curve is smoothed. Below
// it, each batch is a visible part of the curve.
const smoothFrom = 80

// drawing is the figure, or why it is not drawn.
func (k curveKind) drawing(arms []*arm) drawing {
	a := try(k.Group, k.curve(arms))
	switch {
	case !recorded(arms, k.Metric):
		a.reason = errors.New("no run recorded " + k.Metric)
		if k.Missing != "" {
			a.reason = errors.New("no run recorded " + k.Metric + ": " + k.Missing)
		}
	default:
		if v, ok := constant(arms, k.Metric); ok {
			a.reason = fmt.Errorf("%s is %s at every step of every run", k.Metric, short(v))
		}
	}
	return a
}

func recorded(arms []*arm, metric string) bool {
	return slices.ContainsFunc(arms, func(a *arm) bool {
		return slices.ContainsFunc(a.Runs, func(r *run) bool { return r.curves[metric].N > 0 })
	})
}

// constant is the value that a series has throughout, which a sentence says better
// than a figure; ok is false if there are two, or a series of one point.
func constant(arms []*arm, metric string) (v float64, ok bool) {
	first := true
	for _, a := range arms {
		for _, r := range a.Runs {
			values := r.curves[metric].Values
			for _, x := range values {
				if first {
					v, first = x, false
				}
				if x != v || len(values) == 1 && x != 0 {
					return 0, false
				}
			}
		}
	}
	return v, !first
}

// curve makes a figure of a kind; arms without the metric are left out, and the
// caption says so.
func (k curveKind) curve(arms []*arm) figure.Curve {
	f := figure.Curve{Head: figure.Head{Name: k.Name, Title: k.Title, About: k.About, Order: armNames(arms)},
		X: figure.Axis{Label: "training step"}, Y: k.Axis}
	var without []string
	longest := 0
	for _, a := range arms {
		drawn := figure.Arm{Name: a.Name}
		for _, r := range a.Runs {
			if c, ok := r.curves[k.Metric]; ok && c.N > 0 {
				drawn.Seeds = append(drawn.Seeds, series(c))
				longest = max(longest, len(c.Steps))
			}
		}
		if len(drawn.Seeds) == 0 {
			without = append(without, a.Name)
			continue
		}
		f.Arms = append(f.Arms, drawn)
	}
	if k.Noisy && longest >= smoothFrom {
		f.Smooth = longest/20 | 1 // odd, about a twentieth of the run
	}
	if len(without) > 0 && len(f.Arms) > 0 {
		f.About += ". Not recorded for " + listed(without)
		if k.Missing != "" {
			f.About += ": " + k.Missing
		}
	}
	if k.Start != "" {
		f.Reference = startOf(arms, k.Start)
	}
	return f
}

// series is a curve's points.
func series(c store.Curve) figure.Series {
	s := figure.Series{Y: c.Values}
	for _, step := range c.Steps {
		s.Step = append(s.Step, float64(step))
	}
	return s
}

// startOf is the score that training started from, on the test problems: nil where
// it is unknown, or not the same for all runs.
func startOf(arms []*arm, metric string) *figure.Reference {
	var found *figure.Reference
	for _, a := range arms {
		for _, r := range a.Runs {
			for _, e := range r.evals {
				if !strings.HasSuffix(e.SuiteName, startSuffix) || e.Metric != metric {
					continue
				}
				if found != nil && found.Value != e.Value {
					return nil
				}
				found = &figure.Reference{Name: "start, on test problems", Value: e.Value}
			}
		}
	}
	return found
}

func armNames(arms []*arm) []string {
	names := make([]string, len(arms))
	for i, a := range arms {
		names[i] = a.Name
	}
	return names
}
