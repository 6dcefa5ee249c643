package stage

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/kernels"
	"exp/train/checkpoint"
	"exp/train/model"
)

// A run may start from adapters: model.adapter, a folder in PEFT's layout. What happens to them
// depends on what the run trains:
//
//   - nothing: they are computed next to the weights of model.base, as PEFT does;
//   - adapters (train.lora): training continues them, and the reference policy has them
//     as they were; train.lora must have their shape;
//   - all weights (sft, prefer, or train without train.lora): they are folded into the weights
//     first, W + scale·B·A, for the policy, the critic and the reference policy alike.

// adapterUse is the use of a run's adapters.
type adapterUse int

const (
	noAdapter adapterUse = iota
	besideWeights
	goneOnWith
	foldedIn
)

func useOfAdapter(c *config.Run) adapterUse {
	switch {
	case !c.Model.HasAdapter():
		return noAdapter
	case c.Data.Train.Source == config.None:
		return besideWeights
	case c.Tunes() || c.Train.LoRA.Rank == 0:
		return foldedIn
	}
	return goneOnWith
}

// FoldsAdapter reports whether a run folds model.adapter into its initial weights.
func FoldsAdapter(c *config.Run) bool { return useOfAdapter(c) == foldedIn }

// StartAdapters returns the adapters that a run of a folder with architecture arch starts from; nil
// if it has none or folds them into the weights.
func StartAdapters(c *config.Run, arch model.Config) (*model.Adapters, error) {
	if u := useOfAdapter(c); u == noAdapter || u == foldedIn {
		return nil, nil
	}
	a, err := readAdapters(c, arch)
	if err != nil {
		return nil, err
	}
	return &a.Shape, nil
}

// readAdapters reads model.adapter, whose adapters may be on the vision tower of model.base, too.
func readAdapters(c *config.Run, arch model.Config) (*checkpoint.Adapters, error) {
	arch, err := checkpoint.WithTowerMaps(arch, c.Model.Base)
	if err != nil {
		return nil, err
	}
	return checkpoint.ReadAdapters(c.Model.Adapter, arch)
}

// foldsTower reports whether a run folds adapters into a vision tower that learns.
func foldsTower(c *config.Run) bool {
	arch, err := ReadArchitecture(c)
	if err != nil || !FoldsAdapter(c) {
		return false
	}
	a, err := readAdapters(c, arch)
	return err == nil && len(a.Shape.Tower) > 0
}

// adapterDigest returns the digest of a folder of adapters as a model computes them: their places,
// their scale and their tensors.
func adapterDigest(a *checkpoint.Adapters, reread bool) (d ident.Digest, err error) {
	t, err := checkpoint.OpenAdapterFile(a.Dir)
	if err != nil {
		return d, err
	}
	defer t.Close()
	weights, err := tensorsDigest(t, reread)
	if err != nil {
		return d, err
	}
	scales := map[string]any{}
	for name, scale := range a.Scales() {
		scales[name] = scale
	}
	return ident.Hash("exp/adapter/1", map[string]any{"weights": weights, "scales": scales})
}

