package translate

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"exp/eval/layout"
	"exp/eval/rows"
)

// verl translates settings of verl's trainers. A missing setting has the value of ppo_trainer.yaml at
// verl's b178a3cd5.
type verl struct {
	in     overrides
	env    map[string]string // the script's variables
	places places
	used   map[string]bool
	draft
	unset map[string][]string // variables that a setting needs and nobody sets
	kept  []string            // columns of data.keep

	plainTrainer bool // verl's own, not a recipe's
	async        bool // the fully asynchronous one
	oneStep      bool // the one-step off-policy one
	v1           bool // its second one, trainer.use_v1
	bypass       bool // rollout correction bypasses the old policy unless a setting says otherwise
	flow         bool // FlowRL's
	sppo         bool // SPPO's
	spin         bool // online DPO's
	release      bool // of FlowRL's own repository, which has its loss in verl's plain trainer
}

const (
	actor   = "actor_rollout_ref.actor."
	rollout = "actor_rollout_ref.rollout."
	policy  = "actor_rollout_ref.model."
)

// plainRules are settings that mean the same under another name: verl's key, its default, ours.
func plainRules() [][3]string {
	return [][3]string{
		{"data.max_prompt_length", "512", "data.max_prompt_tokens"},
		{"data.max_response_length", "512", "rollout.max_new_tokens"},
		{"data.truncation", "error", "data.truncate"},
		{"data.filter_overlong_prompts", "false", "data.filter_overlong"},
		{actor + "ppo_mini_batch_size", "256", "train.prompts_per_update"},
		{actor + "ppo_epochs", "1", "algo.epochs"},
		{actor + "clip_ratio_c", "3.0", "algo.clip.dual"},
		{actor + "loss_agg_mode", "token-mean", "algo.aggregation"},
		{actor + "entropy_coeff", "0", "algo.entropy_coef"},
		{actor + "tau_pos", "1.0", "algo.sapo.tau_pos"},
		{actor + "tau_neg", "1.05", "algo.sapo.tau_neg"},
		{actor + "policy_loss.clip_cov_lb", "1.0", "algo.cov.low"},
		{actor + "policy_loss.clip_cov_ub", "5.0", "algo.cov.high"},
		{actor + "policy_loss.ppo_kl_coef", "0.1", "algo.cov.kl_weight"},
		{actor + "grad_clip", "1.0", "train.optim.grad_clip"},
		{actor + "calculate_sum_pi_squared", "false", "algo.variance_proxies"},
		{"algorithm.gamma", "1.0", "algo.gamma"},
		{"algorithm.lam", "1.0", "algo.lambda"},
		{"algorithm.norm_adv_by_std_in_grpo", "true", "algo.scale_std"},
		{"critic.cliprange_value", "0.5", "algo.critic.clip_value"},
		{"critic.grad_clip", "1.0", "algo.critic.optim.grad_clip"},
		{rollout + "n", "1", "rollout.n"},
		{rollout + "temperature", "1.0", "rollout.temperature"},
		{rollout + "top_p", "1", "rollout.top_p"},
		{policy + "enable_gradient_checkpointing", "true", "compute.recompute"},
	}
}

// text returns a setting, or absent if it is not set or null.
func (t *verl) text(key, absent string) string {
	v := t.resolved(key)
	if !t.used[key] && computed.MatchString(v) {
		t.note("%s is %s: only Hydra or a shell can compute it", key, v)
	}
	t.used[key] = true
	if v == "null" || v == "None" || v == "" {
		return absent
	}
	return v
}

// computed matches interpolations and substitutions that nobody has expanded.
var computed = regexp.MustCompile("[$][{(]|`|^<[(]")

// on returns a setting that is true or false.
func (t *verl) on(key string, absent bool) bool {
	return strings.EqualFold(t.text(key, strconv.FormatBool(absent)), "true")
}

