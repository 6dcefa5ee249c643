package forecast

import (
	"math"

	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/prompt"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train/model"
	"exp/train/rl"
)

// Learning is the work of a stage that learns from examples (config.SFT, config.RewardModel or config.Prefer).
type Learning struct {
	Stage  config.Stage `json:"stage"`
	Steps  int          `json:"steps"`
	Tokens int          `json:"tokens_per_step"` // on average, or at full length
	// Average says that Tokens is an average of the examples, which Show has counted.
	Average bool    `json:"average,omitempty"`
	Phases  []Phase `json:"phases"`            // of a step
	Once    []Phase `json:"once,omitempty"`    // apart from steps, all together
	Seconds float64 `json:"seconds,omitempty"` // of the stage; 0: not known for this device

	work rankPlan
}

// examples are what a step reads on average.
type examples struct {
	tokens    float64 // of all
	scored    float64 // of them, that get log-probs
	sequences float64
}

// addLearning adds the work of a stage on some ranks whose memory is planned, for examples of full length.
func (e *Estimate) addLearning(kind config.Stage, c *config.Run, arch model.Config, ranks int, at planned) {
	if ranks == 1 && !e.rates.known() {
		return
	}
	w := stage.Everyone(c, ranks)
	x := Learning{Stage: kind, work: rankPlan{c: c, arch: arch, heads: learningHeads(kind, c, arch), ranks: w.Ranks,
		shared:  w.Tensor,
		operand: float64(stage.Operand(c).Size()), float: float64(kernels.F32.Size()), rates: e.rates,
		onGPU: device.UsesGPU(c), offload: at.placement.Offload, optim: stage.PolicyOptim(kind, c)}}
	n := 0
	x.Steps, n = stepsOf(kind, c)
	tokens := float64(n) * float64(longestOf(kind, c, arch))
	x.plan(examples{tokens, tokens, float64(n)}, x.Steps*n, 0)
	e.Learning = append(e.Learning, x)
}

// learningHeads returns the heads of what a stage teaches.
func learningHeads(kind config.Stage, c *config.Run, arch model.Config) model.Heads {
	switch kind {
	case config.Prefer:
		return stage.PreferHeads(c, arch)
	case config.RewardModel:
		return stage.RewardModelHeads(c, arch)
	}
	return model.Heads{LM: true}
}

// stepsOf returns the steps of a stage, and the sequences of one.
func stepsOf(kind config.Stage, c *config.Run) (steps, sequences int) {
	switch kind {
	case config.SFT:
		return c.SFT.Steps, c.SFT.ProblemsPerStep
	case config.RewardModel:
		if c.RewardModel.OfSteps() {
			return c.RewardModel.Steps, c.RewardModel.AnswersPerStep
		}
		return c.RewardModel.Steps, 2 * c.RewardModel.PairsPerStep
	}
	if c.Prefer.Unpaired() {
		return c.Prefer.Steps, c.Prefer.AnswersPerStep
	}
	return c.Prefer.Steps, 2 * c.Prefer.PairsPerStep
}

// plan sets the phases for steps that read such examples: of all, used are different sequences, and validations read
// validated ones.
func (x *Learning) plan(step examples, used, validated int) {
	p := &x.work
	x.Tokens = int(math.Ceil(step.tokens))
	p.tokens, p.scored, p.sequences = step.tokens, step.scored, step.sequences
	p.length = step.tokens / max(1, step.sequences)
	x.Once = nil
	each := 1 / max(1, step.sequences)
	switch {
	case x.Stage == config.RewardModel && validated > 0:
		x.Once = append(x.Once, p.pass("validations", float64(validated)*each, false))
	case x.Stage == config.Prefer && (p.c.Prefer.Unpaired() || stage.PreferConfig(p.c).Reference):
		x.Once = append(x.Once, p.pass("log-probs of the reference", float64(used)*each, false))
	}
	x.Phases = nil
	if x.Stage == config.Prefer && p.c.Prefer.Unpaired() && stage.UnpairedConfig(p.c).Loss.Loss == rl.KTO {
		// each answer under another prompt, in each step and, under the reference, before all
		x.Phases = append(x.Phases, p.pass("answers to other prompts", 2, false))
	}
	x.Phases = append(x.Phases, p.pass("forward and backward passes", 1, true), p.update(1))
	x.Seconds = float64(x.Steps)*secondsOf(x.Phases) + secondsOf(x.Once)
}

func secondsOf(list []Phase) (sum float64) {
	for _, p := range list {
		sum += p.Seconds
	}
	return sum
}

// shownExamples are the examples of a file.
type shownExamples struct {
	sequences int
	tokens    int // of all
	scored    int // of them, that get log-probs
	longest   int // sequence, in tokens
	validated int // sequences that validations read in all
}

// examplesOf returns the examples of a stage's file; without sequences if it has none.
func examplesOf(kind config.Stage, c *config.Run, prompts prompt.Plan) (x shownExamples) {
	switch s, pairs, a := prompts.SFT, prompts.Prefer, prompts.Answers; {
	case kind == config.SFT && s != nil:
		return shownExamples{s.Conversations, s.Tokens, s.Learned, s.Longest, 0}
	case kind == config.Prefer && pairs != nil:
		return shownExamples{2 * pairs.Pairs, pairs.Tokens, pairs.Learned, pairs.Longest, 0}
	case kind == config.Prefer && a != nil:
		return shownExamples{a.Chosen + a.Rejected, a.Tokens, a.Learned, a.Longest, 0}
	case kind != config.RewardModel:
		return x
	}
	if r := prompts.Rated; r != nil {
		x.sequences, x.tokens, x.longest = 2*r.Pairs, r.Tokens, r.Longest
		if v := prompts.HeldOut; v != nil {
			x.validated = validations(c) * 2 * v.Pairs
		}
	} else if r := prompts.Stepped; r != nil {
		x.sequences, x.tokens, x.longest = r.Answers, r.Tokens, r.Longest
		if v := prompts.SteppedVal; v != nil {
			x.validated = validations(c) * v.Answers
		}
	}
	return x
}

// showExamples corrects the work of stages whose examples lie in files by what these hold, and how much of their
// activations they reach.
func (e *Estimate) showExamples(c *config.Run, arch model.Config, prompts prompt.Plan) {
	ranks := max(1, e.Ranks)
	for _, kind := range tuningStages(c) {
		x := examplesOf(kind, c, prompts)
		if x.sequences == 0 {
			continue
		}
		w := stage.Everyone(c, ranks)
		limit := capacityOf(kind, c, longestOf(kind, c, arch), w)
		seen := capacityOf(kind, c, min(x.longest, longestOf(kind, c, arch)), w)
		limit.scoredTokens, limit.trainedTokens = seen.scoredTokens, seen.trainedTokens
		parts(e.partsOf(kind)).reach(c, arch, learningHeads(kind, c, arch), limit, stage.Operand(c), w)
		for i := range e.Learning {
			if y := &e.Learning[i]; y.Stage == kind {
				_, n := stepsOf(kind, c)
				share := float64(n) / float64(x.sequences)
				y.Average = true
				y.plan(examples{share * float64(x.tokens), share * float64(x.scored), float64(n)},
					min(y.Steps*n, x.sequences), x.validated)
			}
		}
	}
}

// validations returns how often a reward model is validated.
func validations(c *config.Run) int {
	n := 1 // after the last step
	if every := c.RewardModel.ValEvery; every > 0 {
		n += (c.RewardModel.Steps - 1) / every
	}
	return n
}
