package rl

import (
	"maps"
	"math"
	"slices"
	"sync"
)

// Algorithm is a row of the table of algorithms: an advantage estimator, a policy loss, and
// defaults for configuration keys.
type Algorithm struct {
	Name      string
	Title     string
	Source    string    // paper and equation
	Equation  string    // the part that distinguishes it
	Advantage Estimator // unnamed: none
	Loss      PolicyLoss
	Sets      map[string]any // by key path
}

// Algorithms is the only table of algorithms. Each algorithm's functions are in a file of
// their own; code that chooses by name, lists names or needs a name's settings looks here.
// Keys that a row does not set keep their own defaults. Do not change a row's Sets.
func Algorithms() []Algorithm { return slices.Clone(algorithmTable()) }

var algorithmTable = sync.OnceValue(func() []Algorithm {
	type sets = map[string]any
	with := func(parts ...sets) sets {
		all := sets{}
		for _, p := range parts {
			maps.Copy(all, p)
		}
		return all
	}
	token := sets{"algo.aggregation": "token-mean"}
	clipped := with(token, sets{"algo.clip.low": 0.2, "algo.clip.high": 0.2, "algo.clip.dual": 3.0})
	gae := sets{"algo.gamma": 1.0, "algo.lambda": 1.0}
	scaled := sets{"algo.scale_std": true}
	return []Algorithm{
		{"flowrl", "FlowRL: trajectory balance with a learned partition function",
			"arXiv:2509.15207 (v3), final objective; variants: algo.flowrl.preset",
			"Σ_i w·(log Z + mean logprob - beta·A - mean reference logprob)² / rows",
			Estimator{}, flowRLLoss(), nil},
		{"ppo", "proximal policy optimization with a critic",
			"arXiv:1707.06347 eq. 7; GAE arXiv:1506.02438 eq. 16; dual clip arXiv:1912.09729 eq. 5",
			"max(-A·r, -A·clip(r)); A by GAE, whitened over the step",
			gaeEstimator(), ppoLoss(), with(gae, clipped)},
		{"vc_ppo", "PPO whose critic learns whole returns, alone at first", "arXiv:2503.01491",
			"as ppo, with returns by lambda 1 and advantages by lambda 0.95; the paper's critic learns alone for " +
				"100 steps: critic.warmup_steps",
			gaeEstimator(), ppoLoss(), with(gae, clipped, sets{"algo.lambda": 0.95, "algo.critic.lambda": 1.0})},
		{"vapo", "VC-PPO with a lambda that grows with length, clip-higher and a loss on right completions",
			"arXiv:2504.05118 §4",
			"as vc_ppo, A by lambda 1 - 1/(alpha·length); plus sft_weight · the mean -logprob of right completions; " +
				"the paper's critic learns alone for 50 steps",
			gaeEstimator(), ppoLoss(), with(gae, clipped, sets{"algo.lambda_alpha": 0.05, "algo.critic.lambda": 1.0,
				"algo.clip.high": 0.28, "algo.clip.dual": math.Inf(1), "algo.sft_weight": 0.1})},
		{"pf_ppo", "PPO on completions resampled by their scores", "arXiv:2409.06957",
			"as ppo, on rows resampled with weight |S|^power",
			gaeEstimator(), ppoLoss(), with(gae, clipped,
				sets{"algo.pf_ppo.method": "pow", "algo.pf_ppo.power": 2.0})},
		{"grpo", "group relative policy optimization", "arXiv:2402.03300 §4.1.2",
			"A = (S - mean)/std; loss as ppo; the paper's KL term is algo.kl.loss_coef, 0 as in verl",
			groupEstimator(), ppoLoss(), with(scaled, clipped)},
		{"dr_grpo", "GRPO without its length and difficulty biases", "arXiv:2503.20783",
			"A = S - mean; loss as ppo, summed over a completion and divided by a constant length",
			groupEstimator(), ppoLoss(), with(scaled, clipped,
				sets{"algo.scale_std": false, "algo.aggregation": "seq-mean-token-sum-norm"})},
		{"luffy", "GRPO with a demonstration in each group, LUFFY", "arXiv:2504.14945 §3, settings of its code",
			"A = S - mean of a group whose last completion is the problem's target; -A·r, not clipped, for the " +
				"policy's tokens, -A·p/(p + demonstrations.shaping) for the target's",
			groupEstimator(), ppoLoss(), with(scaled, sets{"algo.scale_std": false,
				"algo.aggregation": "seq-mean-token-sum-norm", "algo.clip.low": 1.0, "algo.clip.high": math.Inf(1),
				"algo.clip.dual": math.Inf(1), "algo.demonstrations.weight": 1.0})},
		{"gigpo", "GRPO of an agent's episodes and, within them, of turns in the same state (GiGPO)",
			"arXiv:2505.10978 eq. 3 to 8",
			"A = (S - mean)/std + gigpo.weight·(R - mean)/std, R the return of the turn and the second mean and std " +
				"of turns in the same state; loss as ppo; needs rollout.tools.kind: agent",
			gigpoEstimator(), ppoLoss(), with(scaled, clipped)},
		{"grpo_process", "GRPO with process supervision: a reward for each step of an answer",
			"arXiv:2402.03300 §4.1.3",
			"A = (O - mean)/std + grpo_process.weight·Σ (r - mean)/std of the steps that end at the token or later, " +
				"O the outcome's part of S, the second mean and std of all steps of the problem's completions; loss " +
				"as ppo; needs rewards of steps: reward.credit",
			processEstimator(), ppoLoss(), with(scaled, clipped)},
		{"pure", "PURE: the worst step to come is the return, over a token-level baseline", "arXiv:2504.15275",
			"A = R - the others' Σ R / length limit + (O - mean O of the others), R the sum to come of rewards " +
				"r·softmax(-r/reward.step_temperature), about min r; loss as ppo; needs reward.credit: min",
			pureEstimator(), ppoLoss(), clipped},
		{"dapo", "GRPO with clip-higher, a mean over tokens, group filtering with refill, overlong shaping",
			"arXiv:2503.14476 §3.1 to §3.4, eq. 13",
			"as grpo; groups all right or all wrong are replaced; S less a penalty in the last fifth of the length",
			groupEstimator(), ppoLoss(), with(scaled, clipped, sets{"algo.clip.high": 0.28, "algo.clip.dual": 10.0,
				"algo.filter_groups.metric": "acc", "algo.filter_groups.max_batches": 10, "algo.overlong.buffer": 0.2,
				"algo.overlong.penalty": 1.0})},
		{"gspo", "group sequence policy optimization", "arXiv:2507.18071 eq. 5, bounds §5.1",
			"max(-A·s, -A·clip(s)), s = exp(mean D) of the completion",
			groupEstimator(), gspoLoss(), with(scaled,
				sets{"algo.clip.low": 3e-4, "algo.clip.high": 4e-4, "algo.aggregation": "seq-mean-token-mean"})},
		{"sapo", "soft adaptive policy optimization", "arXiv:2511.20347",
			"-A·sigmoid(tau·(r - 1))·4/tau, tau = tau_pos if A > 0 else tau_neg",
			groupEstimator(), sapoLoss(), with(scaled,
				sets{"algo.sapo.tau_pos": 1.0, "algo.sapo.tau_neg": 1.05, "algo.aggregation": "seq-mean-token-mean"})},
		{"gmpo", "geometric-mean policy optimization", "arXiv:2507.20673",
			"Σ_i -A·exp(mean of D, bounded to [-clip.low, clip.high] on the side of A) / rows",
			groupEstimator(), gmpoLoss(), with(scaled, token, sets{"algo.clip.low": 0.4, "algo.clip.high": 0.4})},
		{"cispo", "clipped importance sampling, MiniMax-M1", "arXiv:2506.13585 eq. 4",
			"-sg(clip(r))·A·logprob; no lower bound, as in the paper; verl takes PPO's: algo.clip.low=0.2",
			groupEstimator(), cispoLoss(), with(scaled, token, sets{"algo.clip.low": 1.0, "algo.clip.high": 0.2})},
		{"clip_cov", "PPO's loss minus some high-covariance tokens", "arXiv:2505.22617 eq. 11",
			"as ppo without dual clip, 0 on a random share of tokens with cov.low < cov(A, logprob) < cov.high",
			groupEstimator(), clipCovLoss(), with(scaled, token, sets{"algo.clip.low": 0.2, "algo.clip.high": 0.2,
				"algo.cov.ratio": 2e-4, "algo.cov.low": 1.0, "algo.cov.high": 5.0})},
		{"kl_cov", "policy gradient with a KL penalty on high-covariance tokens", "arXiv:2505.22617 eq. 13",
			"-A·r, + cov.kl_weight·|D| on the share of tokens with the greatest cov(A, logprob)",
			groupEstimator(), klCovLoss(), with(scaled, token,
				sets{"algo.cov.ratio": 2e-4, "algo.cov.kl_weight": 0.1})},
		{"dppo_tv", "trust region on probabilities, by total variation", "arXiv:2602.04879 eq. 11 to 14",
			"-sg(min(r, clip.dual))·A·logprob, 0 once p - p_old is above clip.high (A > 0) or below -clip.low; " +
				"verl's effective clip.dual is 3",
			groupEstimator(), dppoLoss("dppo_tv", BinaryTV),
			with(scaled, token, sets{"algo.clip.low": 0.2, "algo.clip.high": 0.2, "algo.clip.dual": 20.0})},
		{"dppo_kl", "trust region on probabilities, by binary KL", "arXiv:2602.04879 eq. 11 to 14",
			"-sg(min(r, clip.dual))·A·logprob, 0 once the KL of the coin p_old from p is above clip.high with p " +
				"risen (A > 0), or clip.low with p fallen; verl's effective clip.dual is 3",
			groupEstimator(), dppoLoss("dppo_kl", BinaryKL),
			with(scaled, token, sets{"algo.clip.low": 0.2, "algo.clip.high": 0.2, "algo.clip.dual": 20.0})},
		{"dro", "direct reward optimisation", "arXiv:2405.19107",
			"-(A·logprob - dro.beta/2·D²); dro.beta has no published default",
			groupEstimator(), droLoss(), with(scaled, token)},
		{"gvpo", "group variance policy optimization", "arXiv:2504.19599",
			"Σ_i x²/2·n/(n-1)/rows, x = beta·ΣD - its mean in the group - A, A = S - mean; D to the old policy",
			groupEstimator(), gvpoLoss(), with(token, sets{"algo.scale_std": false, "algo.gvpo.beta": 0.1,
				"algo.gvpo.reference": "old", "algo.gvpo.centered": true})},
		{"tba", "trajectory balance with log Z from the group (VarGrad), as in TBA",
			"arXiv:2503.18929, arXiv:2010.10436",
			"as gvpo, with D to the reference policy: beta²/2 times the squared residuals; beta differs by task",
			groupEstimator(), gvpoLoss(), with(token, sets{"algo.scale_std": false, "algo.gvpo.beta": 0.1,
				"algo.gvpo.reference": "ref", "algo.gvpo.centered": true})},
		{"opmd", "online policy mirror descent, Kimi k1.5", "arXiv:2501.12599 §2.3",
			"as gvpo without the mean of the group: Σ_i (beta·ΣD - A)²/2 / rows; beta (tau) is not published",
			groupEstimator(), gvpoLoss(), with(token, sets{"algo.scale_std": false, "algo.gvpo.beta": 0.1,
				"algo.gvpo.reference": "old", "algo.gvpo.centered": false})},
		{"sppo", "self-play preference optimization, with rewards as in verl's recipe", "arXiv:2405.00675 alg. 1",
			"Σ_i (ΣD - A)²/2 / rows, A = eta·S - log of the step's mean exp(eta·S); verl's loss is twice that",
			softMeanEstimator(), gvpoLoss(), with(token, sets{"algo.sppo.eta": 1.0, "algo.gvpo.beta": 1.0,
				"algo.gvpo.reference": "old", "algo.gvpo.centered": false})},
		{"dpo", "direct preference optimization, online: the best completion of a group against the worst",
			"arXiv:2305.18290 eq. 7; online arXiv:2402.04792; algo.dpo.loss ipo: arXiv:2310.12036 eq. 17",
			"Σ_pairs -log σ(beta·(ΣD_best - ΣD_worst)) / pairs, D to the reference policy",
			groupEstimator(), dpoLoss(), with(token, sets{"algo.scale_std": false, "algo.dpo.beta": 0.1,
				"algo.dpo.reference": "ref", "algo.dpo.loss": "sigmoid", "algo.dpo.smoothing": 0.0})},
		{"gpg", "group policy gradient", "arXiv:2504.02546",
			"-A·logprob, A = (S - mean)·rows/(rows with S ≠ 0)",
			gpgEstimator(), reinforceLoss(), token},
		{"reinforce_plus_plus", "REINFORCE++", "arXiv:2501.03262",
			"A = discounted return, whitened over the step; loss as ppo",
			reinforcePlusPlusEstimator(), ppoLoss(), with(clipped, sets{"algo.gamma": 1.0})},
		{"reinforce_plus_plus_baseline", "REINFORCE++ with the group mean as baseline", "arXiv:2501.03262",
			"A = S - mean, whitened over the step; loss as ppo",
			reinforcePlusPlusBaselineEstimator(), ppoLoss(), clipped},
		{"remax", "REINFORCE with the greedy completion as baseline", "arXiv:2310.10505 alg. 1",
			"A = return - S of the greedy completion; loss as ppo, the paper's on the first update of a step",
			reMaxEstimator(), ppoLoss(), clipped},
		{"rloo", "REINFORCE leave-one-out", "arXiv:2402.14740",
			"A = S - mean of the others; loss as ppo, the paper's on the first update of a step",
			rlooEstimator(false), ppoLoss(), clipped},
		{"prime", "process reinforcement through implicit rewards of a reward model that learns online",
			"arXiv:2502.01456 alg. 1; advantages as in verl's recipe prime",
			"A = return, whitened over the step: outcome_coef·(S - mean of the others) + process_coef·Σ_{s≥t} " +
				"(r_s·n/(n-1) - Σ_j mean r_j/(n-1)), r = beta·(reward model's logprob - reference logprob); loss as " +
				"ppo",
			primeEstimator(), ppoLoss(), with(clipped, sets{"algo.filter_groups.metric": "acc",
				"algo.filter_groups.max_batches": 4, "algo.filter_groups.low": 0.2, "algo.filter_groups.high": 0.8})},
		{"spo", "single-stream policy optimization: one completion per problem, against its tracked value",
			"arXiv:2509.13232, as in verl's recipe spo",
			"A = S - v, whitened over the step's completions; v = alpha/(alpha + beta) of the problem, both decayed " +
				"by its next visit; problems drawn by sqrt(v(1 - v)); loss as ppo; needs rollout.n: 1",
			trackedEstimator(), ppoLoss(), with(clipped, sets{"algo.clip.high": 0.28, "algo.clip.dual": 10.0})},
		{"opo", "on-policy RL with the optimal reward baseline", "arXiv:2505.23585",
			"A = S - Σ length·S / Σ length; loss as ppo",
			opoEstimator(), ppoLoss(), clipped},
		{"gdpo", "GRPO on several rewards, each standardised separately", "arXiv:2601.05242",
			"A = Σ_k weight_k·(S_k - mean_k)/std_k over reward.components, whitened over the step; loss as ppo",
			gdpoEstimator(), ppoLoss(), with(clipped,
				sets{"algo.scale_std": true, "reward.components": []string{"correct", "format"}})},
		{"otb", "policy gradient with an optimal baseline per token",
			"Li et al., The Optimal Token Baseline, PMLR v306 (2026)",
			"A = return - Σ W·return / Σ W over the group, W the sum up to the token of 1 - 2p + Σ_v p(v)²; loss as " +
				"ppo",
			tokenBaselineEstimator(false), ppoLoss(), clipped},
		{"grpo_passk", "GRPO for pass@k", "arXiv:2503.19595",
			"A = (S - second)/std for the best completion, 0 for the others; loss as ppo",
			passKEstimator(), ppoLoss(), with(clipped, sets{"algo.scale_std": true})},
		{"grpo_std_floor", "GRPO that damps groups of nearly equal rewards (verl's old grpo_vectorized)",
			"verl-project/verl #3635, until #6348",
			"A = (S - mean)/(max(std, 1e-3) + 1e-6); loss as ppo",
			flooredGroupEstimator(), ppoLoss(), clipped},
		{"distill", "on-policy distillation from a teacher (algo.reference)",
			"arXiv:2306.08543; Lu et al., On-Policy Distillation, Thinking Machines Lab 2025",
			"A = distill.coef·(reference logprob - old logprob) of each token; loss as ppo",
			noEstimator(), ppoLoss(), with(clipped, sets{"algo.distill.coef": 1.0})},
		{"megatron_grpo", "GRPO as in Megatron-LM", "megatron/rl/rl_utils.py at d98e8a64dd",
			"-min(r·A, clip(r)·A) + kl.loss_coef·k3 + entropy_coef·p·log p; A = (S - mean)/(std + 1e-4), std of the " +
				"population",
			megatronEstimator(), megatronLoss(),
			with(token, sets{"algo.epochs": 2, "algo.clip.low": 0.01, "algo.clip.high": 0.01,
				"algo.kl.loss_coef": 0.001, "algo.entropy_coef": 0.0})},
	}
})

