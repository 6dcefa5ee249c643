package main

import "exp/cmd/exp/cli"

// glossary explains the words that the commands print without explaining them.
func glossary() cli.Topic {
	return cli.Topic{
		Name:  "glossary",
		Usage: "explain the words in tables and messages",
		Text: "Metrics are explained by exp metrics --explain [NAME], configuration keys by exp config explain KEY. " +
			"Everything else that a newcomer trips over:",
		Rows: [][2]string{
			{"run", "one configuration trained and evaluated with one seed"},
			{"experiment", "the runs that differ in their seed only"},
			{"xid", "experiment id: a digest of configuration, data, initial weights and code, without the seed"},
			{"arm", "one side of a comparison: usually all runs of an experiment"},
			{"treatment", "the settings that the arms of a comparison are meant to differ in"},
			{"stage", "a step of the pipeline (prepare, sft, train, merge, eval.gen, …); every run that needs " +
				"its stored result reuses it"},
			{"cached", "the stage was not executed, because its result was already in the store"},
			{"digest", "the SHA-256 of some content; tables show its first 8 digits"},
			{"blob", "a stored file, named by its digest"},
			{"chain", "a digest of a run's steps so far (tokens, log-probs, rewards, weights, metrics): a repeat " +
				"that ends in the same chain repeated every bit"},
			{"divergence", "a step or stage, executed again, gave other bits than the recorded ones"},
			{"cpu/fma, cpu/bf16", "numerics classes: all machines and kernels of a class compute the same bits. " +
				"cpu/fma is float32 on any supported CPU, cpu/bf16 multiplies matrices in bfloat16"},
			{"foreign", "imported from another framework's files: metrics and completions, but no chain, " +
				"configuration or weights"},
			{"suite", "a benchmark: problems with gold answers, and the graders that score them"},
			{"pass@k", "the chance that at least one of k completions is correct"},
			{"maj@n, avg@n", "the score of the most frequent of n answers, where the first seen wins a tie " +
				"(majority); the mean score of n answers"},
			{"maj@k, best@k", "of an evaluation with a scorer: the chance that the most frequent answer, or the " +
				"answer with the best score, of k completions is correct, over all choices of k; ties are shared"},
			{"scorer", "what scores each completion of an evaluation, to choose among them: a reward model, a " +
				"program or a judge (exp eval --score-by, eval.final.scorer)"},
			{"distinct", "different correct answers per problem, a measure of diversity"},
			{"2+ ways", "the share of problems with two or more different correct answers"},
			{"entropy", "in comparisons the answers' entropy: how evenly a problem's completions spread over " +
				"different ones. actor/entropy and token entropy are the policy's, per token"},
			{"gain", "the score after training minus the score before"},
			{"± and intervals", "95 % confidence intervals, over problems and, with at least 3 runs an arm, over " +
				"seeds; ± reaches to the farther end"},
			{"p, p Holm", "the p value of a difference, and the same corrected for the number of tests"},
			{"MDE", "minimum detectable effect: the true difference that would give p ≤ 0.05 80 % of the " +
				"time. A verdict needs p Holm, so with many tests it takes more"},
			{"ev, expl var", "explained variance: the share of the variance of returns that the critic predicts; " +
				"1 is perfect, at most 0 is useless"},
			{"dropped", "inherited settings that have no effect in this configuration"},
		},
	}
}
