package stage

// tensor returns how many neighbouring ranks share products in training.
func (e *Env) tensor() int {
	if e.Ranks == nil {
		return 1
	}
	return e.run().Compute.TensorParallel
}

// rolloutTensor returns how many neighbouring ranks share products in sampling.
func (e *Env) rolloutTensor() int {
	if e.Ranks == nil {
		return 1
	}
	return e.run().Compute.SampleTensor()
}

// samplers returns how many ranks only sample.
func (e *Env) samplers() int {
	if e.Ranks == nil || e.Ranks.Size() == 1 {
		return 0
	}
	return e.run().Compute.RolloutRanks
}

// firstSampler returns the first rank that samples.
func (e *Env) firstSampler() int {
	if n := e.samplers(); n > 0 {
		return e.Ranks.Size() - n
	}
	return 0
}

// onlySamples reports whether this rank learns nothing.
func (e *Env) onlySamples() bool { return e.samplers() > 0 && e.Ranks.Rank() >= e.firstSampler() }

// validates reports whether this rank samples for validations: all do, but if some only sample, these wait, and
// of the others the first one samples with those that share its products.
func (e *Env) validates() bool {
	return e.run().Eval.Online.EverySteps > 0 && (e.samplers() == 0 || e.Ranks.Rank() < e.tensor())
}

// samples reports whether this rank needs a sampler.
func (e *Env) samples() bool { return e.samplers() == 0 || e.onlySamples() || e.validates() }

// judges reports whether this rank grades alone what judges, commands and reward models grade.
func (e *Env) judges() bool { return e.Ranks == nil || e.Ranks.Rank() == e.firstSampler() }
