package store

import (
	"database/sql"
	"slices"

	"exp/experiments/ident"
)

// undone is work of an existing run that nobody finished here, while a new run of the bundle did it
// or reuses it. That run adopts the work: its stage becomes the original, with the outputs, samples
// and verdicts.
type undone struct {
	done   []any // the existing run's stage that did it in the bundle; nil: it did not
	places []int // of the existing run's stages with that sid
}

// noteUndone notes a stage of an existing run whose work is not done here. Its row gets the
// table's next place.
func (t *importTable) noteUndone(row []any) {
	sid, _ := row[t.at["sid"]].([]byte)
	work := t.undone[string(sid)]
	if work == nil {
		work = &undone{}
		t.undone[string(sid)] = work
	}
	work.places = append(work.places, len(t.numbers[t.p.name]))
	if row[t.at["status"]] == string(Done) {
		work.done = slices.Clone(row)
	}
}

// adopts returns the work that a new run's stage adopts, or nil. It makes the row an original.
func (t *importTable) adopts(row []any) *undone {
	sid, _ := row[t.at["sid"]].([]byte)
	work, status := t.undone[string(sid)], t.at["status"]
	if work == nil {
		return nil
	}
	switch row[status] {
	case string(Done), string(Repeated):
	case string(Cached):
		if work.done == nil {
			return nil
		}
		for _, column := range []string{"wall_s", "cpu_s", "peak_mem", "result"} {
			if i, ok := t.at[column]; ok {
				row[i] = work.done[i]
			}
		}
	default:
		return nil
	}
	row[status] = string(Done)
	delete(t.undone, string(sid))
	return work
}

// adopt gives a stage the rows that belong to adopted work.
func (t *importTable) adopt(work *undone, id int64) {
	if work == nil {
		return
	}
	for _, place := range work.places {
		t.numbers[t.p.name][place], t.had[t.p.name][place] = id, false
	}
	t.adopted = true
}

// compareOutput compares an output of an existing run's stage with the one recorded here.
func (t *importTable) compareOutput(row []any) error {
	stage, role := row[t.at["stage"]], row[t.at["role"]]
	if stage == nil || row[t.at["dir"]] != "out" {
		return nil
	}
	had, err := query(t.ctx, t.tx, func(r *sql.Rows) (e DivergenceError, err error) {
		err = r.Scan(&e.SID, &e.Kind, &e.Want)
		return e, err
	}, `SELECT s.sid, s.kind, io.digest FROM stage_io io JOIN stages s ON s.id = io.stage
		WHERE io.stage = ? AND io.dir = 'out' AND io.role = ?`, stage, role)
	if err != nil || len(had) == 0 {
		return err
	}
	e := had[0]
	theirs, _ := row[t.at["digest"]].([]byte)
	if copy(e.Got[:], theirs) == len(ident.Digest{}) && e.Got == e.Want {
		return nil
	}
	name, _ := role.(string)
	e.Field = "output " + name
	return &e
}
