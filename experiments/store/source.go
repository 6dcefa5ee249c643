package store

import (
	"context"
	"database/sql"
	"encoding/json"

	"exp/experiments/ident"
)

// Source holds the files behind a code digest, and an archive to read or rebuild them
// from.
type Source struct {
	Code    ident.Digest // of a kind of stage, as ident.Code made it
	Go      string       // Go version
	Files   []ident.File // what Code was made of, by path
	Archive ident.Digest // blob.PutTree of the module's sources; more than Files
	Size    int64        // of the archive, bytes
}

// AddSource records the sources of a code digest once: the first archive stays.
func (db *DB) AddSource(ctx context.Context, s Source) error {
	files, err := json.Marshal(s.Files)
	if err != nil {
		return err
	}
	return db.write(ctx, "record sources", func(tx *sql.Tx) error {
		if err := db.addBlob(ctx, tx, s.Archive, s.Size, "sources"); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO sources (code, go, files, archive) VALUES (?, ?, ?, ?)
			ON CONFLICT DO NOTHING`, s.Code, s.Go, string(files), s.Archive)
		return err
	})
}

// SourceCodes returns the code digests with recorded sources.
func (db *DB) SourceCodes(ctx context.Context) ([]ident.Digest, error) {
	all, err := query(ctx, db.r, func(r *sql.Rows) (d ident.Digest, err error) { return d, r.Scan(&d) },
		`SELECT code FROM sources ORDER BY code`)
	return all, db.fail("read sources", err)
}

// Source returns the sources of a code digest, or ErrNotFound.
func (db *DB) Source(ctx context.Context, code ident.Digest) (Source, error) {
	s, err := queryOne(ctx, db.r, func(r *sql.Rows) (s Source, err error) {
		var files string
		if err := r.Scan(&s.Code, &s.Go, &files, &s.Archive, &s.Size); err != nil {
			return s, err
		}
		return s, unmarshal(files, &s.Files)
	}, `SELECT s.code, s.go, s.files, s.archive, b.size FROM sources s JOIN blobs b ON b.digest = s.archive
		WHERE s.code = ?`, code)
	return s, db.fail("read sources "+code.Short(), err)
}
