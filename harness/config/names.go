package config

import (
	"slices"
	"strings"
)

// renamed maps names from verl, FlowRL's scripts, TRL, Hugging Face configs and our earlier
// drafts to our keys. Such names are errors that point to our key, never aliases. now
// is the key or block, empty if we have none.
func renamed(path string) (now, why string, ok bool) {
	for _, n := range foreignNames() {
		if n.name == path || strings.HasSuffix(path, "."+n.name) {
			if n.why == "" {
				return n.now, "it is called " + n.now + " here", true
			}
			return n.now, n.why, true
		}
	}
	return "", "", false
}

// foreignName is a key's name in another program, or the end of its path where the name alone says too little.
type foreignName struct{ name, now, why string }

// foreignNames returns the names below, the ones that settings declare, and further ones of verl and TRL.
func foreignNames() []foreignName {
	return append(slices.Concat(settingNames(), verlNames(), trlNames()), []foreignName{
		// verl: ppo_trainer.yaml. Batch sizes count prompts there too.
		{"train_batch_size", "train.prompts_per_step", ""},
		{"ppo_mini_batch_size", "train.prompts_per_update", ""},
		{"ppo_epochs", "algo.epochs", ""},
		{"total_training_steps", "train.steps", ""},
		{"total_epochs", "train.steps", "the length of a run is train.steps; the number of passes over the data " +
			"follows from it"},
		{"max_prompt_length", "data.max_prompt_tokens", ""},
		{"max_response_length", "rollout.max_new_tokens", ""},
		{"truncation", "data.truncate", ""},
		{"filter_overlong_prompts", "data.filter_overlong", ""},
		{"train_max_samples", "data.train.max_samples", ""},
		{"val_max_samples", "data.val.max_samples", ""},
		{"train_files", "data.train.source", "of a list, the first is data.train.source, the others are " +
			"data.train.more"},
		{"val_files", "data.val.source", "of a list, the first is data.val.source, the others are data.val.more"},
		{"shuffle", "data.order", "the order of training is data.order; the rows that max_samples takes are " +
			"data.select"},
		{"tool_config_path", "data.tools", ""},
		{"apply_chat_template_kwargs", "data.template_vars", ""},
		{"chat_template", "data.chat", ""},
		{"custom_chat_template", "data.chat", "it is called data.chat here, and takes a file"},
		{"system_prompt", "data.system", ""},
		{"stop_token_ids", "rollout.stop_ids", ""},
		{"eos_token_id", "rollout.stop_ids", ""},
		{"ppo_max_token_len_per_gpu", "compute.micro_batch_tokens", ""},
		{"clip_ratio", "algo.clip", "there are algo.clip.low and algo.clip.high"},
		{"loss_mode", "algo.loss", "it is called algo.loss here; vanilla is ppo, gpg reinforce, geo_mean gmpo, " +
			"bypass_mode algo.rollout_correction.mode"},
		{"critic_warmup", "algo.critic.warmup_steps", "it is algo.critic.warmup_steps here, one less: verl's policy " +
			"learns in the step of that number"},
		{"use_pf_ppo", "algo.pf_ppo.method", "PF-PPO is on where algo.pf_ppo.method is not none"},
		{"calculate_sum_pi_squared", "algo.variance_proxies", "the token baselines record what they need"},
		{"max_num_gen_batches", "algo.filter_groups.max_batches", ""},
		{"oversample_factor", "algo.filter_groups.max_batches", ""},
		{"accuracy_lower_bound", "algo.filter_groups.low", ""},
		{"accuracy_upper_bound", "algo.filter_groups.high", ""},
		{"filter_accuracy", "algo.filter_groups.metric", "it is algo.filter_groups.metric: acc here"},
		{"filter_truncate", "algo.filter_groups.complete", ""},
		{"overlong_buffer", "algo.overlong", "it is called algo.overlong here; buffer is a share of " +
			"rollout.max_new_tokens"},
		{"mask_truncated_samples", "algo.mask_truncated", ""},
		{"overlong_filter", "algo.mask_truncated", ""},
		{"ref_update_freq", "algo.reference_every", ""},
		{"bypass_mode", "algo.rollout_correction.mode", "it is algo.rollout_correction.mode: bypass here"},
		{"custom_reward_function", "reward.command", "a reward of your own is a program: reward.kind: command"},
		{"ttrl", "reward.kind", "votes of completions are reward.kind: majority"},
		{"std_filter_beta", "algo.filter_groups.spread", ""},
		{"rlpr", "reward.kind", "its reward is reward.kind: likelihood"},
		{"verifree", "reward.kind", "its reward is reward.kind: likelihood, with reward.likelihood.learn"},
		{"reward_manager", "reward.kind", "there is reward.kind; the dapo manager is algo.overlong, gdpo is " +
			"reward.components"},
		{"rollout_is", "algo.rollout_correction.weights", ""},
		{"rollout_is_threshold", "algo.rollout_correction.weight_high",
			"there are algo.rollout_correction.weight_low and weight_high"},
		{"rollout_is_batch_normalize", "algo.rollout_correction.normalize", ""},
		{"rollout_rs", "algo.rollout_correction.reject", ""},
		{"rollout_rs_threshold", "algo.rollout_correction.reject_bounds", ""},
		{"use_kl_loss", "algo.kl.loss_coef", "a KL loss is on where algo.kl.loss_coef is above 0"},
		{"kl_loss_coef", "algo.kl.loss_coef", ""},
		{"kl_loss_type", "algo.kl.loss_estimator", "it is called algo.kl.loss_estimator here; low_var_kl is k3"},
		{"use_kl_in_reward", "algo.kl.reward_coef", "a KL penalty is on where algo.kl.reward_coef is above 0"},
		{"kl_coef", "algo.kl.reward_coef", ""},
		{"entropy_coeff", "algo.entropy_coef", ""},
		{"loss_agg_mode", "algo.aggregation", ""},
		{"adv_estimator", "algo.advantage", ""},
		{"lr_warmup_steps", "train.optim.warmup_steps", ""},
		{"save_freq", "checkpoint.every_steps", ""},
		{"test_freq", "eval.online.every_steps", ""},
		{"gen_batch_size", "", "a step samples train.prompts_per_step problems; see algo.filter_groups for more"},
		// FlowRL's scripts.
		{"tb_type", "", "the published scripts set it, and no code reads it"},
		// Hugging Face config.json.
		{"hidden_size", "model.arch.width", ""},
		{"intermediate_size", "model.arch.ffn", ""},
		{"num_hidden_layers", "model.arch.layers", ""},
		{"num_attention_heads", "model.arch.heads", ""},
		{"num_key_value_heads", "model.arch.kv_heads", ""},
		{"head_dim", "model.arch.head_size", ""},
		{"rms_norm_eps", "model.arch.norm_eps", ""},
		{"tie_word_embeddings", "model.arch.tie_embeddings", ""},
		{"max_position_embeddings", "model.arch.max_positions", ""},
		// Earlier drafts of ours.
		{"ppo", "algo", "PPO's settings are algo.clip, algo.gamma, algo.lambda and algo.critic"},
		{"grpo", "algo", "GRPO's settings are algo.clip and algo.scale_std"},
		{"clip_low", "algo.clip.low", ""},
		{"clip_high", "algo.clip.high", ""},
		{"clip_dual", "algo.clip.dual", ""},
		// Other common names.
		{"d_model", "model.arch.width", ""},
		{"d_ff", "model.arch.ffn", ""},
		{"batch_size", "train.prompts_per_step",
			"there are train.prompts_per_step and train.prompts_per_update, both in problems"},
		{"responses_per_prompt", "rollout.n", ""},
		{"train.epochs", "train.steps", "the length of a run is train.steps; the number of passes over the data " +
			"follows from it"},
		{"model.path", "model.base", "it is called model.base here, with model.init: pretrained"},
		{"model.name", "model.base", "it is called model.base here, with model.init: pretrained"},
		{"data.path", "data.train.source", ""},
		{"logz_head", "algo.flowrl.logz", ""},
		{"is_weight", "algo.flowrl.weight", ""},
		{"ref_logp", "algo.flowrl.reference", ""},
		{"group_norm", "algo.flowrl.reward", ""},
	}...)
}
