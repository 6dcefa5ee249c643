package differ

import (
	"maps"
	"slices"

	"exp/experiments/recorded"
)

// EnvChange is a property of the machine or the program that differs, as text; empty if
// a run lacks it.
type EnvChange struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// env compares the machine and program of the newest attempts.
func (r *differ) env() error {
	r.d.Env = []EnvChange{}
	var texts [2]map[string]string
	var names []string
	for i, run := range r.runs {
		list, err := r.db.Attempts(r.ctx, run.ID)
		if err != nil {
			return err
		}
		texts[i] = map[string]string{}
		if len(list) == 0 {
			continue
		}
		last := list[len(list)-1]
		set := func(name string, value any) {
			if texts[0][name] == "" && texts[i][name] == "" {
				names = append(names, name)
			}
			texts[i][name] = r.o.EnvText(name, value)
		}
		set("host", last.Host)
		set("device", last.Device)
		set("build", last.Build)
		env, _ := recorded.Decode(last.Env).(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(env)) {
			if name != "args" { // command-line arguments are not a property of the machine
				set(name, env[name])
			}
		}
	}
	for _, n := range names {
		if a, b := texts[0][n], texts[1][n]; a != b {
			r.d.Env = append(r.d.Env, EnvChange{n, a, b})
		}
	}
	return nil
}
