package keep

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// SavedCheckpoint is a checkpoint's folder.
type SavedCheckpoint struct {
	Stage string // folder of the stage, "train-91ac33f0"
	Step  int64
	Dir   string
	Time  time.Time
}

// Saved returns the checkpoints in a run's folder, by stage and step, readable or not.
func Saved(db *store.DB, rid ident.Digest) ([]SavedCheckpoint, error) {
	run := db.RunDir(rid)
	dirs, err := fs.Glob(os.DirFS(run), "ckpt/*/step-*") // names in run may have brackets
	if err != nil {
		return nil, err
	}
	var list []SavedCheckpoint
	for _, dir := range dirs { // Glob sorts, and steps have leading zeros
		dir = filepath.Join(run, dir)
		c := SavedCheckpoint{Stage: filepath.Base(filepath.Dir(dir)), Dir: dir}
		if _, err := fmt.Sscanf(filepath.Base(dir), "step-%d", &c.Step); err != nil {
			continue
		}
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() {
			continue // removed meanwhile
		}
		c.Time = info.ModTime()
		list = append(list, c)
	}
	return list, nil
}
