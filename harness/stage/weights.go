package stage

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/kernels"
	"exp/train"
	"exp/train/checkpoint"
	"exp/train/model"
)

// architecture returns the model's configuration: the recipe's, or the one in the
// pretrained folder.
func (e *Env) architecture() (model.Config, error) {
	c := e.run()
	if c.Model.Init == "pretrained" {
		return ReadArchitecture(c)
	}
	p, err := e.prompter()
	if err != nil {
		return model.Config{}, err
	}
	return ModelConfig(c, p.Tokenizer.VocabSize()), nil
}

// newModel allocates a model of the run's architecture.
func (e *Env) newModel(h model.Heads, trainable bool) (*model.Model, error) {
	c, err := e.architecture()
	if err != nil {
		return nil, err
	}
	m, err := model.New(e.Backend, c, h, trainable)
	if err != nil {
		return nil, err
	}
	return e.shown(m, nil)
}

// folderWeights is a blob that stands for the weights of a folder outside the store. It names them
// by digest; stages read them from model.base.
type folderWeights struct {
	Kind         string       `json:"kind"`
	Weights      ident.Digest `json:"weights"`
	Architecture ident.Digest `json:"architecture,omitzero"` // older records lack it
	Adapter      ident.Digest `json:"adapter,omitzero"`      // of model.adapter
	Vision       ident.Digest `json:"vision,omitzero"`       // of a model of text and images
}

const folderWeightsKind = "exp/weights-by-reference/1"

// putFolderWeights stores the stand-in for the weights of model.base.
func (e *Env) putFolderWeights() (Output, error) {
	d, err := modelDigest(e.run(), e.Again)
	if err != nil {
		return Output{}, err
	}
	architecture, err := e.architectureNow()
	if err != nil {
		return Output{}, err
	}
	adapter, err := e.adapterNow()
	if err != nil {
		return Output{}, err
	}
	vision, err := visionDigest(e.run(), e.Again)
	if err != nil {
		return Output{}, err
	}
	return e.putJSON(RoleWeights, "reference", folderWeights{folderWeightsKind, d, architecture, adapter, vision})
}

// ReadWeightsDigest returns the digest of the weights of model.base; it reads their files
// completely.
func ReadWeightsDigest(c *config.Run) (ident.Digest, error) { return modelDigest(c, true) }

// openWeights opens the weights of an input: a blob, or the folder that it refers to (byReference
// is then true).
func (e *Env) openWeights(in Inputs, role string) (t *checkpoint.Tensors, byReference bool, err error) {
	path, err := e.inputPath(in, role)
	if err != nil {
		return nil, false, err
	}
	ref, ok, err := readFolderWeights(path)
	if err != nil {
		return nil, false, err
	}
	if !ok {
		t, sharded, err := e.openShards(path)
		if !sharded && err == nil {
			t, err = checkpoint.OpenFile(path)
		}
		if err == nil && ReadsImages(e.run()) { // a merged folder has the vision tower too
			if e.run().Model.TrainsTower() {
				t, err = t.WithTower(e.run().Model.Base)
			} else {
				t, err = t.LanguageModel(e.run().Model.Base)
			}
		}
		return t, false, err
	}
	if err := e.checkFolder(ref); err != nil {
		return nil, false, err
	}
	t, err = OpenModel(e.run())
	return t, true, err
}

// readFolderWeights reads a blob that may stand for a folder's weights.
func readFolderWeights(path string) (ref folderWeights, ok bool, err error) {
	if ok, err := readStandIn(path, &ref); err != nil || !ok || ref.Kind != folderWeightsKind {
		return folderWeights{}, false, err
	}
	return ref, true, nil
}

// readStandIn reads a blob that may be JSON that stands for weights. A safetensors file begins with
// the length of its header, never with a brace and a quote.
func readStandIn(path string, v any) (ok bool, err error) {
	const limit = 1 << 20 // enough for over a thousand shards
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, 2)
	if _, err := io.ReadFull(f, head); err != nil || string(head) != `{"` {
		return false, nil // the reader of weights reports that it is too short
	}
	rest, err := io.ReadAll(io.LimitReader(f, limit))
	return err == nil && json.Unmarshal(append(head, rest...), v) == nil, err
}

// loadModel makes a model with the plain weights of an input. Frozen weights are held once, in the layout
// that products read; BF16 weights stay BF16 if they are frozen or under adapters that are trained.
func (e *Env) loadModel(in Inputs, role string, h model.Heads, trainable bool) (*model.Model, error) {
	return e.loadWeights(in, role, h, trainable, trainable)
}

// loadWeights is loadModel where own says whether the weights may change, by training or otherwise.
func (e *Env) loadWeights(in Inputs, role string, h model.Heads, trainable, own bool) (*model.Model, error) {
	t, byReference, err := e.openWeights(in, role)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return e.modelFrom(t, byReference, h, trainable, own)
}

