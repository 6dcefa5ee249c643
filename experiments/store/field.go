package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// FieldKind is the source of a Field's value.
type FieldKind uint8

const (
	FieldColumn FieldKind = 1 + iota // a column of runs: Name is one of Columns
	FieldTag                         // the run's tags
	FieldConfig                      // the resolved config: Name is a path, "train.optim.lr"
	FieldMetric                      // a series: Name, Agg and Step
	FieldEval                        // the newest evaluation: Suite (a split is the task's) and Name, the metric
	FieldResult                      // a result that lists show: Name is one of Run.Headline
)

// Agg selects a value of a series.
type Agg uint8

const (
	AggLast Agg = iota
	AggMin
	AggMax
	AggAt // at Field.Step
)

// Field is a value of a run that filters, sort orders and columns can name. Fields are
// comparable with ==.
type Field struct {
	Kind  FieldKind
	Name  string
	Suite string
	Agg   Agg
	Step  int64
}

// columns maps the column names of Fields to SQL and the types of their values.
var columns = map[string]struct {
	sql  string
	kind columnKind
}{
	"id":       {"lower(hex(r.rid))", textColumn},
	"xid":      {"lower(hex(r.xid))", textColumn},
	"name":     {"r.name", textColumn},
	"task":     {"r.task", textColumn},
	"algo":     {"r.algo", textColumn},
	"model":    {"r.model", textColumn},
	"seed":     {"r.seed", numberColumn},
	"numerics": {"r.numerics", textColumn},
	"device":   {"r.device", textColumn},
	"status":   {"r.status", textColumn},
	"created":  {"r.created", timeColumn},
	"started":  {"r.started", timeColumn},
	"ended":    {"r.ended", timeColumn},
	"steps":    {"r.steps", numberColumn},
	"tokens":   {"r.tokens", numberColumn},
	"wall":     {"r.wall_s", numberColumn},
	"reason":   {reasonOf, textColumn},
	// The input of Verified, which fieldValue calls.
	"verified": {`(SELECT json_group_array(json_object('ID', id, 'Level', level, 'OK', json(iif(ok, 'true', 'false'))))
		FROM (SELECT id, level, ok FROM verifications WHERE run = r.id ORDER BY id))`, verifiedColumn},
}

// StopEvent is the kind of the event that says why a run was stopped.
const StopEvent = "stopped"

// reasonOf is why run r did not finish: the condition that stopped it, or the error of its
// last stage, or NULL.
const reasonOf = `CASE r.status
	WHEN 'stopped' THEN (SELECT data ->> '$.text' FROM events WHERE run = r.id AND kind = '` + StopEvent + `'
		ORDER BY id DESC LIMIT 1)
	WHEN 'failed' THEN (SELECT error FROM stages WHERE run = r.id AND status = 'failed' ORDER BY id DESC LIMIT 1)
	END`

// Reason says why a run did not finish: the condition that stopped it, or the error of its
// last stage, or "".
func (db *DB) Reason(ctx context.Context, run int64) (string, error) {
	text, err := queryOne(ctx, db.r, func(r *sql.Rows) (text sql.NullString, err error) {
		err = r.Scan(&text)
		return text, err
	}, `SELECT `+reasonOf+` FROM runs r WHERE r.id = ?`, run)
	return text.String, db.fail("read the reason", err)
}

type columnKind uint8

const (
	textColumn columnKind = iota
	numberColumn
	timeColumn
	verifiedColumn
)

// IsNumber reports whether the values of a field are always numbers.
func (f Field) IsNumber() bool {
	column := f.Kind == FieldColumn && columns[f.Name].kind == numberColumn
	return column || f.Kind == FieldMetric || f.Kind == FieldEval || f.Kind == FieldResult
}

// IsTime reports whether the values of a field are always times.
func (f Field) IsTime() bool { return f.Kind == FieldColumn && columns[f.Name].kind == timeColumn }

// Words lists the values of a field that has few; nil for the others.
func (f Field) Words() []string {
	switch f {
	case Field{Kind: FieldColumn, Name: "status"}:
		return []string{string(Pending), string(Running), string(Done), string(Failed), string(Interrupted),
			string(Stopped)}
	case Field{Kind: FieldColumn, Name: "verified"}:
		return append(slices.Clone(levels), VerifiedNo)
	}
	return nil
}

// Columns returns the valid names of a FieldColumn, sorted.
func Columns() []string { return sortedKeys(columns, nil) }

