package config

// Parts of a model's folder (model.part).
const (
	PartWhole  = "whole"
	PartText   = "text"   // the language model of a model of text and images
	PartImages = "images" // with the vision tower, where PartWhole leaves it out
)

// What becomes of the vision tower (model.vision).
const (
	VisionFrozen  = "frozen"
	VisionTrained = "trained"
)

// Keys of the model, its tokenizer, its optimizers and supervised fine-tuning.

func modelKeys() []Key {
	computed := at(Init, SFT, RewardModel, Prefer, Train, Merge, EvalGen)
	keys := []Key{
		{Path: "model.init", Kind: Enum, Words: []string{"random", "pretrained"}, Default: is("random"),
			Stages: at(Init),
			Help:   "where the initial weights come from"},
		{Path: "model.base", Kind: String, Role: External, Stages: at(Init),
			When: []Clause{only("model.init", "pretrained")},
			Help: "path of a Hugging Face folder, or a model on the hub, hub:ORG/NAME@REVISION, fetched by exp hub " +
				"get"},
		{Path: "model.part", Kind: Enum, Words: []string{PartWhole, PartText, PartImages}, Default: is(PartWhole),
			Stages: at(Init),
			When:   []Clause{only("model.init", "pretrained")},
			Help: "which part of the folder to load: text is the language model inside a model of text and images " +
				"(Gemma 3 and 4, Mistral 3, Qwen2-VL, Qwen2.5-VL, Qwen3-VL, GLM-4.1V to 4.6V, InternVL, Idefics3, " +
				"SmolVLM, LFM2-VL), without its vision tower. images is Qwen3.5 with its vision tower, whose whole " +
				"means the language model alone"},
		{Path: "model.vision", Kind: Enum, Words: []string{VisionFrozen, VisionTrained}, Default: is(VisionFrozen),
			Late: true, Stages: at(SFT, Prefer, Train, Merge, EvalGen),
			When: []Clause{only("model.init", "pretrained")},
			Help: "whether the vision tower of a model of text and images learns, as verl's does by default, or " +
				"stays as it is"},
		{Path: "model.adapter", Kind: String, Role: External, Default: is(None), Pattern: pattern("a path, or none", `.+`), Stages: at(Init), When: []Clause{only("model.init", "pretrained")},
			Help: "folder of LoRA adapters in PEFT's layout to start from, or hub:ORG/NAME@REVISION. With " +
				"train.lora of the same shape, training continues them; training all weights folds them in " +
				"first; an evaluation computes them next to the weights"},
		{Path: "model.digest", Kind: String, Default: is(""), Role: Nonsemantic, Stages: at(Init),
			When:    []Clause{only("model.init", "pretrained")},
			Pattern: pattern(`a digest, "sha256:" and 64 hexadecimal digits, or ""`, `|sha256:[0-9a-f]{64}`),
			Help: "digest that the initial weights must have; empty accepts any. The error about another one " +
				"says what was found"},
		{Path: "model.dtype", Kind: Enum, Words: []string{"f32", "bf16"}, Default: is("f32"), Stages: computed,
			Help: "type of matmul operands and of the KV cache; sums, master weights and the residual stream are " +
				"always f32"},
		{Path: "model.seed", Kind: Int, Default: is(0), Range: atLeast(0), Stages: at(Init),
			When: []Clause{only("model.init", "random")},
			Help: "root of the random streams that initialise weights; independent of the run's seed"},
	}
	keys = append(keys, archKeys()...)
	return append(keys,
		Key{Path: "tokenizer.kind", Kind: Enum, Words: []string{"char", "byte", "model", "file"}, Stages: computed,
			Default: by("model.init", is("char"), when("pretrained", is("model"))),
			Help: "char: one token per character of the task or its data; byte: one per byte; model: the " +
				"pretrained model's own; file: the one in tokenizer.path"},
		Key{Path: "tokenizer.path", Kind: String, Role: External, Pattern: pattern("a path", `.+`), Stages: computed, When: []Clause{only("tokenizer.kind", "file")},
			Help: "folder with a tokenizer.json, as exp tokenizer train writes it, or hub:ORG/NAME@REVISION"})
}

