package stage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"exp/experiments/ident"
	"exp/train"
	"exp/train/checkpoint"
)

// learns is what a checkpoint saves: SFT or the RL loop.
type learns interface {
	State() train.State
	Buffers() []train.NamedBuffer
	Restore(train.State) error
}

// saver writes and reads the checkpoints of a learning stage. They lie in a
// directory of the stage's sid, so that a changed stage never meets another's.
type saver struct {
	e    *Env
	kind string
	dir  string
	t    learns
}

func (e *Env) saver(kind string, t learns) *saver {
	return &saver{e: e, kind: kind, t: t, dir: filepath.Join(e.Dir, "ckpt", kind+"-"+e.SID.Short())}
}

// savedState is what a checkpoint says beside its buffers.
type savedState struct {
	SID   ident.Digest    `json:"sid"`
	Chain ident.Digest    `json:"chain"`
	Train train.State     `json:"train"`
	Log   json.RawMessage `json:"log,omitempty"` // a JSON string: lines gathered so far
}

func (s *saver) groups() []checkpoint.Group {
	byName := map[string]int{}
	var groups []checkpoint.Group
	for _, b := range s.t.Buffers() {
		group, name, _ := strings.Cut(b.Name, "/")
		i, ok := byName[group]
		if !ok {
			i = len(groups)
			byName[group] = i
			groups = append(groups, checkpoint.Group{Name: group})
		}
		groups[i].Buffers = append(groups[i].Buffers, checkpoint.NamedBuffer{Name: name, Data: b.Buffer})
	}
	return groups
}

// save writes a checkpoint of the finished steps and returns its directory.
func (s *saver) save(chain ident.Digest, log []byte) (string, error) {
	state := savedState{SID: s.e.SID, Chain: chain, Train: s.t.State()}
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
	return checkpoint.Write(s.e.Backend, s.dir, checkpoint.State{Step: state.Train.Step, Extra: extra, Groups: s.groups()})
}

// load restores the newest valid checkpoint, if there is one; ok is false
// otherwise. Damaged ones are passed over with a warning.
func (s *saver) load() (state savedState, ok bool, err error) {
	c, passed, err := checkpoint.Latest(s.dir)
	for _, p := range passed {
		s.e.event("checkpoint-passed-over", "checkpoint passed over: %v", p)
	}
	if errors.Is(err, checkpoint.ErrNone) {
		return state, false, nil
	}
	if err != nil {
		return state, false, err
	}
	if err := json.Unmarshal(c.Extra, &state); err != nil {
		return state, false, fmt.Errorf("checkpoint %s: %w", c.Dir, err)
	}
	if state.SID != s.e.SID {
		return state, false, fmt.Errorf("checkpoint %s is of stage %s, not %s", c.Dir, state.SID.Short(), s.e.SID.Short())
	}
	if err := c.Load(s.e.Backend, s.groups()); err != nil {
		return state, false, err
	}
	return state, true, s.t.Restore(state.Train)
}

// resume is load for a stage that gathers lines.
func (s *saver) resume(lines *bytes.Buffer) error {
	state, ok, err := s.load()
	if err != nil || !ok {
		return err
	}
	var text string
	if err := json.Unmarshal(state.Log, &text); err != nil {
		return err
	}
	lines.WriteString(text)
	return nil
}

// onStop saves if err is ErrStopped, and returns err.
func (s *saver) onStop(err error, log []byte) error {
	if !errors.Is(err, ErrStopped) {
		return err
	}
	if _, saved := s.save(ident.Digest{}, log); saved != nil {
		return errors.Join(err, saved)
	}
	return err
}