// expression returns the SQL of a field of run r with config c, and its parameters.
func (f Field) expression() (string, []any, error) {
	switch f.Kind {
	case FieldColumn:
		if c, ok := columns[f.Name]; ok {
			return c.sql, nil, nil
		}
	case FieldResult:
		return `NULL`, nil, nil // RunFields takes it from the run
	case FieldTag:
		return `(SELECT json_group_array(tag) FROM (SELECT tag FROM run_tags WHERE run = r.id ORDER BY tag))`, nil, nil
	case FieldConfig:
		return `c.json -> ?`, []any{jsonPath(f.Name)}, nil
	case FieldMetric:
		if f.Agg == AggAt {
			return `(SELECT m.value FROM series s JOIN metrics m ON m.run = r.id AND m.series = s.id
				WHERE s.run = r.id AND s.name = ? AND m.step = ?)`, []any{f.Name, f.Step}, nil
		}
		if int(f.Agg) < len(aggColumns) {
			return `(SELECT ` + aggColumns[f.Agg] + ` FROM series WHERE run = r.id AND name = ?)`, []any{f.Name}, nil
		}
	case FieldEval:
		// A suite of the configuration counts under the protocol that the headline has, or else under its first.
		// Another evaluation of the run on that suite does not replace this value, unless it is the same again.
		return `(SELECT e.value FROM ` + scoresOf + `
			WHERE e.run = r.id AND ` + suiteOf + ` IN (?, r.task || '/' || ?) AND e.metric = ?
			ORDER BY ` + suiteOf + ` = ? DESC, ` + configured + ` AND e.protocol = coalesce((` + headlined + `),
				(SELECT x.protocol FROM evals x WHERE x.run = e.run AND x.suite = e.suite ORDER BY x.id LIMIT 1)) DESC,
			e.stage_score DESC LIMIT 1)`, []any{f.Suite, f.Suite, f.Name, f.Suite}, nil
	}
	return "", nil, fmt.Errorf("%w: no field %+v", ErrNotFound, f)
}

// configured says whether the configuration c of run r names the suite u, which stage g scored.
const configured = `EXISTS (SELECT 1 FROM json_each(c.json, '$.eval.final.suites') j
	WHERE ` + suiteOf + ` IN (j.value, r.task || '/' || j.value))`

// headlined selects the protocol of the evaluation that the headline of run r shows.
const headlined = `SELECT x.protocol FROM evals x JOIN suites u ON u.id = x.suite JOIN stages g ON g.id = x.stage_score
	WHERE x.run = r.id AND x.value = r.h1 AND instr(r.headline || ',', x.metric || ',') = 1 AND ` + configured + `
	ORDER BY x.stage_score DESC LIMIT 1`

// Recorded reports whether any run has recorded a metric, an evaluation or a result; other
// fields always are.
func (db *DB) Recorded(ctx context.Context, f Field) (bool, error) {
	var n int64
	var err error
	switch f.Kind {
	case FieldMetric:
		n, err = queryOne(ctx, db.r, scanInt, `SELECT EXISTS (SELECT 1 FROM series WHERE name = ?)`, f.Name)
	case FieldEval:
		n, err = queryOne(ctx, db.r, scanInt, `SELECT EXISTS (SELECT 1 FROM `+scoresOf+`
			JOIN runs r ON r.id = e.run WHERE `+suiteOf+` IN (?, r.task || '/' || ?) AND e.metric = ?)`,
			f.Suite, f.Suite, f.Name)
	case FieldResult:
		n, err = queryOne(ctx, db.r, scanInt,
			`SELECT EXISTS (SELECT 1 FROM runs WHERE instr(',' || headline || ',', ',' || ? || ',') > 0)`, f.Name)
	default:
		return true, nil
	}
	return n == 1, db.fail("look for a metric", err)
}

var aggColumns = [...]string{AggLast: "last", AggMin: "min", AggMax: "max"}

// jsonPath returns a dotted path as a path for SQLite's JSON functions, each part quoted.
func jsonPath(path string) string {
	return `$."` + strings.Join(strings.Split(strings.ReplaceAll(path, `"`, ``), "."), `"."`) + `"`
}

// fieldValue scans the value of a field: nil (missing or NaN), bool, float64, string,
// time.Time or []any of these.
type fieldValue struct {
	field Field
	value any
}

// Scan implements sql.Scanner.
func (v *fieldValue) Scan(src any) error {
	v.value = src
	switch src := src.(type) {
	case int64:
		v.value = float64(src)
		if v.field.Kind == FieldColumn && columns[v.field.Name].kind == timeColumn {
			v.value = time.UnixMilli(src).UTC()
		}
	case float64:
		if math.IsNaN(src) {
			v.value = nil
		}
	case string:
		if v.field.Kind == FieldColumn && columns[v.field.Name].kind == verifiedColumn {
			return v.verified(src)
		}
		if v.field.Kind == FieldConfig || v.field.Kind == FieldTag {
			return unmarshal(src, &v.value)
		}
	case []byte:
		return fmt.Errorf("field %+v is a blob", v.field)
	}
	return nil
}

// verified reads verifications as JSON.
func (v *fieldValue) verified(src string) error {
	var list []Verification
	if err := unmarshal(src, &list); err != nil {
		return err
	}
	v.value = nil
	if proved := Verified(list); proved != "" {
		v.value = proved
	}
	return nil
}