func archKeys() []Key {
	return block([]Clause{only("model.init", "random")}, at(Init), []Key{
		{Path: "model.arch.layers", Kind: Int, Range: between(1, 1024), Unit: "layers", Help: "decoder layers"},
		{Path: "model.arch.width", Kind: Int, Range: between(1, 65536), Unit: "channels",
			Help: "channels of the residual stream"},
		{Path: "model.arch.heads", Kind: Int, Range: between(1, 1024), Unit: "heads", Help: "query heads"},
		{Path: "model.arch.kv_heads", Kind: Int, Default: sameAs("model.arch.heads"), Range: between(1, 1024),
			Unit: "heads",
			Help: "key/value heads; fewer than heads is grouped-query attention"},
		{Path: "model.arch.head_size", Kind: Int, Range: between(2, 1024), Unit: "channels",
			Help: "channels of one head; even, for rotary positions"},
		{Path: "model.arch.ffn", Kind: Int, Range: between(1, 1<<20), Unit: "channels",
			Help: "hidden channels of the SwiGLU feed-forward block"},
		{Path: "model.arch.rope_theta", Kind: Float, Default: is(10000.0), Range: above(0),
			Help: "base of the rotary frequencies"},
		{Path: "model.arch.norm_eps", Kind: Float, Default: is(1e-6), Range: above(0).below(1),
			Help: "epsilon of RMSNorm"},
		{Path: "model.arch.qkv_bias", Kind: Bool, Default: is(false),
			Help: "biases on query, key and value, as in Qwen2"},
		{Path: "model.arch.qk_norm", Kind: Bool, Default: is(false),
			Help: "RMSNorm on query and key heads, as in Qwen3"},
		{Path: "model.arch.tie_embeddings", Kind: Bool, Default: is(true),
			Help: "one matrix for the embedding and the output projection"},
		{Path: "model.arch.init_std", Kind: Float, Default: is(0.02), Range: above(0).upTo(10),
			Help: "standard deviation of the initial weights"},
		{Path: "model.arch.max_positions", Kind: Int, Default: is(4096), Range: between(2, 1<<24), Unit: "tokens",
			Help: "longest sequence, prompt and completion"},
	})
}

// optimizer returns the keys of one optimizer. lr is the default learning rate; steps
// is the unit of the warm-up and the schedule.
func optimizer(prefix, steps string, lr Default, on []Clause, stage Stage) []Key {
	fraction := between(0, 0).below(1)
	kind := prefix + ".kind"
	moments := []Clause{except(kind, "sgd")}
	return block(on, at(stage), []Key{
		{Path: kind, Kind: Enum, Words: []string{"adamw", "sgd", "muon"}, Default: is("adamw"), Late: true,
			Help: "formula of an update: adamw has two moments; sgd one, or with momentum 0 none; muon makes the " +
				"updates of hidden matrices orthogonal and gives the other parameters to adamw"},
		{Path: prefix + ".momentum", Kind: Float, Late: true, Range: fraction,
			Default: by(kind, is(0.0), when("muon", is(0.95))), When: []Clause{only(kind, "sgd", "muon")},
			Help: "decay of the mean of gradients in sgd, and of muon's matrices"},
		{Path: prefix + ".lr", Kind: Float, Default: lr, Range: above(0).below(1),
			Help: "peak learning rate"},
		{Path: prefix + ".beta1", Kind: Float, Default: is(0.9), Range: fraction, When: moments,
			Help: "decay of the mean of gradients"},
		{Path: prefix + ".beta2", Kind: Float, Default: is(0.999), Range: fraction, When: moments,
			Help: "decay of the mean of squared gradients"},
		{Path: prefix + ".eps", Kind: Float, Default: is(1e-8), Range: above(0).below(1), When: moments,
			Help: "added to the root of the second moment"},
		{Path: prefix + ".weight_decay", Kind: Float, Default: is(0.01), Range: between(0, 1),
			Help: "decoupled decay of every parameter, per update, times the learning rate"},
		{Path: prefix + ".grad_clip", Kind: Float, Default: is(1.0), Range: atLeast(0),
			Help: "largest global norm of the gradient; 0 is off"},
		{Path: prefix + ".warmup_steps", Kind: Int, Default: is(0), Range: atLeast(0), Unit: steps,
			Help: "linear warm-up, counted in " + steps},
		{Path: prefix + ".schedule", Kind: Enum, Words: []string{"constant", "cosine", "wsd", "linear"},
			Default: is("constant"), Help: "learning rate after the warm-up; wsd stays constant for 90 %, then falls"},
		{Path: prefix + ".min_lr_ratio", Kind: Float, Default: is(0.0), Range: between(0, 1), Unit: "fraction",
			When: []Clause{only(prefix+".schedule", "cosine", "wsd", "linear")},
			Help: "where the schedule ends, as a share of the peak"},
	})
}

