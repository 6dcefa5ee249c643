package store

import (
	"context"
	"database/sql"
	"strings"

	"exp/experiments/ident"
)

// What a bundle without weights or texts left out (experiments/bundle) has no size as an output, and no place
// as a sample's text. It gets them once the blob is here: from another bundle, or made again.

// LeftOut returns the outputs of a run's finished stages that it was imported without: they have no size, and
// their blobs are not recorded. The values are the stages' kinds.
func (db *DB) LeftOut(ctx context.Context, run int64) (map[ident.Digest]string, error) {
	type output struct {
		digest ident.Digest
		kind   string
	}
	list, err := query(ctx, db.r, func(r *sql.Rows) (o output, err error) {
		err = r.Scan(&o.digest, &o.kind)
		return o, err
	}, `SELECT io.digest, s.kind FROM stages s
		JOIN stage_io io ON io.stage = coalesce(s.reused_from, s.id) AND io.dir = 'out'
		WHERE s.run = ? AND s.status IN ('done', 'cached', 'repeated') AND io.size IS NULL
		AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.digest = io.digest)`, run)
	out := map[ident.Digest]string{}
	for _, o := range list {
		out[o.digest] = o.kind
	}
	return out, db.fail("read outputs of run", err)
}

// fillOutputs is called when a blob is recorded. It makes outputs that were left out outputs again.
func fillOutputs(ctx context.Context, tx *sql.Tx, digest ident.Digest, size int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE stage_io SET size = nullif(?, 0)
		WHERE digest = ? AND dir = 'out' AND size IS NULL`, size, digest)
	return err
}

// fillOutputs is fillOutputs for all blobs, and notes the existing runs of the bundle that it completes.
func (in *importer) fillOutputs() error {
	type filled struct {
		run  int64
		kind string
	}
	list, err := query(in.ctx, in.tx, func(r *sql.Rows) (f filled, err error) {
		err = r.Scan(&f.run, &f.kind)
		return f, err
	}, `UPDATE stage_io SET size = b.size FROM blobs b
		WHERE b.digest = stage_io.digest AND b.size > 0 AND stage_io.dir = 'out' AND stage_io.size IS NULL
		RETURNING (SELECT run FROM stages WHERE id = stage), (SELECT kind FROM blobs WHERE digest = stage_io.digest)`)
	for _, f := range list {
		if i, ok := in.present[f.run]; ok && f.kind == "weights" {
			in.done.Present[i].Weights = true
		} else if ok {
			in.done.Present[i].Texts = true
		}
	}
	return err
}

// fillText gives an existing sample the text that it lacks here.
func (t *importTable) fillText(row []any) error {
	at := func(column string) any {
		if i, ok := t.at[column]; ok {
			return row[i]
		}
		return nil
	}
	stage, pack := row[t.at["stage"]], at("pack")
	if stage == nil || pack == nil || !t.lacksTexts(stage) {
		return nil
	}
	list, err := query(t.ctx, t.tx, scanInt, `UPDATE samples SET pack = ?, off = ?, len = ?
		WHERE stage = ? AND scope = ? AND step = ? AND item = ? AND k = ? AND pack IS NULL
		RETURNING (SELECT run FROM stages WHERE id = stage)`,
		pack, at("off"), at("len"), stage, at("scope"), at("step"), at("item"), at("k"))
	for _, run := range list {
		if i, ok := t.present[run]; ok {
			t.done.Present[i].Texts = true
		}
	}
	return err
}

// fillImage gives an existing run an image that it lacks here, if its file comes along.
func (t *importTable) fillImage(row []any) error {
	name, _ := row[t.at["name"]].(string)
	if !strings.HasPrefix(name, imageFolder) || row[t.at["run"]] == nil || row[t.at["stage"]] == nil {
		return nil
	}
	_, err := t.tx.ExecContext(t.ctx, t.statement(1)+` ON CONFLICT DO NOTHING`, row...)
	return err
}

// lacksTexts reports whether a sample of a stage has no text; on an error, true. It asks once for a stage.
func (t *importTable) lacksTexts(stage any) bool {
	id, _ := stage.(int64)
	if lacks, ok := t.textless[id]; ok {
		return lacks
	}
	n, err := queryOne(t.ctx, t.tx, scanInt,
		`SELECT EXISTS (SELECT 1 FROM samples WHERE stage = ? AND pack IS NULL)`, id)
	t.textless[id] = err != nil || n == 1
	return t.textless[id]
}
