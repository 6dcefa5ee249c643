package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"exp/experiments/ident"
)

// Step is one finished step of a run.
type Step struct {
	// Det is the part that must repeat bit for bit; its metrics are stored as
	// deterministic series.
	Det ident.Det
	// Measured holds the metrics that depend on the machine and its load: durations,
	// throughput, memory.
	Measured map[string]float64
	// Chain is the trajectory chain (hash over all steps) after this step, Det.Next of
	// the previous one.
	Chain ident.Digest
	// Tokens is the number of tokens that the step sampled.
	Tokens int64
	// Events happened during the step; their Run and Attempt are set here.
	Events []Event
}

// StepRow is a recorded step without its metrics.
type StepRow struct {
	Time   time.Time
	Tokens int64
	Chain  ident.Digest
	Det    ident.Det // Metrics is nil
}

// Steps returns the recorded steps from from to to, both included, in order.
func (db *DB) Steps(ctx context.Context, run, from, to int64) ([]StepRow, error) {
	all, err := query(ctx, db.r, scanStep, stepSelect+` WHERE run = ? AND step BETWEEN ? AND ? ORDER BY step`,
		run, from, to)
	return all, db.fail("read steps", err)
}

const stepSelect = `SELECT step, t, tokens, items, sampled, logprobs, rewards, params, chain FROM steps`

func scanStep(r *sql.Rows) (s StepRow, err error) {
	var t int64
	err = r.Scan(&s.Det.Step, &t, &s.Tokens, &s.Det.Items, &s.Det.Tokens, &s.Det.LogProbs, &s.Det.Rewards,
		&s.Det.Params, &s.Chain)
	s.Time = fromMilli(t)
	return s, err
}

// recordStep writes a step, its metrics and its events. If the step exists, it writes
// nothing, and returns a *DivergenceError if the chain differs.
func (w *StepWriter) recordStep(ctx context.Context, tx *sql.Tx, s *Step, t int64) error {
	d := &s.Det
	res, err := tx.ExecContext(ctx, `INSERT INTO steps (run, step, t, tokens, items, sampled, logprobs, rewards, params, chain)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		w.run, d.Step, t, s.Tokens, d.Items, d.Tokens, d.LogProbs, d.Rewards, d.Params, s.Chain)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil {
		return err
	} else if n == 0 {
		return compareStep(ctx, tx, w.run, s)
	}
	if err := w.recordMetrics(ctx, tx, s); err != nil {
		return err
	}
	if err := summarise(ctx, tx, w.run, d.Step); err != nil {
		return err
	}
	if err := w.recordEvents(ctx, tx, s, t); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE runs SET steps = steps + 1, tokens = tokens + ?2,
		chain = iif(EXISTS (SELECT 1 FROM steps WHERE run = ?1 AND step > ?3), chain, ?4) WHERE id = ?1`,
		w.run, s.Tokens, d.Step, s.Chain)
	return err
}

// recordScores writes the metrics of s that its step lacks.
func (w *StepWriter) recordScores(ctx context.Context, tx *sql.Tx, s *Step, t int64) error {
	had, err := query(ctx, tx, scanText, `SELECT series.name FROM metrics JOIN series ON series.id = metrics.series
		WHERE metrics.run = ? AND metrics.step = ?`, w.run, s.Det.Step)
	if err != nil {
		return err
	}
	for _, name := range had {
		delete(s.Measured, name)
	}
	if len(s.Measured) == 0 {
		return nil
	}
	if err := w.recordMetrics(ctx, tx, s); err != nil {
		return err
	}
	names, err := json.Marshal(sortedKeys(s.Measured, nil))
	if err != nil {
		return err
	}
	if err := summariseNamed(ctx, tx, w.run, s.Det.Step, string(names)); err != nil {
		return err
	}
	return w.recordEvents(ctx, tx, s, t)
}

// recordEvents writes the events of a step, and an event that names its NaN metrics unless the
// others do: the database cannot tell NaN from NULL.
func (w *StepWriter) recordEvents(ctx context.Context, tx *sql.Tx, s *Step, t int64) error {
	events := s.Events
	if names := w.nanNames(s); len(names) > 0 {
		data, err := json.Marshal(map[string]any{"step": s.Det.Step, "metrics": names,
			"text": fmt.Sprintf("step %d: NaN in %s", s.Det.Step, strings.Join(names, ", "))})
		if err != nil {
			return err
		}
		events = append(events[:len(events):len(events)], Event{Level: LevelWarn, Kind: "nan", Data: data})
	}
	for _, e := range events {
		e.Run, e.Attempt = w.run, w.attempt
		if err := insertEvent(ctx, tx, e, t); err != nil {
			return err
		}
	}
	return nil
}

