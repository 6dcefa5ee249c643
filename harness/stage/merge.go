package stage

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/train"
	"exp/train/checkpoint"
	"exp/train/model"
	"exp/train/rl"
)

// MergedDir is the Hugging Face folder within a run's directory.
const MergedDir = "model"

// Unfinished ends the name of a directory that Materialize is writing. A killed process leaves it in
// a run's directory.
const Unfinished = ".partial"

// merge writes the trained weights as a plain Hugging Face folder into the run's directory,
// auxiliary heads in separate files, and reads the folder again to prove that it holds the bits
// of the checkpoint. It makes no model: it copies weights from file to file in pieces.
//
// If merge.format asks for it, a second folder holds the same weights cut over the ranks of another
// trainer. A reward model that the run trained gets a folder of its own.
func merge(ctx context.Context, e *Env, in Inputs) (*Outcome, error) {
	out := &Outcome{}
	if e.run().MakesPolicy() {
		if err := e.publishPolicy(ctx, in, out); err != nil {
			return nil, err
		}
	}
	if _, ok := in[RoleScorer]; ok {
		if err := e.publishRewardModel(in, out); err != nil {
			return nil, err
		}
	}
	var bytes int64
	for _, x := range out.Outputs {
		bytes += x.Size
	}
	out.Summary = map[string]any{"files": len(out.Outputs), "bytes": bytes, "probe": "tensors equal, bit for bit"}
	out.Facts = []rl.Metric{fact("files", float64(len(out.Outputs)))}
	return out, nil
}

// publishPolicy writes the folders of the weights that the last stage learned.
func (e *Env) publishPolicy(ctx context.Context, in Inputs, out *Outcome) error {
	x, owned, err := e.trained(in)
	if err != nil {
		return err
	}
	defer owned.close()
	dir := filepath.Join(e.Dir, MergedDir)
	o, err := e.mergeOptions()
	if err != nil {
		return err
	}
	written, err := checkpoint.MergeTensors(e.Backend, x, dir, o)
	if err != nil {
		return err
	}
	if err := e.putFolder(out, dir, "", written); err != nil {
		return err
	}
	if err := e.putShards(out); err != nil {
		return err
	}
	if err := e.spread(ctx, out, dir); err != nil {
		return err
	}
	if x.Heads.Adapters == nil {
		return nil
	}
	dir = filepath.Join(e.Dir, AdapterDir)
	files, err := x.WriteAdapterTensors(e.Backend, dir, e.adapterBase())
	if err != nil {
		return err
	}
	if x.Heads.Adapters.BesideExperts(x.Config) {
		e.event("adapters-beside-experts", "with transformers 5, PEFT does not load the adapters on "+
			"gate_proj, up_proj and down_proj outside the experts: it looks for these names among "+
			"them. The folder %s holds weights and adapters in one", MergedDir)
	}
	return e.putFolder(out, dir, AdapterDir+"/", files)
}

// mergeOptions returns what the merged folder holds besides weights, and their types.
func (e *Env) mergeOptions() (o checkpoint.MergeOptions, err error) {
	p, err := e.prompter()
	if err != nil {
		return o, err
	}
	files := maps.Clone(p.Tokenizer.Files())
	if source, own := p.OwnTemplate(); own {
		files["chat_template.jinja"] = []byte(source) // the folder asks as the training did
	}
	o = checkpoint.MergeOptions{Tokenizer: files, EndIDs: p.Tokenizer.EndIDs(), Replace: true}
	return o, e.mergeTypes(&o)
}

// adapterBase returns the name of the model that the trained adapters belong to. After fine-tuning it is empty: no
// folder holds the fine-tuned weights, and naming model.base would invite adding the adapters to the wrong model.
func (e *Env) adapterBase() string {
	c := e.run()
	if !c.Tunes() {
		return c.Model.Name()
	}
	after := config.SFT
	if c.Prefer.Steps > 0 {
		after = config.Prefer
	}
	e.event("adapters-after-sft", "the folder %s holds adapters for the weights after %s, not for the weights of "+
		"%s; the folder %s holds their sum", AdapterDir, after, cmp.Or(c.Model.Name(), "model.init"), MergedDir)
	return ""
}

// AdapterDir is the folder of trained adapters in PEFT's layout within a run's directory,
// and begins the roles of its files.
const AdapterDir = "adapter"

// mergeTypes sets the types of the written weights, and the parts of the source folder that are
// kept.
func (e *Env) mergeTypes(o *checkpoint.MergeOptions) error {
	c := e.run()
	o.DType = mergedType(c.Merge.DType)
	if c.Model.Init != "pretrained" {
		return nil
	}
	origin, err := checkpoint.ReadOrigin(c.Model.Base)
	o.Origin = origin
	if err == nil && c.Model.Part == config.PartText {
		err = textTypes(c, origin)
	}
	return err
}

// mergedType returns the type of the written weights; "" keeps the type of the initial ones.
func mergedType(word string) checkpoint.DType {
	switch word {
	case "bf16":
		return checkpoint.BF16
	case "f32":
		return checkpoint.F32
	case "keep", "":
		return ""
	}
	panic("stage: unknown merge.dtype " + word)
}

