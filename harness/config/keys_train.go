package config

import (
	"slices"

	"exp/eval"
	"exp/train/ranks"
)

// Keys of sampling, training and evaluation.

func rolloutKeys() []Key {
	sampled := []Clause{only("rollout.source", "policy")}
	return block(nil, at(Train), append([]Key{
		{Path: "rollout.source", Kind: Enum, Words: []string{"policy", "recorded"}, Default: is("policy"),
			Help: "train on what the policy samples, or on completions that another engine sampled " +
				"(rollout.recorded)"},
		{Path: "rollout.recorded", Kind: String, Role: External, Pattern: pattern("a path", `.+`), Stages: at(Prepare), When: []Clause{only("rollout.source", "recorded")},
			Help: "file of completions (JSON lines or Parquet) with their tokens, log-probs and rewards where " +
				"known; algo.rollout_correction corrects the mismatch"},
		{Path: "rollout.n", Kind: Int, Default: is(8), Range: atLeast(1), Unit: "completions",
			Help: "completions per problem in a step: the group"},
		{Path: "rollout.temperature", Kind: Float, Default: is(1.0), Range: above(0),
			Help: "divides the logits, in sampling and in all training log-probs"},
		{Path: "rollout.top_k", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "tokens", When: sampled,
			Help: "sample from this many likeliest tokens; 0 is off"},
		{Path: "rollout.top_p", Kind: Float, Default: is(1.0), Range: above(0).upTo(1), Unit: "fraction",
			When: sampled, Help: "sample from the likeliest tokens of this total probability; 1 is off"},
		{Path: "rollout.min_p", Kind: Float, Default: is(0.0), Range: atLeast(0).below(1), Unit: "fraction",
			When: sampled, Help: "sample from tokens at least this share as likely as the likeliest; 0 is off"},
		{Path: "rollout.max_new_tokens", Kind: Int, Range: atLeast(1), Unit: "tokens",
			Help: "longest completion, its end token included"},
		{Path: "rollout.staleness", Kind: Int, Default: is(0), Range: between(0, 64), Unit: "steps", When: sampled,
			Help: "age of completions when trained on, in steps of the policy, as if sampling ran ahead of " +
				"training; 0 is on-policy. algo.rollout_correction corrects the mismatch"},
		{Path: "rollout.stop", Kind: String, List: true, Default: is([]string{}), Stages: at(Train, EvalGen),
			Help: "a completion ends where one of these texts appears; the final evaluation uses them too"},
		{Path: "rollout.stop_ids", Kind: Int, List: true, Default: is([]int{}), Range: between(0, 1<<31-1),
			Unit: "token ids", Stages: at(Train, EvalGen),
			Help: "ids of tokens that end a completion; empty takes those in the model's files and the end-of-turn " +
				"token of its chat template"},
		{Path: "rollout.cache_tokens", Kind: Int, Default: is(0), Range: between(0, 1<<40), Unit: "tokens",
			Role: Nonsemantic, Stages: at(Train, EvalGen),
			Help: "room of the sampler's key/value cache; sequences that find none restart later; 0: room for all " +
				"at full length, or on a GPU the rest of its memory; changes no result"},
		{Path: "rollout.max_sequences", Kind: Int, Default: is(256), Range: between(1, 1<<20), Unit: "sequences",
			Role: Nonsemantic, Stages: at(Train, EvalGen),
			Help: "completions decoded at once"},
		{Path: "rollout.page_tokens", Kind: Int, Default: is(16), Range: between(1, 4096), Unit: "tokens",
			Role: Nonsemantic, Stages: at(Train, EvalGen),
			Help: "positions in one page of the KV cache, a multiple of 16"},
		{Path: "rollout.speculate", Kind: Bool, Default: is(true), Role: Nonsemantic, Stages: at(Train, EvalGen),
			Late: true,
			Help: "where few sequences run, guess their next tokens from what followed the same ones before, and " +
				"compute several tokens in a step (speculative decoding); changes no result"},
	}, penaltyKeys("rollout", sampled)...))
}

