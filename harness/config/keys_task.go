package config

import (
	"slices"
	"time"
)

// Keys of the task, its data and its reward.

func taskKeys() []Key {
	keys := []Key{
		{Path: "task.kind", Kind: Enum, Words: allTasks(),
			Stages: at(Prepare, Train, EvalScore),
			Help:   "what the problems are and how completions are graded"},
	}
	for _, k := range taskKinds() {
		has := only("task.kind", k.name)
		switch {
		case k.part && k.files:
			has = append(has, only("task.mixed.kinds", k.name)...)
		case k.part:
			for _, split := range []string{"train", "val", "test"} {
				has = append(has, named("task.mixed.generate."+split, k.name)...)
			}
		}
		keys = append(keys, block([]Clause{has}, k.stages, k.keys())...)
	}
	return keys
}

func countdownKeys() []Key {
	return []Key{
		{Path: "task.countdown.min_numbers", Kind: Int, Default: is(3), Range: between(2, 6), Unit: "numbers",
			Help: "fewest numbers that a problem gives"},
		{Path: "task.countdown.max_numbers", Kind: Int, Default: is(4), Range: between(2, 6), Unit: "numbers",
			Help: "most numbers that a problem gives"},
		{Path: "task.countdown.largest_number", Kind: Int, Default: is(20), Range: between(1, 9999),
			Help: "given numbers are drawn from 1 to this"},
		{Path: "task.countdown.largest_target", Kind: Int, Default: is(60), Range: between(1, 99999),
			Help: "targets lie between 1 and this"},
		{Path: "task.countdown.operators", Kind: String, Default: is("+-*/"), Stages: at(Prepare, Train, EvalScore),
			Pattern: pattern("some of the signs + - * /", `[-+*/]{1,4}`),
			Help:    "operators that an expression may use"},
		{Path: "task.countdown.use", Kind: Enum, Words: []string{"any", "all"}, Default: is("any"),
			Stages: at(Prepare, Train, EvalScore),
			Help:   "any: each given number at most once; all: each exactly once"},
		{Path: "task.countdown.min_solutions", Kind: Int, Default: is(1), Range: atLeast(1), Unit: "solutions",
			Help: "problems with fewer distinct solutions are drawn again"},
	}
}

func wordsKeys() []Key {
	return []Key{
		{Path: "task.words.largest_number", Kind: Int, Default: is(20), Range: between(2, 9999),
			Help: "numbers in the story are drawn from 1 to this"},
		{Path: "task.words.steps", Kind: Int, Default: is(2), Range: between(1, 4), Unit: "operations",
			Help: "arithmetic operations of every problem"},
	}
}

func storiesKeys() []Key {
	return []Key{
		{Path: "task.stories.min_steps", Kind: Int, Default: is(2), Range: between(1, 6), Unit: "equations",
			Help: "fewest equations of a solution"},
		{Path: "task.stories.max_steps", Kind: Int, Default: is(4), Range: between(1, 6), Unit: "equations",
			Help: "most equations of a solution"},
		{Path: "task.stories.largest_number", Kind: Int, Default: is(100), Range: between(20, 9999),
			Help: "every number of a story and of its solution lies between 2 and this"},
	}
}

func outcomesKeys() []Key {
	return []Key{
		{Path: "task.outcomes.count", Kind: Int, Default: is(48), Range: between(2, 62), Unit: "outcomes",
			Help: "size of the toy: one prompt, this many one-token answers"},
		{Path: "task.outcomes.modes", Kind: Objects, List: true,
			Fields: []Key{
				{Path: "center", Kind: Int, Range: atLeast(0), Unit: "outcomes",
					Help: "outcome at the bump's center, counted from 0"},
				{Path: "width", Kind: Float, Range: above(0), Unit: "outcomes", Help: "its standard deviation"},
				{Path: "height", Kind: Float, Range: above(0), Help: "its reward at the center"},
			},
			Help: "bumps of the reward: r(y) = sum of height * exp(-(y - center)^2 / (2 width^2))"},
		{Path: "task.outcomes.beta", Kind: Float, Default: is(15.0), Range: above(0), Stages: at(EvalScore),
			Help: "reward scale of the optimum, reference * exp(beta r), that evaluation compares policies with"},
	}
}

