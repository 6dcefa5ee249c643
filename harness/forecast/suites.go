package forecast

import (
	"slices"

	"exp/harness/config"
	"exp/harness/stage"
)

// ShowSuites corrects the memory of a run that only evaluates benchmarks by what their problems need: of the one that
// needs most. Show comes after it. The run's own data, and training, may need more, so they leave the plan as it is.
func (e *Estimate) ShowSuites(c *config.Run, needs []stage.SuiteNeeds) {
	own := len(stage.ForeignSuites(c)) < len(c.Eval.Final.Suites)
	if len(needs) == 0 || own || c.Data.Train.Source != config.None {
		return
	}
	arch, err := architectureOf(c, 0)
	if err != nil {
		return
	}
	longest := longestOf(config.EvalGen, c, arch)
	at := stage.Placement{CacheTokens: e.CacheTokens}
	if at.CacheTokens == 0 {
		at.CacheTokens = cacheTokens(config.EvalGen, c, arch, longest, stage.Everyone(c, 1))
	}
	var most []Part
	for i := range needs {
		if list := evalMemory(c, arch, longest, at, &needs[i]); sumParts(list) >= sumParts(most) {
			most = list
		}
	}
	for _, p := range e.Memory {
		if slices.Contains(towerParts(), p.Name) {
			most = append(most, p)
		}
	}
	e.Memory = most
}
