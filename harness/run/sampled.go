package run

import (
	"context"
	"encoding/json"
	"reflect"

	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/stage"
)

// sampled looks for recorded completions of the generation in row that were made with
// another eval.final.n; nil if it finds none. Among several it picks the ones that leave
// the least to sample.
func (x *execution) sampled(ctx context.Context, row store.Stage) (*stage.Sampled, error) {
	wanted, n, err := withoutN(row.Params)
	if err != nil || n == 0 {
		return nil, err
	}
	like, err := x.DB.StagesLike(ctx, row)
	if err != nil {
		return nil, err
	}
	var best *stage.Sampled
	for _, s := range like {
		params, had, err := withoutN(s.Params)
		if err != nil {
			return nil, err
		}
		if had == 0 || !reflect.DeepEqual(params, wanted) {
			continue
		}
		if best == nil || min(had, n) > min(best.N, n) || min(had, n) == min(best.N, n) && had < best.N {
			best = &stage.Sampled{Completions: store.DigestOf(s.Outputs, stage.RoleCompletions), N: had}
		}
	}
	return best, nil
}

// withoutN returns a stage's settings without the number of completions, and that
// number; 0 if the store has none.
func withoutN(params json.RawMessage) (map[string]any, int, error) {
	m := map[string]any{}
	if err := json.Unmarshal(params, &m); err != nil {
		return nil, 0, err
	}
	n, _ := m[config.SamplesKey].(float64)
	delete(m, config.SamplesKey)
	return m, int(n), nil
}