// penaltyKeys are the penalties of the sampling that a block of keys is about.
func penaltyKeys(path string, when []Clause) []Key {
	return []Key{
		{Path: path + ".repetition_penalty", Kind: Float, Default: is(1.0), Range: above(0), When: when, Late: true,
			Help: "divides the logits above 0 of tokens that the prompt or the completion has, and multiplies those " +
				"below; 1 is off"},
		{Path: path + ".presence_penalty", Kind: Float, Default: is(0.0), Range: between(-2, 2), When: when,
			Late: true, Help: "taken from the logits of tokens that the completion has; 0 is off"},
		{Path: path + ".frequency_penalty", Kind: Float, Default: is(0.0), Range: between(-2, 2), When: when,
			Late: true, Help: "taken from a token's logit each time that the completion has it; 0 is off"},
	}
}

// minP is the key of min-p sampling of an evaluation.
func minP(path string, when []Clause) Key {
	return Key{Path: path + ".min_p", Kind: Float, Default: is(0.0), Range: atLeast(0).below(1), Unit: "fraction",
		When: when, Late: true, Help: "sample from tokens at least this share as likely as the likeliest; 0 is off"}
}

// aboutRollout returns help that does not fit on a key's help line; empty for most
// keys.
func aboutRollout(path string) string {
	if path != "rollout.recorded" {
		return ""
	}
	return `
  A row is one completion:

    {"id": "cd-12", "response": "(3+5)*4", "tokens": [7, 12, …], "logprobs": [-0.1, …],
     "reward": 1, "finish": "stop"}

  id        the training problem (also: item), or prompt, its text
  response  the sampled text (also: completion); optional if tokens are given
  tokens    its ids, the end token included (also: token_ids); they must decode to the
            response. Without them the response is encoded, with the end token
  logprobs  of each token, under temperature-scaled full softmax; in all rows or none
  reward    replaces the grader's reward (also: score), where it gave a verdict
  finish    stop, length if the token limit cut it off, or turns (rollout.tools)
  inserted  the tokens that tools wrote, as [from, to] for each part; or response_mask (also:
            loss_mask), 0 for each of these tokens. They are not trained on

  A step draws its problems as usual and takes the next rollout.n rows of each, in file
  order; after a problem's last row comes its first. A problem with fewer rows is an
  error. We compute the old policy's log-probs; algo.rollout_correction works on their
  difference from the recorded ones. Without logprobs the policy before each step counts
  as the sampler, and nothing is corrected. To train on the samples of another run:

    exp samples RUN --suite train --token-ids -o jsonl > rollouts.jsonl
`
}

func trainKeys() []Key {
	keys := block(nil, at(Train), []Key{
		{Path: "train.prompts_per_step", Kind: Int, Range: atLeast(1), Unit: "problems",
			Help: "problems sampled in one step"},
		{Path: "train.prompts_per_update", Kind: Int, Default: sameAs("train.prompts_per_step"), Range: atLeast(1),
			Unit: "problems",
			Help: "problems, with all their completions, in one optimizer update; divides prompts_per_step"},
		{Path: "train.steps", Kind: Int, Range: atLeast(0), Unit: "steps",
			Help: "steps of the run (sample, grade, update); 0 evaluates the initial weights"},
		{Path: "train.slices", Kind: Int, Default: is(8), Range: between(1, ranks.MaxSlices), Unit: "slices",
			Stages: at(SFT, RewardModel, Prefer, Train),
			Help: "parts of a mini-batch whose gradients are summed in a binary tree, a power of two; a run has at " +
				"most as many ranks, times compute.tensor_parallel. Each doubling keeps one more gradient in memory " +
				"on a rank"},
	})
	keys = append(keys, loraKeys()...)
	return append(keys, optimizer("train.optim", "steps", Default{}, nil, Train)...)
}

// AllTargets stands for every linear map of a layer in train.lora.targets.
const AllTargets = "all"

