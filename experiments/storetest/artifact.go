// Package storetest records, for the tests of other packages, rows that the program itself
// only writes when it imports runs.
package storetest

import (
	"database/sql"
	"path/filepath"
	"testing"

	"exp/experiments/store"
)

// AddArtifact records a stored blob as a file of a run.
func AddArtifact(t testing.TB, db *store.DB, a store.Artifact) {
	t.Helper()
	if size, err := db.Blobs.Stat(a.Digest); err != nil || size != a.Size {
		t.Fatalf("artifact %s: blob of %d bytes, %v; want %d", a.Name, size, err, a.Size)
	}
	conn, err := sql.Open("sqlite3", "file:"+filepath.Join(db.Dir(), "exp.db")+"?_foreign_keys=on&_busy_timeout=10000")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = conn.Exec(`INSERT INTO blobs (digest, size, kind, created) VALUES (?, ?, 'artifact', 0) ON CONFLICT DO NOTHING`,
		a.Digest[:], a.Size)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(`INSERT INTO artifacts (run, stage, name, media, digest) VALUES (?, ?, ?, ?, ?)`,
		a.Run, a.Stage, a.Name, a.Media, a.Digest[:])
	if err != nil {
		t.Fatal(err)
	}
}
