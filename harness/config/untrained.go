package config

// A configuration without problems to train on evaluates weights as they are. It says
// nothing of how they are learned: keys that only training reads may be left out.

// Algorithm names the learning algorithm; None where nothing is trained.
func (r *Run) Algorithm() string {
	if r.Algo.Kind == "" {
		return None
	}
	return r.Algo.Kind
}

// untrained reports whether there are no problems to train on.
func (r *resolver) untrained() bool {
	c := r.cell("data.train.source")
	return c.ok && c.value == None
}

// onlyTrains reports whether training alone reads the key.
func (k *Key) onlyTrains() bool {
	for _, s := range k.Stages {
		if s != Train {
			return false
		}
	}
	return len(k.Stages) > 0
}
