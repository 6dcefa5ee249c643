package config

import "slices"

// Roles of the inputs and outputs of stages.
const (
	RoleTrain         = "problems/train"
	RoleVal           = "problems/val"
	RoleTest          = "problems/test"
	RoleProblems      = "problems"      // of a suite
	RoleRollouts      = "rollouts"      // recorded ones
	RoleConversations = "conversations" // to fine-tune on
	RolePairs         = "pairs"         // to prefer an answer in, or single answers with labels
	RoleImages        = "images"        // that problems show
	RoleRated         = "rated pairs"   // that a reward model learns from
	RoleRatedVal      = "rated pairs/val"
	RoleScorer        = "reward model"
	RoleWeights       = "weights"
	RoleReference     = "reference"  // weights to compare the exact policy with
	RoleBase          = "base"       // weights that trained adapters belong to
	RoleCurve         = "curve"      // metrics of fine-tuning, by step
	RolePassRates     = "pass rates" // of training problems before training
	RoleFiles         = "files"      // the model's folder; each file has its own role
	RoleCompletions   = "completions"
	RolePolicy        = "policy"   // exact probabilities of an enumerable task
	RoleExamples      = "examples" // problems of eval.final.shots_suite
	RoleVerdicts      = "verdicts"
	RoleScores        = "scores"
)

// Part is the purpose of a stage.
type Part uint8

const (
	Upstream   Part = 1 + iota // prepares what training starts from; shared by all seeds
	Learning                   // trains the policy
	Publishing                 // writes a folder for other programs
	Evaluating                 // measures weights; not part of the run's id
)

// StageFacts is a row of the table of stages.
type StageFacts struct {
	Stage  Stage
	Part   Part
	Takes  []string // roles of inputs from earlier stages, if the configuration has them
	Makes  []string // roles of outputs, if the configuration has them
	Learns bool     // takes steps, saves checkpoints and resumes from them
	Rates  bool     // samples training problems with all ranks, and resumes where it was
}

// Shared reports whether all ranks of a run execute the stage together.
func (f StageFacts) Shared() bool { return f.Learns || f.Rates }

// stageTable lists the stages in execution order. The stages of an evaluation run once
// per suite.
var stageTable = []StageFacts{
	{Stage: Prepare, Part: Upstream, Makes: []string{RoleTrain, RoleVal, RoleProblems, RoleRollouts,
		RoleConversations, RolePairs, RoleRated, RoleRatedVal, RolePassRates, RoleImages}},
	{Stage: Init, Part: Upstream, Makes: []string{RoleWeights}},
	{Stage: SFT, Part: Upstream, Learns: true,
		Takes: []string{RoleWeights, RoleTrain, RoleImages, RoleConversations},
		Makes: []string{RoleWeights, RoleCurve}},
	{Stage: RewardModel, Part: Upstream, Learns: true, Takes: []string{RoleWeights, RoleRated, RoleRatedVal},
		Makes: []string{RoleScorer, RoleCurve}},
	{Stage: Prefer, Part: Upstream, Learns: true, Takes: []string{RoleWeights, RoleImages, RolePairs},
		Makes: []string{RoleWeights, RoleCurve}},
	{Stage: PassRate, Part: Upstream, Rates: true, Takes: []string{RoleWeights, RoleTrain, RoleImages, RoleScorer},
		Makes: []string{RolePassRates}},
	{Stage: Select, Part: Upstream, Takes: []string{RoleTrain, RolePassRates}, Makes: []string{RoleTrain}},
	{Stage: Train, Part: Learning, Learns: true,
		Takes: []string{RoleWeights, RoleTrain, RoleRollouts, RoleVal, RoleImages, RoleScorer},
		Makes: []string{RoleWeights}},
	{Stage: Merge, Part: Publishing, Takes: []string{RoleWeights, RoleBase, RoleScorer},
		Makes: []string{RoleFiles}},
	{Stage: EvalGen, Part: Evaluating,
		Takes: []string{RoleWeights, RoleProblems, RoleImages, RoleReference},
		Makes: []string{RoleCompletions, RolePolicy}},
	{Stage: EvalScore, Part: Evaluating,
		Takes: []string{RoleCompletions, RoleProblems, RolePolicy, RoleScorer},
		Makes: []string{RoleVerdicts, RoleScores}},
}

// StagesOf returns the kinds of the given parts in order; without parts, all.
func StagesOf(parts ...Part) []Stage {
	var list []Stage
	for _, f := range stageTable {
		if len(parts) == 0 || slices.Contains(parts, f.Part) {
			list = append(list, f.Stage)
		}
	}
	return list
}

// RunStages returns the kinds that define a run: all but evaluations.
func RunStages() []Stage { return StagesOf(Upstream, Learning, Publishing) }

// Facts returns the stage's row; empty for an unknown stage, such as the import of
// another program's run.
func (s Stage) Facts() StageFacts {
	if i := s.place(); i >= 0 {
		return stageTable[i]
	}
	return StageFacts{}
}

// After reports whether a run executes the stage after the other one.
func (s Stage) After(other Stage) bool { return s.place() > other.place() }

func (s Stage) place() int {
	return slices.IndexFunc(stageTable, func(f StageFacts) bool { return f.Stage == s })
}
