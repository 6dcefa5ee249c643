package stage

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"os"

	"exp/experiments/ident"
	"exp/train/checkpoint"
	"exp/train/model"
)

// architecture returns the model's configuration: the recipe's, or that of the
// pretrained folder.
func (e *Env) architecture() (model.Config, error) {
	c := e.run()
	if c.Model.Init == "pretrained" {
		return checkpoint.ReadConfig(c.Model.Base)
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
	return model.New(e.Backend, c, h, trainable)
}

// loadModel is newModel with the plain weights of an input.
func (e *Env) loadModel(in Inputs, role string, h model.Heads, trainable bool) (*model.Model, error) {
	path, err := e.inputPath(in, role)
	if err != nil {
		return nil, err
	}
	t, err := checkpoint.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	m, err := e.newModel(h, trainable)
	if err != nil {
		return nil, err
	}
	if err := checkpoint.LoadWeights(e.Backend, m, t, func(t model.Tensor) bool { return !t.Auxiliary() && has(h, t.Name) }); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// has reports whether a model with heads h has the tensor; a critic has no output
// projection.
func has(h model.Heads, name string) bool { return h.LM || name != "lm_head.weight" }

// putWeights stores a model's tensors as one safetensors blob.
func (e *Env) putWeights(m *model.Model, keep checkpoint.Filter) (Output, error) {
	f, err := os.CreateTemp(e.Dir, UnfinishedWeights)
	if err != nil {
		return Output{}, err
	}
	defer os.Remove(f.Name())
	w := bufio.NewWriterSize(f, 1<<20)
	err = checkpoint.WriteSafetensors(w, checkpoint.Weights(e.Backend, m, keep))
	if err := errors.Join(err, w.Flush(), f.Close()); err != nil {
		return Output{}, err
	}
	d, size, err := e.Blobs.PutFile(f.Name())
	return Output{Role: RoleWeights, Digest: d, Size: size, Kind: "weights"}, err
}

// digestTensors is the digest of a set of weights, whatever their container.
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

// paramsDigest is the digest of a model's parameters as they are now.
func (e *Env) paramsDigest(m *model.Model) (ident.Digest, error) {
	return digestTensors(checkpoint.Weights(e.Backend, m, checkpoint.All))
}

// initialize makes the weights that everything starts from.
func initialize(e *Env) (*Outcome, error) {
	c := e.run()
	m, err := e.newModel(model.Heads{LM: true}, false)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if c.Model.Init == "pretrained" {
		err = checkpoint.LoadFolder(e.Backend, m, c.Model.Base)
	} else {
		m.Init(seedFunc(c.Model.Seed))
	}
	if err != nil {
		return nil, err
	}
	w, err := e.putWeights(m, checkpoint.Plain)
	if err != nil {
		return nil, err
	}
	n, _ := model.Parameters(m.Config, m.Heads)
	return &Outcome{Outputs: []Output{w}, Summary: map[string]any{"parameters": n}, Facts: metrics(fact("parameters", float64(n)))}, nil
}
