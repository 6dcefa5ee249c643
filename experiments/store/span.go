package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Grid divides the steps from From to To, both included, into at most N spans of equal
// length. Curves on one grid can be averaged span by span.
type Grid struct {
	From, To int64
	N        int64 // positive
}

// Width returns the number of steps in a span.
func (g Grid) Width() int64 { return max(g.To-g.From, 0)/max(g.N, 1) + 1 }

// Span summarises the points of a series in one span of a grid.
type Span struct {
	Start          int64   // first step of the span
	From, To       int64   // first and last step with a point
	N              int64   // points
	Min, Max, Mean float64 // of the points that are not NaN; NaN if all are
}

// Spans returns the spans with points of a run's series, by name, ascending. A name that
// the run did not record is absent. The spans are read on several connections at once.
func (db *DB) Spans(ctx context.Context, run int64, names []string, g Grid) (map[string][]Span, error) {
	byID, err := db.seriesNames(ctx, run, names)
	if err != nil || len(byID) == 0 {
		return nil, db.fail("read curves", err)
	}
	width := g.Width()
	spans := max(g.To-g.From, 0)/width + 1
	parts := make([]map[int64][]Span, min(readers, spans))
	errs := make([]error, len(parts))
	var group sync.WaitGroup
	for i := range parts {
		group.Go(func() {
			n := int64(len(parts))
			first, last := spans*int64(i)/n, spans*int64(i+1)/n
			part := Grid{From: g.From + first*width, To: min(g.To, g.From+last*width-1), N: last - first}
			parts[i], errs[i] = db.readSpans(ctx, run, byID, part, width)
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, db.fail("read curves", err)
	}
	all := make(map[string][]Span, len(byID))
	for id, name := range byID {
		for _, part := range parts {
			all[name] = append(all[name], part[id]...)
		}
	}
	return all, nil
}

// seriesNames returns the names of a run's series among names, by id.
func (db *DB) seriesNames(ctx context.Context, run int64, names []string) (map[int64]string, error) {
	list, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	rows, err := db.r.QueryContext(ctx, `SELECT id, name FROM series
		WHERE run = ? AND name IN (SELECT value FROM json_each(?))`, run, string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	byID := map[int64]string{}
	for rows.Next() {
		var id int64
		var name string
		if err := rows.Scan(&id, &name); err != nil {
			return nil, err
		}
		byID[id] = name
	}
	return byID, rows.Err()
}

// Statements for one span. That for one series finds the first and the last step in the
// index, as each aggregate costs 40 ns a point.
const (
	spanPoints = `FROM metrics WHERE run = ?1 AND step BETWEEN ?2 AND ?3 AND `
	spanOfOne  = `SELECT ?4,
		(SELECT step ` + spanPoints + `series = ?4 ORDER BY step LIMIT 1),
		(SELECT step ` + spanPoints + `series = ?4 ORDER BY step DESC LIMIT 1),
		count(*), min(value), max(value), avg(value) ` + spanPoints + `series = ?4 HAVING count(*) > 0`
	spanOfSeveral = `SELECT series, min(step), max(step), count(*), min(value), max(value), avg(value) ` + spanPoints +
		`series IN (SELECT value FROM json_each(?4)) GROUP BY series`
)

// readSpans reads part of a grid, one statement per span: points are stored by step, so
// each reads only its own.
func (db *DB) readSpans(
	ctx context.Context, run int64, series map[int64]string, g Grid, width int64,
) (map[int64][]Span, error) {
	conn, err := db.r.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ids := slices.Collect(maps.Keys(series))
	text, wanted := spanOfOne, any(ids[0])
	if len(ids) > 1 {
		list, err := json.Marshal(ids)
		if err != nil {
			return nil, err
		}
		text, wanted = spanOfSeveral, string(list)
	}
	statement, err := conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer statement.Close()
	all := map[int64][]Span{}
	for start := g.From; start <= g.To; start += width {
		rows, err := statement.QueryContext(ctx, run, start, min(start+width-1, g.To), wanted)
		if err != nil {
			return nil, err
		}
		if err := scanSpans(rows, start, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func scanSpans(rows *sql.Rows, start int64, all map[int64][]Span) error {
	defer rows.Close()
	for rows.Next() {
		var id int64
		s := Span{Start: start}
		if err := rows.Scan(&id, &s.From, &s.To, &s.N, number{&s.Min}, number{&s.Max}, number{&s.Mean}); err != nil {
			return err
		}
		all[id] = append(all[id], s)
	}
	return rows.Err()
}

// Pace is how far a run was at a step: the tokens sampled up to it, and when it ended.
type Pace struct {
	Step   int64
	Tokens int64
	Time   time.Time
}

// Paces returns a run's pace at the last recorded step of each span of a grid, ascending.
func (db *DB) Paces(ctx context.Context, run int64, g Grid) ([]Pace, error) {
	var tokens int64
	all, err := query(ctx, db.r, func(r *sql.Rows) (p Pace, err error) {
		var t, some int64
		err = r.Scan(&p.Step, &some, &t)
		tokens += some
		p.Tokens, p.Time = tokens, fromMilli(t)
		return p, err
	}, `SELECT max(step), sum(tokens), max(t) FROM steps WHERE run = ?1 AND step <= ?3
		GROUP BY max(step - ?2, 0) / ?4 ORDER BY 1`, run, g.From, g.To, g.Width())
	return all, db.fail("read steps", err)
}