func functionsKeys() []Key {
	return []Key{
		{Path: "task.functions.arguments", Kind: Int, Default: is(2), Range: between(1, 3), Unit: "arguments",
			Help: "arguments of the linear function to find from examples"},
		{Path: "task.functions.largest_number", Kind: Int, Default: is(9), Range: between(2, 99),
			Help: "factors and the constant are drawn from minus this to this, inputs of hidden tests from 0 to this"},
		{Path: "task.functions.hidden_tests", Kind: Int, Default: is(6), Range: between(0, 100), Unit: "tests",
			Help: "hidden inputs on which a program must be right"},
	}
}

// mathGraders lists the graders of eval/task; a test compares the two lists.
func mathGraders() []string {
	return []string{"exp", "math_dapo", "math_dapo_original", "math_dapo_box", "math_reward", "gsm8k_strict",
		"gsm8k_flexible", "search_r1_em", "prime", "prime_math", "geo3k", "gpqa", "mmlu_pro", "mmmu", "mmmu_pro",
		"chartqa", "mathvista", "mathvision", "anls", "vqav2", "textvqa", "exp_strict", "verl"}
}

func mathKeys() []Key {
	return []Key{
		{Path: "task.math.grader", Kind: Enum, Words: mathGraders(), Default: is("math_dapo"),
			Help: "grader that compares answers with the gold ones, in training and evaluation; verl chooses it by " +
				"the problem's data source"},
	}
}

func codeKeys() []Key {
	return []Key{
		{Path: "task.code.cpu_limit", Kind: Duration, Default: is(10 * time.Second),
			Range: above(0).upTo(float64(time.Hour)),
			Help:  "CPU time that a program may use for one test"},
		{Path: "task.code.mem_limit", Kind: Size, Default: is(4 << 30), Range: atLeast(1 << 20),
			Help: "memory that a program and its processes may use"},
		{Path: "task.code.rules", Kind: Enum, Words: []string{"strict", "upstream"}, Default: is("strict"),
			Help: "how outputs are compared: strict is ours; upstream is how published scores were made, and " +
				"accepts some wrong outputs"},
		{Path: "task.code.partial", Kind: Bool, Default: is(false),
			Help: "run all tests and scale the reward from reward.wrong to reward.correct by the share that pass"},
	}
}

func instructionsKeys() []Key {
	return []Key{
		{Path: "task.instructions.rules", Kind: Enum, Words: []string{"strict", "loose"}, Default: is("strict"),
			Help: "strict: a completion follows an instruction as it stands, after any thinking up to </think>; " +
				"loose: also without asterisks, or without its first or last line (IFEval's loose accuracy)"},
		{Path: "task.instructions.partial", Kind: Bool, Default: is(false),
			Help: "scale the reward from reward.wrong to reward.correct by the share of a prompt's instructions " +
				"that a completion follows; false rewards only those that follow all"},
	}
}

func promptsKeys() []Key {
	return []Key{
		{Path: "task.prompts.pass", Kind: Float, Default: is(1.0), Judges: true,
			Help: "score from which a completion counts as right (acc, pass@k), unless reward.command says itself " +
				"what is right"},
	}
}

func mixedKeys() []Key {
	return []Key{
		{Path: "task.mixed.kinds", Kind: Values, Default: is(map[string]any{}), Stages: at(Prepare, Train, EvalScore),
			Help: "kind of each row's problem, " + either(MixedParts()) + ", by its data source: a name, or a " +
				"pattern in which * stands for any text; or by its file, such as chats.jsonl, if no name matches " +
				"that; * alone is for all others"},
		{Path: "task.mixed.column", Kind: String, Default: is("data_source"), Pattern: pattern("the name of a column", `.+`),
			Help: "column of the files with the data source of a row, a text"},
		generateKey("train", "to train on"),
		generateKey("val", "for the online evaluation"),
		generateKey("test", "for the final evaluation"),
	}
}

// generateKey returns the key of the problems that MixedTask makes for a split.
func generateKey(split, help string) Key {
	return Key{Path: "task.mixed.generate." + split, Kind: Values, Default: is(map[string]any{}), Late: true,
		Help: "how many problems of each kind, " + either(GeneratedParts()) + ", to generate " + help + ", such as " +
			"{countdown: 2000}; they join the rows of data." + split + ".source, which may also be generated"}
}

