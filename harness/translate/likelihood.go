package translate

// likelihood translates the reward manager prob of RLPR's fork of verl (OpenBMB/RLPR), with its filter.
func (t *verl) likelihood() {
	if t.out["task.kind"] == "math" {
		t.put("task.math.grader", "exp") // of any data source, for metrics
	}
	t.put("reward.kind", "likelihood")
	switch name := t.text("reward_model.compute_score_name", ""); name {
	case "mean_exp_log_softmax":
	case "exp_sum_log_softmax":
		t.put("reward.likelihood.measure", "product")
	default:
		t.note("reward_model.compute_score_name %s: see reward.likelihood.measure", name)
	}
	t.put("reward.likelihood.baseline", "true")
	const shaping = "reward_model.reward_manager_shaping_function_name"
	if name := t.text(shaping, ""); name != "threshold_0" {
		t.note("%s %s: differences are clipped to 0 to 1 here", shaping, name)
	}
	t.text("reward_model.format_mode", "")
	t.text("reward_model.val_reward_manager", "")
	t.note("the reward manager prob: rewards are 0.9 of the likelihood and 0.1 of one for the form in RLPR; here " +
		"completions without a place for the answer get reward.wrong")
	if !t.on("data.filter_accuracy", false) {
		return
	}
	mode, target := t.text("data.filter_mode", "default"), t.text("data.filter_target", "")
	if mode != "EMA" || target != "final_reward_std" {
		t.note("data.filter_accuracy with filter_mode %s and filter_target %s: see algo.filter_groups", mode, target)
		return
	}
	t.put("algo.filter_groups.metric", "score")
	t.putNumber("algo.filter_groups.max_batches", endless)
	t.putNumber("algo.filter_groups.spread", t.number("data.std_filter_beta", 1))
	if ratio := t.number("data.filter_ema_ratio", 0.99); ratio != 0.99 {
		t.note("data.filter_ema_ratio %g: the moving average keeps 0.99 here", ratio)
	}
	start := t.number("data.filter_start_step", 0)
	t.number("data.filter_ema_start_step", 0)
	t.number("data.accuracy_lower_bound", 0)
	t.number("data.accuracy_upper_bound", 0)
	t.note("the filter by standard deviations starts in step 2, in RLPR in step %g", start)
}
