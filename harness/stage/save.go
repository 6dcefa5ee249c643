package stage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/train"
	"exp/train/checkpoint"
	"exp/train/ranks"
)

// learns is SFT or the RL loop, whose state a checkpoint saves.
type learns interface {
	State() train.State
	WithBuffers(f func(list []train.NamedBuffer) error) error
	Restore(train.State) error
	WithPolicy(f func(list []train.NamedBuffer) error) error
}

// saver writes and reads the checkpoints of a learning stage. They lie in a directory named by the
// stage's sid, so that a changed stage never sees another's.
type saver struct {
	e    *Env
	kind string
	dir  string
	t    learns
	last time.Time    // of the last checkpoint, or of the start
	at   int          // its step, or the one that the stage continues from
	best *bestWeights // that checkpoints hold, too; may be nil
}

func (e *Env) saver(kind string, t learns) *saver {
	return &saver{e: e, kind: kind, t: t, dir: checkpointDir(e.Dir, kind, e.SID), last: time.Now()}
}

// due reports whether the configured cadence wants a checkpoint after a step.
func (s *saver) due(step int) (bool, error) {
	c := s.e.run().Checkpoint
	if c.EverySteps > 0 && step%c.EverySteps == 0 {
		return true, nil
	}
	if c.EveryMinutes == 0 {
		return false, nil
	}
	late := s.e.leads() && time.Since(s.last).Minutes() >= c.EveryMinutes // the first rank's clock counts
	return ranks.Any(s.e.group(), late)
}

// afterStep saves a stage that gathers lines, if that is due, and removes older checkpoints.
func (s *saver) afterStep(step, of int, log []byte) error {
	if s.e.Again || step == of {
		return nil
	}
	if due, err := s.due(step); err != nil || !due {
		return err
	}
	if _, err := s.save(ident.Digest{}, log); err != nil || !s.e.leads() {
		return err
	}
	_, err := checkpoint.Prune(s.dir, max(1, s.e.run().Checkpoint.Keep), nil)
	return err
}