// MixedParts lists the kinds of problems that MixedTask may read from files.
func MixedParts() []string { return tasksThat(func(k *taskKind) bool { return k.part && k.files }) }

// GeneratedParts lists the kinds of problems that MixedTask may make.
func GeneratedParts() []string {
	return tasksThat(func(k *taskKind) bool { return k.part && !k.files })
}

// Words of data.*.source that are not paths.
const (
	Generated = "generated" // made by the task from data.seed
	None      = "none"      // no such split
	Auto      = "auto"      // of data.chat: the template of the model's folder
	Always    = "always"    // of reward.chat: that template, for plain prompts too
)

func dataKeys() []Key {
	keys := splitKeys("train", 8192, Default{}, "problems that the policy is trained on", Prepare)
	keys = append(keys, splitKeys("val", 128, is(None), "problems of the online evaluation", Prepare)...)
	keys = append(keys, splitKeys("test", 256, is(None), "problems of the final evaluation", Prepare)...)
	var made, drawn, files Clause
	for _, split := range []string{"train", "val", "test"} {
		made = append(made, only("data."+split+".source", Generated)...)
		made = append(made, positive("task.mixed.generate."+split)...)
		drawn = append(drawn, positive("data."+split+".max_samples")...)
		files = append(files, except("data."+split+".source", Generated, None)...)
	}
	keys = append(keys, rowKeys(made, drawn, files)...)
	keys = append(keys, []Key{
		{Path: "data.max_prompt_tokens", Kind: Int, Default: is(2048), Range: atLeast(1), Unit: "tokens",
			Stages: at(SFT, Prefer, Train, EvalGen),
			Help:   "longest prompt"},
		{Path: "data.truncate", Kind: Enum, Words: []string{"error", "left", "right", "middle"},
			Default: is("error"), Stages: at(SFT, Prefer, Train, EvalGen),
			Help: "what to do with a longer prompt: refuse the data, or cut tokens at its left end, its right end " +
				"or in the middle"},
		{Path: "data.filter_overlong", Kind: Bool, Default: is(false), Stages: at(Prepare),
			Help: "skip problems whose prompt is longer than data.max_prompt_tokens, and count them"},
		{Path: "data.order", Kind: Enum, Words: []string{"shuffled", "sequential"}, Default: is("shuffled"),
			Stages: at(Train),
			Help: "order of the training problems in each pass; shuffled draws a new one per pass from the run's " +
				"seed"},
	}...)
	return slices.Concat(keys, passRateKeys(), chatKeys(), imageKeys(), videoKeys())
}

// imageKeys returns the keys of images that problems show.
func imageKeys() []Key {
	pixels := func(path string, help string) Key {
		return Key{Path: path, Kind: Int, Default: is(0), Range: atLeast(0), Unit: "pixels", Late: true,
			Stages: at(SFT, PassRate, Train, EvalGen), When: []Clause{only("model.init", "pretrained")},
			Help: help + "; 0 takes the model folder's, in preprocessor_config.json. A Qwen2.5-VL reads 28×28 " +
				"pixels as one token. Of InternVL both count whole tiles, such as 448×448 pixels each. Idefics3 and " +
				"SmolVLM bring the longer side to the root of the maximum, such as 512 of 262144; Mistral 3 " +
				"reduces it to that. They have no minimum, and Gemma 3 takes neither"}
	}
	return []Key{
		{Path: "data.image_key", Kind: String, Default: is("images"), Stages: at(Prepare), Late: true,
			Pattern: pattern("the name of a column, or none", `.+`),
			When:    []Clause{only("task.kind", illustrated()...)},
			Help: "column of the files with the images of a row (verl's image_key): a list, or one, of {bytes, " +
				"path}, paths from the data file's folder, data: URLs or base64; each <image> in the prompt stands " +
				"for one. images also takes the columns of benchmarks such as MathVista and MMMU, and an image in " +
				"the column image, before the text; none leaves images out"},
		pixels("data.image_min_pixels", "smaller images are enlarged to this many pixels, such as 3136"),
		pixels("data.image_max_pixels", "larger images are reduced to this many pixels, such as 1003520"),
	}
}