func sftKeys() []Key {
	on := []Clause{positive("sft.steps")}
	keys := []Key{
		{Path: "sft.steps", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "updates", Stages: at(SFT),
			Help: "updates of supervised fine-tuning before reinforcement learning; 0 skips the stage"},
	}
	conversations := []Clause{except("sft.source", None)}
	keys = append(keys, block(on, at(SFT), []Key{
		{Path: "sft.source", Kind: String, Role: External, Default: is(None), Late: true, Stages: at(Prepare),
			Pattern: pattern("none, a path ending in .jsonl, .json, .csv, .tsv or .parquet, or "+
				"hub:ORG/NAME/FILE@REVISION", `none|hub:.+|.*\.((jsonl?|csv|tsv)(\.(gz|zst))?|parquet)`),
			Help: "conversations to learn from, on the tokens of the assistant alone: a file as for " +
				"data.train.source; none takes the targets of the training problems"},
		{Path: "sft.max_tokens", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "tokens", When: conversations,
			Help: "longest conversation, its prompt included; longer ones are cut on the right. 0: no limit, and " +
				"one that is longer than the model's positions is an error"},
		{Path: "sft.mask", Kind: String, List: true, Default: is([]string{}), Late: true, Pattern: anyText(),
			Help: "two texts around what tools said within an answer, such as rollout.tools.answer: they and what " +
				"they enclose are read, not learned; empty learns all"},
		{Path: "sft.problems_per_step", Kind: Int, Default: is(64), Range: atLeast(1), Unit: "problems",
			Help: "problems per update"},
		{Path: "sft.data_size", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "problems",
			When: []Clause{only("sft.source", None)},
			Help: "learn the targets of so many training problems, the first ones; 0: of all"},
		{Path: "sft.seed", Kind: Int, Default: is(0), Range: atLeast(0),
			Help: "root of the order of examples; independent of the run's seed"},
	})...)
	return append(keys, optimizer("sft.optim", "updates", Default{}, on, SFT)...)
}

func sftChecks() []check {
	return []check{{[]string{"sft.mask"}, func(r *Run) (string, string) {
		if m := r.SFT.Mask; len(m) != 0 && (len(m) != 2 || m[0] == "" || m[1] == "") {
			return "sft.mask needs two texts, before and after", `such as ["<interpreter>", "</interpreter>"]`
		}
		return "", ""
	}}}
}

