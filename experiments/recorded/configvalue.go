package recorded

import (
	"context"

	"exp/experiments/store"
)

// ConfigValue returns a value of a run's configuration; nil if it has none.
func ConfigValue(ctx context.Context, db *store.DB, run store.Run, key string) any {
	field := store.Field{Kind: store.FieldConfig, Name: key}
	runs, values, err := db.RunFields(ctx, store.RunQuery{IDPrefix: run.RID.String()}, []store.Field{field})
	if err != nil || len(runs) != 1 {
		return nil
	}
	return values[0][0]
}
