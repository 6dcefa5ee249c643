package audit

import (
	"context"
	"slices"

	"exp/experiments/recorded"
	"exp/experiments/store"
)

// GradersOf names the graders of a run's rewards and of its evaluations.
func GradersOf(ctx context.Context, db *store.DB, run store.Run) []string {
	var list []string
	add := func(v any) {
		if name, ok := v.(string); ok && name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	add(recorded.ConfigValue(ctx, db, run, "task.math.grader"))
	switch graders := recorded.ConfigValue(ctx, db, run, "eval.final.graders").(type) {
	case []any:
		for _, g := range graders {
			add(g)
		}
	case string:
		add(graders)
	}
	return list
}
