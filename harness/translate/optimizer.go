package translate

import (
	"slices"
	"strconv"
	"strings"

	"exp/harness/config"
)

// optimizer translates a block of an optimizer's settings.
func (t *verl) optimizer(from, to, lr string) {
	lr = t.text(from+"lr", lr)
	t.put(to+"lr", lr)
	t.put(to+"weight_decay", t.text(from+"weight_decay", "0.01"))
	t.formula(from, to)
	_, other := t.in[strings.TrimSuffix(from, "optim.")+"grad_clip"]
	megatron := t.text(actor+"strategy", "fsdp") == "megatron"
	if clip := t.text(from+"clip_grad", ""); clip != "" && (megatron || !other) {
		t.put(to+"grad_clip", clip)
	}
	old := t.text(from+"warmup_style", t.text(from+"lr_decay_style", "constant"))
	t.put(to+"schedule", t.text(from+"lr_scheduler_type", old))
	t.put(to+"min_lr_ratio", t.text(from+"min_lr_ratio", "0.0"))
	if peak, err := strconv.ParseFloat(lr, 64); err == nil && peak > 0 {
		if least := t.number(from+"min_lr", 0); least > 0 { // of Megatron's optimizer
			t.putNumber(to+"min_lr_ratio", least/peak)
		}
	}
	if cycles := t.number(from+"num_cycles", 0.5); cycles != 0.5 {
		t.note("%snum_cycles %g: the cosine falls once here, 0.5", from, cycles)
	}
	t.used[from+"zero_indexed_step"] = true // counting from 1 is what schedules do here
	t.warmup(from, to)
}

// formula translates the choice of an optimizer of torch's or Megatron's, and its own settings.
func (t *verl) formula(from, to string) {
	name := t.text(from+"optimizer", "AdamW")
	kind, more := strings.ToLower(name), from+"override_optimizer_config."
	switch kind {
	case "sgd":
		t.note("%sweight_decay: sgd of torch adds it to the gradient; here the decay is decoupled", from)
	case "muon":
		t.note("%soptimizer %s: here with Nesterov's step, five iterations and updates of AdamW's size (torch's "+
			"adjust_lr_fn match_rms_adamw); embeddings, heads and vectors take AdamW", from, name)
	default:
		if kind != "adamw" && name != "adam" {
			t.note("%soptimizer %s: adamw, sgd and muon are the optimizers here", from, name)
		}
		kind = ""
	}
	if kind != "" {
		t.put(to+"kind", kind)
		if v := t.text(more+"momentum", ""); v != "" {
			t.put(to+"momentum", v)
		}
	}
	betas, eps := listOf(t.text(from+"betas", "[0.9,0.999]")), t.text(more+"eps", "")
	if kind == "sgd" {
		return
	}
	if len(betas) == 2 {
		t.put(to+"beta1", betas[0])
		t.put(to+"beta2", betas[1])
	}
	if eps != "" {
		t.put(to+"eps", eps)
	}
}

// warmup translates the length of an optimizer's warm-up.
func (t *verl) warmup(from, to string) {
	ratio := t.number(from+"lr_warmup_steps_ratio", 0)
	if steps := t.number(from+"lr_warmup_steps", -1); steps >= 0 {
		t.putNumber(to+"warmup_steps", steps)
		return
	}
	if ratio <= 0 {
		return
	}
	if n, ok := t.length(); ok {
		t.put(to+"warmup_steps", strconv.Itoa(int(ratio*float64(n))))
	} else {
		t.note("%slr_warmup_steps_ratio: set %swarmup_steps to %g of train.steps", from, to, ratio)
	}
}

// layers maps the names that Megatron's LoRA has for linear layers to Hugging Face's.
var layers = map[string][]string{"linear_qkv": {"q_proj", "k_proj", "v_proj"}, "linear_proj": {"o_proj"},
	"linear_fc1": {"gate_proj", "up_proj"}, "linear_fc2": {"down_proj"}, "all-linear": {"all"}}

// excluded translates exclude_modules that is a list of the language model's linear layers, of which only targets have
// adapters.
func (t *verl) excluded(targets []string) {
	const key = policy + "exclude_modules"
	list := listOf(t.in[key])
	if !strings.HasPrefix(t.in[key], "[") || len(list) == 0 {
		return
	}
	for _, name := range list {
		if !slices.Contains(textLayers, name) {
			return
		}
	}
	list = slices.DeleteFunc(list, func(name string) bool {
		return !slices.Contains(targets, name) && !slices.Contains(targets, config.AllTargets)
	})
	if len(list) > 0 {
		t.putList("train.lora.exclude", list...)
	}
	t.used[key] = true
}

// adapters translates LoRA: the keys of FSDP's workers, or the block of Megatron's.
func (t *verl) adapters() {
	rank, alpha := t.number(policy+"lora_rank", 0), t.number(policy+"lora_alpha", 16)
	targets, start := t.text(policy+"target_modules", "all-linear"), t.text(policy+"lora_adapter_path", "")
	const megatron = policy + "lora."
	inBlock, blockAlpha := t.number(megatron+"rank", 0), t.number(megatron+"alpha", 32)
	blockTargets := t.text(megatron+"target_modules", "[linear_qkv,linear_proj,linear_fc1,linear_fc2]")
	dropout := t.number(megatron+"dropout", 0)
	t.used[megatron+"type"], t.used[megatron+"merge"] = true, true
	if inBlock > 0 {
		rank, alpha, targets = inBlock, blockAlpha, blockTargets
		start = t.text(megatron+"adapter_path", start)
	}
	if rank <= 0 {
		if start != "" {
			t.note("%slora_adapter_path: set model.adapter, and train.lora to the adapter's shape", policy)
		}
		return
	}
	t.putNumber("train.lora.rank", rank)
	t.putNumber("train.lora.alpha", alpha)
	var names []string
	for _, name := range listOf(targets) {
		if ours, ok := layers[name]; ok {
			names = append(names, ours...)
		} else {
			names = append(names, name)
		}
	}
	t.putList("train.lora.targets", names...)
	t.excluded(names)
	if inBlock > 0 {
		t.putNumber("train.lora.dropout", dropout)
	}
	if start != "" {
		t.putText("model.adapter", weights(start))
		if slices.ContainsFunc(usesReference(), func(key string) bool { return t.on(key, false) }) {
			t.note("the reference policy starts with the adapters of model.adapter here; verl's is the base alone")
		}
	}
	critic := max(t.number("critic.model.lora_rank", 0), t.number("critic.model.lora.rank", 0))
	if t.text("algorithm.adv_estimator", "gae") == "gae" && critic != rank {
		t.note("critic.model.lora_rank is %g: with train.lora the critic trains adapters of the policy's shape here; "+
			"in verl it trains all its weights at rank 0", critic)
	}
}

// usesReference lists the settings that need a reference policy.
func usesReference() []string { return []string{actor + "use_kl_loss", "algorithm.use_kl_in_reward"} }

// precision notes types of numbers that differ from those here: float32 masters, bfloat16 products.
func (t *verl) precision() {
	for _, at := range []string{actor + "fsdp_config.", "critic.model.fsdp_config.", "critic.fsdp."} {
		if dtype := t.text(at+"model_dtype", "fp32"); dtype != "fp32" && dtype != "float32" {
			t.note("%smodel_dtype %s: master weights and moments are float32 here", at, dtype)
		}
		if dtype := t.text(at+"dtype", "bfloat16"); dtype != "bfloat16" && dtype != "bf16" {
			t.note("%sdtype %s: products are computed in model.dtype, bf16 or f32", at, dtype)
		}
	}
}
