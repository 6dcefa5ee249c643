package stage

import (
	"errors"
	"maps"
	"os"
	"path/filepath"

	"exp/train/checkpoint"
	"exp/train/model"
	"exp/train/rl"
)

// MergedDir is the Hugging Face folder within a run's directory.
const MergedDir = "model"

// Unfinished ends the name of a directory that Materialize is writing, and
// UnfinishedWeights matches a file of weights that becomes a blob: what a killed
// process leaves in a run's directory.
const (
	Unfinished        = ".partial"
	UnfinishedWeights = ".weights-*"
)

// merge writes the trained weights as a plain Hugging Face folder into the run's
// directory, auxiliary heads in files of their own, and proves by a probe that the
// folder computes what the checkpoint computes, bit for bit.
func merge(e *Env, in Inputs) (*Outcome, error) {
	m, err := e.loadTrained(in)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	p, err := e.prompter()
	if err != nil {
		return nil, err
	}
	tok := p.Tokenizer
	files := maps.Clone(tok.Files())
	if t := p.template; t != nil && t.own {
		files["chat_template.jinja"] = []byte(t.source) // the folder asks as the training did
	}
	dir := filepath.Join(e.Dir, MergedDir)
	written, err := checkpoint.Merge(e.Backend, m, dir, checkpoint.MergeOptions{Tokenizer: files, EndIDs: tok.EndIDs(), Replace: true})
	if err != nil {
		return nil, err
	}
	out := &Outcome{}
	var bytes int64
	for _, f := range written {
		d, size, err := e.Blobs.PutFile(filepath.Join(dir, f.Name))
		if err != nil {
			return nil, err
		}
		kind := "text"
		if filepath.Ext(f.Name) == ".safetensors" {
			kind = "weights"
		}
		out.Outputs = append(out.Outputs, Output{Role: f.Name, Digest: d, Size: size, Kind: kind})
		bytes += size
	}
	out.Summary = map[string]any{"files": len(written), "bytes": bytes, "probe": "logits equal, bit for bit"}
	out.Facts = []rl.Metric{fact("files", float64(len(written)))}
	return out, nil
}

// MergedWeights is the role of the merged folder's weights.
const MergedWeights = "model.safetensors"

// loadTrained loads the weights of the train stage with the heads that they have.
func (e *Env) loadTrained(in Inputs) (m *model.Model, err error) {
	path, err := e.inputPath(in, RoleWeights)
	if err != nil {
		return nil, err
	}
	t, err := checkpoint.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	heads := model.Heads{LM: true}
	cfg := TrainConfig(e.run())
	if cfg.Needs().LogZ {
		heads.LogZ = &cfg.LogZ
	}
	if m, err = e.newModel(heads, false); err != nil {
		return nil, err
	}
	if err := checkpoint.LoadWeights(e.Backend, m, t, checkpoint.All); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// Materialize writes the files of a merged model that was taken from the cache
// into a run's directory, unless they are there.
func Materialize(e *Env, outputs []Output) error {
	dir := filepath.Join(e.Dir, MergedDir)
	tmp := dir + Unfinished
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o777)); err != nil {
		return err
	}
	for _, o := range outputs {
		path := filepath.Join(tmp, o.Role)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := link(e.Blobs.Path(o.Digest), path); err != nil {
			return err
		}
	}
	return os.Rename(tmp, dir)
}

// link makes to a hard link of a blob, or a copy where links are not to be had.
func link(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o666)
}
