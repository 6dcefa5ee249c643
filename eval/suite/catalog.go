package suite

import (
	"slices"

	"exp/eval/task"
)

// Known holds what the program knows about a benchmark without its problems.
type Known struct {
	Name    string
	About   string // one line
	Source  string // where to get the problems
	License string
	Counts  []int // accepted numbers of problems; nil: any
	Graders []string
	// Usual are the flags of exp eval with which published scores of base models come; empty: none are usual.
	Usual string
	// Versions maps the digest (SHA-256 in hexadecimal) of the problems to the name of a published copy.
	Versions map[string]string
}

// Version names the copy with this digest; "" if it is unknown.
func (k Known) Version(digest string) string { return k.Versions[digest] }

// ByName finds a benchmark of the catalog.
func ByName(name string) (Known, bool) {
	list := Catalog()
	i := slices.IndexFunc(list, func(k Known) bool { return k.Name == name })
	if i < 0 {
		return Known{}, false
	}
	return list[i], true
}

// ByDigest finds the benchmark of the catalog that has a copy with this digest.
func ByDigest(digest string) (Known, bool) {
	list := Catalog()
	i := slices.IndexFunc(list, func(k Known) bool { return k.Version(digest) != "" })
	if i < 0 {
		return Known{}, false
	}
	return list[i], true
}

