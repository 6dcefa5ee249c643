package sweep

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"exp/harness/config"
)

// maxName is how long a run's name may be.
const maxName = 64

// Load loads the configuration of each arm, named by the configuration and the arm's label. It
// returns an error if two arms are one run: they have the same values, or differ only in keys that
// no trained stage reads. flag is where the arms come from, for errors.
func Load(in config.Input, arms []Arm, flag string) ([]*config.Resolved, error) {
	var list []*config.Resolved
	for i, arm := range arms {
		own := in
		own.Sets = slices.Concat(in.Sets, arm.Sets)
		r, err := config.Load(own)
		if err != nil {
			return nil, ofArms(err, len(in.Sets), flag)
		}
		if arm.Label != "" {
			for j, earlier := range list {
				if same(earlier, r) {
					return nil, config.Errors{r.ErrorAt("", config.CodeConflict, fmt.Sprintf(
						"%s: the arms %s and %s are the same run", flag, arms[j].Label, arm.Label),
						"an axis varies what training or its inputs depend on")}
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

// same reports whether two configurations make the same run.
func same(a, b *config.Resolved) bool {
	for _, kind := range config.RunStages() {
		if !reflect.DeepEqual(a.Params(kind), b.Params(kind)) {
			return false
		}
	}
	for _, k := range b.Keys() {
		x, _ := a.Value(k.Path)
		y, _ := b.Value(k.Path)
		if k.Role == config.External && !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

// ofArms attributes errors in an arm's own expressions to the flag. The first given expressions are
// the user's; of the rest, every second one only names a key for comparisons.
func ofArms(err error, given int, flag string) error {
	var list config.Errors
	if !errors.As(err, &list) {
		return err
	}
	var out config.Errors
	for _, e := range list {
		var n int
		if _, err := fmt.Sscanf(e.Source, "--set #%d", &n); err == nil && n > given {
			if (n-given)%2 == 0 {
				continue
			}
			e.Source = flag
		}
		out = append(out, e)
	}
	return out
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