// drop removes the checkpoints of a stage that is done.
func (s *saver) drop() error {
	if s.e.Again || !s.e.leads() {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// checkpointDir returns the directory of a stage's checkpoints in a run's directory.
func checkpointDir(run, kind string, sid ident.Digest) string {
	return filepath.Join(CheckpointsDir(run), kind+"-"+sid.Short())
}

// CheckpointsDir returns the directory of all stages' checkpoints in a run's directory.
func CheckpointsDir(run string) string { return filepath.Join(run, "ckpt") }

// Checkpoints returns the steps of training's checkpoints in a run's directory, ascending.
func Checkpoints(run string, sid ident.Digest) ([]int, error) {
	steps, err := checkpoint.Steps(checkpointDir(run, string(config.Train), sid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return steps, err
}

// checkpointOf opens the checkpoint of a step of training in the folder Start.Checkpoints, if Start.Accept takes it.
func (e *Env) checkpointOf(step int) (*checkpoint.Checkpoint, error) {
	dir := filepath.Join(e.Start.Checkpoints, filepath.Base(checkpointDir("", string(config.Train), e.SID)))
	c, passed, err := checkpoint.LatestUpTo(dir, step, func(c *checkpoint.Checkpoint) error {
		if c.Step != step {
			return fmt.Errorf("checkpoint %s is of an earlier step", c.Dir)
		}
		state, err := readState(c, e.SID)
		if err != nil {
			return err
		}
		return e.Start.Accept(Saved{c.Dir, step, state.Chain})
	})
	if errors.Is(err, checkpoint.ErrNone) {
		err = fmt.Errorf("the checkpoint of step %d cannot be used: %w", step, errors.Join(append(passed, err)...))
	}
	return c, err
}

// savedState is everything in a checkpoint but its buffers.
type savedState struct {
	SID   ident.Digest    `json:"sid"`
	Chain ident.Digest    `json:"chain"`
	Train train.State     `json:"train"`
	Log   json.RawMessage `json:"log,omitempty"` // a JSON string: lines gathered so far
	Best  *Best           `json:"best,omitempty"`
	// Unscored says that the validation of the last step could not be graded and comes first.
	Unscored bool `json:"unscored,omitempty"`
}

// groupsOf returns the buffers "GROUP/NAME" in the groups of a checkpoint.
func groupsOf(list []train.NamedBuffer) []checkpoint.Group {
	byName := map[string]int{}
	var groups []checkpoint.Group
	for _, b := range list {
		group, name, _ := strings.Cut(b.Name, "/")
		i, ok := byName[group]
		if !ok {
			i = len(groups)
			byName[group] = i
			groups = append(groups, checkpoint.Group{Name: group})
		}
		b.Name = name
		groups[i].Buffers = append(groups[i].Buffers, buffersOf([]train.NamedBuffer{b})...)
	}
	return groups
}

// buffersOf returns buffers as a checkpoint names them.
func buffersOf(list []train.NamedBuffer) (out []checkpoint.NamedBuffer) {
	for _, b := range list {
		x := checkpoint.NamedBuffer{Name: b.Name, Shape: b.Shape, Data: b.Buffer}
		if b.Cut != nil {
			x.Cut = b.Cut
		}
		out = append(out, x)
	}
	return out
}

// save writes a checkpoint of the finished steps and returns its directory.
func (s *saver) save(chain ident.Digest, log []byte) (dir string, err error) {
	state := savedState{SID: s.e.SID, Chain: chain, Train: s.t.State(), Best: s.best.found(), Unscored: s.best.waits()}
	defer func() { s.last, s.at = time.Now(), state.Train.Step }()
	if log != nil {
		text, err := json.Marshal(string(log))
		if err != nil {
			return "", err
		}
		state.Log = text
	}
	extra, err := json.Marshal(state)
	if err != nil {
		return "", err
	}
	err = s.t.WithBuffers(func(list []train.NamedBuffer) error {
		dir, err = checkpoint.Write(s.e.Backend, s.dir, checkpoint.State{Step: state.Train.Step, Extra: extra,
			Groups: groupsOf(list), Linked: s.best.files()})
		return err
	})
	return dir, err
}

// loaded is the checkpoint that a stage continues from.
type loaded struct {
	Saved
	log      json.RawMessage
	best     *Best
	unscored bool
}

// load restores the checkpoint that Env.Start selects; ok is false without one. It skips damaged
// checkpoints with a warning, and removes the ones that a killed process wrote or removed only in
// part: the stage may end without another save.
func (s *saver) load() (l loaded, ok bool, err error) {
	var c *checkpoint.Checkpoint
	var state train.State
	if s.e.leads() {
		c, l, state, err = s.find()
	}
	g := s.e.group()
	if err := ranks.Agree(g, err); err != nil {
		return l, false, err
	}
	if ok, err = ranks.Any(g, c != nil); err != nil || !ok {
		return l, false, err
	}
	if err := s.t.WithBuffers(func(list []train.NamedBuffer) error {
		return c.Load(s.e.Backend, groupsOf(list))
	}); err != nil {
		return l, false, err
	}
	s.at = state.Step
	if err := s.t.Restore(state); err != nil || s.best == nil {
		return l, true, err
	}
	if s.e.leads() {
		err = s.best.restore(l.best, c)
	}
	if err := ranks.Agree(g, err); err != nil {
		return l, true, err
	}
	unscored, err := ranks.Any(g, l.unscored)
	if unscored {
		s.best.unscored = &UnscoredError{Step: state.Step}
	}
	return l, true, err
}

// find returns the checkpoint to load and the state in it; nil without one.
func (s *saver) find() (c *checkpoint.Checkpoint, l loaded, state train.State, err error) {
	if !s.e.Again {
		defer checkpoint.RemoveInterrupted(s.dir)
	}
	start := s.e.Start
	if start.Fresh {
		return nil, l, state, nil
	}
	dir := s.dir
	if start.Checkpoints != "" {
		dir = filepath.Join(start.Checkpoints, filepath.Base(s.dir))
	}
	c, l, state, err = s.newest(dir, s.e.SID, func(c Saved) (ident.Digest, error) {
		if start.Accept == nil {
			return c.Chain, nil
		}
		return c.Chain, start.Accept(c)
	})
	if p := start.Parent; p != nil && c == nil && err == nil {
		return s.newest(checkpointDir(p.Dir, s.kind, p.SID), p.SID, p.Accept)
	}
	return c, l, state, err
}

// newest returns the newest checkpoint of the stage sid in dir that accept takes. accept returns
// the chain that training continues.
func (s *saver) newest(dir string, sid ident.Digest,
	accept func(Saved) (ident.Digest, error)) (*checkpoint.Checkpoint, loaded, train.State, error) {
	most := s.e.Start.UpTo
	if most == 0 {
		most = math.MaxInt
	}
	var state savedState
	var l loaded
	c, passed, err := checkpoint.LatestUpTo(dir, most, func(c *checkpoint.Checkpoint) (err error) {
		if state, err = readState(c, sid); err != nil {
			return err
		}
		l = loaded{Saved: Saved{Dir: c.Dir, Step: state.Train.Step, Chain: state.Chain}, log: state.Log,
			best: state.Best, unscored: state.Unscored}
		if l.Chain, err = accept(l.Saved); err != nil {
			return fmt.Errorf("checkpoint %s: %w", c.Dir, err)
		}
		return nil
	})
	for _, p := range passed {
		s.e.event("checkpoint-passed-over", "checkpoint passed over: %v", p)
	}
	if errors.Is(err, checkpoint.ErrNone) {
		return nil, l, state.Train, nil
	}
	if err != nil {
		return nil, l, state.Train, err
	}
	return c, l, state.Train, nil
}

// readState reads everything but the buffers from a checkpoint of the stage sid.
func readState(c *checkpoint.Checkpoint, sid ident.Digest) (state savedState, err error) {
	if err := json.Unmarshal(c.Extra, &state); err != nil {
		return state, fmt.Errorf("checkpoint %s: %w", c.Dir, err)
	}
	if state.SID != sid {
		return state, fmt.Errorf("checkpoint %s is of stage %s, not %s", c.Dir, state.SID.Short(), sid.Short())
	}
	return state, nil
}

// resume is load for a stage that gathers lines.
func (s *saver) resume(lines *bytes.Buffer) error {
	l, ok, err := s.load()
	if err != nil || !ok || !s.e.leads() || l.log == nil && l.Step == 0 {
		return err
	}
	var text string
	if err := json.Unmarshal(l.log, &text); err != nil {
		return err
	}
	lines.WriteString(text)
	return nil
}

// onStop saves if err is ErrStopped, and returns err.
func (s *saver) onStop(err error, log []byte) error {
	if !errors.Is(err, ErrStopped) || s.e.Again {
		return err
	}
	if _, saved := s.save(ident.Digest{}, log); saved != nil {
		return errors.Join(err, saved)
	}
	return err
}
