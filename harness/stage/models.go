package stage

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/prompt"
	"exp/kernels"
	"exp/train"
	"exp/train/checkpoint"
	"exp/train/model"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// The parts of training whose models have random streams of their own. The reference never has adapters of its own.
const (
	policyPart    = "policy"
	referencePart = "reference"
)

// loadModels makes the models that this rank's part in training needs, and what shows them images, and returns the one
// that it samples from.
func (r *reinforcement) loadModels(in Inputs, parts *train.Parts, owned *closers) (drawn *model.Model, err error) {
	load, err := r.loader(in, owned)
	if err != nil {
		return nil, err
	}
	parts.Show = r.showsBrought()
	needs, learns := r.cfg.Needs(), r.crew().Learns
	heads := model.Heads{LM: true}
	if needs.LogZ {
		heads.LogZ = &r.cfg.LogZ
	}
	adapted := r.run().Train.LoRA.Rank > 0
	if learns || adapted {
		parts.Policy, err = load(heads, learns, policyPart)
	} else {
		parts.Policy, err = r.newCopy(r.Backend, parts, owned)
	}
	if err != nil {
		return nil, err
	}
	if learns && needs.Reference || !learns && r.cfg.SamplersNeedReference() {
		switch a := r.run().Algo; {
		case a.HasTeacher():
			parts.Reference, err = r.loadTeacher(a.Reference, owned)
		case a.ReferenceEvery > 0:
			parts.Reference, err = r.loadRenewed(in, owned)
		default:
			parts.Reference, err = load(model.Heads{LM: true}, false, referencePart)
		}
		if err != nil {
			return nil, err
		}
		parts.Route = teacherOf(r.run().Algo)
		for i, folder := range r.run().Algo.Teachers {
			m, err := r.loadTeacher(folder, owned)
			if err != nil {
				return nil, err
			}
			parts.Teachers = append(parts.Teachers, train.Teacher{Model: m, Source: r.run().Algo.TeacherSources[i]})
		}
	}
	if learns && needs.Critic {
		if parts.Critic, err = load(model.Heads{Value: true}, true, "critic"); err != nil {
			return nil, err
		}
	}
	if learns && needs.Process {
		if parts.Process, err = r.processModel(load, owned); err != nil {
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

// loadRenewed makes a reference policy whose weights change: it owns them, as the policy does.
func (r *reinforcement) loadRenewed(in Inputs, owned *closers) (*model.Model, error) {
	m, err := r.loadWeights(in, RoleWeights, model.Heads{LM: true}, false, true)
	if err != nil {
		return nil, err
	}
	owned.add(m.Close)
	m.Refresh()
	return m, nil
}

// loadTeacher makes a reference policy from a folder that algo.reference or algo.teachers names.
func (r *reinforcement) loadTeacher(folder string, owned *closers) (*model.Model, error) {
	arch, err := ReadTeacher(folder)
	if err != nil {
		return nil, err
	}
	t, err := checkpoint.OpenFolder(folder)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	base, err := checkpoint.LoadBackbone(r.Backend, arch, true, t.Frozen(), t)
	if err != nil {
		return nil, err
	}
	m, err := model.NewOn(base, model.Heads{LM: true}, false)
	if err != nil {
		base.Close()
		return nil, err
	}
	m.OwnBackbone()
	owned.add(m.Close)
	return m, nil
}

// ReadTeacher returns the architecture of the model in such a folder.
func ReadTeacher(folder string) (model.Config, error) {
	if checkpoint.IsAdapterFolder(folder) {
		return model.Config{}, fmt.Errorf("%s holds LoRA adapters (PEFT), not a model: merge them first", folder)
	}
	return checkpoint.ReadConfig(folder)
}

// teachers sets the digests of the models that algo.reference, algo.teachers and algo.prime.model name; they are
// zero without any. It tells bad why the policy, of architecture arch, cannot learn from them. policy makes the
// run's prompts.
func (x *External) teachers(c *config.Run, arch model.Config, policy *prompt.Prompter,
	bad func(key, code, message, help string)) {
	if c.Algo.HasTeacher() {
		x.Teacher = teacherDigest("algo.reference", c.Algo.Reference, c, arch, policy, bad)
	}
	if c.Algo.Prime.HasModel() {
		x.Process = teacherDigest(processKey, c.Algo.Prime.Model, c, arch, policy, bad)
	}
	if len(c.Algo.Teachers) == 0 {
		return
	}
	list := map[string]any{}
	for i, folder := range c.Algo.Teachers {
		list[fmt.Sprint(i)] = teacherDigest("algo.teachers", folder, c, arch, policy, bad)
	}
	d, err := ident.Hash("exp/teachers/1", list)
	if err != nil {
		bad("algo.teachers", config.CodeData, err.Error(), "")
	}
	x.Teachers = d
}

// teacherDigest covers the architecture and the weights of a teacher's folder, which a key names.
func teacherDigest(key, folder string, c *config.Run, arch model.Config, policy *prompt.Prompter,
	bad func(key, code, message, help string)) (d ident.Digest) {
	own, err := ReadTeacher(folder)
	if err == nil {
		err = sameTokens(folder, own, arch, policy.Tokenizer)
	}
	if k := c.Algo.Distill.TopK; err == nil && k > arch.Vocab {
		err = fmt.Errorf("algo.distill.top_k is %d, but the policy has %d tokens", k, arch.Vocab)
	}
	if n := c.Data.MaxPromptTokens + c.Rollout.MaxNewTokens; err == nil && n > own.MaxPositions {
		err = fmt.Errorf("%s has %d positions: data.max_prompt_tokens and rollout.max_new_tokens are %d together",
			folder, own.MaxPositions, n)
	}
	if key == processKey && err == nil {
		err = sameShape(folder, own, arch)
	}
	var shape, weights ident.Digest
	if err == nil {
		shape, err = architectureDigest(own)
	}
	if err == nil {
		weights, err = weightsDigest(folder, false)
	}
	if err == nil {
		d, err = ident.Hash("exp/teacher/1", map[string]any{"architecture": shape, "weights": weights})
	}
	if err != nil {
		bad(key, config.CodeData, oneLine(err), "")
	}
	return d
}

// teacherOf returns the function that names the entry of algo.teacher_sources for a problem.
func teacherOf(a config.Algo) func(p *rollout.Problem) string {
	if a.TeacherKey == config.DataSource {
		return func(p *rollout.Problem) string { return p.DataSource("") }
	}
	return func(p *rollout.Problem) string { return p.Field(a.TeacherKey) }
}

// teachersHavePupils returns an error if no problem comes from one of algo.teacher_sources.
func teachersHavePupils(a config.Algo, problems []rollout.Problem) error {
	if len(a.TeacherSources) == 0 {
		return nil
	}
	found := map[string]bool{}
	for i := range problems {
		found[teacherOf(a)(&problems[i])] = true
	}
	for _, source := range a.TeacherSources {
		if found[source] {
			continue
		}
		delete(found, "")
		have := "they have none"
		if names := slices.Sorted(maps.Keys(found)); len(names) > 0 {
			have = "theirs are " + strings.Join(names[:min(len(names), 8)], ", ")
		}
		return &prompt.DataError{Err: fmt.Errorf("algo.teacher_sources: no problem of data.train has the %s %q; %s",
			a.TeacherKey, source, have)}
	}
	return nil
}

// sameTokens returns an error unless the teacher in a folder reads every token of the policy as the policy does.
func sameTokens(folder string, own, arch model.Config, policy tokenizer.Tokenizer) error {
	if own.Vocab < arch.Vocab {
		return fmt.Errorf("%s has an output for %d tokens, the policy for %d: a teacher must know each token that "+
			"the policy can write", folder, own.Vocab, arch.Vocab)
	}
	t, err := tokenizer.ReadFolder(folder)
	if err != nil {
		return err
	}
	for id := range int32(policy.VocabSize()) {
		if here, there := policy.Token(id), t.Token(id); here != there && here != "" {
			return fmt.Errorf("token %d is %q in %s and %q for the policy: a teacher must have the policy's tokens",
				id, there, folder, here)
		}
	}
	return nil
}

// processKey is the key of the process reward model's initial weights.
const processKey = "algo.prime.model"

// processModel makes the process reward model, trainable: from the weights of the input, by load, or a folder.
func (r *reinforcement) processModel(load func(h model.Heads, trainable bool, part string) (*model.Model, error),
	owned *closers) (*model.Model, error) {
	heads := model.Heads{LM: true}
	if !r.run().Algo.Prime.HasModel() {
		return load(heads, true, "process")
	}
	folder := r.run().Algo.Prime.Model
	t, err := checkpoint.OpenFolder(folder)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	m, err := r.newModel(heads, true)
	if err != nil {
		return nil, err
	}
	owned.add(m.Close)
	err = checkpoint.LoadWeights(r.Backend, m, t, func(t model.Tensor) bool { return !t.Auxiliary() })
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", processKey, folder, err)
	}
	return m, nil
}

// sameShape returns an error unless the model in a folder has the policy's architecture.
func sameShape(folder string, own, policy model.Config) error {
	if own.InitStd = policy.InitStd; !own.Learned {
		own.MaxPositions = policy.MaxPositions // which weights do not depend on
	}
	if reflect.DeepEqual(own, policy) {
		return nil
	}
	return fmt.Errorf("%s has another architecture than the policy (%d layers of width %d and %d tokens, the policy "+
		"%d of %d and %d): a process reward model must have the same", folder, own.Layers, own.Width, own.Vocab,
		policy.Layers, policy.Width, policy.Vocab)
}

// newCopy makes a model for the policy's weights, from which ranks sample.
func (r *reinforcement) newCopy(be kernels.Backend, parts *train.Parts, owned *closers) (*model.Model, error) {
	c, err := r.architecture()
	if err != nil {
		return nil, err
	}
	if parts.Copy, err = model.NewCopy(be, c); err != nil {
		return nil, err
	}
	owned.add(parts.Copy.Close)
	m, err := model.NewOn(parts.Copy, model.Heads{LM: true}, false)
	if err != nil {
		return nil, err
	}
	if m, err = r.shown(m, nil); err != nil {
		return nil, err
	}
	owned.add(m.Close)
	return m, nil
}

// loader returns a function that makes the models of training from the input's weights.
// With adapters all models share one base and differ in adapters and heads.
func (e *Env) loader(in Inputs, owned *closers) (load func(h model.Heads, trainable bool,
	part string) (*model.Model, error), err error) {
	seeds := func(part string) func(label string) uint64 {
		return func(label string) uint64 { return ident.Seed(e.Seed, part+"/"+label) }
	}
	if e.run().Train.LoRA.Rank == 0 {
		return func(h model.Heads, trainable bool, part string) (*model.Model, error) {
			m, err := e.loadModel(in, RoleWeights, h, trainable)
			if err != nil {
				return nil, err
			}
			owned.add(m.Close)
			m.InitHeads(seeds(part))
			return m, nil
		}, nil
	}
	t, byReference, err := e.openWeights(in, RoleWeights)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	adapted := byReference && e.run().Model.HasAdapter()
	base, err := e.newBackbone(e.uncut(), t, true)
	if err != nil {
		return nil, err
	}
	owned.add(base.Close)
	if err := e.openTower(t); err != nil {
		return nil, err
	}
	return func(h model.Heads, trainable bool, part string) (*model.Model, error) {
		if part != referencePart || adapted {
			h = WithAdapters(h, e.run(), base.Config)
		}
		m, err := model.NewOn(base, h, trainable)
		if err != nil {
			return nil, err
		}
		if m, err = e.shown(m, nil); err != nil {
			return nil, err
		}
		owned.add(m.Close)
		m.Init(seeds(part))
		if adapted {
			err = e.startFrom(m)
		}
		return m, err
	}, nil
}

// policyAfter makes the policy as it was after so many steps of training, frozen, from the checkpoint of that step;
// after 0 as training started.
func (e *Env) policyAfter(step int, in Inputs, owned *closers) (*model.Model, error) {
	if step == 0 {
		load, err := e.loader(in, owned)
		if err != nil {
			return nil, err
		}
		return load(model.Heads{LM: true}, false, policyPart)
	}
	c, err := e.checkpointOf(step)
	if err != nil {
		return nil, err
	}
	conf := TrainConfig(e.run())
	h := model.Heads{LM: true}
	if conf.Needs().LogZ {
		h.LogZ = &conf.LogZ
	}
	if e.run().Train.LoRA.Rank > 0 {
		return e.adaptedFrom(c, h, in, owned)
	}
	arch, err := e.architecture()
	if err != nil {
		return nil, err
	}
	layout, n := model.Layout(arch, h)
	t, err := c.Tensors(train.PolicyGroup, train.ParamsBuffer, layout, n)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	m, err := e.frozenModel(t, model.Heads{LM: true}, false)
	if err != nil {
		return nil, err
	}
	owned.add(m.Close)
	return m, nil
}

// adaptedFrom makes the frozen policy of a run with LoRA: the base, and the adapters and heads in a checkpoint.
func (e *Env) adaptedFrom(c *checkpoint.Checkpoint, h model.Heads, in Inputs, owned *closers) (*model.Model, error) {
	load, err := e.loader(in, owned)
	if err != nil {
		return nil, err
	}
	m, err := load(h, false, policyPart)
	if err != nil {
		return nil, err
	}
	t, err := c.Tensors(train.PolicyGroup, train.ParamsBuffer, m.Tensors(), m.Len())
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return m, checkpoint.LoadWeights(e.Backend, m, t, func(model.Tensor) bool { return true })
}
