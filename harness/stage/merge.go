package stage

import (
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"

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
	m, adapters, err := e.loadTrained(in)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if adapters != nil {
		defer adapters.Close()
	}
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
	o := checkpoint.MergeOptions{Tokenizer: files, EndIDs: tok.EndIDs(), Replace: true}
	if err := e.mergeTypes(&o); err != nil {
		return nil, err
	}
	written, err := checkpoint.Merge(e.Backend, m, dir, o)
	if err != nil {
		return nil, err
	}
	out := &Outcome{}
	if err := e.putFolder(out, dir, "", written); err != nil {
		return nil, err
	}
	if adapters != nil {
		dir := filepath.Join(e.Dir, AdapterDir)
		files, err := checkpoint.WriteAdapters(e.Backend, adapters, dir, e.run().Model.Base)
		if err != nil {
			return nil, err
		}
		if err := e.putFolder(out, dir, AdapterDir+"/", files); err != nil {
			return nil, err
		}
	}
	var bytes int64
	for _, x := range out.Outputs {
		bytes += x.Size
	}
	out.Summary = map[string]any{"files": len(out.Outputs), "bytes": bytes, "probe": "logits equal, bit for bit"}
	out.Facts = []rl.Metric{fact("files", float64(len(out.Outputs)))}
	return out, nil
}

// AdapterDir is the folder of trained adapters in PEFT's layout within a run's directory,
// and begins the roles of its files.
const AdapterDir = "adapter"

// mergeTypes sets in which types weights are written, and what is kept of the folder that
// they came from.
func (e *Env) mergeTypes(o *checkpoint.MergeOptions) error {
	c := e.run()
	o.ShardBytes = math.MaxInt64 // later stages read the weights as one blob
	o.DType = map[string]checkpoint.DType{"bf16": checkpoint.BF16, "f32": checkpoint.F32}[c.Merge.DType]
	if c.Model.Init != "pretrained" {
		return nil
	}
	origin, err := checkpoint.ReadOrigin(c.Model.Base)
	o.Origin = origin
	if err == nil && c.Model.Part == textPart {
		err = textTypes(c, origin)
	}
	return err
}

// putFolder stores the files of a folder; their roles are their names after a prefix.
func (e *Env) putFolder(out *Outcome, dir, prefix string, files []checkpoint.FileInfo) error {
	for _, f := range files {
		d, size, err := e.Blobs.PutFile(filepath.Join(dir, f.Name))
		if err != nil {
			return err
		}
		kind := "text"
		if filepath.Ext(f.Name) == ".safetensors" {
			kind = "weights"
		}
		out.Outputs = append(out.Outputs, Output{Role: prefix + f.Name, Digest: d, Size: size, Kind: kind})
	}
	return nil
}

// MergedWeights is the role of the merged folder's weights.
const MergedWeights = "model.safetensors"

// loadTrained loads the weights of the train stage with the heads that they have;
// adapters are folded into the weights that they were trained on. Adapters themselves,
// if there are any, come second: the caller closes both.
func (e *Env) loadTrained(in Inputs) (m, adapters *model.Model, err error) {
	heads := model.Heads{LM: true}
	cfg := TrainConfig(e.run())
	if cfg.Needs().LogZ {
		heads.LogZ = &cfg.LogZ
	}
	if e.run().Train.LoRA.Rank > 0 {
		return e.foldTrained(in, heads)
	}
	t, _, err := e.openWeights(in, RoleWeights)
	if err != nil {
		return nil, nil, err
	}
	defer t.Close()
	if m, err = e.newModel(heads, false); err != nil {
		return nil, nil, err
	}
	if err := checkpoint.LoadWeights(e.Backend, m, t, checkpoint.All); err != nil {
		m.Close()
		return nil, nil, err
	}
	return m, nil, nil
}

// foldTrained is loadTrained for adapters.
func (e *Env) foldTrained(in Inputs, heads model.Heads) (m, adapters *model.Model, err error) {
	var owned closers
	defer func() {
		if err != nil {
			owned.close()
		}
	}()
	base, _, err := e.openWeights(in, RoleBase)
	if err != nil {
		return nil, nil, err
	}
	defer base.Close()
	if adapters, err = e.adaptersOn(base, heads); err != nil {
		return nil, nil, err
	}
	owned.add(adapters.Close)
	if m, err = e.newModel(heads, false); err != nil {
		return nil, nil, err
	}
	owned.add(m.Close)
	if err = checkpoint.LoadWeights(e.Backend, m, base, checkpoint.Plain); err != nil {
		return nil, nil, err
	}
	t, _, err := e.openWeights(in, RoleWeights)
	if err != nil {
		return nil, nil, err
	}
	defer t.Close()
	if err = checkpoint.LoadWeights(e.Backend, adapters, t, checkpoint.All); err != nil {
		return nil, nil, err
	}
	for _, x := range m.Tensors() {
		if x.Auxiliary() {
			e.Backend.Copy(m.View(x.Name), adapters.View(x.Name))
		}
	}
	err = m.FoldAdapters(adapters)
	m.Refresh()
	return m, adapters, err
}

// Materialize writes the files of a merged model, and of its adapters, that were taken
// from the cache into a run's directory, unless they are there.
func Materialize(e *Env, outputs []Output) error {
	folders := map[string][]Output{}
	for _, o := range outputs {
		dir := MergedDir
		if name, ok := strings.CutPrefix(o.Role, AdapterDir+"/"); ok {
			dir, o.Role = AdapterDir, name
		}
		folders[dir] = append(folders[dir], o)
	}
	for dir, list := range folders {
		if err := materialize(e, filepath.Join(e.Dir, dir), list); err != nil {
			return err
		}
	}
	return nil
}

func materialize(e *Env, dir string, outputs []Output) error {
	tmp := dir + Unfinished
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o777)); err != nil {
		return err
	}
	for _, o := range outputs {
		to := filepath.Join(tmp, filepath.FromSlash(o.Role))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		if err := link(e.Blobs.Path(o.Digest), to); err != nil {
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