// Catalog lists the known benchmarks, with the counts of published evaluations: AMC 2023 has 40 problems
// (a file with 83 is another selection), OlympiadBench 674 or 675 open problems in English without
// pictures.
func Catalog() []Known {
	contest := []string{"exp", "math_dapo", "math_reward"}
	programs := CodeGraders()
	four, more := choiceGraders(4), choiceGraders(10)
	school := []string{"exp", "gsm8k_strict", "gsm8k_flexible"}
	const questions = "--likelihood option --prompt $'Question: {problem}\\nAnswer:'"
	return append([]Known{
		{Name: "gsm8k", About: "grade school word problems, test", Source: "github.com/openai/grade-school-math",
			License: "MIT", Counts: []int{1319}, Graders: school,
			Usual: "--n 1 --temperature 0 --prompt $'Question: {problem}\\nAnswer:' --shots 8 --shots-suite " +
				"gsm8k_solved",
			Versions: version("ecfc2119b3cb9f5d47b5cbc7bbcfe7980fee72067c073603f43aaf5bc0eb3cf1",
				"openai/grade-school-math@3101c7d50724")},
		{Name: "gsm8k-train", About: "grade school word problems, train",
			Source: "github.com/openai/grade-school-math", License: "MIT", Counts: []int{7473}, Graders: school,
			Versions: version("fa6bec04f4d6b0cbd86e74dbc228ab6865ac780bda47dd7b6506b7d9a57040aa",
				"openai/grade-school-math@3101c7d50724")},
		{Name: "math500", About: "500 problems of the MATH test set", Source: "hub: HuggingFaceH4/MATH-500",
			License: "MIT", Counts: []int{500}, Graders: contest,
			Versions: version("ddb05763d14cee8ae4ee51161aa6d447a38e95869074eaf2eb6b323c4f9b0ac2",
				"hkust-nlp/simpleRL-reason@cf1c7858bfc1")},
		{Name: "math", About: "contest mathematics, test", Source: "github.com/hendrycks/math", License: "MIT",
			Counts: []int{5000}, Graders: contest,
			Versions: version("73dde94150c1283f1ec708dca6b204b8642184db9ddac2d9a099af1f97d05fe1",
				"microsoft/ToRA@213c1c995038")},
		{Name: "math-train", About: "contest mathematics, train", Source: "github.com/hendrycks/math", License: "MIT",
			Counts: []int{7500, 7470}, Graders: contest,
			Versions: version("093e99be9f6727fc0a081688d6f6cf19dd38f275757062b035fef7c8badf3bf4",
				"agentica-project/rllm@874daa4acb7f")},
		{Name: "aime24", About: "AIME 2024, I and II", Source: "hub: Maxwell-Jia/AIME_2024", License: "problems: MAA",
			Counts: []int{30}, Graders: contest,
			Versions: version("16771d255d29db47adc5d1b2f5c12d91390a87b3ca5c79e30f970a838b2d9b8f",
				"QwenLM/Qwen2.5-Math@a45202bd16f1")},
		{Name: "aime25", About: "AIME 2025, I and II", Source: "hub: yentinglin/aime_2025", License: "problems: MAA",
			Counts: []int{30}, Graders: contest,
			Versions: version("22be7c16e4b9df33320a6d75e3a1d6df25474f18882d2ea817cbcb1ed1de019c",
				"NVIDIA/NeMo-Skills@0b012df8a09c")},
		{Name: "amc23", About: "AMC 2023, 40 problems", Source: "hub: zwhe99/amc23", License: "problems: MAA",
			Counts: []int{40}, Graders: contest,
			Versions: version("cb6a8a1b013229ab6c8758ac66099f604cf5beda33518baf46291380c265650c",
				"QwenLM/Qwen2.5-Math@a45202bd16f1")},
		{Name: "minerva", About: "Minerva's undergraduate science problems", Source: "hub: math-ai/minervamath",
			License: "", Counts: []int{272}, Graders: contest},
		{Name: "olympiad", About: "OlympiadBench, open mathematics in English without pictures",
			Source: "github.com/OpenBMB/OlympiadBench", License: "MIT", Counts: []int{674, 675}, Graders: contest,
			Versions: version("5204c926f603a5f8a4301ace1bad27c73144d8beffc6c20089ba49051d95b332",
				"QwenLM/Qwen2.5-Math@a45202bd16f1")},
		{Name: "svamp", About: "elementary word problems with variations", Source: "github.com/arkilpatel/SVAMP",
			License: "MIT", Counts: []int{1000}, Graders: contest,
			Versions: version("8a478856723a5511237471b6da8379cd9922a3f48be19e5c35ce31b4b8d884ad",
				"QwenLM/Qwen2.5-Math@a45202bd16f1")},
		{Name: "countdown", About: "reach a number from given numbers, each used once",
			Source: "hub: Jiayi-Pan/Countdown-Tasks-3to4", License: "", Graders: []string{countdownGrader}},

		{Name: "gpqa_diamond", About: "graduate questions in science with four options, 198 that experts agree on",
			Source: "hub: Idavidrein/gpqa", License: "CC-BY-4.0", Counts: []int{198}, Graders: four},
		{Name: "gpqa_main", About: "graduate questions in science with four options", Source: "hub: Idavidrein/gpqa",
			License: "CC-BY-4.0", Counts: []int{448}, Graders: four},
		{Name: "mmlu", About: "questions of 57 subjects with four options, test", Source: "hub: cais/mmlu",
			License: "MIT", Graders: four, Usual: "--likelihood letter --prompt $'{problem}\\nAnswer:' --shots 5 " +
				"--shots-suite mmlu_dev --description 'The following are multiple choice questions (with answers) " +
				"about {source}.'"},
		{Name: "mmlu_pro", About: "harder questions of 14 subjects with up to ten options, test",
			Source: "hub: TIGER-Lab/MMLU-Pro", License: "MIT", Graders: more},
		{Name: "supergpqa", About: "graduate questions of 285 subjects with up to ten options",
			Source: "hub: m-a-p/SuperGPQA", License: "ODC-BY-1.0", Graders: more},
		{Name: "arc_challenge", About: "grade school science with four options, the harder part, test",
			Source: "hub: allenai/ai2_arc", License: "CC-BY-SA-4.0", Graders: four,
			Usual: questions + " --shots 25 --shots-suite arc_challenge_train"},
		{Name: "arc_easy", About: "grade school science with four options, the easier part, test",
			Source: "hub: allenai/ai2_arc", License: "CC-BY-SA-4.0", Graders: four, Usual: questions},
		{Name: "hellaswag", About: "how does the scene go on? Four endings, validation",
			Source: "hub: Rowan/hellaswag", License: "MIT", Graders: four,
			Usual: "--likelihood option --shots 10 --shots-suite hellaswag_train"},
		{Name: "winogrande", About: "which of two words belongs into the blank of a sentence, validation",
			Source: "hub: allenai/winogrande", License: "CC-BY", Graders: four,
			Usual: "--likelihood blank --shots 5 --shots-suite winogrande_train"},
		{Name: "boolq", About: "yes or no, by a passage, validation", Source: "hub: google/boolq",
			License: "CC-BY-SA-3.0", Graders: four,
			Usual: "--likelihood option --prompt $'{problem}\nAnswer:'"},
		{Name: "siqa", About: "what people do, feel or want, three answers, validation",
			Source: "hub: allenai/social_i_qa", License: "", Graders: four,
			Usual: "--likelihood option --prompt $'Q: {problem}\nA:'"},
		{Name: "copa", About: "which of two sentences is the cause or the effect, validation",
			Source: "hub: aps/super_glue", License: "BSD-2-Clause", Graders: four, Usual: "--likelihood option"},
		{Name: "piqa", About: "which of two ways reaches a goal in the physical world, validation",
			Source: "hub: ybisk/piqa", License: "AFL-3.0", Graders: four, Usual: questions},
		{Name: "openbookqa", About: "elementary science with four options, test", Source: "hub: allenai/openbookqa",
			License: "Apache-2.0", Graders: four, Usual: "--likelihood option"},
		{Name: "truthfulqa", About: "questions that invite false answers, one right option (MC1)",
			Source: "hub: truthfulqa/truthful_qa", License: "Apache-2.0", Graders: more,
			Usual: "--likelihood option --prompt $'Q: {problem}\\nA:'"},
		{Name: "commonsenseqa", About: "questions of common sense with five options, validation",
			Source: "hub: tau/commonsense_qa", License: "MIT", Graders: more,
			Usual: "--likelihood letter --prompt $'Question: {problem}\\nAnswer:'"},
		{Name: "medqa", About: "questions of the US medical licensing examination, test",
			Source: "hub: GBaker/MedQA-USMLE-4-options", License: "CC-BY-4.0", Graders: four},

		{Name: "ifeval", About: "prompts with instructions that a program can check", Source: "hub: google/IFEval",
			License: "Apache-2.0", Counts: []int{541}, Graders: task.InstructionGraders()},
		{Name: "ifbench", About: "prompts with other such instructions, for models trained on IFEval's",
			Source: "github.com/allenai/IFBench", License: "ODC-BY-1.0", Counts: []int{300},
			Graders: task.InstructionGraders()},

		{Name: "humaneval", About: "write the body of a Python function, given its head",
			Source: "github.com/openai/human-eval", License: "MIT", Counts: []int{164}, Graders: programs,
			Versions: version("c7c56c5df6ae5a10eca7c2009b308a7d868ce01bf6f2696e0959c2a66571f854",
				"openai/human-eval@6d43fb980f9f")},
		{Name: "humanevalplus", About: "HumanEval with the inputs of EvalPlus; FlowRL's copy has 163",
			Source: "hub: evalplus/humanevalplus", License: "Apache-2.0", Counts: []int{164, 163}, Graders: programs},
		{Name: "mbpp", About: "write a Python function, given a sentence and three tests; 974 in total, 500 in test",
			Source: "github.com/google-research/google-research/tree/master/mbpp", License: "CC-BY-4.0",
			Counts: []int{974, 500, 427, 257}, Graders: programs,
			Versions: version("b86651dc4d8be58293ae8d77a6f41a2f9b1f2056c69007a0e5c29301d9cac187",
				"deepseek-ai/DeepSeek-Coder@2f9fd85927c6")},
		{Name: "mbppplus", About: "MBPP with the inputs of EvalPlus", Source: "hub: evalplus/mbppplus",
			License: "Apache-2.0", Counts: []int{378, 399}, Graders: programs},
		{Name: "livecodebench", About: "contest problems by date; v1 to v6, or FlowRL's window of 279",
			Source: "hub: livecodebench/code_generation_lite", License: "problems: their contests",
			Counts: []int{400, 511, 612, 713, 880, 1055, 279}, Graders: programs},
		{Name: "codeforces", About: "CodeElo: Codeforces problems with the tests of their statements only",
			Source: "hub: Qwen/CodeElo", License: "problems: Codeforces", Counts: []int{408}, Graders: programs},
		{Name: "taco", About: "contest problems with many tests, test", Source: "hub: BAAI/TACO",
			License: "Apache-2.0", Counts: []int{1000}, Graders: programs},
		{Name: "apps", About: "problems from introductory to competition, test", Source: "hub: codeparrot/apps",
			License: "MIT", Counts: []int{5000}, Graders: programs},
		{Name: "codecontests", About: "AlphaCode's contest problems, test",
			Source: "github.com/google-deepmind/code_contests", License: "CC-BY-4.0", Counts: []int{165},
			Graders: programs},
		{Name: "deepcoder", About: "DeepCoder's mix for training: TACO, PrimeIntellect, LiveCodeBench",
			Source: "hub: agentica-org/DeepCoder-Preview-Dataset", License: "MIT", Graders: programs},
	}, pictureSuites()...)
}

// version returns the versions of a suite whose one known file has this digest.
func version(digest, origin string) map[string]string { return map[string]string{digest: origin} }