func loraKeys() []Key {
	on := []Clause{positive("train.lora.rank")}
	keys := []Key{{Path: "train.lora.rank", Kind: Int, Default: is(0), Range: between(0, 4096),
		Stages: at(Train, Merge),
		Help:   "rank of low-rank adapters (LoRA); only they are trained, on frozen weights; 0 trains all weights"}}
	return append(append(keys, block(on, at(Train, Merge), []Key{
		{Path: "train.lora.alpha", Kind: Float, Default: is(32.0), Range: above(0),
			Help: "adapters are multiplied by alpha/rank"},
		{Path: "train.lora.targets", Kind: String, List: true, Default: is([]string{AllTargets}),
			Help: "linear layers with an adapter: q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj, in " +
				"linear attention in_proj_qkv, in_proj_z, in_proj_b, in_proj_a and out_proj (in OLMo Hybrid g_proj, " +
				"b_proj and a_proj), in latent attention q_a_proj, q_b_proj, kv_a_proj_with_mqa and kv_b_proj, in " +
				"LFM2 also in_proj, out_proj, w1, w2 and w3; with model.vision: trained also the vision tower's, " +
				"such as qkv, proj, fc1 and fc2; or all. Experts and their routers have none"},
		{Path: "train.lora.dropout", Kind: Float, Default: is(0.0), Range: atLeast(0).below(1), Unit: "fraction",
			Help: "dropout on the adapters' input, in updates"},
	})...), block(on, at(Train, Merge), shapedAdapters("train"))...)
}

// shapedAdapters are the keys that say where the adapters of a block are, how they are multiplied, and how fast B
// learns.
func shapedAdapters(prefix string) []Key {
	return []Key{
		{Path: prefix + ".lora.exclude", Kind: String, List: true, Default: is([]string{}), Late: true,
			Help: "linear layers that get no adapter though " + prefix +
				".lora.targets names them, such as down_proj"},
		{Path: prefix + ".lora.rank_stabilized", Kind: Bool, Default: is(false), Late: true,
			Help: "adapters are multiplied by alpha/√rank (rsLoRA, arXiv:2312.03732), so that a higher rank does " +
				"not slow learning down"},
		{Path: prefix + ".lora.b_lr_ratio", Kind: Float, Default: is(1.0), Range: above(0), Late: true,
			Help: "adapters' B, which starts at zero, learns with so many times the learning rate of their A " +
				"(LoRA+, arXiv:2402.12354, which has 16); 1 is the same rate"},
	}
}

func mergeKeys() []Key {
	megatron := []Clause{only("merge.format", "megatron")}
	axis := func(name, unit, help string) Key {
		return Key{Path: "merge." + name, Kind: Int, Default: is(1), Range: between(1, 1024), Unit: unit,
			When: megatron, Help: help}
	}
	return block(nil, at(Merge), []Key{
		{Path: "merge.dtype", Kind: Enum, Words: []string{"keep", "bf16", "f32"}, Default: is("keep"),
			Help: "type of the merged weights, in which they are evaluated; keep is the type of the initial weights"},
		{Path: "merge.format", Kind: Enum, Words: []string{"hf", "megatron", "fsdp"}, Default: is("hf"),
			Help: "layout of the trained weights: hf is a Hugging Face folder; megatron and fsdp add a folder cut " +
				"over the ranks of that trainer, as exp convert writes it"},
		axis("tp", "ranks", "Megatron's tensor-parallel ranks; must divide the heads and the feed-forward width"),
		axis("pp", "stages", "Megatron's pipeline stages; pp × vp must divide the layers"),
		axis("vp", "chunks", "Megatron's virtual stages: chunks of layers per pipeline stage"),
		axis("ep", "ranks", "Megatron's expert-parallel ranks; must divide the experts"),
		{Path: "merge.ranks", Kind: Int, Default: is(1), Range: between(1, 16384), Unit: "ranks",
			When: []Clause{only("merge.format", "fsdp")},
			Help: "FSDP's ranks, as verl resumes from: one file each"},
	})
}

func evalKeys() []Key {
	return append(onlineKeys(), finalKeys()...)
}

