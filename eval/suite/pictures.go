package suite

// pictureSuites lists the known benchmarks of problems about pictures, with the counts of their published files.
func pictureSuites() []Known {
	const (
		greedy = "--n 1 --temperature 0"
		letter = greedy + ` --prompt $'{problem}\n\nAnswer with the option letter from the given choices directly.'`
		phrase = greedy + ` --prompt $'{problem}\nAnswer the question using a single word or phrase.'`
		boxed  = greedy + ` --prompt $'{problem}\n\nSolve it step by step and put your answer in one \\boxed{}.'`
		last   = greedy + ` --prompt $'{problem}\n\nThink step by step. End with a line "Answer: LETTER".'`
	)
	return []Known{
		{Name: "mathvista", About: "mathematics in pictures of 28 data sets, options and numbers, testmini",
			Source: "hub: AI4Math/MathVista", License: "CC-BY-SA-4.0", Counts: []int{1000},
			Graders: []string{"exp", "mathvista"}, Usual: greedy},
		{Name: "mathvision", About: "contest mathematics with pictures (MATH-Vision), test or testmini",
			Source: "hub: MathLLMs/MathVision", License: "MIT", Counts: []int{3040, 304},
			Graders: []string{"exp", "mathvision"}, Usual: boxed},
		{Name: "mathverse", About: "geometry and functions, each problem in five versions, testmini",
			Source: "hub: AI4Math/MathVerse", License: "MIT", Graders: []string{"exp", "mathvision"}, Usual: greedy},
		{Name: "mmmu", About: "college questions of 30 subjects with up to seven pictures, validation",
			Source: "hub: lmms-lab/MMMU or MMMU/MMMU", License: "Apache-2.0", Graders: []string{"exp", "mmmu"},
			Usual: letter},
		{Name: "mmmu_pro", About: "harder questions of MMMU with up to ten options, test",
			Source: "hub: MMMU/MMMU_Pro, standard (10 options)", License: "Apache-2.0", Counts: []int{1730},
			Graders: []string{"exp", "mmmu_pro"}, Usual: last},
		{Name: "mmmu_pro_vision", About: "the same, with question and options in the picture",
			Source: "hub: MMMU/MMMU_Pro, vision", License: "Apache-2.0", Counts: []int{1730},
			Graders: []string{"exp", "mmmu_pro"}, Usual: last},
		{Name: "ai2d", About: "diagrams of grade school science with four options, test", Source: "hub: lmms-lab/ai2d",
			License: "CC-BY-SA-4.0", Counts: []int{3088}, Graders: []string{"exp", "mmmu"}, Usual: letter},
		{Name: "scienceqa", About: "school science with two to five options, those with a picture, test",
			Source: "hub: lmms-lab/ScienceQA, ScienceQA-IMG", License: "CC-BY-NC-SA-4.0", Counts: []int{2017},
			Graders: []string{"exp", "mmmu"}, Usual: letter},
		{Name: "chartqa", About: "questions about charts, test",
			Source: "hub: lmms-lab/ChartQA or HuggingFaceM4/ChartQA", License: "GPL-3.0", Counts: []int{2500},
			Graders: []string{"exp", "chartqa"}, Usual: phrase},
		{Name: "wemath", About: "visual mathematics in steps, one knowledge concept each, testmini",
			Source: "hub: We-Math/We-Math", License: "CC-BY-NC-4.0", Graders: []string{"exp", "mmmu"}, Usual: letter},
		{Name: "docvqa", About: "questions about scanned documents, validation",
			Source: "hub: lmms-lab/DocVQA, DocVQA", License: "Apache-2.0", Counts: []int{5349},
			Graders: []string{"exp", "anls"}, Usual: phrase},
		{Name: "infographicvqa", About: "questions about infographics, validation",
			Source: "hub: lmms-lab/DocVQA, InfographicVQA", License: "Apache-2.0", Counts: []int{2801},
			Graders: []string{"exp", "anls"}, Usual: phrase},
		{Name: "textvqa", About: "questions about text in photographs, validation; ten people's answers",
			Source: "hub: lmms-lab/textvqa", License: "CC-BY-4.0", Counts: []int{5000},
			Graders: []string{"exp", "textvqa"}, Usual: phrase},
		{Name: "vqav2", About: "questions about photographs, validation; ten people's answers",
			Source: "hub: lmms-lab/VQAv2", License: "CC-BY-4.0", Counts: []int{214_354},
			Graders: []string{"exp", "vqav2"}, Usual: phrase},
	}
}