// videoKeys returns the keys of videos that problems show.
func videoKeys() []Key {
	read := func(path string, kind Kind, zero any, unit, help string) Key {
		return Key{Path: path, Kind: kind, Default: is(zero), Range: atLeast(0), Unit: unit, Late: true,
			Stages: at(SFT, PassRate, Train, EvalGen), When: []Clause{only("model.init", "pretrained")}, Help: help}
	}
	return []Key{
		{Path: "data.video_key", Kind: String, Default: is("videos"), Stages: at(Prepare), Late: true,
			Pattern: pattern("the name of a column, or none", `.+`),
			When:    []Clause{only("task.kind", illustrated()...)},
			Help: "column of the files with the videos of a row (verl's video_key): a list, or one, of lists of " +
				"frames, folders of frames, GIF animations, or {frames, fps} with either; each <video> in the " +
				"prompt stands for one. mp4 and the like are cut into frames first. none leaves videos out"},
		read("data.video_fps", Float, 0.0, "frames/s", "frames of a second that are read of a video which says how "+
			"many it has; 0 takes the model folder's, or 2"),
		read("data.video_max_frames", Int, 0, "frames", "most frames that are read of a video; 0 takes the model "+
			"folder's, or 768"),
		read("data.video_max_pixels", Int, 0, "pixels", "larger frames are reduced to this many pixels; for Qwen3-VL "+
			"and Qwen3.5 it counts all frames of a video together. 0 takes the model folder's, in "+
			"video_preprocessor_config.json or preprocessor_config.json"),
	}
}

// rowKeys returns the keys that choose problems. They depend on whether some are made, some rows are drawn,
// and some are read from files.
func rowKeys(made, drawn, files Clause) []Key {
	return []Key{
		{Path: "data.seed", Kind: Int, Default: is(0), Range: atLeast(0), Stages: at(Prepare),
			When: []Clause{append(made, drawn...)},
			Help: "root of the random streams that generate problems, and of the draw of data.*.max_samples rows; " +
				"independent of the run's seed"},
		{Path: "data.prompt_key", Kind: String, Default: is(Auto), Stages: at(Prepare),
			Pattern: pattern("auto or the name of a column", `.+`),
			When:    []Clause{only("task.kind", fromFiles()...), files},
			Help: "column of the files that holds the prompt, a text or a list of messages (verl's prompt_key); " +
				"auto finds it: prompt, problem, question and others, depending on the other columns"},
		{Path: "data.keep", Kind: String, List: true, Default: is([]string{}), Stages: at(Prepare),
			Pattern: pattern("the name of a column", `.+`),
			When: []Clause{only("task.kind", tasksThat(func(k *taskKind) bool { return k.columns })...),
				slices.Concat(only("task.kind", PromptsTask), only("task.mixed.kinds", PromptsTask),
					except("data.train.source", Generated, None))},
			Help: "further columns of the files to keep with each problem, such as extra_info, for " +
				"reward.command, which finds them in extra.columns, or for algo.teacher_key; the gold answer's own " +
				"may then be any JSON. Of task math only training keeps them"},
		{Path: "data.select", Kind: Enum, Words: []string{"random", "first"}, Default: is("random"),
			Stages: at(Prepare), When: []Clause{drawn},
			Help: "rows that data.*.max_samples takes: random draws them from data.seed, the same rows in the same " +
				"order as verl with shuffle and this seed; first takes them from the start of the file"},
	}
}

// chatKeys returns the keys that turn a problem into a prompt.
func chatKeys() []Key {
	chat := []Clause{except("data.chat", None)}
	return block(nil, at(SFT, RewardModel, Prefer, Train, EvalGen), []Key{
		{Path: "data.chat", Kind: String, Role: External, Default: is(Auto), Pattern: pattern("auto, none or the path of a template", `.+`),
			Help: "chat template of prompts: auto takes the one in the model's folder, or plain text if it has " +
				"none; none is plain text; or a file (.jinja)"},
		{Path: "data.system", Kind: String, Default: is(""), Pattern: pattern("a text", `(?s).*`), When: chat,
			Help: "system message for problems without one; empty adds none (the template may have its own)"},
		{Path: "data.tools", Kind: String, JSON: true, Role: External, Default: is(None),
			Pattern: pattern("a list of definitions, the path of a JSON file with one, or none", `(?s).+`), When: chat,
			Help: "tools to offer in chats: definitions as the template takes them, {type: function, function: " +
				"{name, description, parameters}}, or a JSON file with a list of them; a problem's own list, its " +
				"field tools, takes precedence"},
		{Path: "data.template_vars", Kind: Values, Default: is(map[string]any{}), When: chat,
			Help: "extra variables for the template, such as {enable_thinking: false}"},
		{Path: "data.template_date", Kind: String, Default: is("2024-07-26"), Pattern: pattern("a day, 2024-07-26", `[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])`), When: chat,
			Help: "date that templates take for today, so that a prompt has the same tokens tomorrow"},
		{Path: "data.escape_special", Kind: Bool, Default: is(false),
			Help: "keep text of a problem that spells a token, such as <|im_end|>, as text; false reads it as the " +
				"token, as other programs do"},
	})
}