// Pretrained makes the frozen model of a configuration's model.base and model.adapter, as evaluations do. The caller
// closes it.
func Pretrained(r *config.Resolved, be kernels.Backend) (*model.Model, error) {
	t, err := OpenModel(&r.Run)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return (&Env{Config: r, Backend: be}).modelFrom(t, true, model.Heads{LM: true}, false, false)
}

// modelFrom makes a model with the weights in t.
func (e *Env) modelFrom(t *checkpoint.Tensors, byReference bool, h model.Heads, trainable, own bool) (*model.Model,
	error) {
	adapted := byReference && e.run().Model.HasAdapter()
	fold := adapted && (own || useOfAdapter(e.run()) == foldedIn)
	if !own && !fold {
		return e.frozenModel(t, h, adapted)
	}
	m, err := e.newModel(h, trainable)
	if err != nil {
		return nil, err
	}
	if err := checkpoint.LoadWeights(e.Backend, m, t,
		func(t model.Tensor) bool { return !t.Auxiliary() && has(h, t.Name) }); err != nil {
		m.Close()
		return nil, err
	}
	if fold {
		if err := e.foldStart(m); err != nil {
			m.Close()
			return nil, err
		}
	}
	return m, nil
}

// frozenModel makes a model on a new backbone; adapted adds the adapters that the run starts
// from.
func (e *Env) frozenModel(t *checkpoint.Tensors, h model.Heads, adapted bool) (*model.Model, error) {
	base, err := e.newBackbone(e.Backend, t, h.LM)
	if err != nil {
		return nil, err
	}
	load := func() (*model.Model, error) { return model.NewOn(base, h, false) }
	if adapted {
		load = func() (*model.Model, error) { return e.startOn(base, h) }
	}
	m, err := load()
	if err != nil {
		base.Close()
		return nil, err
	}
	m.OwnBackbone()
	if m.AdaptsTower() {
		if err := e.openTower(t); err != nil {
			m.Close()
			return nil, err
		}
	}
	return e.shown(m, t)
}

// newBackbone loads weights that never change, in BF16 if all are, to a device.
func (e *Env) newBackbone(be kernels.Backend, t *checkpoint.Tensors, lm bool) (*model.Backbone, error) {
	c, err := e.architecture()
	if err != nil {
		return nil, err
	}
	return checkpoint.LoadBackbone(be, c, lm, t.Frozen(), t)
}

// WithAdapters returns h with the adapters that a run trains, if it does.
func WithAdapters(h model.Heads, c *config.Run, arch model.Config) model.Heads {
	return adaptedBy(c.Train.LoRA, h, arch)
}

// PreferHeads returns the heads of the model that learns from preferences, with its adapters.
func PreferHeads(c *config.Run, arch model.Config) model.Heads {
	return adaptedBy(c.Prefer.LoRA, model.Heads{LM: true}, arch)
}

// RewardModelHeads returns the heads of the reward model that the run trains, with its adapters.
func RewardModelHeads(c *config.Run, arch model.Config) model.Heads {
	return adaptedBy(c.RewardModel.LoRA, model.Heads{Score: true}, arch)
}

// adaptedBy returns h with adapters on the linear maps that targets name and exclude does not: the language model's
// and, if the vision tower learns, the tower's.
func adaptedBy(l config.LoRA, h model.Heads, arch model.Config) model.Heads {
	if l.Rank == 0 {
		return h
	}
	a := &model.Adapters{Rank: l.Rank, Alpha: l.Alpha, Stabilized: l.RankStabilized, Dropout: l.Dropout}
	h.Adapters = a
	all, excluded := slices.Contains(l.Targets, config.AllTargets), func(target string) bool {
		return slices.Contains(l.Exclude, target)
	}
	ofTower := map[string]bool{}
	for _, t := range arch.TowerMaps() {
		if all || slices.Contains(l.Targets, t.Target()) {
			ofTower[t.Target()] = true
			if !excluded(t.Target()) {
				a.Tower = append(a.Tower, t)
			}
		}
	}
	possible := arch.AdapterTargets()
	if all {
		a.Targets = slices.DeleteFunc(possible, excluded)
		return h
	}
	for _, target := range l.Targets {
		if (!ofTower[target] || slices.Contains(possible, target)) && !excluded(target) {
			a.Targets = append(a.Targets, target)
		}
	}
	return h
}

// has reports whether a model with heads h has the tensor; a critic has no output
// projection.
func has(h model.Heads, name string) bool { return h.LM || name != "lm_head.weight" }

// putWeights stores tensors as one safetensors blob.
func (e *Env) putWeights(tensors []checkpoint.Source) (Output, error) {
	d, size, err := e.Blobs.PutWritten(func(w io.Writer) error { return checkpoint.WriteSafetensors(w, tensors) })
	return Output{Role: RoleWeights, Digest: d, Size: size, Kind: "weights"}, err
}