// putFolder stores the files of a folder on all cores; their roles are their names after a prefix.
func (e *Env) putFolder(out *Outcome, dir, prefix string, files []checkpoint.FileInfo) error {
	sizes := make([]int64, len(files))
	for i, f := range files {
		sizes[i] = f.Bytes
	}
	outputs, errs := make([]Output, len(files)), make([]error, len(files))
	ident.OnAllCores(sizes, func(i int) {
		name := files[i].Name
		kind, put := "text", e.Blobs.PutFile
		if ext := filepath.Ext(name); ext == ".safetensors" || ext == ".pt" {
			kind, put = "weights", e.Blobs.Adopt
		}
		d, size, err := put(filepath.Join(dir, name))
		outputs[i], errs[i] = Output{Role: prefix + name, Digest: d, Size: size, Kind: kind}, err
	})
	out.Outputs = append(out.Outputs, outputs...)
	return cmp.Or(errs...) // one full disk fails all
}

// MergedWeights is the role of the merged folder's weights: its file of that name or, if the folder
// has several files, a list of them (shardedWeights).
const MergedWeights = "model.safetensors"

// trained returns the weights of the last stage that learned with their heads, and their files, which the
// caller closes.
func (e *Env) trained(in Inputs) (x checkpoint.Trained, owned closers, err error) {
	defer func() {
		if err != nil {
			owned.close()
		}
	}()
	if x.Config, err = e.architecture(); err != nil {
		return x, owned, err
	}
	x.Heads = model.Heads{LM: true}
	if e.run().Data.Train.Source != config.None { // else fine-tuning made the weights
		x.Heads = e.policyHeads(x.Config)
	}
	if x.Learned, _, err = e.openWeights(in, RoleWeights); err != nil {
		return x, owned, err
	}
	owned.add(func() { x.Learned.Close() })
	if x.Weights = x.Learned; x.Heads.Adapters == nil {
		return x, owned, nil
	}
	if x.Weights, _, err = e.openWeights(in, RoleBase); err != nil {
		return x, owned, err
	}
	owned.add(func() { x.Weights.Close() })
	return x, owned, nil
}

// policyHeads returns the heads and the adapters of the policy that training learns.
func (e *Env) policyHeads(arch model.Config) model.Heads {
	h, conf := model.Heads{LM: true}, TrainConfig(e.run())
	if conf.Needs().LogZ {
		h.LogZ = &conf.LogZ
	}
	return WithAdapters(h, e.run(), arch)
}

// MergeCheckpoint writes the policy in a checkpoint of training, the folder from, as the Hugging Face folder dir: what
// merge would have written had training ended there. in has the weights that trained adapters belong to (RoleBase).
func MergeCheckpoint(e *Env, in Inputs, from, dir string) error {
	c, err := checkpoint.Open(from)
	if err != nil {
		return err
	}
	var x checkpoint.Trained
	if x.Config, err = e.architecture(); err != nil {
		return err
	}
	x.Heads = e.policyHeads(x.Config)
	layout, n := model.Layout(x.Config, x.Heads)
	if x.Heads.Adapters != nil {
		layout, n = model.AdapterLayout(x.Config, x.Heads, x.Heads.Adapters)
	}
	if x.Learned, err = c.Tensors(train.PolicyGroup, train.ParamsBuffer, layout, n); err != nil {
		return err
	}
	defer x.Learned.Close()
	if x.Weights = x.Learned; x.Heads.Adapters != nil {
		if x.Weights, _, err = e.openWeights(in, RoleBase); err != nil {
			return err
		}
		defer x.Weights.Close()
	}
	o, err := e.mergeOptions()
	if err == nil {
		_, err = checkpoint.MergeTensors(e.Backend, x, dir, o)
	}
	return err
}

// Folders lists the folders within a run's directory that merge may write.
func Folders() []string { return []string{MergedDir, AdapterDir, MegatronDir, FSDPDir, RewardModelDir} }

// FileOf returns the folder, within a run's directory, of an output of merge, and its name there.
func FileOf(role string) (dir, name string) {
	for _, dir := range Folders() {
		if name, ok := strings.CutPrefix(role, dir+"/"); ok && dir != MergedDir {
			return dir, name
		}
	}
	return MergedDir, role
}

// Materialize writes the files that merge made, or that came from the cache, into a run's directory,
// those that are not there.
func Materialize(e *Env, outputs []Output) error {
	folders := map[string][]Output{}
	sharded := slices.ContainsFunc(outputs, func(o Output) bool { return o.Role == MergedIndex })
	for _, o := range outputs {
		if sharded && o.Role == MergedWeights {
			continue // not a file of the folder
		}
		var dir string
		dir, o.Role = FileOf(o.Role)
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
	into := dir
	if _, err := os.Stat(dir); err != nil {
		into = dir + Unfinished
		if err := errors.Join(os.RemoveAll(into), os.MkdirAll(into, 0o777)); err != nil {
			return err
		}
	}
	for _, o := range outputs {
		to := filepath.Join(into, filepath.FromSlash(o.Role))
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		if err := link(e.Blobs.Path(o.Digest), to); err != nil {
			return err
		}
	}
	if into == dir {
		return nil
	}
	return os.Rename(into, dir)
}

// link makes to a hard link of a blob, or a copy if it cannot link.
func link(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	part := to + Unfinished
	out, err := os.Create(part)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return os.Rename(part, to)
}
