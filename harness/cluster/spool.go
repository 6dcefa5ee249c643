package cluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"exp/experiments/ident"
)

// OneSignal is the environment variable that makes exp heed only the first signal.
const OneSignal = "EXP_SIGNALS"

// Spool is a directory that all nodes see. Its files are written aside and renamed, so
// each is whole or not there:
//
//	bin/DIGEST        the program that submitted
//	config/DIGEST.yaml configurations, complete
//	suites/DIGEST     benchmarks from the store of the submitter
//	jobs/ID.*         lists of jobs and their scripts
//	submitted/ID.json the number of a job at the batch system
//	state/ID.json     what a job says of itself
//	in/RID.tar        bundles from the store of the submitter
//	out/ID.tar        the last bundle of a job
//	log/              output of the jobs
//	stores/ID         store of a job whose ranks are on several nodes
type Spool struct{ Dir string }

// Path returns where a file of the spool lies; name is relative, with slashes.
func (s Spool) Path(name string) string { return filepath.Join(s.Dir, filepath.FromSlash(name)) }

func spoolFolders() []string {
	return []string{"bin", "config", "suites", "jobs", submittedFolder, "state", "in", "out", "log"}
}

// Make creates the spool's folders.
func (s Spool) Make() error {
	for _, kind := range spoolFolders() {
		if err := os.MkdirAll(s.Path(kind), 0o777); err != nil {
			return err
		}
	}
	return nil
}

// Entry is a job as a node executes it.
type Entry struct {
	ID          string       `json:"id"` // of the run, and the stage of a shared job
	Name        string       `json:"name"`
	RID         ident.Digest `json:"rid"`
	Seed        int64        `json:"seed"`
	Config      string       `json:"config"` // path in the spool, as all paths
	Until       string       `json:"until,omitempty"`
	Needs       []string     `json:"needs"`            // bundles to import
	Suites      []string     `json:"suites,omitempty"` // benchmarks to add
	Tags        []string     `json:"tags,omitempty"`
	Threads     int          `json:"threads"`
	MaxRestarts int          `json:"max_restarts"`
	Store       string       `json:"store,omitempty"` // directory on the node
	Ranks       int          `json:"ranks,omitempty"` // processes of the run; 0: one
	RankTimeout string       `json:"rank_timeout,omitempty"`
}

// Submitted is an entry with its number at the batch system.
type Submitted struct {
	Entry
	Number string `json:"number"`
}

// OnSlurm reports whether the number is Slurm's: "12_3".
func (j Submitted) OnSlurm() bool {
	job, _, _ := strings.Cut(j.Number, "_")
	_, err := strconv.Atoi(job)
	return err == nil
}

// The statuses of a job in its own words.
const (
	Running  = "running"
	Done     = "done"
	Requeued = "requeued"
	Stopped  = "stopped"
	Failed   = "failed"
	// StoppedEarly is the status of a run that its own condition ended (run.stop_if).
	StoppedEarly = "stopped-early"
)

// askedToStop is the text of a job that saved its work on request.
const askedToStop = "asked to stop"

// State is a job's own account of its progress.
type State struct {
	ID         string       `json:"id"`
	RID        ident.Digest `json:"rid"`
	Number     string       `json:"number"`
	Status     string       `json:"status"`
	Host       string       `json:"host"`
	Restarts   int          `json:"restarts"`
	Step       int          `json:"step"`
	Checkpoint int64        `json:"checkpoint"` // step of the last one that was published
	Crash      int          `json:"crash"`      // step at which the program crashed last, plus 1; 0: never
	Stop       Stop         `json:"stop,omitzero"`
	Text       string       `json:"text,omitempty"`
	Time       time.Time    `json:"time"`
}

// restarts returns how often the job was started and ended on its own, from the state that its last
// attempt left. An attempt that saved because it was asked to stop does not count.
func (s State) restarts(number string) int {
	switch {
	case s.Number != number:
		return 0
	case s.Status == Stopped && s.Text == askedToStop:
		return s.Restarts
	}
	return s.Restarts + 1
}

// Stop is how far a job was when the batch system last asked it to stop.
type Stop struct {
	Stages int `json:"stages"` // that were done
	Step   int `json:"step"`   // of the next stage
	Idle   int `json:"idle"`   // stops in a row without progress
}

// next returns the stop that follows s, given how far the job got.
func (s Stop) next(stages, step int) Stop {
	if stages > s.Stages || stages == s.Stages && step > s.Step {
		return Stop{Stages: stages, Step: step}
	}
	s.Idle++
	return s
}

