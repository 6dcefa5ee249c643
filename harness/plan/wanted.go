package plan

import "exp/harness/config"

// Wanted is a run that somebody asks for.
type Wanted struct {
	Config *config.Resolved
	Seed   int64
}

// WantedOf lists the runs of configurations and seeds; nil seeds mean the configured ones.
func WantedOf(configs []*config.Resolved, seeds []int64) []Wanted {
	var list []Wanted
	for _, r := range configs {
		own := seeds
		if own == nil {
			own = []int64{r.Run.Seed}
		}
		for _, s := range own {
			list = append(list, Wanted{r, s})
		}
	}
	return list
}
