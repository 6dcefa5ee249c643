package translate

import (
	"path"
	"slices"
	"strings"
)

// What Megatron's arguments are about, as patterns of path.Match on names without --, and without no- or
// disable- before them. None starts a group of RL's own arguments, so that a misspelt one is found.
const (
	// where and how fast to compute, what to log, how to write and read checkpoints
	computingArgs = `
		accumulate-allreduce-* account-for-* activation-func-fp8-* activation-offload-* adlr-* align-* app-tag-*
		async-* attention-backend auto-detect-* autocast-* barrier-* batch-boundaries batch-invariant-* batch-p2p-*
		bf16-reduced-* bias-*-fusion cache-mla-* calc-ft-* check-for-* check-weight-hash-* ckpt-* classes-*
		clone-scatter-* config-logger-dir context-parallel-size coordinator-* cp-comm-type cpu-offloading*
		-cpu-offloading-* create-* cross-entropy-*fusion* cuda-graph-* data-cache-path data-parallel-* data-sharding
		dataloader-* ddp-* deallocate-* decode-only-* decoder-*-pipeline-* decrease-batch-* defer-* delay-* delta-*
		deterministic-mode bf16-* jit-fuser parameter-transpose-* straggler-on-startup straggler-* dist-ckpt-*
		distrib-* distribute-* distributed-* drain-* dump-* empty-unused-* enable-autocast enable-chunked-*
		enable-cuda-* enable-experimental enable-ft-* enable-full-* enable-msc ep-overlap-* error-injection-*
		exit-* expert-model-* expert-gtp-* expert-tensor-* external-cuda-* fake-* fault-* filter-warnings
		finalize-* fine-grained-* finetune flash-* flight-* fsdp-* ft-* fused-* gdp-cutedsl-* gdp-num-chunk-* gpu-*
		grad-reduce-* grad-scale-* grad-sync-* gradient-* gtp-* hetereogenous-* hierarchical-* high-priority-*
		hybrid-context-* inference-* init-model-* inprocess-* jit-* keep-fp8-* kitchen-* lazy-* load-* local-rank
		log-* logging-* main-grads-* main-params-* manual-gc* masked-softmax-* max-seqlen-* max-tokens-to-oom
		megatron-fsdp-* memory-* microbatch-* micro-batch-size min-offloaded-* mmap-* mlp-chunks-* model-parallel-*
		modules-* moe-*dispatch* moe-*fus* moe-pad-* moe-*permute* moe-*stash* moe-per-layer-* moe-*deepep*
		moe-*ncclep* moe-*hybridep* moe-grouped-* moe-*routing-trace* moe-*-recompute moe-use-*
		moe-*single-grouped-* moe-flex-* moe-shared-expert-overlap moe-extended-* moe-deepep-* moe-expert-rank-*
		moe-layer-recompute moe-apply-* moe-mlp-* moe-upcycling-* moe-router-padding-* most-recent-* nccl-* non-persistent-*
		num-dataset-* num-distributed-* num-layers-in-* num-layers-per-* num-layers-at-* num-microbatches-*
		num-virtual-* num-workers nvtx-* object-storage-* offload-* one-logger* optimizer-*offload* optimizer-cuda-*
		otel-* outer-* output-request-* overlap-* override-ckpt-* param-sync-* params-dtype persist-* persistent-*
		pin-cpu-* pipeline-* profile* pytorch-* record-* recompute-method recompute-modules recompute-num-* refit-*
		replication* rerun-* result-* reuse-* run-* runtime-* save save-* sequence-parallel set-level-* sharp-*
		skip-prompt-* strict-* suggested-* suspend-* symmetric-* te-* tensor-model-* tensor-parallel-* tensorboard-*
		test-mode throughput-* timers timing-* torch-fsdp2-* tp-* train-sync-* transformer-impl trust-*
		use-checkpoint-opt* use-cpu-* use-dist* use-flash* use-fused-* use-gigatoken use-grouped-* use-inference-*
		use-kitchen* use-layer-* use-mcore-* use-megatron-* use-mp-* use-nccl-* use-persistent-* use-precision-*
		use-pytorch-* use-ring-* use-same-* use-sharp use-te-* use-torch-* use-tp-* use-transformer-*
		use-legacy-* use-tokenizer-model-* variable-* verify-* virtual-* wandb-* wgrad-* yaml-cfg sync-func
		override-opt* logits-* rl-durable-* rl-rollout-bank-* rl-offload-* rl-kv-cache-*
		rl-persist-* rl-training-cuda-* rl-inference-*parallel-size rl-inference-model-* rl-verify-* rl-profile*
		rl-sequence-packing-max-* rl-sequence-packing-algo loss-scale* initial-loss-* min-loss-* hysteresis
		initialization initialize-* gloo-* msc moe-combine-* moe-grad-scale-* langrl-inference-*`
	// the shape of a model and its tokenizer: the model's own files say it
	shapeArgs = `
		activation-func activation-func-clamp-* add-* apply-layernorm-* apply-query-* apply-residual-* apply-rope-*
		attention-output-* attention-softmax-* bias-linear chat-template decoder-num-* encoder-num-* dsa-*
		embedding-init-* experimental-attention-* ffn-* first-last-* fp32-residual-* gated-* gdp-num-householder
		glu-* group-query-* heterogeneous-* hidden-size hybrid-* init-method* is-hybrid-* kv-* layernorm-* linear-*
		make-vocab-* mamba-* max-position-* merge-file mhc-* enable-mhc-* moe-ffn-* moe-layer-freq moe-router-*
		moe-shared-* moe-latent-* mrope-* mscale* multi-latent-* mup-* use-mup norm-epsilon normalization null-*
		num-attention-* num-experts num-layers num-moe-experts num-query-* num-residual-* openai-* output-layer-*
		output-logit-* pad-vocab-* padded-vocab-* position-embedding* q-lora-* qk-* quick-* relative-* rope-*
		rotary-* softmax-* spec squared-* swiglu tiktoken-* tokenizer-* untie-* use-checkpoint-args use-rope-*
		use-rotary-* use-one-* v-head-* vocab-* window-* yarn-* moe-*-interleave-size no-rope-* mla-* mlp-*
		allow-ambiguous-* model-provider qk-layernorm legacy-* transformer-* query-in-* masked-* fp16-lm-*
		memory-efficient-* bert-* rope-fusion onnx-* num-channels`
	// data and losses of pretraining and of other trainers of Megatron's
	pretrainingArgs = `
		biencoder-* block-* classes-* data-args-* data-path data-per-* dino-* embedding-path encoder-seq-*
		decoder-seq-* eod-* evidence-* fim-* full-validation ict-* img-* index-* indexer-* iter-per-* mask-*
		mid-level-* mock-data multiple-* no-data-* num-classes num-tokens-* output-* patch-* per-* phase-*
		prompt-* prompts query-* reset-* retriever-* return-* sample-* short-* split step-* swin-* test-data-*
		titles-* top-n-* train-data-* use-one-* valid-data-* validation-* vision-* stop-words sft-* termination-*
		temperature top_k top_p num-speculative-* start-eval-* eval-iters eval-*-batch-size bert-* incoming-*
		dataloader-type sft`
)

