package config

// verlNames returns more names of verl's configuration, which share a reason or have one each.
func verlNames() []foreignName {
	var list []foreignName
	for why, names := range sharedReasons() {
		for _, name := range names {
			list = append(list, foreignName{name, why.now, why.text})
		}
	}
	return append(append(list, trainingNames()...), recordNames()...)
}

// trainingNames returns verl's names of what training computes.
func trainingNames() []foreignName {
	return []foreignName{
		// Optimizers and adapters.
		{"lr_scheduler_type", "train.optim.schedule", ""},
		{"warmup_style", "train.optim.schedule", ""},
		{"lr_decay_style", "train.optim.schedule", ""},
		{"lr_warmup_steps_ratio", "train.optim.warmup_steps", "the warm-up is a number of steps, " +
			"train.optim.warmup_steps"},
		{"min_lr", "train.optim.min_lr_ratio", "there is train.optim.min_lr_ratio, a share of the peak"},
		{"num_cycles", "", "the cosine of train.optim.schedule falls once, verl's 0.5"},
		{"zero_indexed_step", "", "schedules count steps from 1 here, which is verl's zero_indexed_step: false"},
		{"betas", "train.optim.beta1", "there are train.optim.beta1 and train.optim.beta2"},
		{"clip_grad", "train.optim.grad_clip", ""},
		{"optimizer", "train.optim.kind", "it is called train.optim.kind here: adamw, sgd or muon"},
		{"override_optimizer_config", "train.optim.eps", "of an optimizer's other settings there are " +
			"train.optim.eps and train.optim.momentum"},
		{"lora_rank", "train.lora.rank", ""},
		{"lora_alpha", "train.lora.alpha", ""},
		{"target_modules", "train.lora.targets", "it is called train.lora.targets here; all-linear is all"},
		{"exclude_modules", "train.lora.exclude", "train.lora.exclude lists layers without an adapter; " +
			"model.vision: frozen leaves the vision tower out"},
		{"use_rslora", "train.lora.rank_stabilized", ""},
		{"loraplus_lr_ratio", "train.lora.b_lr_ratio", ""},
		{"lora_plus_ratio", "train.lora.b_lr_ratio", ""},
		{"lora_adapter_path", "model.adapter", ""},
		{"adapter_path", "model.adapter", ""},
		// Algorithms.
		{"kl_ctrl", "algo.kl.controller", "there are algo.kl.controller, target and horizon"},
		{"kl_penalty", "algo.kl.reward_estimator", "it is called algo.kl.reward_estimator here; kl is k1, " +
			"low_var_kl k3"},
		{"target_kl", "algo.kl.target", ""},
		{"policy_loss", "algo", "settings of losses are in algo: exp config schema algo"},
		{"loss_type", "algo.loss", "with algo.rollout_correction.mode: bypass, algo.loss is ppo or reinforce"},
		{"tis_imp_ratio_cap", "algo.rollout_correction.weight_high", "with algo.rollout_correction.weights: token " +
			"it is weight_high"},
		{"rollout_rs_threshold_lower", "algo.rollout_correction.reject_bounds", "bounds are pairs, low_high, in " +
			"algo.rollout_correction.reject_bounds"},
		{"rollout_token_veto_threshold", "algo.rollout_correction.reject", "token_veto is one of " +
			"algo.rollout_correction.reject"},
		{"overlong_buffer_cfg", "algo.overlong", "it is called algo.overlong here; buffer is a share of " +
			"rollout.max_new_tokens"},
		{"penalty_factor", "algo.overlong.penalty", ""},
		{"gdpo_reward_keys", "reward.components", ""},
		{"max_off_policy_threshold", "rollout.staleness", "the age of rollouts is rollout.staleness, in steps"},
		{"staleness_threshold", "rollout.staleness", "the age of rollouts is rollout.staleness, in steps"},
		{"calculate_log_probs", "", "the sampler always records log-probs"},
		{"calculate_entropy", "", "actor/entropy is always recorded"},
		{"distillation", "algo.distill", "algo.reference names the teacher, and algo.distill is its weight"},
		{"forward_kl_topk", "algo.distill.top_k", "it is a number of tokens here, algo.distill.top_k"},
		{"loss_max_clamp", "algo.distill.max", ""},
		{"log_prob_min_clamp", "algo.distill.floor", ""},
		{"teacher_models", "algo.reference", "algo.reference names one teacher, algo.teachers others, by data source"},
		// Prompts, rollouts, rewards.
		{"response_length", "rollout.max_new_tokens", ""},
		{"prompt_length", "data.max_prompt_tokens", ""},
		{"rollout_n", "rollout.n", ""},
		{"reward_fn_key", "", "the column data_source names the data set of a problem"},
		{"tokenizer_path", "tokenizer.path", ""},
		{"multi_turn", "rollout.tools", "tools that the policy calls"},
		{"input_tokenizer", "reward.weights", "a model that scores is reward.kind: model with its folder in " +
			"reward.weights, tokenizer included; one that writes a verdict is reward.kind: genrm"},
		{"reward_kwargs", "reward.command", "further arguments of your program stand in reward.command"},
		{"sandbox_fusion", "sandbox", "programs run in the sandbox of this machine"},
	}
}

