package store

import (
	"context"
	"database/sql"

	"exp/experiments/ident"
)

// Artifact is a file that a run produces for users: merged weights, a log. Images that agents brought are kept as
// artifacts, too, but found as an Image.
type Artifact struct {
	Run    int64        `json:"-"`
	Stage  int64        `json:"-"`
	Name   string       `json:"name"`  // unique in the run, "model/config.json"
	Media  string       `json:"media"` // MIME type
	Digest ident.Digest `json:"-"`
	Size   int64        `json:"size"` // bytes
}

// Artifacts returns the files of a run for users, by name.
func (db *DB) Artifacts(ctx context.Context, run int64) ([]Artifact, error) {
	all, err := query(ctx, db.r, func(r *sql.Rows) (a Artifact, err error) {
		err = r.Scan(&a.Run, &a.Stage, &a.Name, &a.Media, &a.Digest, &a.Size)
		return a, err
	}, `SELECT a.run, a.stage, a.name, a.media, a.digest, b.size FROM artifacts a JOIN blobs b ON b.digest = a.digest
		WHERE a.run = ? AND a.name NOT LIKE '`+imageFolder+`%' ORDER BY a.name`, run)
	return all, db.fail("read artifacts", err)
}
