package translate

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// placelessParts are parts of paths, as patterns of path.Match. Settings under them have no counterpart:
// they say where and how fast to compute, or ask for what the record always has.
const placelessParts = `
	fsdp_config megatron strategy *parallel_size ulysses* *offload offload* optimizer_offload_fraction
	overlap_cpu_optimizer_d2h_h2d use_precision_aware_optimizer load_weight layer_name_map
	micro_batch* *_micro_batch_size* *use_dynamic_bsz *max_token_len_per_gpu balance_batch
	use_torch_compile use_remove_padding use_fused_kernels fused_kernel_options use_liger use_shm tiled_mlp
	use_prefix_grouper entropy_from_logits_with_chunking entropy_checkpointing sum_pi_squared_checkpointing
	name mode dtype gpu_memory_utilization enforce_eager free_cache_engine enable_chunked_prefill
	enable_prefix_caching max_num_batched_tokens max_num_seqs max_model_len load_format engine_kwargs
	disable_log_stats cudagraph* layered_summon multi_stage_wake_up update_weights_bucket_megabytes
	scheduling_policy skip_tokenizer_init checkpoint_engine calculate_log_probs hybrid_engine
	response_length prompt_length rollout_n nnodes n_gpus_per_node device nccl_timeout ray_kwargs ray_init
	ray_wait_register_center_timeout num_workers agent enable_resource_pool use_reward_loop
	use_legacy_worker_impl trust_remote_code external_lib _target_ data_loader_seed
	dataloader_num_workers filter_overlong_prompts_workers return_raw_chat return_raw_input_ids
	return_full_prompt return_multi_modal_inputs video_key image_patch_size
	val_batch_size validation_shuffle val_before_train calculate_entropy
	logger project_name log_val_generations rollout_data_dir validation_data_dir trace prometheus
	profiler global_profiler nsys
	checkpoint resume_mode default_local_dir default_hdfs_dir max_critic_ckpt_to_keep
	del_local_ckpt_after_load esi_redundant_time
	use_trainer_do_validate use_dynamic_resource_scheduling dynamic_schedule_* concurrent_samples_per_replica
	transfer_queue hydra`

var placelessPatterns = strings.Fields(placelessParts)

// placeless reports whether a setting has no counterpart here.
func placeless(key string) bool {
	return slices.ContainsFunc(strings.Split(key, "."), func(part string) bool {
		return slices.ContainsFunc(placelessPatterns, func(pattern string) bool {
			ok, _ := path.Match(pattern, part) // the patterns are fixed and well formed
			return ok
		})
	})
}

// effects are settings in placeless blocks that change what a run learns, by the end of their paths, with the values
// under which they do not.
var effects = map[string][]string{
	"override_transformer_config.moe_aux_loss_coeff": {"0"},
	"override_transformer_config.moe_z_loss_coeff":   {"0"},
	"override_transformer_config.hidden_dropout":     {"0"},
	"override_transformer_config.attention_dropout":  {"0"},
	"qat.enable":               {"false"},
	"agent.default_agent_loop": {"single_turn_agent", "tool_agent"},
}

// effective reports whether a setting in a placeless block changes what a run learns.
func effective(key, value string) bool {
	for end, none := range effects {
		if !strings.HasSuffix(key, "."+end) {
			continue
		}
		if x, err := strconv.ParseFloat(value, 64); err == nil && x == 0 {
			return false
		}
		return !slices.Contains(none, lowered(value))
	}
	return false
}