// nanNames returns the NaN metrics that no event names.
func (w *StepWriter) nanNames(s *Step) (names []string) {
	for _, name := range w.metricNames(s) {
		if !math.IsNaN(s.Det.Metrics[name]) && !math.IsNaN(s.Measured[name]) {
			continue
		}
		said := func(e Event) bool { return bytes.Contains(e.Data, []byte(name+" is NaN")) }
		if !slices.ContainsFunc(s.Events, said) {
			names = append(names, name)
		}
	}
	return names
}

// compareStep returns nil if s equals the recorded step, else a *DivergenceError that
// names the first field that differs.
func compareStep(ctx context.Context, tx *sql.Tx, run int64, s *Step) error {
	had, err := queryOne(ctx, tx, scanStep, stepSelect+` WHERE run = ? AND step = ?`, run, s.Det.Step)
	if err != nil || had.Chain == s.Chain {
		return err
	}
	id, err := rid(ctx, tx, run)
	if err != nil {
		return err
	}
	e := &DivergenceError{RID: id, Step: s.Det.Step, Field: "chain", Want: had.Chain, Got: s.Chain}
	had.Det.Metrics, err = detMetrics(ctx, tx, run, s.Det.Step)
	if err != nil {
		return err
	}
	// If no field of this step differs, an earlier step did.
	if field := had.Det.Differs(storedBits(s.Det)); field != "" {
		e.Field = string(field)
	}
	return e
}

// detMetrics returns the deterministic metrics of a step.
func detMetrics(ctx context.Context, q querier, run, step int64) (map[string]float64, error) {
	type point struct {
		name  string
		value float64
	}
	points, err := query(ctx, q, func(r *sql.Rows) (p point, err error) {
		err = r.Scan(&p.name, number{&p.value})
		return p, err
	}, `SELECT s.name, m.value FROM metrics m JOIN series s ON s.id = m.series WHERE m.run = ? AND m.step = ? AND s.det = 1`, run, step)
	m := make(map[string]float64, len(points))
	for _, p := range points {
		m[p.name] = p.value
	}
	return m, err
}

// storedBits returns d as it would be read back: SQLite keeps neither NaN payloads nor
// the sign of zero.
func storedBits(d ident.Det) ident.Det {
	m := make(map[string]float64, len(d.Metrics))
	for name, v := range d.Metrics {
		switch {
		case math.IsNaN(v):
			v = math.NaN()
		case v == 0:
			v = 0
		}
		m[name] = v
	}
	d.Metrics = m
	return d
}

// mostZeros is the number of zeros up to which ExactDet tries every choice of signs, and mostNegative how many
// negative ones it tries among more: with 24 zeros, 2300 chains of some 10 µs.
const (
	mostZeros    = 8
	mostNegative = 3
)

// ExactDet restores the bits of d, read from the store, that enter the chain between prev and next; ok is false if it
// finds none, which shows that the step was changed unless HasNaN. SQLite drops the sign of zeros, so ExactDet tries
// both. before holds the exact metrics of the step before, nil if they are unknown: those that were a negative zero
// probably still are.
func ExactDet(d ident.Det, before map[string]float64, prev, next ident.Digest) (exact ident.Det, ok bool) {
	exact = d
	exact.Metrics = maps.Clone(d.Metrics)
	leads := func() bool {
		got, err := exact.Next(prev)
		return err == nil && got == next
	}
	if leads() {
		return exact, true
	}
	negative := math.Copysign(0, -1)
	var zeros []string
	for _, name := range slices.Sorted(maps.Keys(d.Metrics)) {
		if d.Metrics[name] == 0 {
			zeros = append(zeros, name)
			if v := before[name]; v == 0 && math.Signbit(v) {
				exact.Metrics[name] = negative
			}
		}
	}
	if leads() {
		return exact, true
	}
	if HasNaN(d) {
		return d, false
	}
	for _, name := range zeros {
		exact.Metrics[name] = 0
	}
	most := len(zeros)
	if most > mostZeros {
		most = mostNegative
	}
	var among func(names []string, n int) bool // whether it leads there with n of the names negative
	among = func(names []string, n int) bool {
		if n == 0 {
			return leads()
		}
		for i, name := range names[:len(names)-n+1] {
			exact.Metrics[name] = negative
			if among(names[i+1:], n-1) {
				return true
			}
			exact.Metrics[name] = 0
		}
		return false
	}
	for n := 1; n <= most; n++ {
		if among(zeros, n) {
			return exact, true
		}
	}
	return d, false
}

// HasNaN reports whether a metric is NaN. SQLite drops its payload, so the store cannot give back the step's bits.
func HasNaN(d ident.Det) bool {
	for _, v := range d.Metrics {
		if math.IsNaN(v) {
			return true
		}
	}
	return false
}
