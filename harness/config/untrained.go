package config

// A configuration without training problems evaluates given weights. It may omit
// keys that only training reads.

// Algorithm returns the name of the learning algorithm; None if nothing is trained.
func (r *Run) Algorithm() string {
	if r.Algo.Kind == "" {
		return None
	}
	return r.Algo.Kind
}

// untrained reports whether the run has no problems to train on.
func (r *resolver) untrained() bool {
	c := r.cell("data.train.source")
	return c.ok && c.value == None
}

// judgesAlone is Run.JudgesAlone, before there is a Run.
func (r *resolver) judgesAlone() bool {
	kind, kinds := r.cell("task.kind"), r.cell("task.mixed.kinds")
	return kind.ok && kind.value == PromptsTask || kinds.active == yes && kinds.ok &&
		only("task.mixed.kinds", PromptsTask)[0].satisfied(kinds.value)
}

// onlyTrains reports whether only training, with the choice of its problems, reads the key.
func (k *Key) onlyTrains() bool {
	for _, s := range k.Stages {
		if s != Train && s != PassRate && s != Select {
			return false
		}
	}
	return len(k.Stages) > 0
}
