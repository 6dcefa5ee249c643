package config

// renamed knows names that keys have elsewhere: in verl and in FlowRL's scripts,
// in Hugging Face configs, and in earlier drafts of our own. They are errors that
// name our key, never aliases; now is the key or block, empty where we have none.
func renamed(name string) (now, why string, ok bool) {
	for _, n := range foreignNames() {
		if n.name == name {
			if n.why == "" {
				return n.now, "it is called " + n.now + " here", true
			}
			return n.now, n.why, true
		}
	}
	return "", "", false
}

// foreignName is a name that somebody may bring along.
type foreignName struct{ name, now, why string }

func foreignNames() []foreignName {
	return []foreignName{
		// verl: ppo_trainer.yaml. Batch sizes count prompts there too.
		{"train_batch_size", "train.prompts_per_step", ""},
		{"ppo_mini_batch_size", "train.prompts_per_update", ""},
		{"ppo_epochs", "algo.epochs", ""},
		{"total_training_steps", "train.steps", ""},
		{"total_epochs", "train.steps", "the length of a run is train.steps; passes over the data follow from it"},
		{"max_prompt_length", "data.max_prompt_tokens", ""},
		{"max_response_length", "rollout.max_new_tokens", ""},
		{"ppo_max_token_len_per_gpu", "compute.micro_batch_tokens", ""},
		{"clip_ratio_low", "algo.ppo.clip_low", ""},
		{"clip_ratio_high", "algo.ppo.clip_high", ""},
		{"clip_ratio_c", "algo.ppo.clip_dual", ""},
		{"clip_ratio", "algo.ppo.clip_low", "there are clip_low and clip_high, in algo.ppo and algo.grpo"},
		{"cliprange_value", "algo.ppo.critic.clip_value", ""},
		{"critic_warmup", "algo.ppo.critic.warmup_steps", ""},
		{"lam", "algo.ppo.lambda", ""},
		{"gae_lambda", "algo.ppo.lambda", ""},
		{"use_kl_loss", "algo.kl.loss_coef", "a KL loss is on where algo.kl.loss_coef is above 0"},
		{"kl_loss_coef", "algo.kl.loss_coef", ""},
		{"kl_loss_type", "algo.kl.loss_estimator", "it is called algo.kl.loss_estimator here; low_var_kl is k3"},
		{"use_kl_in_reward", "algo.kl.reward_coef", "a KL penalty is on where algo.kl.reward_coef is above 0"},
		{"kl_coef", "algo.kl.reward_coef", ""},
		{"entropy_coeff", "algo.entropy_coef", ""},
		{"loss_agg_mode", "algo.aggregation", ""},
		{"adv_estimator", "algo.kind", "algo.kind chooses the algorithm with its advantages"},
		{"norm_adv_by_std_in_grpo", "algo.grpo.scale_std", ""},
		{"lr_warmup_steps", "train.optim.warmup_steps", ""},
		{"save_freq", "checkpoint.every_steps", ""},
		{"test_freq", "eval.online.every_steps", ""},
		{"gen_batch_size", "", "prompts that are generated and not used are not supported; see train.prompts_per_step"},
		// FlowRL's scripts.
		{"proj_layer", "algo.flowrl.logz.layers", ""},
		{"porj_layer", "algo.flowrl.logz.layers", ""},
		{"flowrl_beta_coef", "algo.flowrl.beta", ""},
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
		// Other usual names.
		{"d_model", "model.arch.width", ""},
		{"d_ff", "model.arch.ffn", ""},
		{"batch_size", "train.prompts_per_step", "there are train.prompts_per_step and train.prompts_per_update, both in problems"},
		{"responses_per_prompt", "rollout.n", ""},
		{"logz_head", "algo.flowrl.logz", ""},
		{"is_weight", "algo.flowrl.weight", ""},
		{"ref_logp", "algo.flowrl.reference", ""},
		{"group_norm", "algo.flowrl.reward", ""},
	}
}
