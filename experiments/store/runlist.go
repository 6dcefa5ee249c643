package store

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"exp/experiments/ident"
)

// RunQuery selects runs. Zero fields other than Deleted match all runs.
type RunQuery struct {
	IDPrefix  string // hexadecimal digits that the rid begins with
	XIDPrefix string
	Name      string
	Tag       string
	Status    Status
	Deleted   bool // only deleted runs; otherwise only undeleted ones
	Limit     int  // at most that many
}

// Runs returns runs, newest first.
func (db *DB) Runs(ctx context.Context, q RunQuery) ([]Run, error) {
	runs, _, err := db.RunFields(ctx, q, nil)
	return runs, err
}

// Run returns the run with a rid, deleted or not, or ErrNotFound.
func (db *DB) Run(ctx context.Context, rid ident.Digest) (Run, error) {
	r, err := queryOne(ctx, db.r, newRunScanner().scan, `SELECT `+runColumns+` FROM runs r WHERE r.rid = ?`, rid)
	return r, db.fail("read run "+rid.Short(), err)
}

// RunByID returns the run with a row id, deleted or not, or ErrNotFound.
func (db *DB) RunByID(ctx context.Context, id int64) (Run, error) {
	r, err := queryOne(ctx, db.r, newRunScanner().scan, `SELECT `+runColumns+` FROM runs r WHERE r.id = ?`, id)
	return r, db.fail(fmt.Sprintf("read run %d", id), err)
}

// RunFields returns runs as Runs does and, for each, the values of fields: nil (missing
// or NaN), bool, float64, string, time.Time or []any of these.
func (db *DB) RunFields(ctx context.Context, q RunQuery, fields []Field) ([]Run, [][]any, error) {
	text, args, err := q.sql(fields)
	if err != nil {
		return nil, nil, db.fail("list runs", err)
	}
	room := 0
	if q == (RunQuery{}) { // all: allocate once instead of growing
		n, err := queryOne(ctx, db.r, scanInt, `SELECT coalesce(max(id), 0) FROM runs`)
		if err != nil {
			return nil, nil, db.fail("list runs", err)
		}
		room = int(min(n, mostRoom))
	}
	rows, err := db.r.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, nil, db.fail("list runs", err)
	}
	defer rows.Close()
	runs, values := make([]Run, 0, room), make([][]any, 0, room)
	scanner := newRunScanner()
	found := make([]fieldValue, len(fields))
	dest := make([]any, len(fields))
	for i, f := range fields {
		found[i].field, dest[i] = f, &found[i]
	}
	for rows.Next() {
		r, err := scanner.scanWith(rows, dest)
		if err != nil {
			return nil, nil, db.fail("list runs", err)
		}
		runs = append(runs, r)
		row := make([]any, len(fields))
		for i := range found {
			row[i] = found[i].value
			if fields[i].Kind == FieldResult {
				row[i] = r.Result(fields[i].Name)
			}
		}
		values = append(values, row)
	}
	return runs, values, db.fail("list runs", rows.Err())
}

// mostRoom bounds the number of runs that a list allocates in advance.
const mostRoom = 100_000

// CountRuns returns the number of runs that q selects, ignoring its Limit.
func (db *DB) CountRuns(ctx context.Context, q RunQuery) (int, error) {
	where, args, err := q.where()
	if err != nil {
		return 0, db.fail("count runs", err)
	}
	n, err := queryOne(ctx, db.r, scanInt, `SELECT count(*) FROM runs r WHERE `+where, args...)
	return int(n), db.fail("count runs", err)
}

func (q RunQuery) sql(fields []Field) (string, []any, error) {
	var args []any
	text := `SELECT ` + runColumns
	for _, f := range fields {
		expression, params, err := f.expression()
		if err != nil {
			return "", nil, err
		}
		text += ", " + expression
		args = append(args, params...)
	}
	where, params, err := q.where()
	if err != nil {
		return "", nil, err
	}
	text += ` FROM runs r LEFT JOIN configs c ON c.digest = r.config WHERE ` + where +
		` ORDER BY r.created DESC, r.id DESC`
	args = append(args, params...)
	if q.Limit > 0 {
		text += ` LIMIT ?`
		args = append(args, q.Limit)
	}
	return text, args, nil
}

// where returns the condition on table runs r, with its parameters.
func (q RunQuery) where() (text string, args []any, err error) {
	where := []string{`r.deleted IS NULL`}
	if q.Deleted {
		where[0] = `r.deleted IS NOT NULL`
	}
	add := func(condition string, set bool, params ...any) {
		if set {
			where = append(where, condition)
			args = append(args, params...)
		}
	}
	for column, prefix := range map[string]string{"r.rid": q.IDPrefix, "r.xid": q.XIDPrefix} {
		low, high, err := prefixRange(prefix)
		if err != nil {
			return "", nil, err
		}
		add(column+` BETWEEN ? AND ?`, prefix != "", low[:], high[:])
	}
	add(`r.name = ?`, q.Name != "", q.Name)
	add(`r.status = ?`, q.Status != "", q.Status)
	add(`r.id IN (SELECT run FROM run_tags WHERE tag = ?)`, q.Tag != "", q.Tag)
	return strings.Join(where, " AND "), args, nil
}

// prefixRange returns the first and the last digest that begin with the given hexadecimal
// digits.
func prefixRange(prefix string) (low, high ident.Digest, err error) {
	digits := 2 * len(low)
	if len(prefix) > digits {
		return low, high, fmt.Errorf("id %q has more than %d digits", prefix, digits)
	}
	fill := digits - len(prefix)
	if _, err = hex.Decode(low[:], []byte(prefix+strings.Repeat("0", fill))); err != nil {
		return low, high, fmt.Errorf("id %q: %w", prefix, err)
	}
	_, err = hex.Decode(high[:], []byte(prefix+strings.Repeat("f", fill)))
	return low, high, err
}