// checkStartAdapter digests model.adapter and tells bad why the run cannot start with it.
func checkStartAdapter(c *config.Run, arch model.Config, bad func(key, code, message, help string)) (d ident.Digest) {
	if !c.Model.HasAdapter() {
		return d
	}
	a, err := readAdapters(c, arch)
	if err == nil {
		d, err = adapterDigest(a, false)
	}
	if err != nil {
		bad("model.adapter", config.CodeData, oneLine(err), "a folder of LoRA adapters for model.base in PEFT's "+
			"layout is needed: adapter_config.json and adapter_model.safetensors")
		return d
	}
	if FoldsAdapter(c) && len(a.Shape.Tower) > 0 && !c.Model.TrainsTower() {
		bad("model.adapter", config.CodeConflict, fmt.Sprintf("%q has adapters on the vision tower, but "+
			"model.vision: frozen leaves the tower as it is, and nothing else computes adapters where all weights "+
			"learn", c.Model.Adapter), "model.vision: trained folds them in; train.lora goes on with them")
	}
	if useOfAdapter(c) != goneOnWith {
		return d
	}
	want := WithAdapters(model.Heads{}, c, arch).Adapters
	if what := otherShape(a, want); what != "" {
		help := fmt.Sprintf("train.lora: {rank: %d, alpha: %v, targets: [%s]}; or fold them into "+
			"the base first: a run with train.steps=0 and train.lora.rank=0 leaves a folder with both",
			a.Shape.Rank, a.Shape.Alpha, strings.Join(targetsOf(a.Shape), ", "))
		if len(a.Shape.Tower) > 0 {
			help = "model.vision: trained and " + help
		}
		help = "to go on with them: " + help
		if !a.Uniform {
			help = "fold them into the base first: a run with train.steps=0 and train.lora.rank=0 leaves a folder " +
				"with both, to train adapters on"
		}
		bad("model.adapter", config.CodeConflict, fmt.Sprintf("training cannot go on with the adapters in %q: %s",
			c.Model.Adapter, what), help)
	}
	return d
}

// targetsOf returns what train.lora.targets calls the maps of adapters.
func targetsOf(a model.Adapters) []string {
	list := slices.Clone(a.Targets)
	for _, t := range a.Tower {
		if !slices.Contains(list, t.Target()) {
			list = append(list, t.Target())
		}
	}
	return list
}

// otherShape says how adapters differ from those to train; "" if they do not.
func otherShape(a *checkpoint.Adapters, want *model.Adapters) string {
	have := slices.Sorted(slices.Values(want.Targets))
	switch {
	case !a.Uniform:
		return "they have several ranks or scales, or are on some layers only"
	case a.Shape.Rank != want.Rank:
		return fmt.Sprintf("they have rank %d, train.lora.rank is %d", a.Shape.Rank, want.Rank)
	case math.Abs(a.Shape.Scale()/want.Scale()-1) > 1e-9:
		return fmt.Sprintf("they are multiplied by %v, train.lora's alpha and rank make %v", a.Shape.Scale(),
			want.Scale())
	case len(a.Shape.Tower) > 0 && len(want.Tower) == 0:
		return "they are on the vision tower, too, which model.vision: frozen leaves as it is"
	case !slices.Equal(a.Shape.Tower, want.Tower):
		return fmt.Sprintf("they are on %d maps of the vision tower, train.lora.targets names %d", len(a.Shape.Tower),
			len(want.Tower))
	case !slices.Equal(a.Shape.Targets, slices.Compact(have)):
		return fmt.Sprintf("they are on %s, train.lora.targets are %s", strings.Join(a.Shape.Targets, ", "),
			strings.Join(have, ", "))
	}
	return ""
}

// checkFolder compares the weights of model.base, and the adapters of model.adapter, with those
// that the run started from.
func (e *Env) checkFolder(ref folderWeights) error {
	if e.referenced != nil && *e.referenced == ref {
		return nil
	}
	c := e.run()
	d, err := modelDigest(c, e.Again)
	if err != nil {
		return err
	}
	if d != ref.Weights {
		return fmt.Errorf("the weights in %s are not the ones this run started from: their digest is %s, but %s is "+
			"recorded", c.Model.Base, d, ref.Weights)
	}
	if !ref.Architecture.IsZero() {
		d, err := e.architectureNow()
		if err != nil {
			return err
		}
		if d != ref.Architecture {
			return fmt.Errorf("config.json in %s describes another model than this run started from: its "+
				"architecture has digest %s, but %s is recorded", c.Model.Base, d, ref.Architecture)
		}
	}
	if !ref.Adapter.IsZero() {
		d, err := e.adapterNow()
		if err != nil {
			return err
		}
		if d != ref.Adapter {
			return fmt.Errorf("the adapters in %s are not the ones this run started from: their digest is %s, but %s "+
				"is recorded", c.Model.Adapter, d, ref.Adapter)
		}
	}
	if !ref.Vision.IsZero() {
		d, err := visionDigest(c, e.Again)
		if err != nil {
			return err
		}
		if d != ref.Vision {
			return fmt.Errorf("the vision tower in %s is not the one this run started from: its digest is %s, but %s "+
				"is recorded", c.Model.Base, d, ref.Vision)
		}
	}
	e.referenced = &ref
	return nil
}