// digestTensors returns the digest of a set of weights, whatever their container.
func digestTensors(sources []checkpoint.Source) (ident.Digest, error) {
	list := make([]ident.Tensor, len(sources))
	for i, s := range sources {
		h := sha256.New()
		if err := s.Raw(h); err != nil {
			return ident.Digest{}, err
		}
		list[i] = ident.Tensor{Name: s.Name, DType: string(s.DType), Shape: s.Shape, Data: ident.Digest(h.Sum(nil))}
	}
	return ident.Weights(list)
}

// putLearned stores the parameters that a stage has learned. All ranks call it; the first one
// stores them.
func (e *Env) putLearned(t learns) (out Output, err error) {
	err = e.withLearned(t, func(tensors []checkpoint.Source) error {
		out, err = e.putWeights(tensors)
		return err
	})
	return out, err
}

// learnedDigest returns the digest of the present parameters on the first rank. All ranks call it.
func (e *Env) learnedDigest(t learns) (d ident.Digest, err error) {
	err = e.withLearned(t, func(tensors []checkpoint.Source) error {
		d, err = digestTensors(tensors)
		return err
	})
	return d, err
}

// withLearned calls f on the first rank with the parameters that a stage learns.
func (e *Env) withLearned(t learns, f func(tensors []checkpoint.Source) error) error {
	return t.WithPolicy(func(list []train.NamedBuffer) error {
		return f(checkpoint.Sources(e.Backend, buffersOf(list)))
	})
}

// initialize makes the weights that everything starts from: random ones, or a reference to a
// folder's.
func initialize(e *Env) (*Outcome, error) {
	c := e.run()
	var w Output
	arch, err := e.architecture()
	if err != nil {
		return nil, err
	}
	if c.Model.Init == "pretrained" {
		w, err = e.putFolderWeights()
	} else {
		w, err = e.randomWeights()
	}
	if err != nil {
		return nil, err
	}
	n, _ := model.Parameters(arch.WithoutTower(), model.Heads{LM: true}) // the same whether the tower learns or not
	return &Outcome{Outputs: []Output{w}, Summary: map[string]any{"parameters": n},
		Facts: metrics(fact("parameters", float64(n)))}, nil
}

func (e *Env) randomWeights() (Output, error) {
	m, err := e.newModel(model.Heads{LM: true}, false)
	if err != nil {
		return Output{}, err
	}
	defer m.Close()
	m.Init(seedFunc(e.run().Model.Seed))
	return e.putWeights(checkpoint.Weights(e.Backend, m, checkpoint.Plain))
}

// ReadArchitecture returns the architecture of the part of model.base that model.part
// selects.
func ReadArchitecture(c *config.Run) (model.Config, error) {
	if checkpoint.IsAdapterFolder(c.Model.Base) {
		return model.Config{}, fmt.Errorf("%s holds LoRA adapters (PEFT), not a model: name it in model.adapter, and "+
			"the model's folder in model.base", c.Model.Base)
	}
	read := checkpoint.ReadConfig
	switch c.Model.Part {
	case config.PartText:
		read = checkpoint.ReadTextConfig
	case config.PartImages:
		read = checkpoint.ReadImageConfig
	}
	arch, err := read(c.Model.Base)
	if err == nil && c.Model.TrainsTower() && arch.ReadsImages() { // else External says so
		arch.Tower, err = checkpoint.TowerLayout(c.Model.Base)
	}
	return arch, err
}

// architectureDigest covers what the model computes from its weights: rotary base, epsilon, window and so on. The
// vision tower has a digest of its own.
func architectureDigest(arch model.Config) (ident.Digest, error) {
	text, err := json.Marshal(arch.WithoutTower())
	if err != nil {
		return ident.Digest{}, err
	}
	return ident.Hash("exp/architecture/1", map[string]any{"config": string(text)})
}

// OpenModel opens the weights of model.base, restricted to model.part. If the vision tower learns, its weights are
// there, too.
func OpenModel(c *config.Run) (*checkpoint.Tensors, error) {
	if c.Model.TrainsTower() {
		return checkpoint.OpenWithTower(c.Model.Base)
	}
	return openLanguageModel(c)
}

// openLanguageModel is OpenModel without a vision tower.
func openLanguageModel(c *config.Run) (*checkpoint.Tensors, error) {
	if c.Model.Part == config.PartText {
		return checkpoint.OpenTextFolder(c.Model.Base)
	}
	return checkpoint.OpenFolder(c.Model.Base)
}

// modelDigest returns the digest of the weights of model.base without a vision tower, which has visionDigest. It
// trusts the cache for unchanged files, unless reread.
func modelDigest(c *config.Run, reread bool) (d ident.Digest, err error) {
	t, err := openLanguageModel(c)
	if err != nil {
		return d, err
	}
	defer t.Close()
	return tensorsDigest(t, reread)
}

// textTypes sets the types of a text part's tensors under the names of that part.
func textTypes(c *config.Run, o *checkpoint.Origin) error {
	t, err := OpenModel(c)
	if err != nil {
		return err
	}
	for _, x := range t.List() {
		o.DTypes[x.Name] = x.DType
	}
	return t.Close()
}