// Finished reports whether the job did what was asked and has results to collect.
func (s State) Finished() bool { return s.Status == Done || s.Status == StoppedEarly }

// ended reports whether the job ended, and nothing starts it again.
func (s State) ended() bool { return s.Finished() || s.Status == Failed || s.Status == Stopped }

// submittedFolder has a file for each submitted job.
const submittedFolder = "submitted"

// note records the number of a job at the batch system.
func (s Spool) note(j Submitted) error { return writeJSON(s.Path(submittedFolder+"/"+j.ID+".json"), j) }

// numberOf returns the number of a job's last submission, or "".
func (s Spool) numberOf(id string) (string, error) {
	var j Submitted
	err := readJSON(s.Path(submittedFolder+"/"+id+".json"), &j)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return j.Number, err
}

// StatePath returns the path in a spool where a job keeps its State.
func StatePath(id string) string { return "state/" + id + ".json" }

// forgive removes the failure or the stop of a job from its state, so that no other job gives up
// because of it, and counts its restarts from 0. The state keeps what the job has published.
func (s Spool) forgive(id string) error {
	st, err := s.State(id)
	if err != nil || st.Status != Failed && st.Status != Stopped {
		return err
	}
	return writeJSON(s.Path(StatePath(id)), State{ID: id, RID: st.RID, Step: st.Step, Checkpoint: st.Checkpoint,
		Time: time.Now().UTC()})
}

// State returns what a job said of itself last; the zero State if it never ran.
func (s Spool) State(id string) (st State, err error) {
	err = readJSON(s.Path(StatePath(id)), &st)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	return st, err
}

// Submitted returns the jobs that were submitted, by their names.
func (s Spool) Submitted() ([]Submitted, error) {
	dir := s.Path(submittedFolder)
	files, err := fs.Glob(os.DirFS(dir), "*.json")
	if err != nil {
		return nil, err
	}
	var list []Submitted
	for _, f := range files {
		var j Submitted
		if err := readJSON(filepath.Join(dir, f), &j); err != nil {
			return nil, err
		}
		list = append(list, j)
	}
	slices.SortFunc(list, func(a, b Submitted) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// BundlePath returns the path in a spool where a job publishes its results.
func BundlePath(id string) string { return "out/" + id + ".tar" }

// GivenPath returns the path in a spool where the submitter puts a run of its store.
func GivenPath(rid ident.Digest) string { return "in/" + rid.String() + ".tar" }

// ConfigPath returns the path in a spool of a configuration. The name holds the digest of its text:
// settings that are not part of a run's id, such as its device, must not change for jobs that wait.
func ConfigPath(text []byte) string { return "config/" + ident.Sum(text).String() + ".yaml" }

// AddProgram copies a program into the spool under its digest, so jobs execute the build
// that submitted them: a run's id holds the digest of its sources. It returns the path in
// the spool.
func (s Spool) AddProgram(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	name, err := programPath(f)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(s.Path(name)); err == nil {
		return name, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	return name, replace(s.Path(name), 0o755, func(w io.Writer) error { _, err := io.Copy(w, f); return err })
}

// ownProgramPath returns the path in a spool where AddProgram puts this program.
func ownProgramPath() (string, error) {
	file, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return programPath(f)
}

func programPath(r io.Reader) (string, error) {
	digest, _, err := ident.SumReader(r)
	return "bin/" + digest.String(), err
}

// Write writes a file of the spool.
func (s Spool) Write(name string, text []byte) error {
	return replace(s.Path(name), 0o644, func(w io.Writer) error { _, err := w.Write(text); return err })
}

func writeJSON(path string, v any) error {
	return replace(path, 0o644, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", " ")
		return enc.Encode(v)
	})
}

func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return &DamagedError{path, err}
	}
	return nil
}

// DamagedError says that a file of a spool is not what was written.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string { return fmt.Sprintf("%s is damaged: %v", e.Path, e.Err) }

func (e *DamagedError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *DamagedError) Hint() string {
	if filepath.Base(filepath.Dir(e.Path)) == submittedFolder {
		return "it only says which job was submitted, and under which number. Once that job has ended, remove the " +
			"file; the same exp run … --on then submits the missing jobs"
	}
	return "copy it from a backup, or use another spool: --set cluster.spool=DIR"
}

// ExitCode returns the code for damaged data.
func (e *DamagedError) ExitCode() int { return 4 }

// replace writes a file aside and renames it into place.
func replace(path string, mode fs.FileMode, write func(io.Writer) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // no effect after the rename
	if err := errors.Join(write(tmp), tmp.Chmod(mode), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
