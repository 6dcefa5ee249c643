package translate

import (
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
	train []dataFile          // the training files, if verl's default_compute_score grades them

	plainTrainer bool // verl's own, not a recipe's
	async        bool // the fully asynchronous one
	oneStep      bool // the one-step off-policy one
	v1           bool // its second one, trainer.use_v1
	bypass       bool // rollout correction bypasses the old policy unless a setting says otherwise
	flow         bool // FlowRL's
	sppo         bool // SPPO's
	spin         bool // online DPO's
	prime        bool // PRIME's
	spo          bool // single-stream policy optimization
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
		{rollout + "min_p", "0", "rollout.min_p"},
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

// number returns a setting that is a number; another is noted and counts as absent.
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
	t.tower()
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
	t.prime = strings.Contains(name, "main_prime") || t.has("reward_model.prime_")
	t.spo = t.on("trainer.spo.enable", false)
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
	switch {
	case t.gradedByDefault():
		t.taskOf(train, val)
	case ofPrograms(train):
		t.programs()
	}
	for _, split := range []string{"train", "val"} {
		if n := t.number("data."+split+"_max_samples", -1); n > 0 {
			t.putNumber("data."+split+".max_samples", n)
		}
	}
	if key := t.text("data.prompt_key", "prompt"); key != "prompt" {
		t.putText("data.prompt_key", key)
	}
	if key := t.text("data.image_key", "images"); key != "images" {
		t.putText("data.image_key", key)
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

// ofPrograms reports whether the first row of files that are here is a programming problem.
func ofPrograms(paths []string) bool {
	for _, path := range paths {
		for row, err := range rows.Read(path) {
			return err == nil && layout.OfPrograms(row)
		}
	}
	return false
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
