package stage

import (
	"exp/experiments/ident"
	"exp/kernels"
	"exp/train"
	"exp/train/model"
)

// referencePart is the part of training that never has adapters of its own.
const referencePart = "reference"

// loadModels makes the models that this rank's part in training needs, and returns the one that it
// samples from.
func (r *reinforcement) loadModels(in Inputs, parts *train.Parts, owned *closers) (drawn *model.Model, err error) {
	load, err := r.loader(in, owned)
	if err != nil {
		return nil, err
	}
	needs, learns := r.cfg.Needs(), !r.onlySamples()
	heads := model.Heads{LM: true}
	if needs.LogZ {
		heads.LogZ = &r.cfg.LogZ
	}
	adapted := r.run().Train.LoRA.Rank > 0
	if learns || adapted {
		parts.Policy, err = load(heads, learns, "policy")
	} else {
		parts.Policy, err = r.newCopy(r.Backend, parts, owned)
	}
	if err != nil {
		return nil, err
	}
	if learns && needs.Reference || !learns && r.cfg.SamplersNeedReference() {
		if parts.Reference, err = load(model.Heads{LM: true}, false, referencePart); err != nil {
			return nil, err
		}
	}
	if learns && needs.Critic {
		if parts.Critic, err = load(model.Heads{Value: true}, true, "critic"); err != nil {
			return nil, err
		}
	}
	switch {
	case r.Sampling == nil:
		return parts.Policy, nil
	case adapted:
		return parts.Policy.On(r.Sampling), nil
	}
	return r.newCopy(r.Sampling, parts, owned)
}

// newCopy makes a model for the policy's weights, from which ranks sample.
func (r *reinforcement) newCopy(be kernels.Backend, parts *train.Parts, owned *closers) (*model.Model, error) {
	c, err := r.architecture()
	if err != nil {
		return nil, err
	}
	if parts.Copy, err = model.NewBackbone(be, c, true, kernels.F32); err != nil {
		return nil, err
	}
	owned.add(parts.Copy.Close)
	m, err := model.NewOn(parts.Copy, model.Heads{LM: true}, false)
	if err != nil {
		return nil, err
	}
	owned.add(m.Close)
	return m, nil
}

// loader returns a function that makes the models of training from the input's weights.
// With adapters all models share one base and differ in adapters and heads.
func (r *reinforcement) loader(in Inputs, owned *closers) (load func(h model.Heads, trainable bool,
	part string) (*model.Model, error), err error) {
	seeds := func(part string) func(label string) uint64 {
		return func(label string) uint64 { return ident.Seed(r.Seed, part+"/"+label) }
	}
	if r.run().Train.LoRA.Rank == 0 {
		return func(h model.Heads, trainable bool, part string) (*model.Model, error) {
			m, err := r.loadModel(in, RoleWeights, h, trainable)
			if err != nil {
				return nil, err
			}
			owned.add(m.Close)
			m.InitHeads(seeds(part))
			return m, nil
		}, nil
	}
	t, byReference, err := r.openWeights(in, RoleWeights)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	adapted := byReference && r.run().Model.HasAdapter()
	base, err := r.newBackbone(r.uncut(), t, true)
	if err != nil {
		return nil, err
	}
	owned.add(base.Close)
	return func(h model.Heads, trainable bool, part string) (*model.Model, error) {
		if part != referencePart || adapted {
			h = WithAdapters(h, r.run(), base.Config)
		}
		m, err := model.NewOn(base, h, trainable)
		if err != nil {
			return nil, err
		}
		owned.add(m.Close)
		m.Init(seeds(part))
		if adapted {
			err = r.startFrom(m)
		}
		return m, err
	}, nil
}
