package translate

import (
	"cmp"
	"strconv"
	"strings"
)

// The algorithm of a script for verl: estimator, loss, bounds, KL terms and rollout correction.

// estimators maps verl's advantage estimators to the algorithm, or to estimators of GRPO.
var estimators = map[string]string{"gae": "ppo", "grpo": "grpo", "reinforce_plus_plus": "reinforce_plus_plus",
	"reinforce_plus_plus_baseline": "reinforce_plus_plus_baseline", "remax": "remax", "rloo": "rloo", "opo": "opo",
	"grpo_passk": "grpo_passk", "gpg": "gpg", "gdpo": "gdpo", "tir_optimal_token_baseline": "otb",
	"gigpo": "gigpo"}

// lossModes maps verl's policy losses to ours where their names differ.
var lossModes = map[string]string{"vanilla": "ppo", "gpg": "reinforce", "geo_mean": "gmpo", "bypass_mode": "ppo"}

func (t *verl) algorithm() {
	estimator := t.text("algorithm.adv_estimator", "gae")
	kind, ok := estimators[estimator]
	if !ok {
		kind = "grpo"
		t.put("algo.advantage", estimator)
	}
	switch on := t.on("algorithm.use_pf_ppo", false); {
	case on && estimator != "gae":
		t.note("algorithm.use_pf_ppo has no effect in verl with the estimator %s", estimator)
	case on:
		kind = "pf_ppo"
		t.put("algo.pf_ppo.method", t.text("algorithm.pf_ppo.reweight_method", "pow"))
		t.putNumber("algo.pf_ppo.power", t.number("algorithm.pf_ppo.weight_pow", 2))
	}
	loss := t.text(actor+"policy_loss.loss_mode", "vanilla")
	if ours, ok := lossModes[loss]; ok {
		loss = ours
	}
	if t.flow {
		kind, loss = "flowrl", "flowrl"
		delete(t.out, "algo.advantage")
		t.flowRL(estimator)
	}
	if t.sppo {
		kind, loss = "sppo", "gvpo"
		delete(t.out, "algo.advantage")
		t.selfPlay()
	}
	if t.spin {
		kind, loss = "dpo", "dpo"
		delete(t.out, "algo.advantage")
		t.preferences()
	}
	if t.prime {
		kind, loss = "prime", "ppo"
		delete(t.out, "algo.advantage")
		t.processReward(estimator)
	}
	if t.spo {
		kind = "spo"
		delete(t.out, "algo.advantage")
		t.singleStream()
	}
	if kind == "gigpo" {
		t.stepGroups()
	}
	if key := "algorithm.norm_adv_by_std_in_grpo"; estimator == "gdpo" && !t.on(key, true) {
		t.put("algo.scale_std", "true")
		t.note("%s has no effect in verl with the estimator gdpo", key)
	}
	t.put("algo.kind", kind)
	t.put("algo.loss", loss)
	ratio := actor + "policy_loss." + map[bool]string{true: "kl_cov_ratio", false: "clip_cov_ratio"}[loss == "kl_cov"]
	t.putNumber("algo.cov.ratio", t.number(ratio, 0.0002))
	t.clip()
	if loss == "gvpo" && !t.sppo {
		t.note("verl's GVPO sums the rows of each micro-batch, %sppo_micro_batch_size_per_gpu, and takes the mean of "+
			"the sums: its gradient is larger by that size over rollout.n, which shows where "+
			"train.optim.grad_clip acts", actor)
	}
	for key, ours := range map[string]string{"loss_scale_factor": "algo.loss_scale_factor",
		"policy_loss.dro_beta": "algo.dro.beta", "gvpo_beta": "algo.gvpo.beta"} {
		if value := t.text(actor+key, ""); value != "" {
			t.put(ours, value)
		}
	}
}

// singleStream translates the settings of verl's recipe spo.
func (t *verl) singleStream() {
	const at = "trainer.spo."
	least, fixed := t.number(at+"rho.clip_lower", 0.875), t.number(at+"rho.value", 0.875)
	if t.text(at+"rho.type", "kl") == "constant" {
		t.putNumber("algo.spo.rho_min", fixed)
		t.putNumber("algo.spo.rho_max", fixed)
		if least != fixed {
			t.note("%srho.clip_lower %g is of the first values alone in verl, where rho is %g: here they weigh "+
				"1/(1 - algo.spo.rho_min) completions", at, least, fixed)
		}
	} else {
		t.putNumber("algo.spo.rho_min", least)
	}
	t.putNumber("algo.spo.first", t.number(at+"offline_N", 8))
	if file := t.text(at+"offline_values", ""); file != "" {
		t.note("%soffline_values %s: first values are not read here, but sampled before training, algo.spo.first "+
			"completions of every problem", at, file)
	}
	delete(t.out, "data.order") // problems are drawn
	if n := t.number(rollout+"n", 1); n != 1 {
		t.put("rollout.n", "1")
		t.note("%sn is %g: verl's SPO would count each completion as a visit; here a problem has one", rollout, n)
	}
}

