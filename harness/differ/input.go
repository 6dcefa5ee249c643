package differ

import (
	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/stage"
)

// InputChange is an initial input that differs: problems, initial weights, tokenizer,
// adapter, chat template.
type InputChange struct {
	Name string       `json:"name"`
	A    ident.Digest `json:"a"` // zero if the run has none
	B    ident.Digest `json:"b"`
}

// inputs compares the problems and what training started from.
func (r *differ) inputs() error {
	r.d.Inputs = []InputChange{}
	var digests [2]map[string]ident.Digest
	var names []string
	for i := range digests {
		digests[i] = map[string]ident.Digest{}
		for k := range r.stages[i] {
			st := &r.stages[i][k]
			for _, io := range beginning(st) {
				name := inputName(st.Kind, io.Role)
				if name == "" {
					continue
				}
				if digests[0][name].IsZero() && digests[i][name].IsZero() {
					names = append(names, name)
				}
				digests[i][name] = io.Digest
			}
		}
	}
	for _, n := range names {
		if a, b := digests[0][n], digests[1][n]; a != b {
			r.d.Inputs = append(r.d.Inputs, InputChange{n, a, b})
		}
	}
	return nil
}

// beginning returns the initial inputs that a stage reads or makes.
func beginning(st *store.Stage) []store.IO {
	if st.Kind == string(config.Prepare) {
		return st.Outputs
	}
	return st.Inputs
}

// inputName names a stage's input, or an output of prepare; "" if it does not count.
func inputName(kind, role string) string {
	switch config.Stage(kind) {
	case config.Prepare:
		return role
	case config.Init:
		if role == stage.RoleAdapter || role == stage.RoleArchitecture || role == stage.RoleVision {
			return role
		}
	case config.Train:
		switch role {
		case stage.RoleTemplate, stage.RoleTools, stage.RoleStops:
			return role
		case stage.RoleWeights, stage.RoleTokenizer:
			return "initial " + role
		}
	}
	return ""
}