// Estimators are the advantage estimators of the table and those chosen only by their own
// name.
func Estimators() []Estimator { return slices.Clone(estimatorTable()) }

var estimatorTable = sync.OnceValue(func() []Estimator {
	var list []Estimator
	known := map[string]bool{"": true}
	add := func(e Estimator) {
		if !known[e.Name] {
			known[e.Name] = true
			list = append(list, e)
		}
	}
	for _, a := range algorithmTable() {
		add(a.Advantage)
	}
	add(groupVectorizedEstimator())
	add(rlooEstimator(true))
	add(tokenBaselineEstimator(true))
	add(batchScaledEstimator())
	add(scoreEstimator())
	return list
})

// EstimatorNamed returns the named estimator and whether it exists.
func EstimatorNamed(name string) (Estimator, bool) {
	for _, e := range estimatorTable() {
		if e.Name == name {
			return e, true
		}
	}
	return Estimator{}, false
}

// PolicyLosses are the losses of the table.
func PolicyLosses() []PolicyLoss { return slices.Clone(policyLossTable()) }

var policyLossTable = sync.OnceValue(func() []PolicyLoss {
	var list []PolicyLoss
	known := map[string]bool{}
	for _, a := range algorithmTable() {
		if !known[a.Loss.Name] {
			known[a.Loss.Name] = true
			list = append(list, a.Loss)
		}
	}
	return list
})

// PolicyLossNamed returns the named loss and whether it exists.
func PolicyLossNamed(name string) (PolicyLoss, bool) {
	for _, l := range policyLossTable() {
		if l.Name == name {
			return l, true
		}
	}
	return PolicyLoss{}, false
}