// number returns a setting that is a number; one that is none is noted and counts as absent.
func (t *verl) number(key string, absent float64) float64 {
	text := t.text(key, "")
	if text == "" {
		return absent
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if err != nil {
		if !computed.MatchString(text) { // text has noted it
			t.note("%s is %q, not a number", key, text)
		}
		return absent
	}
	return v
}

// translate sets our keys for settings of verl. module is the path of the trainer's file, if it is known.
func (t *verl) translate(module string) {
	t.used, t.out = map[string]bool{}, map[string]string{}
	t.trainer(filepath.Split(module))
	for _, r := range plainRules() {
		t.put(r[2], t.text(r[0], r[1]))
	}
	t.batch()
	t.putText("name", slug(t.text("trainer.experiment_name", "verl")))
	t.model()
	t.adapters()
	t.data()
	t.algorithm()
	t.regularizers()
	t.distillation()
	t.aggregation()
	t.optimizer(actor+"optim.", "train.optim.", "1e-6")
	t.optimizer("critic.optim.", "algo.critic.optim.", "1e-5")
	t.sampling()
	t.rewards()
	t.steps()
	t.shared()
	t.rest()
}

// keep adds a column to data.keep.
func (t *verl) keep(column string) {
	if !slices.Contains(t.kept, column) {
		t.kept = append(t.kept, column)
	}
	t.putList("data.keep", t.kept...)
}

// trainer tells which of verl's trainers runs, by the folder and the name of its file and by settings.
func (t *verl) trainer(folder, name string) {
	t.plainTrainer = strings.Contains(name, "main_ppo")
	t.async = strings.Contains(name, "fully_async") || t.has("async_training.trigger_parameter_sync_step")
	t.oneStep = strings.Contains(folder, "one_step_off")
	t.release = t.text(actor+"tb_type", "") != "" || t.text(actor+"porj_layer", "") != "" // its scripts set both
	t.flow = t.release || strings.Contains(name, "flowrl")
	t.sppo = strings.Contains(name, "sppo")
	t.spin = strings.Contains(name, "main_spin")
	t.v1 = t.on("trainer.use_v1", t.has("trainer.v1.")) && !t.async && !t.oneStep && !t.flow
}

// has reports whether there are settings whose paths begin so.
func (t *verl) has(start string) bool {
	for key := range t.in {
		if strings.HasPrefix(key, start) {
			return true
		}
	}
	return false
}

// lowered writes Python's True and False as YAML does.
func lowered(v string) string {
	if v == "True" || v == "False" {
		return strings.ToLower(v)
	}
	return v
}

var hubName = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[\w.-]+$`)

// place returns a path with its ~ expanded.
func place(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}

// weights returns the place of a model, or the reference to a repository.
func weights(path string) string {
	path = place(path)
	if _, err := os.Stat(path); err != nil && hubName.MatchString(path) {
		return "hub:" + path + "@main"
	}
	return path
}

func (t *verl) model() {
	t.put("model.init", "pretrained")
	t.put("compute.device", "auto")
	path := t.text(policy+"path", "")
	if path == "" {
		t.note("the model is not named: set model.base")
	} else {
		t.putText("model.base", weights(path))
	}
	// of versions before 2026, whose reference policy may be another model
	if ref := t.text("actor_rollout_ref.ref.model.path", path); ref != path {
		t.putText("algo.reference", weights(ref))
	}
	if critic := t.text("critic.model.path", path); critic != path {
		t.note("critic.model.path %s: the critic starts from the policy's weights here", critic)
	}
	t.put("model.dtype", "bf16") // verl computes products in bfloat16
	if template := t.text(policy+"custom_chat_template", ""); template != "" {
		t.note("%scustom_chat_template: write the template to a file and name it in data.chat", policy)
	}
	t.precision()
}

func (t *verl) data() {
	t.put("task.kind", "math")
	t.put("task.math.grader", "verl")
	train := t.files("train")
	val := t.files("val")
	if len(val) == 0 {
		t.put("data.val.source", "none")
		t.putList("eval.final.suites")
	} else {
		t.putList("eval.final.suites", "val")
	}
	if programs(train) {
		delete(t.out, "task.math.grader")
		t.put("task.kind", "code")
		t.put("task.code.partial", "true") // default_compute_score gives the share of tests passed
	}
	for _, split := range []string{"train", "val"} {
		if n := t.number("data."+split+"_max_samples", -1); n > 0 {
			t.putNumber("data."+split+".max_samples", n)
		}
	}
	if key := t.text("data.prompt_key", "prompt"); key != "prompt" {
		t.putText("data.prompt_key", key)
	}
	if seed := t.text("data.seed", ""); seed != "" {
		t.put("data.seed", seed)
	}
	if !t.on("data.shuffle", true) { // verl then takes max_samples from the start, too
		t.put("data.order", "sequential")
		t.put("data.select", "first")
	}
	var vars []string
	for _, key := range slices.Sorted(maps.Keys(t.in)) {
		if name, ok := strings.CutPrefix(key, "data.apply_chat_template_kwargs."); ok {
			t.used[key] = true
			vars = append(vars, plain(name)+": "+plain(t.in[key]))
		}
	}
	if len(vars) > 0 {
		t.out["data.template_vars"] = "{" + strings.Join(vars, ", ") + "}"
	}
}

// files puts the files of a split and returns them.
func (t *verl) files(split string) (paths []string) {
	value := t.text("data."+split+"_files", "")
	if value == "" {
		if split == "train" {
			t.note("the training files are not named: set data.train.source")
		}
		return nil
	}
	var rest []string
	for i, path := range listOf(value) {
		path = place(path)
		paths = append(paths, path)
		if i == 0 {
			t.putText("data."+split+".source", path)
			continue
		}
		rest = append(rest, path)
	}
	if len(rest) > 0 {
		t.putTexts("data."+split+".more", rest)
	}
	return paths
}

// programs reports whether the first row of files that are here is a programming problem.
func programs(paths []string) bool {
	for _, path := range paths {
		for row, err := range rows.Read(path) {
			return err == nil && layout.OfPrograms(row)
		}
	}
	return false
}

// estimators maps verl's advantage estimators to the algorithm, or to estimators of GRPO.
var estimators = map[string]string{"gae": "ppo", "grpo": "grpo", "reinforce_plus_plus": "reinforce_plus_plus",
	"reinforce_plus_plus_baseline": "reinforce_plus_plus_baseline", "remax": "remax", "rloo": "rloo", "opo": "opo",
	"grpo_passk": "grpo_passk", "gpg": "gpg", "gdpo": "gdpo", "tir_optimal_token_baseline": "otb"}

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
		t.note("verl's GVPO is a mean over micro-batches of %sppo_micro_batch_size_per_gpu rows, of which "+
			"each has the sum: its gradient is larger by that over rollout.n, which shows where "+
			"train.optim.grad_clip acts", actor)
	}
	for key, ours := range map[string]string{"loss_scale_factor": "algo.loss_scale_factor",
		"policy_loss.dro_beta": "algo.dro.beta", "gvpo_beta": "algo.gvpo.beta"} {
		if value := t.text(actor+key, ""); value != "" {
			t.put(ours, value)
		}
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
		t.note("trainer.ref_update_freq is %v: verl's reference policy is up to so many steps old; here it stays the "+
			"start, or with algo.dpo.reference: old it is the policy before each step", every)
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
		if t.out["task.kind"] == "math" {
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

// aggregation puts how verl averages gspo and sapo, whatever loss_agg_mode is.
func (t *verl) aggregation() {
	const forced = "seq-mean-token-mean"
	loss, mode := t.out["algo.loss"], t.out["algo.aggregation"]
	if loss != "gspo" && loss != "sapo" || mode == forced {
		return
	}
	t.put("algo.aggregation", forced)
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
	if t.on("algorithm.use_kl_in_reward", false) {
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

// lacking notes the variables of the script that a translated setting needs.
func (t *verl) lacking() (notes []string) {
	needed := map[string][]string{} // settings, by variable
	for _, key := range slices.Sorted(maps.Keys(t.unset)) {
		if t.used[key] && !placeless(key) && key != "trainer.experiment_name" {
			for _, name := range t.unset[key] {
				needed[name] = append(needed[name], key)
			}
		}
	}
	return missing(needed)
}

// missing notes variables that settings need and a script does not set.
func missing(needed map[string][]string) (notes []string) {
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		verb := "needs"
		if len(needed[name]) > 1 {
			verb = "need"
		}
		notes = append(notes, fmt.Sprintf("the script does not set %s, which %s %s: give it, %s=VALUE", name,
			strings.Join(needed[name], ", "), verb, name))
	}
	return notes
}