func onlineKeys() []Key {
	on := positive("eval.online.every_steps")
	return block(nil, at(Train), append([]Key{
		{Path: "eval.online.every_steps", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "steps",
			Help: "steps between evaluations on data.val, the first before training, which they do not affect; " +
				"0: none"},
		{Path: "eval.online.problems", Kind: Int, Default: is(64), Range: atLeast(0), Unit: "problems",
			When: []Clause{on},
			Help: "problems of data.val to use, from its start; 0 takes all"},
		{Path: "eval.online.n", Kind: Int, Default: is(1), Range: atLeast(1), Unit: "completions", When: []Clause{on},
			Help: "completions per problem"},
		{Path: "eval.online.temperature", Kind: Float, Default: is(1.0), Range: atLeast(0), When: []Clause{on},
			Help: "sampling temperature; 0 is greedy"},
		{Path: "eval.online.top_k", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "tokens", When: []Clause{on},
			Late: true, Help: "sample from this many likeliest tokens; 0 is off"},
		{Path: "eval.online.top_p", Kind: Float, Default: is(1.0), Range: above(0).upTo(1), Unit: "fraction",
			When: []Clause{on}, Late: true,
			Help: "sample from the likeliest tokens of this total probability; 1 is off"},
		minP("eval.online", []Clause{on}),
		{Path: "eval.online.max_not_graded", Kind: Float, Default: is(0.01), Range: between(0, 1), Unit: "fraction",
			Role: Nonsemantic, When: []Clause{on}, Late: true,
			Help: "share of a validation's completions that may go without a verdict; with more it has no scores, " +
				"which ends a run with eval.online.best (exit 8)"},
		{Path: "eval.online.best", Kind: String, Default: is(None), When: []Clause{on}, Late: true,
			Pattern: pattern("none or a metric of validations, such as val/pass@1 or min:val/NAME",
				`none|(min:)?val(-core|-aux)?/[^\s]+`),
			Help: "keep the weights whose validation has the highest value of this metric, such as val/pass@1, or " +
				"the lowest with min: before it; of equal ones the earliest; none keeps the last weights"},
	}, penaltyKeys("eval.online", []Clause{on})...))
}

// ProblemMark stands for the problem in eval.final.prompt.
const ProblemMark = eval.ProblemMark

// protocolKey names a published protocol.
const protocolKey = "eval.final.protocol"

// byProtocol returns the default that a published protocol sets, otherwise d.
func byProtocol(d Default, value func(p eval.Protocol) any) Default {
	var cases []Case
	for _, p := range eval.Protocols() {
		cases = append(cases, when(p.Name, is(value(p))))
	}
	return by(protocolKey, d, cases...)
}

// ProtocolKeys lists the keys whose defaults eval.final.protocol sets, and the one whose default follows them.
func ProtocolKeys() []string {
	paths := []string{"eval.final.pass_k"}
	for _, k := range schema().keys {
		if k.Default.by == protocolKey {
			paths = append(paths, k.Path)
		}
	}
	return paths
}

func protocols() []string {
	names := []string{"none"}
	for _, p := range eval.Protocols() {
		names = append(names, p.Name)
	}
	return names
}

// scoreGraders lists the graders that can score a suite.
func scoreGraders() []string {
	return append(append(mathGraders(), "countdown"), eval.LikelihoodGraders()...)
}

// LikelihoodOff is a value of eval.final.likelihood. The others are Auto and eval.Ways.
const LikelihoodOff = "off"

// SourceMark stands for a problem's source in eval.final.description.
const SourceMark = "{source}"

// askingKeys say how the problems of suites are asked.
func askingKeys() []Key {
	return []Key{
		{Path: "eval.final.likelihood", Kind: Enum, Words: append([]string{Auto, LikelihoodOff},
			eval.Ways()...), Default: is(Auto), Late: true,
			Help: "compare the likelihoods of a question's options instead of sampling answers to problems of " +
				"suites: of their letters behind the prompt with all options (MMLU's way), of their texts " +
				"behind the question alone (ARC's and HellaSwag's), or of the text behind the question's blank, " +
				"a _, with each option in it (WinoGrande's); auto: as the suite's definition says, else off. " +
				"One answer for each problem: n, temperature and the like have no effect on it"},
		{Path: "eval.final.shots", Kind: Int, Null: true, Default: null(), Range: atLeast(0), Unit: "examples",
			Late: true,
			Help: "solved problems of eval.final.shots_suite in the prompts of suites, such as 5: the first ones " +
				"with the problem's source, or the first of all where one of both names no source; never the " +
				"problem itself; null: as the suite's definition says, else 0"},
		{Path: "eval.final.shots_suite", Kind: String, Default: is(""), Late: true,
			Pattern: pattern("the name of a suite, or empty", `([A-Za-z0-9][A-Za-z0-9._-]{0,63})?`),
			Help: "suite of the store with the examples, such as mmlu_dev (exp suite add mmlu_dev FILE; with " +
				"--solutions examples are answered by their worked solutions); empty: as the suite's definition says"},
		{Path: "eval.final.description", Kind: String, Default: is(""), Late: true,
			Pattern: pattern("a text, in which "+SourceMark+" may stand for the problem's source",
				`(?s)([^{}]|\{source\}|\{\})*`),
			Help: "text before the examples and the problem, such as \"Questions about {source}.\"; an empty line " +
				"follows; {source} stands for the problem's source, with spaces for underscores; empty: as the " +
				"suite's definition says; none: no text, whatever it says"},
	}
}