// splitKeys returns the keys of one part of the data. size is the default number
// of generated problems, otherwise the default source for tasks that cannot generate.
func splitKeys(split string, size int, otherwise Default, help string, stages ...Stage) []Key {
	source := "data." + split + ".source"
	var made []Case
	for _, name := range tasksThat(func(k *taskKind) bool { return !k.files }) {
		made = append(made, when(name, is(Generated)))
	}
	return []Key{
		{Path: source, Kind: String, Role: External, Stages: stages,
			Default: by("task.kind", otherwise, made...),
			Pattern: pattern("generated, none, a path ending in .jsonl, .json, .csv, .tsv or .parquet, or "+
				"hub:ORG/NAME/FILE@REVISION", `generated|none|hub:.+|.*\.((jsonl?|csv|tsv)(\.(gz|zst))?|parquet)`),
			Help: help + ": generated by the task, none, a file (.jsonl, .json, .csv, .tsv, also with .gz or .zst; " +
				".parquet; * in its name means all that match), or a file on the hub, " +
				"hub:ORG/NAME/FILE@REVISION, fetched by exp hub get"},
		{Path: "data." + split + ".more", Kind: String, List: true, Role: External, Stages: stages,
			Default: is([]string{}), When: []Clause{except(source, Generated, None)},
			Pattern: pattern("a path ending in .jsonl, .json, .csv, .tsv or .parquet, or hub:ORG/NAME/FILE@REVISION",
				`hub:.+|.*\.((jsonl?|csv|tsv)(\.(gz|zst))?|parquet)`),
			Help: "further files of problems, read after " + source + " as if they were one (verl's list of files); " +
				"each may have other columns"},
		{Path: "data." + split + ".digest", Kind: String, Default: is(""), Role: Nonsemantic, Stages: stages,
			When:    []Clause{except(source, Generated, None)},
			Pattern: pattern(`a digest, "sha256:" and 64 hexadecimal digits, or ""`, `|sha256:[0-9a-f]{64}`),
			Help:    "digest that the problems of the file must have; empty accepts any"},
		{Path: "data." + split + ".max_samples", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "rows",
			Stages: stages, When: []Clause{except(source, Generated, None)},
			Help: "how many rows of the file to take, as data.select says, before repeated and overlong ones are " +
				"left out (verl's max_samples); 0 takes all"},
		{Path: "data." + split + ".size", Kind: Int, Unit: "problems", Range: atLeast(0), Stages: stages,
			When:    []Clause{append(except(source, Generated), except("task.kind", MixedTask)...)},
			Default: by(source, is(0), when(Generated, is(size)), when(None, is(0))),
			Help:    "how many problems to generate, or to take from the start of the file; 0 takes the whole file"},
	}
}