// recordNames returns verl's names of validation, checkpoints and the record.
func recordNames() []foreignName {
	return []foreignName{
		{"val_kwargs", "eval.online", "there are eval.online.n, temperature, top_k and top_p, and for the " +
			"final evaluation eval.final"},
		{"do_sample", "eval.online.temperature", "a temperature of 0 takes the likeliest token: " +
			"eval.online.temperature"},
		{"val_before_train", "eval.online.every_steps", "evaluations begin before training wherever " +
			"eval.online.every_steps is set"},
		{"val_only", "train.steps", "train.steps: 0 evaluates the initial weights"},
		{"experiment_name", "name", ""},
		{"max_actor_ckpt_to_keep", "checkpoint.keep", ""},
		{"max_critic_ckpt_to_keep", "checkpoint.keep", "checkpoint.keep is for all models of a run"},
		{"logger", "store.tensorboard", "a run is always recorded in the store; store.tensorboard adds TensorBoard"},
		{"resume_mode", "", "exp resume RUN goes on from the last checkpoint"},
		{"resume_from_path", "", "exp resume RUN goes on from the last checkpoint"},
	}
}

// reason is what names have in common: our key, if there is one, and what to say.
type reason struct{ now, text string }

// sharedReasons returns names of verl's by what there is to say about them.
func sharedReasons() map[reason][]string {
	return map[reason][]string{
		{"", "it is a block of verl's; exp config translate writes a recipe of its settings"}: {"actor_rollout_ref",
			"actor", "trainer", "algorithm", "fsdp_config", "megatron", "defaults", "hydra"},
		{"compute.micro_batch_tokens", "micro-batches are bounded by tokens and change no result: " +
			"compute.micro_batch_tokens"}: {"micro_batch_size", "micro_batch_size_per_gpu", "ppo_micro_batch_size",
			"ppo_micro_batch_size_per_gpu", "log_prob_micro_batch_size", "log_prob_micro_batch_size_per_gpu",
			"forward_micro_batch_size", "forward_micro_batch_size_per_gpu", "use_dynamic_bsz",
			"log_prob_use_dynamic_bsz", "log_prob_max_token_len_per_gpu", "forward_max_token_len_per_gpu"},
		{"compute.tensor_parallel", "there are compute.tensor_parallel and, for sampling, " +
			"compute.rollout_tensor_parallel"}: {"tensor_model_parallel_size"},
		{"", "a run is computed by exp run --ranks N, N its GPUs"}: {"n_gpus_per_node", "nnodes", "strategy",
			"fsdp_size", "data_parallel_size", "ulysses_sequence_parallel_size", "pipeline_model_parallel_size",
			"virtual_pipeline_model_parallel_size", "expert_model_parallel_size", "context_parallel_size",
			"sequence_parallel"},
		{"compute.offload", "it is called compute.offload here"}: {"param_offload", "optimizer_offload",
			"grad_offload", "offload_policy", "enable_activation_offload"},
		{"compute.recompute", "it is called compute.recompute here"}: {"enable_gradient_checkpointing",
			"recompute_granularity"},
		{"rollout.cache_tokens", "the sampler's memory is rollout.cache_tokens"}: {"gpu_memory_utilization"},
		{"rollout.max_sequences", "it is called rollout.max_sequences here"}:     {"max_num_seqs"},
		{"model.dtype", "master weights are f32; products are in model.dtype"}:   {"model_dtype"},
		{"", "exp samples shows and writes the completions of a run"}: {"rollout_data_dir", "validation_data_dir",
			"log_val_generations"},
		{"", "runs lie in the store; exp merge writes their weights"}: {"default_local_dir", "default_hdfs_dir",
			"project_name", "save_contents"},
		{"", "it says how verl computes, and has no counterpart here"}: {"max_num_batched_tokens", "enforce_eager",
			"free_cache_engine", "enable_chunked_prefill", "enable_prefix_caching", "load_format", "max_model_len",
			"use_remove_padding", "use_fused_kernels", "use_torch_compile", "use_liger", "use_shm", "balance_batch",
			"engine_kwargs", "layered_summon", "disable_log_stats", "nccl_timeout", "trust_remote_code",
			"hybrid_engine", "dataloader_num_workers", "filter_overlong_prompts_workers", "return_raw_chat",
			"ray_kwargs", "ray_init", "val_batch_size", "use_legacy_worker_impl", "update_weights_bucket_megabytes"},
	}
}
