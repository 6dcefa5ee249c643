package translate

import (
	"maps"
	"slices"
	"strings"

	"exp/harness/config"
	"exp/train/rl"
)

// distillation translates verl's on-policy distillation (as of 2026-08). It follows regularizers, since a problem
// has one reference policy here, and that is then its teacher.
func (t *verl) distillation() {
	const at, loss = "distillation.", "distillation.distillation_loss."
	if !t.on(at+"enabled", false) {
		return
	}
	teacher, others, sources := t.teachers(at + "teacher_models.")
	for key := range t.in {
		if strings.HasPrefix(key, at+"teacher_models.") || placedTeacher[strings.TrimPrefix(key, at)] {
			t.used[key] = true // where it computes
		}
	}
	if teacher == "" {
		t.note("distillation names no teacher: set algo.reference")
		teacher = "TEACHER"
	}
	mode, gradient := t.text(loss+"loss_mode", "k3"), t.on(loss+"use_policy_gradient", false)
	rewards, coef := t.on(loss+"use_task_rewards", true), t.number(loss+"distillation_loss_coef", 1)
	bound := t.number(loss+"loss_max_clamp", 0)
	for _, name := range []string{"topk", "log_prob_min_clamp", "policy_loss_mode", "use_chunked_topk",
		"chunked_topk_chunk_size"} {
		t.used[loss+name] = true // of top-k losses, or of one possible value
	}
	if !rewards {
		coef = 1
	}
	t.onlyReference(rewards)
	t.putText("algo.reference", weights(teacher))
	if len(others) > 0 {
		t.routes(others, sources, t.text(at+"teacher_key", config.DataSource))
	}
	switch {
	case mode == "forward_kl_topk":
		if gradient {
			t.note("%suse_policy_gradient with forward_kl_topk: the forward KL is a loss here, as verl recommends",
				loss)
		}
		t.taughtTokens(loss, coef, bound, rewards)
		return
	case gradient:
		t.taughtByGradient(loss, mode, coef, bound, rewards)
		return
	}
	t.putNumber("algo.kl.loss_coef", coef)
	t.put("algo.kl.loss_estimator", t.klEstimator(loss+"loss_mode", "k3"))
	if bound > 0 && (bound < 10 || t.out["algo.kl.loss_estimator"] != "k3") { // k3 has this bound itself
		t.note("%sloss_max_clamp %g: a KL in the loss has no bound of its own here", loss, bound)
	}
	if !rewards {
		t.put("algo.advantage", rl.NoAdvantage)
	}
}

// placedTeacher are settings of where and how fast the teacher computes.
var placedTeacher = map[string]bool{"n_gpus_per_node": true, "nnodes": true, "teacher_key": true}

// teachers returns the path of the first teacher by name, and the paths and sources of the others in the order of
// their sources. verl ignores a teacher named teacher_model if there are others.
func (t *verl) teachers(at string) (first string, others, sources []string) {
	paths := map[string]string{}
	for key := range t.in {
		rest, ours := strings.CutPrefix(key, at)
		name, ok := strings.CutSuffix(rest, ".model_path")
		if !ours || !ok {
			continue
		}
		if path := t.text(key, ""); path != "" {
			paths[name] = path
		}
	}
	if len(paths) > 1 {
		delete(paths, "teacher_model")
	}
	names := slices.Sorted(maps.Keys(paths))
	if len(names) == 0 {
		return "", nil, nil
	}
	of := map[string][]string{} // teachers by source
	for i, name := range names {
		key := t.text(at+name+".key", "")
		if key == "" && i > 0 {
			t.note("teacher %s has no key: it teaches nothing here, and verl refuses it", name)
		}
		if key != "" {
			of[key] = append(of[key], name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		list := of[key]
		if len(list) > 1 {
			t.note("teachers %s have the key %q: verl refuses that, and so does exp; give each its own",
				strings.Join(list, " and "), key)
		} else if list[0] == names[0] {
			continue
		}
		for _, name := range list {
			others, sources = append(others, weights(paths[name])), append(sources, key)
		}
	}
	return paths[names[0]], others, sources
}

// routes lets other teachers than the first teach the problems that verl sends to them, by a column of the data.
func (t *verl) routes(paths, sources []string, column string) {
	if column != config.DataSource {
		t.putText("algo.teacher_key", column)
		t.keep(column)
	}
	t.putTexts("algo.teachers", paths)
	t.putTexts("algo.teacher_sources", sources)
	t.note("problems without a teacher of their own have the first one, %s; verl refuses them",
		t.out["algo.reference"])
}

// onlyReference takes out the terms that compare with the start, and without rewards also the entropy's: verl
// has the whole loss of the policy then only for its metrics.
func (t *verl) onlyReference(rewards bool) {
	for _, key := range []string{"algo.kl.loss_coef", "algo.kl.reward_coef"} {
		if t.out[key] != "" && (rewards || key == "algo.kl.reward_coef") {
			t.note("the KL from the start is left out: a problem has one reference policy here, and it is the teacher")
		}
	}
	for key := range t.out {
		if strings.HasPrefix(key, "algo.kl.") {
			delete(t.out, key)
		}
	}
	if !rewards {
		delete(t.out, "algo.entropy_coef")
	}
}

// taughtTokens translates the forward KL over the teacher's likeliest tokens.
func (t *verl) taughtTokens(loss string, coef, bound float64, rewards bool) {
	t.putNumber("algo.distill.coef", coef)
	k := t.number(loss+"topk", 32)
	if k > rl.MaxTopK {
		t.note("%stopk %g: this takes the %d likeliest tokens", loss, k, rl.MaxTopK)
		k = rl.MaxTopK
	}
	t.putNumber("algo.distill.top_k", k)
	if bound > 0 {
		t.putNumber("algo.distill.max", bound)
	}
	if floor := t.number(loss+"log_prob_min_clamp", 0); floor < 0 {
		t.putNumber("algo.distill.floor", floor)
	}
	if !rewards {
		t.put("algo.kind", "distill")
		t.put("algo.loss", "ppo")
		delete(t.out, "algo.advantage")
	}
}

// taughtByGradient translates distillation by a policy gradient: in verl a loss of its own with the distance
// under the present parameters, here a part of each token's advantage.
func (t *verl) taughtByGradient(loss, mode string, coef, bound float64, rewards bool) {
	if mode != "k1" && mode != "kl" {
		t.note("%sloss_mode %s with a policy gradient: the advantage is k1's here, the one whose gradient is the "+
			"KL's", loss, mode)
	}
	t.putNumber("algo.distill.coef", coef)
	if bound > 0 {
		t.putNumber("algo.distill.max", bound)
	}
	low, high := t.text(loss+"clip_ratio_low", "0.2"), t.text(loss+"clip_ratio_high", "0.2")
	t.used[loss+"clip_ratio"] = true // verl reads the other two
	switch {
	case !rewards:
		t.put("algo.kind", "distill")
		t.put("algo.loss", "ppo")
		delete(t.out, "algo.advantage")
		t.put("algo.clip.low", low)
		t.put("algo.clip.high", high)
	case low != t.out["algo.clip.low"] || high != t.out["algo.clip.high"]:
		t.note("%sclip_ratio_low and _high are %s and %s: the teacher's part has the policy's bounds here", loss, low,
			high)
	}
}
