package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"

	"exp/experiments/ident"
)

// Disagreement is a column that does not follow from the rows that it sums up.
type Disagreement struct {
	Table  string // "series"
	Row    string // which of its rows, for people: "actor/entropy"; empty: the run's
	Column string // "last"
	// Recorded is the column's value and Computed what the rows in From give.
	Recorded, Computed float64
	From               string // "metrics"
}

// Where names the table and the row: "series actor/entropy".
func (d Disagreement) Where() string { return strings.TrimSpace(d.Table + " " + d.Row) }

// String says what disagrees.
func (d Disagreement) String() string {
	return fmt.Sprintf("%s is %v, but the rows in %s give %v", d.Column, d.Recorded, d.From, d.Computed)
}

// Recount sums up a run's rows again and returns what disagrees of that which lists and filters read instead of them:
// the summaries of its series, its tokens, and its headline, whose values some evaluation of the run must have. A run
// of another program has no steps that would give its tokens. A process may be recording the run.
func (db *DB) Recount(ctx context.Context, run int64) (list []Disagreement, err error) {
	const op = "recount a run"
	tx, err := db.r.BeginTx(ctx, nil)
	if err != nil {
		return nil, db.fail(op, err)
	}
	defer tx.Rollback() // read only
	for _, f := range []func(context.Context, *sql.Tx, int64) ([]Disagreement, error){recountSeries, recountRun,
		recountHeadline} {
		found, err := f(ctx, tx, run)
		if err != nil {
			return nil, db.fail(op, err)
		}
		list = append(list, found...)
	}
	return list, nil
}

func recountSeries(ctx context.Context, tx *sql.Tx, run int64) (list []Disagreement, err error) {
	recorded, err := query(ctx, tx, scanSeries, seriesSelect+` WHERE run = ? ORDER BY name`, run)
	if err != nil {
		return nil, err
	}
	computed := make(map[int64]*summary, len(recorded))
	for i := range recorded {
		computed[recorded[i].ID] = &summary{had: &recorded[i], atMin: math.NaN(), atMax: math.NaN(),
			Series: Series{Last: math.NaN(), Min: math.NaN(), Max: math.NaN()}}
	}
	rows, err := tx.QueryContext(ctx, `SELECT series, step, value FROM metrics WHERE run = ? ORDER BY step`, run)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id, step int64
		var value float64
		if err := rows.Scan(&id, &step, number{&value}); err != nil {
			return nil, err
		}
		if s := computed[id]; s != nil {
			s.add(step, value)
		}
	}
	for _, had := range recorded {
		list = append(list, computed[had.ID].disagrees()...)
	}
	return list, rows.Err()
}

// summary sums up the points of a series again.
type summary struct {
	Series
	had          *Series // as recorded
	atMin, atMax float64 // values at the recorded ArgMin and ArgMax; NaN: none
}

// add takes one more point, of a later step.
func (s *summary) add(step int64, value float64) {
	s.N++
	s.Last, s.LastStep = value, step
	if step == s.had.ArgMin {
		s.atMin = value
	}
	if step == s.had.ArgMax {
		s.atMax = value
	}
	if !(value >= s.Min) && !math.IsNaN(value) {
		s.Min, s.ArgMin = value, step
	}
	if !(value <= s.Max) && !math.IsNaN(value) {
		s.Max, s.ArgMax = value, step
	}
}

// disagrees compares the recorded summary. Of steps with the same extreme, it may name any: they may have been
// recorded in another order.
func (s *summary) disagrees() (list []Disagreement) {
	had := s.had
	check := func(column string, recorded, computed float64, same bool) {
		if !same {
			list = append(list, Disagreement{"series", had.Name, column, recorded, computed, "metrics"})
		}
	}
	check("n", float64(had.N), float64(s.N), had.N == s.N)
	check("last", had.Last, s.Last, alike(had.Last, s.Last))
	check("last_step", float64(had.LastStep), float64(s.LastStep), had.LastStep == s.LastStep)
	check("min", had.Min, s.Min, alike(had.Min, s.Min))
	check("max", had.Max, s.Max, alike(had.Max, s.Max))
	check("argmin", float64(had.ArgMin), float64(s.ArgMin), alike(s.atMin, s.Min))
	check("argmax", float64(had.ArgMax), float64(s.ArgMax), alike(s.atMax, s.Max))
	return list
}

// alike compares numbers as they are stored: NaN equals NaN.
func alike(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

func recountRun(ctx context.Context, tx *sql.Tx, run int64) (list []Disagreement, err error) {
	var numerics string
	var had, computed int64
	err = tx.QueryRowContext(ctx, `SELECT numerics, tokens, (SELECT coalesce(sum(tokens), 0) FROM steps WHERE run = ?1)
		FROM runs WHERE id = ?1`, run).Scan(&numerics, &had, &computed)
	if err == nil && had != computed && !strings.HasPrefix(numerics, foreignNumerics) {
		list = append(list, Disagreement{"runs", "", "tokens", float64(had), float64(computed), "steps"})
	}
	return list, err
}

// recountHeadline looks for a suite on which the run's evaluations, newer ones or those that they replaced, gave the
// values of its headline. Without any evaluation it finds nothing wrong.
func recountHeadline(ctx context.Context, tx *sql.Tx, run int64) ([]Disagreement, error) {
	r, err := queryOne(ctx, tx, newRunScanner().scan, `SELECT `+runColumns+` FROM runs r WHERE r.id = ?`, run)
	if err != nil || len(r.Headline) == 0 {
		return nil, err
	}
	evals, err := query(ctx, tx, func(r *sql.Rows) (e Eval, err error) {
		err = r.Scan(&e.SuiteName, &e.Metric, number{&e.Value})
		return e, err
	}, `SELECT `+suiteOf+`, e.metric, e.value FROM `+scoresOf+` JOIN runs r ON r.id = e.run
		WHERE e.run = ? ORDER BY e.id`, run)
	if err != nil {
		return nil, err
	}
	values, suites := map[string]map[string][]float64{}, []string{} // by suite and metric
	for _, e := range slices.Backward(evals) {
		if strings.HasSuffix(e.SuiteName, ident.StartSuffix) {
			continue
		}
		if values[e.SuiteName] == nil {
			values[e.SuiteName] = map[string][]float64{}
			suites = append(suites, e.SuiteName)
		}
		values[e.SuiteName][e.Metric] = append(values[e.SuiteName][e.Metric], e.Value)
	}
	var nearest []Disagreement
	for i, suite := range suites {
		if wrong := headlineOf(&r, values[suite]); i == 0 || len(wrong) < len(nearest) {
			nearest = wrong
		}
	}
	return nearest, nil
}

// headlineOf compares a run's headline with the values of evaluations on one suite, the newest first.
func headlineOf(r *Run, values map[string][]float64) (list []Disagreement) {
	for i, h := range r.Headline {
		all := values[h.Name]
		if slices.ContainsFunc(all, func(v float64) bool { return alike(v, h.Value) }) {
			continue
		}
		newest := math.NaN()
		if len(all) > 0 {
			newest = all[0]
		}
		list = append(list, Disagreement{"runs", h.Name, fmt.Sprintf("h%d", i+1), h.Value, newest, "evals"})
	}
	return list
}