// selfPlay translates the settings of verl's SPPO, which has eta twice: in the soft mean and in the loss.
func (t *verl) selfPlay() {
	eta, mean := t.number(actor+"sppo_eta", 1), t.number("algorithm.sppo_eta", 1)
	t.putNumber("algo.sppo.eta", eta)
	if mean != eta {
		t.note("algorithm.sppo_eta is %v, but %ssppo_eta %v: here the soft mean of the rewards has the latter, too",
			mean, actor, eta)
	}
	t.note("verl's SPPO has twice the loss, which shows where train.optim.grad_clip acts or other terms are added")
}

// preferences translates the settings of verl's recipe spin, whose reference policy is a copy that it renews.
func (t *verl) preferences() {
	t.putNumber("algo.dpo.beta", t.number("algorithm.dpo_beta", 0.1))
	form := t.text("algorithm.dpo_loss_type", "sigmoid")
	t.put("algo.dpo.loss", form)
	if form == "sigmoid" {
		t.putNumber("algo.dpo.smoothing", t.number("algorithm.dpo_label_smoothing", 0))
	}
	switch every := t.number("trainer.ref_update_freq", 1); {
	case every == 1:
		t.put("algo.dpo.reference", "old")
	case every > 1:
		t.putNumber("algo.reference_every", every)
		t.note("trainer.ref_update_freq is %v: verl renews the reference policy before the steps of such numbers, "+
			"here algo.reference_every does so after them", every)
	}
	if n := t.number("actor_rollout_ref.rollout.n", 1); n != 2 {
		t.put("rollout.n", "2")
		t.note("actor_rollout_ref.rollout.n is %v: verl pairs neighbouring rows, which are of one problem only with 2",
			n)
	}
	t.note("verl takes the first completion for the better one where rewards are equal; here such pairs teach nothing")
}

// flowRL translates the settings of FlowRL's trainers. The released code grades without a fallback to boxes.
func (t *verl) flowRL(estimator string) {
	switch {
	case estimator != "grpo":
		t.note("algorithm.adv_estimator %s: the reward in FlowRL's residual is GRPO's advantage here "+
			"(algo.flowrl.reward)", estimator)
	case !t.on("algorithm.norm_adv_by_std_in_grpo", true):
		t.put("algo.flowrl.reward", "adv_no_std")
	}
	t.put("algo.flowrl.logz.layers", t.text(actor+"proj_layer", t.text(actor+"porj_layer", "3")))
	if t.release {
		t.put("algo.flowrl.preset", "release")
		if t.out["task.math.grader"] != "" {
			t.put("task.math.grader", "math_dapo_original")
		}
		t.note("%sporj_layer and tb_type are of FlowRL's released code: its weight is unclipped "+
			"(algo.flowrl.preset), and its grader reads no boxes (task.math.grader)", actor)
	}
	for _, name := range []string{"FLOWRL_LOSS_VARIANT", "FLOWRL_CLIP_ABLATION"} {
		if variant := t.env[name]; variant != "" {
			t.put("algo.flowrl.preset", cmp.Or(map[string]string{"cispo": "flowrl_cispo", "vanilla": "release",
				"recipe": "recipe"}[variant], variant))
		}
	}
}

// clip translates the bounds of the ratio. In verl clip_ratio counts only where the others are null.
func (t *verl) clip() {
	both := t.text(actor+"clip_ratio", "0.2")
	given := false
	for _, side := range []string{"low", "high"} {
		key := actor + "clip_ratio_" + side
		value, ok := t.in[key]
		given = given || ok
		absent := "0.2"
		if ok && value == "null" {
			absent = both
		}
		t.put("algo.clip."+side, t.text(key, absent))
		if side == "low" && t.number(key, 0.2) > 1 { // no ratio is below 0
			t.put("algo.clip.low", "1")
		}
	}
	if both != "0.2" && !given {
		t.note("clip_ratio %s has no effect in verl, where clip_ratio_low and clip_ratio_high are 0.2 unless "+
			"set; versions before them clipped at it: algo.clip", both)
	}
}

