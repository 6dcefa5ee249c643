package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Curve is a series with its points.
type Curve struct {
	Series
	Steps  []int64   `json:"-"` // [N] ascending
	Values []float64 `json:"-"` // [N] NaN if the metric was
}

// Metrics returns the series of a run whose name matches glob (as in DB.Series), by name,
// with all points from step from to step to, both included.
func (db *DB) Metrics(ctx context.Context, run int64, glob string, from, to int64) ([]Curve, error) {
	series, err := db.Series(ctx, run, glob)
	if err != nil || len(series) == 0 {
		return nil, err
	}
	curves := make([]Curve, len(series))
	byID := make(map[int64]*Curve, len(series))
	for i, s := range series {
		curves[i] = Curve{Series: s, Steps: make([]int64, 0, s.N), Values: make([]float64, 0, s.N)}
		byID[s.ID] = &curves[i]
	}
	if err := db.readPoints(ctx, run, byID, from, to); err != nil {
		return nil, db.fail("read metrics", err)
	}
	return curves, nil
}

// MetricsOf returns the series of a run that match one of the globs with their points,
// in the order of the globs and by name within one; each series once.
func (db *DB) MetricsOf(ctx context.Context, run int64, globs []string, from, to int64) ([]Curve, error) {
	var list []Curve
	for _, g := range globs {
		curves, err := db.Metrics(ctx, run, g, from, to)
		if err != nil {
			return nil, err
		}
		for _, c := range curves {
			if !slices.ContainsFunc(list, func(had Curve) bool { return had.Name == c.Name }) {
				list = append(list, c)
			}
		}
	}
	return list, nil
}

// DetByStep returns the deterministic metrics among curves, by step and name.
func DetByStep(curves []Curve) map[int64]map[string]float64 {
	all := map[int64]map[string]float64{}
	for _, c := range curves {
		if !c.Det {
			continue
		}
		for i, step := range c.Steps {
			if all[step] == nil {
				all[step] = map[string]float64{}
			}
			all[step][c.Name] = c.Values[i]
		}
	}
	return all
}

// AllSteps is the end of an open range of steps.
const AllSteps = math.MaxInt64

// readPoints appends the points of series, by id, to their curves. A run's points are
// stored step by step, so one pass serves all series.
func (db *DB) readPoints(ctx context.Context, run int64, curves map[int64]*Curve, from, to int64) error {
	wanted, err := json.Marshal(slices.Collect(maps.Keys(curves)))
	if err != nil {
		return err
	}
	rows, err := db.r.QueryContext(ctx, `SELECT series, step, value FROM metrics
		WHERE run = ? AND step BETWEEN ? AND ? AND series IN (SELECT value FROM json_each(?)) ORDER BY step`,
		run, from, to, string(wanted))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, step int64
		var value float64
		if err := rows.Scan(&id, &step, number{&value}); err != nil {
			return err
		}
		c := curves[id]
		c.Steps, c.Values = append(c.Steps, step), append(c.Values, value)
	}
	return rows.Err()
}

// recordMetrics writes the points of a step in one statement: one statement per point
// would take three times as long.
func (w *StepWriter) recordMetrics(ctx context.Context, tx *sql.Tx, s *Step) error {
	names := w.metricNames(s)
	for len(names) > 0 {
		n := min(len(names), maxRows)
		args := append(make([]any, 0, 2+2*n), w.run, s.Det.Step)
		for _, name := range names[:n] {
			id, value, err := w.point(ctx, tx, s, name)
			if err != nil {
				return err
			}
			args = append(args, id, value)
		}
		if len(w.insert.text) == 0 || w.insert.points != n {
			w.insert.points, w.insert.text = n, insertPoints(n)
		}
		if _, err := tx.ExecContext(ctx, w.insert.text, args...); err != nil {
			return err
		}
		names = names[n:]
	}
	return nil
}

// metricNames returns the sorted names of a step's metrics. Most steps have the same
// names as the step before, which need no sorting.
func (w *StepWriter) metricNames(s *Step) []string {
	same := len(w.names) == len(s.Det.Metrics)+len(s.Measured)
	for i := 0; same && i < len(w.names); i++ {
		if _, same = s.Det.Metrics[w.names[i]]; !same {
			_, same = s.Measured[w.names[i]]
		}
	}
	if !same {
		w.names = sortedKeys(s.Det.Metrics, s.Measured)
	}
	return w.names
}

// point returns the series and the value of one metric of a step.
func (w *StepWriter) point(ctx context.Context, tx *sql.Tx, s *Step, name string) (int64, float64, error) {
	value, det := s.Det.Metrics[name]
	if measured, both := s.Measured[name]; both {
		if det {
			return 0, 0, fmt.Errorf("%w: metric %s is deterministic and measured", ErrConstraint, name)
		}
		value = measured
	}
	id, err := w.seriesID(ctx, tx, name, det)
	return id, value, err
}

// maxRows is the number of rows that one statement or transaction inserts.
const maxRows = 1000

// insertPoints returns the statement for n points. Its parameters are the run, the step,
// and a series and a value per point.
func insertPoints(n int) string {
	b := []byte(`INSERT INTO metrics (run, step, series, value) VALUES `)
	for i := range n {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, "(?1, ?2, ?"...)
		b = strconv.AppendInt(b, int64(3+2*i), 10)
		b = append(b, ", ?"...)
		b = strconv.AppendInt(b, int64(4+2*i), 10)
		b = append(b, ')')
	}
	return string(b)
}
