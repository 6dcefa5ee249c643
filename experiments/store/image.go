package store

import (
	"context"
	"database/sql"
	"strings"

	"exp/experiments/ident"
)

// Image is an image file that an agent brought to completions of a stage. It is an artifact of the run, named
// images/DIGEST.FORMAT, and stays as long as the run.
type Image struct {
	Digest ident.Digest
	Format string // of the file: "png", "jpeg", …
}

// imageFolder begins the names of the artifacts that are images.
const imageFolder = "images/"

// AddImages records images whose files are blobs. Those that the run has already stay as they are.
func (db *DB) AddImages(ctx context.Context, run, stage int64, list []Image) error {
	if len(list) == 0 {
		return nil
	}
	return db.write(ctx, "record images", func(tx *sql.Tx) error {
		for _, im := range list {
			size, err := db.Blobs.Stat(im.Digest)
			if err == nil {
				err = db.addBlob(ctx, tx, im.Digest, size, "image")
			}
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO artifacts (run, stage, name, media, digest)
				VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`, run, stage,
				imageFolder+im.Digest.String()+"."+im.Format, "image/"+im.Format, im.Digest); err != nil {
				return err
			}
		}
		return nil
	})
}

// FindImage returns the first image whose digest begins with some hexadecimal digits, in a run and in the runs whose
// stages it reused; zero if none matches.
func (db *DB) FindImage(ctx context.Context, run int64, digits string) (Image, error) {
	name := imageFolder + digits
	list, err := query(ctx, db.r, func(r *sql.Rows) (im Image, err error) {
		var media string
		err = r.Scan(&im.Digest, &media)
		im.Format = strings.TrimPrefix(media, "image/")
		return im, err
	}, `SELECT digest, media FROM artifacts WHERE name >= ?1 AND name < ?1 || 'g' AND run IN (SELECT ?2
		UNION SELECT o.run FROM stages s JOIN stages o ON o.id = s.home WHERE s.run = ?2) ORDER BY name LIMIT 1`,
		name, run)
	if err != nil || len(list) == 0 {
		return Image{}, db.fail("read images", err)
	}
	return list[0], nil
}