// aggregation puts how verl averages gspo and sapo, whatever loss_agg_mode is. Since 0.9.1
// verl follows loss_agg_mode for gspo; a script does not tell its version.
func (t *verl) aggregation() {
	const forced = "seq-mean-token-mean"
	loss, mode := t.out["algo.loss"], t.out["algo.aggregation"]
	if loss != "gspo" && loss != "sapo" || mode == forced {
		return
	}
	t.put("algo.aggregation", forced)
	if loss == "gspo" {
		t.note("verl 0.9.1 averages the loss gspo as loss_agg_mode says: for it, set algo.aggregation: %s", mode)
	}
	for _, key := range []string{"algo.kl.loss_coef", "algo.entropy_coef", "algo.distill.coef"} {
		if x, err := strconv.ParseFloat(t.out[key], 64); err == nil && x != 0 {
			t.note("verl averages the loss %s by %s whatever loss_agg_mode is, but its other terms by %s; here "+
				"algo.aggregation is of all terms", loss, forced, mode)
			return
		}
	}
}

// klEstimator translates the name of an estimator of the KL divergence.
func (t *verl) klEstimator(key, absent string) string {
	name := t.text(key, absent)
	base, straight := strings.CutSuffix(name, "+")
	ours, ok := map[string]string{"kl": "k1", "mse": "k2", "low_var_kl": "k3", "k1": "k1", "k2": "k2", "k3": "k3",
		"abs": "abs"}[base]
	if !ok {
		t.note("%s is %q, which is not offered", key, name)
		return "k3"
	}
	if straight {
		ours += "+"
	}
	return ours
}

// regularizers are KL terms, group filtering, overlong shaping and rollout correction.
func (t *verl) regularizers() {
	coef, estimator := t.number(actor+"kl_loss_coef", 0.001), t.klEstimator(actor+"kl_loss_type", "low_var_kl")
	if t.on(actor+"use_kl_loss", false) {
		t.putNumber("algo.kl.loss_coef", coef)
		t.put("algo.kl.loss_estimator", estimator)
	}
	const control = "algorithm.kl_ctrl."
	coef, estimator = t.number(control+"kl_coef", 0.001), t.klEstimator("algorithm.kl_penalty", "kl")
	kind, target, horizon := t.text(control+"type", "fixed"), t.text(control+"target_kl", "0.1"),
		t.text(control+"horizon", "10000")
	switch on := t.on("algorithm.use_kl_in_reward", false); {
	case on && t.prime:
		t.note("algorithm.use_kl_in_reward has no effect in verl's recipe prime, whose rewards leave it out")
	case on:
		t.putNumber("algo.kl.reward_coef", coef)
		t.put("algo.kl.reward_estimator", estimator)
		t.put("algo.kl.controller", kind)
		t.put("algo.kl.target", target)
		t.put("algo.kl.horizon", horizon)
	}
	t.filter()
	t.overlong()
	t.correction()
}

// correction translates rollout correction.
func (t *verl) correction() {
	const correct = "algorithm.rollout_correction."
	if weights := t.text(correct+"rollout_is", ""); weights != "" {
		if weights == "geometric" { // of older versions
			weights = "sequence_mean"
		}
		t.put("algo.rollout_correction.weights", weights)
		low, high, band := strings.Cut(t.text(correct+"rollout_is_threshold", "2.0"), "_")
		if band { // IcePop
			t.put("algo.rollout_correction.weight_low", low)
		} else {
			high = low
		}
		t.put("algo.rollout_correction.weight_high", high)
		t.put("algo.rollout_correction.normalize", t.text(correct+"rollout_is_batch_normalize", "false"))
	}
	t.rejections(correct)
	loss := t.text(correct+"loss_type", "ppo_clip")
	if t.on(correct+"bypass_mode", t.bypass) {
		t.put("algo.rollout_correction.mode", "bypass")
		if loss == "reinforce" {
			t.put("algo.loss", "reinforce")
		} else if other := t.out["algo.loss"]; other != "ppo" && other != "flowrl" {
			t.put("algo.loss", "ppo")
			t.note("policy_loss.loss_mode %s has no effect in verl, where the loss of %sbypass_mode is PPO's", other,
				correct)
		}
	}
	t.used[correct+"rollout_is_threshold"], t.used[correct+"rollout_rs_threshold"] = true, true
}

// rejections translates rejection sampling: lists, or a criterion of older versions with a lower bound of
// its own and a veto.
func (t *verl) rejections(at string) {
	reject, bounds := t.text(at+"rollout_rs", ""), t.text(at+"rollout_rs_threshold", "")
	low, veto := t.text(at+"rollout_rs_threshold_lower", ""), t.text(at+"rollout_token_veto_threshold", "")
	var names, limits []string
	if reject != "" {
		names = split(reject)
	}
	if reject != "" && bounds != "" {
		limits = split(bounds)
		if low != "" {
			limits = []string{low + "_" + bounds}
		}
	}
	if veto != "" {
		names, limits = append(names, "token_veto"), append(limits, veto)
	}
	if len(names) > 0 {
		t.putList("algo.rollout_correction.reject", names...)
	}
	if len(limits) > 0 {
		t.putTexts("algo.rollout_correction.reject_bounds", limits)
	}
}
