package config

import "slices"

// Roles of what stages make and take.
const (
	RoleTrain       = "problems/train"
	RoleVal         = "problems/val"
	RoleProblems    = "problems" // of a suite
	RoleRollouts    = "rollouts" // recorded ones
	RoleWeights     = "weights"
	RoleReference   = "reference" // weights that the exact policy is compared with
	RoleBase        = "base"      // weights that trained adapters belong to
	RoleCurve       = "curve"     // metrics of fine-tuning, by step
	RoleFiles       = "files"     // the model's folder, each file a role of its own
	RoleCompletions = "completions"
	RolePolicy      = "policy" // exact probabilities of an enumerable task
	RoleVerdicts    = "verdicts"
	RoleScores      = "scores"
)

// Part is what a stage is for.
type Part uint8

const (
	Upstream   Part = 1 + iota // makes what training starts from; runs with other seeds share it
	Learning                   // makes the policy
	Publishing                 // makes a folder that other programs load
	Evaluating                 // measures weights; it attaches to a run and is no part of its id
)

// StageFacts is a row of the table of stages.
type StageFacts struct {
	Stage  Stage
	Part   Part
	Takes  []string // roles of inputs that stages before it make, where the configuration has them
	Makes  []string // roles of outputs, where the configuration has them
	Learns bool     // it takes steps, saves checkpoints and goes on from them
}

// stageTable is the one table of stages, in the order in which a run executes them. An
// evaluation's stages are executed for each suite.
var stageTable = []StageFacts{
	{Stage: Prepare, Part: Upstream, Makes: []string{RoleTrain, RoleVal, RoleProblems, RoleRollouts}},
	{Stage: Init, Part: Upstream, Makes: []string{RoleWeights}},
	{Stage: SFT, Part: Upstream, Learns: true,
		Takes: []string{RoleWeights, RoleTrain}, Makes: []string{RoleWeights, RoleCurve}},
	{Stage: Train, Part: Learning, Learns: true,
		Takes: []string{RoleWeights, RoleTrain, RoleRollouts, RoleVal}, Makes: []string{RoleWeights}},
	{Stage: Merge, Part: Publishing, Takes: []string{RoleWeights, RoleBase}, Makes: []string{RoleFiles}},
	{Stage: EvalGen, Part: Evaluating,
		Takes: []string{RoleWeights, RoleProblems, RoleReference}, Makes: []string{RoleCompletions, RolePolicy}},
	{Stage: EvalScore, Part: Evaluating,
		Takes: []string{RoleCompletions, RoleProblems, RolePolicy}, Makes: []string{RoleVerdicts, RoleScores}},
}

// StagesOf lists the kinds of the given parts, in order; without any, all.
func StagesOf(parts ...Part) []Stage {
	var list []Stage
	for _, f := range stageTable {
		if len(parts) == 0 || slices.Contains(parts, f.Part) {
			list = append(list, f.Stage)
		}
	}
	return list
}

// RunStages lists the kinds that make a run what it is: all but evaluations.
func RunStages() []Stage { return StagesOf(Upstream, Learning, Publishing) }

// Facts returns the stage's row; that of an unknown stage, such as the import of another
// program's run, is empty.
func (s Stage) Facts() StageFacts {
	if i := s.place(); i >= 0 {
		return stageTable[i]
	}
	return StageFacts{}
}

// After reports whether a run executes the stage after another one.
func (s Stage) After(other Stage) bool { return s.place() > other.place() }

func (s Stage) place() int {
	return slices.IndexFunc(stageTable, func(f StageFacts) bool { return f.Stage == s })
}
