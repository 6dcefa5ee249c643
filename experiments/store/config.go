package store

import (
	"context"
	"database/sql"

	"exp/experiments/ident"
)

// Config is the resolved configuration of a run. Runs with the same digest share one.
type Config struct {
	Digest  ident.Digest
	JSON    string // nested objects, so that config.train.optim.lr is $.train.optim.lr
	Source  string // the file as the user wrote it
	Origins string // JSON: where each value came from, by path
}

// Config returns a configuration by its digest, or ErrNotFound.
func (db *DB) Config(ctx context.Context, digest ident.Digest) (Config, error) {
	c, err := queryOne(ctx, db.r, func(r *sql.Rows) (c Config, err error) {
		err = r.Scan(&c.Digest, &c.JSON, &c.Source, &c.Origins)
		return c, err
	}, `SELECT digest, json, source, origins FROM configs WHERE digest = ?`, digest)
	return c, db.fail("read config "+digest.Short(), err)
}

func addConfig(ctx context.Context, tx *sql.Tx, c Config) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO configs (digest, json, source, origins) VALUES (?, ?, ?, ?)
		ON CONFLICT DO NOTHING`, c.Digest, c.JSON, c.Source, orEmpty(c.Origins, "{}"))
	return err
}

// orEmpty returns text, or empty if text is "".
func orEmpty(text, empty string) string {
	if text == "" {
		return empty
	}
	return text
}
