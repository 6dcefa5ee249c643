package store

import (
	"fmt"

	"exp/experiments/ident"
)

// importRef is a column that holds places of rows of another table.
type importRef struct {
	column string
	at     int // its index
	to     string
	owner  bool // the row means nothing without the one it refers to
	// The last resolved position and its row: consecutive rows mostly refer to the same
	// one.
	place  int64
	number any
	owned  bool
}

// resolve replaces positions by row numbers, and reports whether the row belongs to an
// existing one. A stage's home and original are found later, by its sid.
func (t *importTable) resolve(row []any) (owned bool, err error) {
	for k := range t.refs {
		r := &t.refs[k]
		if row[r.at] == nil {
			continue
		}
		if t.p.name == "stages" && r.to == "stages" {
			row[r.at] = nil
			continue
		}
		place, isInt := row[r.at].(int64)
		if !isInt || place < 1 || place != r.place {
			if err := t.resolveOne(r, row[r.at]); err != nil {
				return false, err
			}
		}
		row[r.at], owned = r.number, owned || r.owned
	}
	return owned, nil
}

// resolveOne replaces a column's position by the row number.
func (t *importTable) resolveOne(r *importRef, value any) error {
	numbers := t.numbers[r.to]
	place, isInt := value.(int64)
	if !isInt || place < 1 || place > int64(len(numbers)) {
		return fmt.Errorf("%w: %s is %v, but there are %d %s", ErrConstraint, r.column, value, len(numbers), r.to)
	}
	id := numbers[place-1]
	if t.p.name == "samples" && id != 0 {
		var err error
		if id, err = t.home(id); err != nil {
			return err
		}
	}
	if r.place, r.number = place, id; id == 0 {
		r.number = nil
	}
	// Another scorer may have judged an existing sample.
	r.owned = r.owner && t.had[r.to][place-1] && (t.p.name != "verdicts" || id == 0)
	return nil
}

// home returns the stage that owns the samples of stage id.
func (t *importTable) home(id int64) (int64, error) {
	if home, ok := t.homes[id]; ok {
		return home, nil
	}
	home, err := queryOne(t.ctx, t.tx, scanInt, `SELECT home FROM stages WHERE id = ?`, id)
	t.homes[id] = home
	return home, err
}

// number records where the next row of the table went.
func (t *importTable) number(id int64, had bool) {
	t.numbers[t.p.name] = append(t.numbers[t.p.name], id)
	t.had[t.p.name] = append(t.had[t.p.name], had)
}

// find returns the number of the existing row that equals row, or 0. For a
// run it calls noteRun.
func (t *importTable) find(row []any) (int64, error) {
	where, args := t.p.key+` = ?`, []any(nil)
	if t.p.name == "samples" {
		where = `stage = ? AND scope = ? AND step = ? AND item = ? AND k = ?`
		for _, c := range []string{"stage", "scope", "step", "item", "k"} {
			args = append(args, row[t.at[c]])
		}
	} else {
		args = append(args, row[t.at[t.p.key]])
	}
	found, err := query(t.ctx, t.tx, scanInt, `SELECT id FROM `+t.p.name+` WHERE `+where, args...)
	if err != nil || t.p.name != "runs" {
		return first(found), err
	}
	return t.noteRun(row, first(found))
}

// noteRun notes that a run exists with number id, or is added if id is 0. It restores a
// deleted run, unless the bundle's is deleted too. It returns 0 for a run to add, which may be one
// whose record here it has removed.
func (t *importTable) noteRun(row []any, id int64) (int64, error) {
	raw, _ := row[t.at["rid"]].([]byte)
	if len(raw) != len(ident.Digest{}) {
		return 0, fmt.Errorf("%w: a rid of %d bytes", ErrConstraint, len(raw))
	}
	rid := ident.Digest(raw)
	if id == 0 {
		t.done.Added = append(t.done.Added, rid)
		return 0, nil
	}
	p := Present{RID: rid}
	if i, ok := t.at["steps"]; ok {
		p.Theirs, _ = row[i].(int64)
	}
	var err error
	if p.Steps, err = queryOne(t.ctx, t.tx, scanInt, `SELECT steps FROM runs WHERE id = ?`, id); err != nil {
		return 0, err
	}
	if gone, err := t.replace(rid, id, p); gone || err != nil {
		return 0, err
	}
	if i, ok := t.at["deleted"]; !ok || row[i] == nil {
		res, err := t.tx.ExecContext(t.ctx, `UPDATE runs SET deleted = NULL WHERE id = ? AND deleted IS NOT NULL`, id)
		if err != nil {
			return 0, err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return 0, err
		}
		p.Restored = n == 1
	}
	t.present[id] = len(t.done.Present)
	t.done.Present = append(t.done.Present, p)
	return id, nil
}

// noteScore counts a score of an existing run that is not here.
func (t *importTable) noteScore(row []any) error {
	run, _ := row[t.at["run"]].(int64)
	i, ok := t.present[run]
	if !ok {
		return nil
	}
	n, err := queryOne(t.ctx, t.tx, scanInt, `SELECT NOT EXISTS (SELECT 1 FROM evals
		WHERE run = ? AND suite = ? AND protocol = ? AND metric = ?)`, run, row[t.at["suite"]], row[t.at["protocol"]],
		row[t.at["metric"]])
	t.done.Present[i].Scores += n
	return err
}

// standIn finds the row that other runs' rows refer to in place of an existing run's row:
// for a stage, the one with the same sid; otherwise none.
func (t *importTable) standIn(row []any) error {
	if err := t.flushNumbered(); err != nil { // the queued rows come before this one
		return err
	}
	if t.p.name != "stages" {
		t.number(0, true)
		return nil
	}
	sid := row[t.at["sid"]]
	found, err := query(t.ctx, t.tx, scanInt, `SELECT id FROM stages WHERE sid = ? AND status = 'done'`, sid)
	if err == nil && len(found) == 0 {
		t.noteUndone(row)
		found, err = query(t.ctx, t.tx, scanInt, `SELECT min(id) FROM stages WHERE sid = ? HAVING count(*) > 0`, sid)
	}
	t.number(first(found), true)
	return err
}
