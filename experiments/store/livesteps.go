package store

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"

	"exp/experiments/ident"
)

// LiveSteps tells those who watch a run of the steps of a stage that records them only when it ends. They are not
// part of the record: they lie in a file of the run's directory, a JSON object of metrics for each step, which stays
// if the process is killed and is removed when the stage is done. After an error nothing more is written: no run fails
// because of it. It is for one goroutine.
type LiveSteps struct {
	path string
	file *os.File // nil before the first step
	over bool     // closed, or failed
}

// liveStepsPath is a name that bundles leave out.
func (db *DB) liveStepsPath(rid, sid ident.Digest) string {
	return filepath.Join(db.RunDir(rid), ".steps-"+sid.Short()+".jsonl")
}

// NewLiveSteps returns the steps of stage sid of a run. The run's directory must exist. Its owner must close them.
func (db *DB) NewLiveSteps(rid, sid ident.Digest) *LiveSteps {
	return &LiveSteps{path: db.liveStepsPath(rid, sid)}
}

// Add adds a finished step. metrics has finite values only. The first step that is added replaces that step and the
// ones after it, which a process that was killed may have left.
func (l *LiveSteps) Add(step int, metrics map[string]float64) {
	if l.over {
		return
	}
	if err := l.add(step, metrics); err != nil {
		l.Close()
	}
}

func (l *LiveSteps) add(step int, metrics map[string]float64) error {
	if l.file == nil {
		if err := l.open(step); err != nil {
			return err
		}
	}
	row := map[string]float64{"step": float64(step)}
	for name, v := range metrics {
		row[name] = v
	}
	line, err := json.Marshal(row)
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	return err
}

// open opens the file with the steps before the given one.
func (l *LiveSteps) open(step int) error {
	had, err := os.ReadFile(l.path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	var kept []byte
	for line := range bytes.Lines(had) {
		var row struct{ Step int }
		if json.Unmarshal(line, &row) != nil || row.Step >= step {
			break
		}
		kept = append(kept, line...)
	}
	if l.file, err = os.Create(l.path); err != nil {
		return err
	}
	_, err = l.file.Write(kept)
	return err
}

// Close ends the writing.
func (l *LiveSteps) Close() {
	if l.over = true; l.file != nil {
		_ = l.file.Close()
	}
}

// RemoveLiveSteps removes the steps of a stage, if there are any.
func (db *DB) RemoveLiveSteps(rid, sid ident.Digest) { _ = os.Remove(db.liveStepsPath(rid, sid)) }

// LiveSteps returns the steps of a stage that has not ended, as JSON lines. A line that is being written is left out.
func (db *DB) LiveSteps(rid, sid ident.Digest) ([]byte, error) {
	b, err := os.ReadFile(db.liveStepsPath(rid, sid))
	return b[:bytes.LastIndexByte(b, '\n')+1], err
}

// LiveStepsSize returns the size of LiveSteps in bytes.
func (db *DB) LiveStepsSize(rid, sid ident.Digest) int64 {
	info, err := os.Stat(db.liveStepsPath(rid, sid))
	if err != nil {
		return 0
	}
	return info.Size()
}

// LiveStepsBytes returns the size of all LiveSteps of a run: it changes with each step of a stage that tells of them.
func (db *DB) LiveStepsBytes(rid ident.Digest) (sum int64) {
	files, err := filepath.Glob(filepath.Join(db.RunDir(rid), ".steps-*.jsonl"))
	if err != nil {
		return 0
	}
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			sum += info.Size()
		}
	}
	return sum
}
