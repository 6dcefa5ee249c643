package translate

import (
	"cmp"
	"math"
	"os"
	"strconv"
)

// model translates where the weights come from and what they are computed in.
func (m *megatron) model() {
	m.put("model.init", "pretrained")
	m.put("compute.device", "auto")
	checkpoint := m.text("load", "")
	checkpoint = m.text("pretrained-checkpoint", checkpoint)
	tokenizer := m.text("tokenizer-model", "")
	_, err := os.Stat(checkpoint)
	switch {
	case checkpoint != "" && err == nil:
		m.putText("model.base", checkpoint)
	case hubName.MatchString(tokenizer):
		m.putText("model.base", weights(tokenizer))
		m.note("model.base is the repository of --tokenizer-model; Megatron starts from a checkpoint of its own "+
			"(%s): if its weights differ, name it, with the tokenizer's files in its folder huggingface",
			cmp.Or(checkpoint, "none is named"))
	case cmp.Or(checkpoint, tokenizer) != "":
		m.putText("model.base", cmp.Or(checkpoint, tokenizer))
	default:
		m.note("the model is not named: set model.base")
	}
	m.put("model.dtype", "f32")
	if m.on("bf16") || m.on("fp16") {
		m.put("model.dtype", "bf16")
	}
	if m.on("fp16") {
		m.note("--fp16: products are computed in bf16")
	}
	m.put("compute.recompute", strconv.FormatBool(m.on("recompute-activations") || m.on("recompute-granularity")))
	from := m.on("use-checkpoint-args")
	for _, name := range []string{"hidden-dropout", "attention-dropout"} {
		if _, says := m.args[name]; m.number(name, 0.1) > 0 && (says || !from) {
			m.note("--%s %s: the policy trains without it here", name, m.text(name, "0.1, Megatron's default"))
		}
	}
}

// lengths translates --seq-length, which a prompt and its completion share.
func (m *megatron) lengths() {
	const longestPrompt = 1024
	total := m.number("seq-length", 0)
	limit := m.number("inference-max-seq-length", 2560)
	if total <= 0 {
		total = limit
	}
	total = min(total, limit)
	prompt := min(longestPrompt, math.Floor(total/2))
	m.putNumber("data.max_prompt_tokens", prompt)
	m.putNumber("rollout.max_new_tokens", total-prompt)
	m.note("a prompt and its completion share %g tokens in Megatron (--seq-length, --inference-max-seq-length); "+
		"data.max_prompt_tokens and rollout.max_new_tokens, %g and %g, divide them", total, prompt, total-prompt)
	if total > 4096 { // the default; a sequence must fit
		m.putNumber("compute.micro_batch_tokens", total)
	}
}

// batch puts the problems of an update: --global-batch-size counts completions. whole says that all arguments
// are known.
func (m *megatron) batch(whole bool) {
	if _, ok := m.args["perform-rl-step"]; !ok && whole {
		m.note("--perform-rl-step is not given: without it train_rl.py does not train on rollouts")
	}
	m.used["perform-rl-step"], m.used["wandb-exp-name"] = true, true
	all, group := m.samples(), m.number("grpo-group-size", 2)
	batch := m.number("global-batch-size", all)
	switch {
	case m.args["global-batch-size"].text == "":
		m.note("--global-batch-size is not given: in Megatron it is --micro-batch-size times the ranks that share " +
			"no weights; train.prompts_per_update is train.prompts_per_step here")
	case batch > all:
		m.note("--global-batch-size %g is more than the %g completions of a step; Megatron refuses that", batch, all)
		batch = all
	case math.Mod(batch, group) != 0:
		m.note("--global-batch-size %g is not a multiple of --grpo-group-size %g: an update here has whole groups",
			batch, group)
		batch = group * max(1, math.Floor(batch/group))
	}
	m.putNumber("train.prompts_per_update", batch/group)
}

// samples returns the completions of a step.
func (m *megatron) samples() float64 {
	return m.number("grpo-prompts-per-step", 32) * m.number("grpo-group-size", 2)
}

// updates returns the updates of a step, which Megatron calls iterations.
func (m *megatron) updates() float64 {
	prompts, err := strconv.ParseFloat(m.out["train.prompts_per_update"], 64)
	if err != nil || prompts <= 0 {
		return 1
	}
	n := m.number("grpo-prompts-per-step", 32) / prompts * m.number("grpo-iterations", 2)
	return max(n, 1)
}

// sampling translates how rollouts are drawn and how old they are.
func (m *megatron) sampling() {
	temperature := m.number("rl-default-temperature", 1)
	if temperature == 0 { // Megatron takes 0 for not given
		temperature = 1
	}
	m.putNumber("rollout.temperature", temperature)
	if temperature != 1 {
		m.note("--rl-default-temperature %g: Megatron's updates compute log-probs at temperature 1, those here at "+
			"the sampler's", temperature)
	}
	top := m.number("rl-default-top-p", 0)
	if top <= 0 { // off
		top = 1
	}
	m.putNumber("rollout.top_p", top)
	m.putNumber("rollout.top_k", max(0, m.number("rl-default-top-k", -1)))
	if m.on("grpo-filter-groups-with-same-reward") {
		m.put("algo.filter_groups.metric", "score")
		m.putNumber("algo.filter_groups.max_batches", endless)
	}
	m.age()
}

// age translates partial rollouts: how many steps completions are old.
func (m *megatron) age() {
	partial := m.on("rl-partial-rollouts")
	lag, given := m.number("rl-generation-lag", 0), m.args["rl-generation-lag"].text != ""
	if most := m.number("rl-max-inflight-requests", 0); most > 0 {
		lag, given = most/m.samples()-1, true
	}
	units := m.text("rl-submission-granularity", "B") + "/" + m.text("rl-consumption-granularity", "B")
	if !partial {
		return
	}
	if !given {
		m.note("--rl-partial-rollouts without --rl-generation-lag: Megatron takes what its engine can hold; " +
			"rollout.staleness is 0 until you set it")
	}
	age := math.Ceil(max(0, lag))
	m.putNumber("rollout.staleness", age)
	if units != "B/B" || math.Floor(lag) != math.Ceil(lag) {
		m.note("--rl-generation-lag %g with units %s: Megatron mixes ages; here all completions are %g steps old",
			lag, units, age)
	}
}

// loss translates how the tokens' losses are weighted and summed.
func (m *megatron) loss() {
	coef := m.number("rl-importance-sampling-truncation-coef", 0)
	if m.on("rl-inference-logprobs-is-correction") {
		m.put("algo.rollout_correction.weights", "token")
		if coef <= 0 {
			coef = unbounded
		}
		m.putNumber("algo.rollout_correction.weight_high", coef)
	}
	micro, packed := m.number("micro-batch-size", 0), m.on("rl-use-sequence-packing")
	switch {
	case m.on("calculate-per-token-loss"):
		m.put("algo.aggregation", "token-mean")
	case micro == 1 && !packed:
		m.put("algo.aggregation", "seq-mean-token-mean")
	default:
		m.note("without --calculate-per-token-loss Megatron takes the mean over each micro-batch's tokens, then " +
			"over micro-batches, so that results depend on them; here it is the mean over all tokens")
	}
}

// unbounded is a limit of importance weights that none reaches.
const unbounded = 1e9
