package bundle

import (
	"errors"
	"io"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// progress is what a bundle says of how far a run got.
type progress struct {
	rid      ident.Digest
	steps    int64
	attempts map[attempt]bool
}

// attempt identifies one execution of a run.
type attempt struct {
	n, pid, started int64
	host            string
}

// recordedProgress reads how far the bundle's runs got.
func (in *importing) recordedProgress() (map[ident.Digest]*progress, error) {
	if in.read != nil {
		return in.read, nil
	}
	var list []*progress // by place
	err := in.eachRow("runs", func(row map[string]any) error {
		rid, _ := row["rid"].([]byte)
		r := &progress{attempts: map[attempt]bool{}}
		copy(r.rid[:], rid)
		r.steps, _ = row["steps"].(int64)
		list = append(list, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = in.eachRow("attempts", func(row map[string]any) error {
		place, _ := row["run"].(int64)
		if place < 1 || place > int64(len(list)) {
			return corrupt("an attempt of run %d of %d", place, len(list))
		}
		var a attempt
		a.n, _ = row["n"].(int64)
		a.pid, _ = row["pid"].(int64)
		a.started, _ = row["started"].(int64)
		a.host, _ = row["host"].(string)
		list[place-1].attempts[a] = true
		return nil
	})
	in.read = map[ident.Digest]*progress{}
	for _, r := range list {
		in.read[r.rid] = r
	}
	return in.read, err
}

// eachRow calls do with the rows of a table, by column.
func (in *importing) eachRow(table string, do func(row map[string]any) error) error {
	name := rowsDir + table + ".jsonl"
	if _, ok := in.entries[name]; !ok {
		return nil
	}
	rd, err := newRowReader(in.entry(name))
	if err != nil {
		return err
	}
	for {
		values, err := rd.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		row := map[string]any{}
		for i, v := range values {
			row[rd.columns[i].Name] = v
		}
		if err := do(row); err != nil {
			return err
		}
	}
}

// continues reports whether the bundle continues a run of the store: it has all attempts that the store has, and
// more of them or of their steps, and no other run depends on the run's rows.
func (in *importing) continues(run store.Run) (bool, error) {
	read, err := in.recordedProgress()
	if err != nil {
		return false, err
	}
	p := read[run.RID]
	if p == nil || p.steps < run.Steps {
		return false, nil
	}
	attempts, err := in.db.Attempts(in.ctx, run.ID)
	for _, a := range attempts {
		if !p.attempts[attempt{int64(a.N), int64(a.PID), a.Started.UnixMilli(), a.Host}] {
			return false, err
		}
	}
	if err != nil || len(p.attempts) == len(attempts) && p.steps == run.Steps {
		return false, err
	}
	on, err := in.db.Dependants(in.ctx, run.ID)
	return len(on) == 0, err
}