// architectureNow returns the present digest of the architecture of model.base.
func (e *Env) architectureNow() (d ident.Digest, err error) {
	arch, err := e.architecture()
	if err != nil {
		return d, err
	}
	return architectureDigest(arch)
}

// adapterNow returns the present digest of model.adapter; zero if the run has none.
func (e *Env) adapterNow() (d ident.Digest, err error) {
	if !e.run().Model.HasAdapter() {
		return d, nil
	}
	a, err := e.readStartAdapter()
	if err != nil {
		return d, err
	}
	return adapterDigest(a, e.Again)
}

func (e *Env) readStartAdapter() (*checkpoint.Adapters, error) {
	arch, err := e.architecture()
	if err != nil {
		return nil, err
	}
	return readAdapters(e.run(), arch)
}

// foldStart adds the run's adapters to the weights of m.
func (e *Env) foldStart(m *model.Model) error {
	a, err := e.readStartAdapter()
	if err != nil {
		return err
	}
	// never loaded: folding reads adapters only
	base, err := model.NewBackbone(e.Backend, m.Config, false, kernels.F32)
	if err != nil {
		return err
	}
	defer base.Close()
	from, err := model.NewOn(base, model.Heads{Adapters: &a.Shape}, false)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := a.Load(e.Backend, from); err != nil {
		return err
	}
	err = m.FoldAdapters(from)
	m.Refresh()
	return err
}

// startOn makes a frozen model on a backbone, and the run's adapters.
func (e *Env) startOn(base *model.Backbone, h model.Heads) (*model.Model, error) {
	a, err := e.readStartAdapter()
	if err != nil {
		return nil, err
	}
	h.Adapters = &a.Shape
	h.Adapters.Dropout = 0
	m, err := model.NewOn(base, h, false)
	if err != nil {
		return nil, err
	}
	if err := a.Load(e.Backend, m); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// startFrom sets the adapters of a model to the run's initial ones.
func (e *Env) startFrom(m *model.Model) error {
	a, err := e.readStartAdapter()
	if err != nil {
		return err
	}
	return a.Load(e.Backend, m)
}

// StartNotes returns what a user should know about the weights that a run starts from.
func StartNotes(c *config.Run) (list []string) {
	if c.Model.Init != "pretrained" {
		return nil
	}
	arch, err := ReadArchitecture(c)
	if err != nil {
		return nil // the plan says so elsewhere
	}
	list = checkpoint.Notes(arch)
	if c.Model.Part == config.PartText {
		list = append(list, checkpoint.TextNote(c.Model.Base))
	}
	if !c.Model.HasAdapter() {
		return list
	}
	a, err := readAdapters(c, arch)
	if err != nil {
		return list
	}
	what := map[adapterUse]string{
		besideWeights: "computed next to the weights of model.base, which stay unchanged",
		goneOnWith:    "training continues it; the reference policy is model.base with the adapter as it is now",
		foldedIn: "folded into the weights of model.base before training; the reference policy starts from the " +
			"folded weights too",
	}[useOfAdapter(c)]
	on := strings.Join(a.Shape.Targets, ", ")
	if n := len(a.Shape.Tower); n > 0 {
		on += fmt.Sprintf(" and %d maps of the vision tower", n)
	}
	list = append(list, fmt.Sprintf("adapter %s (rank %d on %s): %s", c.Model.Adapter, a.Shape.Rank, on, what))
	for _, name := range []string{"chat_template.jinja", "tokenizer.json", "tokenizer_config.json"} {
		if _, err := os.Stat(filepath.Join(c.Model.Adapter, name)); err == nil {
			return append(list, fmt.Sprintf("the adapter's folder has its own %s, which is not read: tokenizer and "+
				"chat template come from model.base, unless tokenizer.path or data.chat names others", name))
		}
	}
	return list
}