func finalKeys() []Key {
	return block(nil, at(EvalGen), slices.Concat([]Key{
		{Path: "eval.final.suites", Kind: String, List: true, Stages: at(EvalGen, EvalScore),
			Pattern: pattern("the name of a suite (letters, digits, '.', '_', "+
				"'-')", `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`),
			Default: by("data.test.source", is([]string{"test"}), when(None, Default{})),
			Help: "what the trained model is scored on: test and val, the run's own data, and suites of the store " +
				"(exp suite add NAME FILE)"},
		{Path: "eval.final.graders", Kind: Enum, List: true, Words: scoreGraders(), Default: is([]string{}),
			Stages: at(EvalScore),
			Help: "graders to score with side by side; they replace a suite's own and, on the run's own data, " +
				"add to the task's; the first gives the verdicts. Likelihood graders are for suites whose options " +
				"are compared (eval.final.likelihood), the others for sampled answers"},
		{Path: "eval.final.prompt", Kind: String, Default: is(ProblemMark),
			Pattern: pattern("a text with "+ProblemMark+" in it once, or none", `(?s).*\{problem\}.*|none`),
			Help: "prompt for the problems of a suite; " + ProblemMark + " stands for the problem, and alone also " +
				"for the prompt in the suite's definition; none: the problem alone, whatever the definition says. " +
				"The run's own data brings its prompts"},
		{Path: "eval.final.truncate", Kind: Enum, Words: []string{"data", "error", "left", "right", "middle"},
			Default: is("data"), Late: true,
			Help: "what to do with a prompt of a suite that is longer than data.max_prompt_tokens, as in left: " +
				"refuse the suite, or cut tokens as data.truncate does; data is what data.truncate says"},
	}, askingKeys(), []Key{
		{Path: protocolKey, Kind: Enum, Words: protocols(), Default: is("none"), Role: Expanded,
			Help: "a published protocol whose sampling settings are the defaults of n, temperature, top_k, top_p " +
				"and max_new_tokens (exp eval --protocol list)"},
		{Path: "eval.final.n", Kind: Int, Default: byProtocol(is(16), func(p eval.Protocol) any { return p.N }),
			Range: atLeast(1), Unit: "completions", Help: "completions per problem"},
		{Path: "eval.final.temperature", Kind: Float,
			Default: byProtocol(is(1.0), func(p eval.Protocol) any { return p.Temperature }), Range: atLeast(0),
			Help: "sampling temperature; 0 is greedy"},
		{Path: "eval.final.top_k", Kind: Int, Default: byProtocol(is(0), func(p eval.Protocol) any { return p.TopK }),
			Range: atLeast(0), Unit: "tokens", Help: "sample from this many likeliest tokens; 0 is off"},
		{Path: "eval.final.top_p", Kind: Float, Default: byProtocol(is(1.0),
			func(p eval.Protocol) any { return p.TopP }), Range: above(0).upTo(1), Unit: "fraction",
			Help: "sample from the likeliest tokens of this total probability; 1 is off"},
		{Path: "eval.final.max_new_tokens", Kind: Int, Default: byProtocol(sameAs("rollout.max_new_tokens"),
			func(p eval.Protocol) any { return p.MaxNewTokens }), Range: atLeast(1), Unit: "tokens",
			Help: "longest completion, its end token included"},
		{Path: "eval.final.pass_k", Kind: Int, List: true, Default: powersUpTo("eval.final.n"), Range: atLeast(1),
			Unit: "completions", Stages: at(EvalScore),
			Help: "values of k for pass@k, rising, none above n"},
		{Path: "eval.final.max_not_graded", Kind: Float, Default: is(0.01), Range: between(0, 1), Unit: "fraction",
			Role: Nonsemantic, Stages: at(EvalGen, EvalScore), Late: true,
			Help: "share of an evaluation's completions that may go without a verdict, because a grader or an " +
				"agent's episode failed; more end the run (exit 8). Scores are of the others, pass@k of problems " +
				"with k verdicts"},
		minP("eval.final", nil),
	}, penaltyKeys("eval.final", nil), scorerKeys()))
}
