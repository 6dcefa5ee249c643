package translate

import (
	"maps"
	"slices"
	"strings"
)

// shared notes settings of the critic that differ from the policy's: both have ours.
func (t *verl) shared() {
	t.used["critic.enable"] = true // GAE cannot do without one, and nothing else reads one
	for _, s := range [][2]string{{"ppo_epochs", "1"}, {"ppo_mini_batch_size", "256"},
		{"loss_agg_mode", "token-mean"}} {
		policys := t.text(actor+s[0], s[1])
		critics := t.text("critic."+s[0], policys)
		if t.text("algorithm.adv_estimator", "gae") == "gae" && critics != policys {
			t.note("critic.%s is %s, the policy's %s: they have one value here", s[0], critics, policys)
		}
	}
}

// quiet lists the values that change nothing, by the last part of a setting's path. Resolved
// configurations have them all.
var quiet = map[string]string{"optimizer_impl": "torch.optim", "total_training_steps": "-1", "shuffle": "false",
	"freeze_vision_tower": "false", "do_sample": "true", "ignore_eos": "false", "over_sample_rate": "0",
	"logprobs_mode": "processed_logprobs", "enable_rollout_routing_replay": "false", "skip_rollout": "false",
	"skip_dump_dir": "/tmp/rollout_dump", "kl_cov_ratio": "0.0002", "clip_cov_ratio": "0.0002",
	"rollout_is_batch_normalize": "false", "source": "register", "reward_loop_source": "register",
	"launch_reward_fn_async": "false", "lr_warmup_init": "0", "lr_wsd_decay_style": "exponential",
	"weight_decay_incr_style": "constant", "use_checkpoint_opt_param_scheduler": "false"}

// optional are blocks and the setting that turns each on; the others of a block that is off are idle.
func optional() [][2]string {
	return [][2]string{{rollout + "multi_turn.", rollout + "multi_turn.enable"},
		{policy + "mtp.", policy + "mtp.enable"},
		{"algorithm.pf_ppo.", "algorithm.use_pf_ppo"}, {"transfer_queue.", "transfer_queue.enable"},
		{"reward_model.model.", "reward_model.enable"}, {"reward_model.rollout.", "reward_model.enable"},
		{"distillation.", "distillation.enabled"}}
}

// idle reports whether a setting has no effect as it stands: it is empty, refers to another, has a value
// that changes nothing, or its block is off.
func (t *verl) idle(key string) bool {
	value := t.in[key]
	switch value {
	case "", "null", "None", "[]", "{}":
		return true
	}
	name := key[strings.LastIndexByte(key, '.')+1:]
	if none, ok := quiet[name]; strings.HasPrefix(value, "${") || ok && strings.EqualFold(value, none) {
		return true
	}
	for _, block := range optional() {
		if strings.HasPrefix(key, block[0]) && !strings.EqualFold(t.in[block[1]], "true") {
			return true
		}
	}
	if key == "trainer.resume_from_path" && t.text("trainer.resume_mode", "auto") != "resume_path" {
		return true
	}
	return strings.HasPrefix(key, policy+"lora.") && t.number(policy+"lora.rank", 0) <= 0
}

// rest notes the settings that nothing here has translated, that are not null or about where to compute,
// and that have an effect.
func (t *verl) rest() {
	for _, key := range slices.Sorted(maps.Keys(t.in)) {
		if t.resolved(key) == "null" { // verl's defaults, in a resolved configuration
			continue
		}
		if !t.used[key] && (!placeless(key) || effective(key, t.resolved(key))) &&
			!strings.HasPrefix(key, "critic.model.") &&
			!strings.HasPrefix(key, "actor_rollout_ref.ref.") && !t.idle(key) {
			t.note("not translated: %s", strings.TrimSuffix(key+"="+t.in[key], "="))
		}
	}
}