// aboutTask returns help that does not fit on a key's help line; empty for most keys.
func aboutTask(path string) string {
	switch path {
	case "task.mixed.kinds":
		return aboutMixed
	case "task.mixed.generate.train", "task.mixed.generate.val", "task.mixed.generate.test":
		return aboutGenerate
	case "data.train.source", "data.val.source", "data.test.source":
		return `
  A row of a file is a problem and its gold answer, for task math in one of these forms:

    {"question": "6*7?", "answer": "42"}
    {"id": "a1", "problem": "6*7?", "answer": ["42", "42.0"], "target": "6*7 = \\boxed{42}"}
    {"prompt": [{"role": "user", "content": "6*7?"}], "gold": "42"}
    {"data_source": "mine", "prompt": [{"role": "user", "content": "6*7?"}],
     "reward_model": {"ground_truth": "42"}, "extra_info": {"index": 7}}

  The problem is in question, problem, prompt or messages, as a text or a chat, and the gold
  answer in answer, gold, ground_truth or reward_model.ground_truth; GSM8K's answers after
  ####, MATH's in a solution's last \boxed{…} and the fields of other published files are
  found too. A list holds equally right answers. A row with images (data.image_key) has an
  <image> in its text for each:
  {"problem": "<image>Find x.", "answer": "3", "images": ["shapes/17.png"]}.
  Optional are id (default: the row's number from 0), tools, and target, a right completion
  that sft.steps learns (default: the solution, if the file is of a form that has one).
  data.keep names further columns for a reward of your own.

  Multiple-choice questions have the fields of MMLU, MMLU-Pro, GPQA, ARC, CommonsenseQA or
  other published files:

    {"question": "Which gas do plants take up?", "choices": ["oxygen", "carbon dioxide"],
     "answer": 1}

  The answer may be a letter, an option, or its number from 0. The problem's text ends in
  the lines A) oxygen and B) carbon dioxide; the gold answers are B and (B) carbon dioxide.
  Where the right option stands in the same column always, as in GPQA, options are
  shuffled, in an order that depends on the question and the options alone.

  A row of countdown is {"nums": [3, 5], "target": 8, "solution": "3+5"}, or has numbers and
  target in verl's reward_model.ground_truth. Task code takes the rows of HumanEval, MBPP,
  EvalPlus, LiveCodeBench, CodeElo, TACO, APPS, CodeContests, verl and DeepCoder. Task
  instructions takes the rows of IFEval and IFBench, {"prompt": "Write 300 words without
  commas.", "instruction_id_list": ["punctuation:no_comma", …], "kwargs": [{}, …]}, or
  of open-instruct, with the same in ground_truth. Training skips rows
  without an answer or tests, and equal ones (answers and data.keep included).
`
	}
	return ""
}

// aboutGenerate is the help of task.mixed.generate.
const aboutGenerate = `
    task:
      kind: mixed
      mixed:
        kinds: {openai/gsm8k: math}
        generate:
          train: {countdown: 2000, words: 500}
          test: {countdown: 256}
      countdown: {max_numbers: 3}
    data:
      train: {source: math.jsonl}
      test: {source: generated}

  Each kind makes, checks and grades its problems as it does alone, by its own keys. With the
  same data.seed, test: {countdown: 256} gives the test problems of a run with task.kind countdown
  and data.test.size 256. Splits have no generated problem in common. They are spread evenly among
  the rows of the split's files, so its first problems (sft.data_size, eval.online.problems) are of
  all kinds. data.*.size and max_samples are about files alone; without files a split's source is
  generated, and task.mixed.kinds may be left out. A kind may be scored and not trained on.
`

// aboutMixed is the help of task.mixed.kinds.
const aboutMixed = `
    task:
      kind: mixed
      mixed:
        kinds: {openai/gsm8k: math, "if_*": instructions, chats.jsonl: prompts}
      math: {grader: math_dapo}
    reward: {kind: model, weights: models/judge}
    data:
      train: {source: math.jsonl, more: [if.jsonl, chats.jsonl]}

  A row has the kind of its data_source (task.mixed.column): the name itself first, then the
  pattern that matches it. A name that ends as data files do (.jsonl, .parquet …) is a file's,
  for rows whose data_source has no entry; chats/train.jsonl also names its folder. A row
  without a kind, or that two patterns match, is an error. Each kind reads, checks and grades
  its rows as it does alone, by its own keys. Other kinds of problems can be generated:
  task.mixed.generate.train.

  With reward.kind task verdicts are the rewards. With prompts among the kinds, reward.kind
  scores these, and verdicts pay reward.correct, reward.wrong or reward.format for all other
  problems. Group baselines (grpo, rloo …) compare completions of one problem, so scales do
  not meet; a critic, a baseline of the batch (reinforce_plus_plus) and means over steps mix them:
  choose reward.correct and reward.wrong on the model's scale. Without prompts,
  reward.kind scores all problems.
`
