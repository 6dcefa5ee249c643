package sweep

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"exp/harness/config"
)

// maxName is how long a run's name may be.
const maxName = 64

// Load loads the configuration of each arm, named by the configuration and the arm's label. It
// returns an error if two arms have the same values.
func Load(in config.Input, arms []Arm) ([]*config.Resolved, error) {
	var list []*config.Resolved
	for i, arm := range arms {
		own := in
		own.Sets = slices.Concat(in.Sets, arm.Sets)
		r, err := config.Load(own)
		if err != nil {
			return nil, err
		}
		if arm.Label != "" {
			for j, earlier := range list {
				if same(arm, earlier, r) {
					return nil, config.Errors{r.ErrorAt(arm.Keys[0], config.CodeConflict, fmt.Sprintf(
						"the arms %s and %s of the grid are the same", arms[j].Label, arm.Label), "")}
				}
			}
			own.Sets = append(own.Sets, "name="+armName(r.Run.Name, arm.Label, i))
			if r, err = config.Load(own); err != nil {
				return nil, err
			}
		}
		list = append(list, r)
	}
	return list, nil
}

// same reports whether the keys of the axes have the same values in two configurations.
func same(arm Arm, a, b *config.Resolved) bool {
	for _, key := range arm.Keys {
		x, _ := a.Value(key)
		y, _ := b.Value(key)
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

// armName joins a configuration's name and a label; where that is too long, the arm's number
// takes the label's place.
func armName(name, label string, i int) string {
	if len(name)+1+len(label) <= maxName {
		return name + "_" + label
	}
	number := fmt.Sprintf("_arm%d", i+1)
	return strings.TrimRight(name[:min(len(name), maxName-len(number))], "-_.") + number
}
