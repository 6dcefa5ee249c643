package forecast

import (
	"slices"

	"exp/harness/config"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train/generate"
	"exp/train/model"
)

// OnlySuites reports whether a run does nothing but evaluate benchmarks. The run's own data, and training, may need
// more memory than they.
func OnlySuites(c *config.Run) bool {
	return c.Data.Train.Source == config.None && len(stage.ForeignSuites(c)) == len(c.Eval.Final.Suites)
}

// ShowSuites corrects the memory of a run that does nothing else by what the problems of its benchmarks need: of the
// benchmark that needs most. Show comes after it.
func (e *Estimate) ShowSuites(c *config.Run, needs []stage.SuiteNeeds) {
	if len(needs) == 0 || !OnlySuites(c) {
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

// showPrompts corrects how much of its arrays training on a CPU touches by the tokens of the longest prompt; 0 if that
// is not known.
func (e *Estimate) showPrompts(c *config.Run, arch model.Config, prompt int) {
	if prompt == 0 || prompt >= c.Data.MaxPromptTokens || e.onGPU || c.Data.Train.Source == config.None {
		return
	}
	longest := longestOf(config.Train, c, arch)
	w := stage.Learners(c, max(1, e.Ranks))
	limit, seen := capacityOf(config.Train, c, longest, w), capacityOf(config.Train, c,
		min(longest, prompt+c.Rollout.MaxNewTokens), w)
	limit.scoredTokens, limit.trainedTokens = seen.scoredTokens, seen.trainedTokens
	_, heads := policyOf(c)
	heads = stage.WithAdapters(heads, c, arch)
	operand := stage.Operand(c)
	parts(e.Memory).reach(c, arch, heads, limit, operand, w)
	at := stage.Placement{CacheTokens: cacheTokens(config.Train, c, arch, longest, w)}
	parts(e.Memory).shorten(engineOf(config.Train, c, arch, longest, w), at, arch, heads, operand, w.Rollout, prompt)
}

// shorten sets how much of a CPU's cache prompts of some tokens leave untouched.
func (p parts) shorten(o generate.Options, at stage.Placement, arch model.Config, h model.Heads,
	operand kernels.DType, shared, prompt int) {
	o.CacheTokens = at.CacheTokens
	all, _ := o.Bytes(arch, h, operand, shared)
	o.Calls = slices.Clone(o.Calls)
	for i := range o.Calls {
		o.Calls[i].Prompt = min(o.Calls[i].Prompt, prompt)
	}
	touched, _ := o.Bytes(arch, h, operand, shared)
	for i := range p {
		if p[i].Name == string(kernels.CacheRoom) {
			p[i].Untouched = int64(all - touched)
		}
	}
}