// aboutModel returns help that does not fit on a key's help line; empty for most keys.
func aboutModel(path string) string {
	switch path {
	case "sft.source":
		return aboutConversations
	case "model.adapter":
		return `
  nothing is trained        the adapters are computed next to the weights of model.base
  train.lora                training continues them; rank, alpha and targets must match
                            theirs. The reference policy keeps them as they were
  all weights are trained   they are folded in first, W + scale*B*A, for policy, critic
                            and reference policy alike; sft starts from the folded weights

  The folder holds adapter_config.json and adapter_model.safetensors as PEFT writes
  them; use_rslora, rank_pattern, alpha_pattern, layers_to_transform and
  exclude_modules are supported. Refused by name: use_dora, lora_bias, bias,
  modules_to_save, fan_in_fan_out, trainable_token_indices, target_parameters, ways of
  init_lora_weights that change the base (pissa, olora, corda, loftq), and every unknown
  setting. Adapters with several ranks or scales, or on some layers only, can be
  evaluated and folded in: a run with train.steps=0 and train.lora.rank=0 leaves a
  folder with both.
`
	case "model.vision":
		return `
  frozen trains the language model alone. trained trains the tower, too, the maps into the
  language model included, in sft, prefer and train: all of its weights, or adapters on its
  linear maps where the language model has adapters (train.lora, prefer.lora). The policy,
  the critic and a process reward model have a tower, or adapters on it, each. What the run
  writes and evaluates has the trained tower.

      --set model.base=hub:Qwen/Qwen2.5-VL-3B-Instruct@main --set model.vision=trained

  It takes 16 bytes a weight of the tower more (float32 weights, gradients and AdamW's
  moments), for each model that learns, or a weight of its adapters, and the activations of
  one image: exp run --dry-run says how many. An update takes about 3 passes more over each
  image. The optimizer and its learning rate are the language model's. Not with
  reward_model, which reads text alone.

  With adapters, targets name maps of the language model and of the tower alike, by the last
  parts of their names, and all names all of both. The tower of Qwen2.5-VL has qkv, proj,
  gate_proj, up_proj, down_proj, 0 and 2 (of merger.mlp). The map from pixels has none. Its
  adapters have no dropout: train.lora.dropout must be 0.
`
	case "model.part":
		return `
  Merging writes the text part as a plain model (Gemma3ForCausalLM, or
  MistralForCausalLM and Ministral3ForCausalLM). Images in messages are not read.

  Qwen3.5's folders hold text and images, and whole reads and writes their text part,
  as it always has. With images, problems may show images, and merging keeps the class
  and the vision tower:

      --set model.base=hub:Qwen/Qwen3.5-4B@main --set model.part=images

  In all other classes with a vision tower that exp computes (Qwen2-VL, Qwen2.5-VL,
  Qwen3-VL, GLM-4.1V to 4.6V, InternVL, Idefics3, SmolVLM, Mistral 3, Gemma 3) whole is
  text and images, and images is refused.
`
	}
	return ""
}

const aboutConversations = `
  A row is a conversation, a list of messages in the column messages or conversations:

    {"messages": [{"role": "user", "content": "6*7?"},
                  {"role": "assistant", "content": "I compute it.", "tool_calls": [{"function":
                     {"name": "code_interpreter", "arguments": {"code": "6*7"}}}]},
                  {"role": "tool", "content": "42"},
                  {"role": "assistant", "content": "It is 42."}], "tools": […]}
    {"conversations": [{"from": "human", "value": "6*7?"}, {"from": "gpt", "value": "42"}]}

  Or it is one of TRL's, with the columns prompt and completion, and only the latter is
  learned. Two lists of messages: the template writes the prompt as in sampling, answers in
  it too. Two texts are learned without a template, with data.chat: none:

    {"prompt": [{"role": "user", "content": "6*7?"}],
     "completion": [{"role": "assistant", "content": "42"}]}
    {"prompt": "6*7=", "completion": "42"}

  The chat template writes them as it does in sampling: the prompt up to the first answer,
  then turn by turn each answer with the token that ends it, and what tools and users say in
  between. Learned are the answers with their end tokens, nothing else; the loss is the mean
  over these tokens of a step. A message with "weight": 0 is read, not learned, and what
  follows the last answer is left out. The text of an answer is learned as the row has it;
  the template writes its tool_calls and reasoning_content, and it is an error if it drops
  them. Arguments may be an object or its text. Optional columns are tools (a list of
  definitions), system and id. data.max_prompt_tokens and data.truncate do not apply.

  A model of text and images reads the images of users' messages, which are never learned:

    {"conversations": [{"from": "human", "value": "<image>Find x."},
                       {"from": "gpt", "value": "3"}], "images": ["shapes/17.png"]}
    {"messages": [{"role": "user", "content": [{"type": "image", "image": "shapes/17.png"},
                                               {"type": "text", "text": "Find x."}]},
                  {"role": "assistant", "content": "3"}]}

  The column is data.image_key, images in any form that problems have them in. sft.max_tokens
  counts their tokens, and cuts no image.

  Answers with tool output in the text, as in ReTool's data, need sft.mask. With
  data.train.source: none the run ends after sft and the evaluations.

    sft: {steps: 100, source: talks.jsonl, max_tokens: 4096}
    sft: {steps: 100, source: retool.parquet, mask: ["<interpreter>", "</interpreter>"]}
`
