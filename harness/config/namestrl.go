package config

// trlNames returns names of TRL's and transformers' arguments. docs/recipes.md has the table.
func trlNames() []foreignName {
	length := "the length of a run is train.steps; the number of passes over the data follows from it"
	batch := "an update takes train.prompts_per_update problems of rollout.n completions, whatever the devices; " +
		"compute.micro_batch_tokens bounds memory"
	record := "a run is always recorded in the store; store.tensorboard adds TensorBoard"
	return []foreignName{
		{"model_name_or_path", "model.base", "it is called model.base here, with model.init: pretrained"},
		{"reward_funcs", "reward.kind", "a reward of your own is a program: reward.kind: command"},
		{"num_generations", "rollout.n", ""},
		{"max_completion_length", "rollout.max_new_tokens", ""},
		{"generation_batch_size", "train.prompts_per_step", "it is train.prompts_per_step here, in problems"},
		{"steps_per_generation", "train.prompts_per_step", "it is train.prompts_per_step / train.prompts_per_update"},
		{"num_iterations", "algo.epochs", ""},
		{"num_train_epochs", "train.steps", length},
		{"train.max_steps", "train.steps", ""},
		{"per_device_train_batch_size", "train.prompts_per_update", batch},
		{"gradient_accumulation_steps", "train.prompts_per_update", batch},
		{"train.beta", "algo.kl.loss_coef", ""},
		{"use_bias_correction_kl", "algo.kl.loss_weighted", ""},
		{"optim.epsilon", "train.optim.eps", "it is called eps here"},
		{"epsilon", "algo.clip.low", "there are algo.clip.low and algo.clip.high"},
		{"epsilon_high", "algo.clip.high", ""},
		{"scale_rewards", "algo.scale_std", "there is algo.scale_std; scale_rewards: batch is algo.advantage: " +
			"grpo_batch_std"},
		{"importance_sampling_level", "algo.loss", "weights of whole completions are algo.loss: gspo"},
		{"mask_truncated_completions", "algo.mask_truncated", ""},
		{"top_entropy_quantile", "algo.top_entropy", ""},
		{"off_policy_mask_threshold", "algo.off_policy_bound", ""},
		{"sync_ref_model", "algo.reference_every", "it is on where algo.reference_every is above 0"},
		{"ref_model_sync_steps", "algo.reference_every", "it is algo.reference_every here, in steps of sampling"},
		{"ref_model_mixup_alpha", "algo.reference_mix", ""},
		{"learning_rate", "train.optim.lr", ""},
		{"warmup_ratio", "train.optim.warmup_steps", "the warm-up is a number of steps, train.optim.warmup_steps"},
		{"max_grad_norm", "train.optim.grad_clip", ""},
		{"adam_beta1", "train.optim.beta1", ""},
		{"adam_beta2", "train.optim.beta2", ""},
		{"adam_epsilon", "train.optim.eps", ""},
		{"peft_config", "train.lora", ""},
		{"lora_r", "train.lora.rank", ""},
		{"lora_dropout", "train.lora.dropout", ""},
		{"lora_target_modules", "train.lora.targets", ""},
		{"chat_template_kwargs", "data.template_vars", ""},
		{"shuffle_dataset", "data.order", ""},
		{"gradient_checkpointing", "compute.recompute", ""},
		{"bf16", "model.dtype", "it is model.dtype: bf16 here"},
		{"eval_steps", "eval.online.every_steps", ""},
		{"save_steps", "checkpoint.every_steps", ""},
		{"save_total_limit", "checkpoint.keep", ""},
		{"logging_steps", "", "every step's metrics are recorded"},
		{"log_completions", "store.samples.train", ""},
		{"load_best_model_at_end", "eval.online.best", "it is called eval.online.best here, and names the metric"},
		{"metric_for_best_model", "eval.online.best", ""},
		{"report_to", "store.tensorboard", record},
		{"wandb", "store.tensorboard", record},
		{"output_dir", "", "runs lie in the store, --store DIR; exp merge writes their weights"},
		{"use_vllm", "", "the sampler is part of exp, and its log-probs are the trainer's"},
		{"max_tool_calling_iterations", "rollout.tools.max_turns", ""},
	}
}