// notOffered are arguments that would change a result and have no counterpart, with the reason.
var notOffered = []struct{ pattern, why string }{
	{"decoupled-*", "all weights learn at train.optim.lr"},
	{"freeze-all-*", "all weights learn, or the adapters of train.lora"},
	{"fp8-*", "products are computed in model.dtype, bf16 or f32"},
	{"fp4-*", "products are computed in model.dtype, bf16 or f32"},
	{"quant-*", "products are computed in model.dtype, bf16 or f32"},
	{"fp16", "products are computed in model.dtype, bf16 or f32"},
	{"exp-avg-*", "moments are float32"},
	{"muon-*", "--optimizer is not muon, or train.optim has no such setting"},
	{"lion-*", "adamw, sgd and muon are the optimizers"},
	{"soap-*", "adamw, sgd and muon are the optimizers"},
	{"sgd-*", "--optimizer is not sgd"},
	{"adaptive-muon-*", "adamw, sgd and muon are the optimizers"},
	{"qk-clip*", "weights are not rescaled after an update"},
	{"head-lr-mult", "all weights learn at train.optim.lr"},
	{"*weight-decay-*", "train.optim.weight_decay is constant and for all parameters"},
	{"start-weight-decay", "train.optim.weight_decay is constant"},
	{"end-weight-decay", "train.optim.weight_decay is constant"},
	{"iterations-to-skip", "no step is left out"},
	{"moe-input-jitter-eps", "the router's input has no noise"},
	{"env-config", "Megatron wants --langrl-env-config in its place"},
	{"wd-incr-steps", "train.optim.weight_decay is constant"},
	{"apply-wd-*", "train.optim.weight_decay is for all parameters"},
	{"rampup-batch-size", "all steps have train.prompts_per_step problems"},
	{"step-batch-size-*", "all steps have train.prompts_per_step problems"},
	{"batch-size", "Megatron wants --micro-batch-size in its place"},
	{"warmup", "Megatron wants --lr-warmup-samples in its place"},
	{"checkpoint-activations", "Megatron wants --recompute-granularity in its place"},
	{"moe-*-coeff", "experts have no auxiliary loss here"},
	{"moe-*-coef*", "experts have no auxiliary loss here"},
	{"moe-token-drop*", "experts drop no tokens"},
	{"moe-expert-capacity-*", "experts drop no tokens"},
	{"moe-enable-routing-replay", "the sampler and the updates are one engine, so they route alike"},
	{"moe-router-force-*", "experts are chosen by the router"},
	{"moe-router-bias-update-rate", "the router's bias is not updated"},
	{"mtp-*", "heads for several tokens are not trained"},
	{"rl-skip-bos-token", "the tokenizer's files say whether a text begins with a token of its own"},
	{"rl-inference-parsers", "calls of tools are written as rollout.tools.format says; reasoning is text"},
	{"skip-train", "train.steps: 0 evaluates the initial weights"},
	{"distillation*", "learning from a teacher is not offered"},
	{"logits-load-kd-*", "learning from a teacher is not offered"},
	{"lr-wsd-*", "wsd is constant for 90 % of the steps, then falls"},
	{"train-on-*", "tokens of the prompt are not trained on"},
}

// kindOf returns what an argument of Megatron's is about; "" if it is none of its.
func kindOf(name string) (kind, why string) {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "no-"), "disable-")
	for _, x := range notOffered {
		if matches(x.pattern, name) {
			return "refused", x.why
		}
	}
	for _, x := range [][2]string{{"shape", shapeArgs}, {"pretraining", pretrainingArgs},
		{"computing", computingArgs}} {
		if slices.ContainsFunc(strings.Fields(x[1]), func(p string) bool { return matches(p, name) }) {
			return x[0], ""
		}
	}
	return "", ""
}

// matches is path.Match for patterns that are fixed and well formed.
func matches(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok
}
