package checkpoint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"exp/kernels"
	"exp/train/model"
)

// scoreHead is a kind of head that scores: what the names of its classes end in, and its tensors.
type scoreHead struct {
	ends   string
	tokens bool // it scores every token by two labels, wrong and right, or by one; else the last token by labels
	hidden bool // Linear, ReLU, Linear; else one linear map
	module string
	biased bool // the last map has a bias, or may have one
}

// scoreHeads lists them.
func scoreHeads() []scoreHead {
	return []scoreHead{
		{ends: classifier, module: "score"},
		{ends: tokenClassifier, tokens: true, module: "score", biased: true},
		// Qwen2.5-Math-RM (arXiv:2409.12122) and Qwen2.5-Math-PRM (arXiv:2501.07301), as their own code has them.
		{ends: "ForRewardModel", hidden: true, module: "score.2", biased: true},
		{ends: "ForProcessRewardModel", tokens: true, hidden: true, module: "score.2", biased: true},
		// Skywork-o1-Open-PRM.
		{ends: "ForPrmModel", tokens: true, module: "v_head.summary", biased: true},
	}
}

// scoreHeadOf finds the head of a class, and its family: Qwen2 of Qwen2ForRewardModel.
func scoreHeadOf(class string) (h scoreHead, family string, ok bool) {
	for _, h := range scoreHeads() {
		if family, ok := strings.CutSuffix(class, h.ends); ok {
			return h, family, true
		}
	}
	return h, "", false
}

// weight and bias name the tensors of the last map.
func (h *scoreHead) weight() string { return h.module + ".weight" }
func (h *scoreHead) bias() string   { return h.module + ".bias" }

// plain gives tensors of a value head under another name the usual one, score.
func (h *scoreHead) plain(t *Tensors) error {
	if strings.HasPrefix(h.module, "score") {
		return nil
	}
	module := h.module
	h.module = "score"
	return t.rename(func(name string) (string, bool) {
		if part, ok := strings.CutPrefix(name, module+"."); ok {
			return h.module + "." + part, true
		}
		return name, true
	})
}

// heads are the model's.
func (h *scoreHead) heads() model.Heads { return model.Heads{Value: true, Hidden: h.hidden} }

// find checks the tensors of a head for memory of a type, and returns the weight and the bias of its last map; a bias
// without a name is none.
func (h *scoreHead) find(float kernels.DType, c model.Config, t *Tensors, label int) (weight, bias Tensor, err error) {
	weight, ok := t.Lookup(h.weight())
	switch {
	case !ok:
		return weight, bias, &MismatchError{Path: t.path, Missing: []string{h.weight()}}
	case len(weight.Shape) != 2 || weight.Shape[1] != c.Width || !weight.DType.fits(float):
		return weight, bias, &MismatchError{Path: t.path, Misshaped: []Misshape{{Name: h.weight(), Got: weight.kind(),
			Want: fmt.Sprintf("%s [labels,%d]", weight.DType, c.Width)}}}
	}
	n := weight.Shape[0]
	switch {
	case h.tokens && (n > 2 || label > 0):
		return weight, bias, &Error{Op: "read", Path: t.path, Tensor: h.weight(), Err: fmt.Errorf("it has %d labels; "+
			"of a model that classifies tokens two can be read, wrong and right, or one, and label 0 is the logit of "+
			"right", n)}
	case label < 0 || label >= n:
		return weight, bias, &Error{Op: "read", Path: t.path, Tensor: h.weight(),
			Err: fmt.Errorf("it has %d labels, counted from 0, so no label %d", n, label)}
	}
	bias, has := t.Lookup(h.bias())
	switch {
	case has && !h.biased:
		return weight, bias, &MismatchError{Path: t.path, Unexpected: []string{h.bias()}}
	case has && (bias.Len() != n || !bias.DType.fits(float)):
		return weight, bias, &MismatchError{Path: t.path, Misshaped: []Misshape{{Name: h.bias(), Got: bias.kind(),
			Want: fmt.Sprintf("%s [%d]", bias.DType, n)}}}
	}
	return weight, bias, h.findHidden(float, c, t)
}

// findHidden checks the tensors of the hidden layer, whose names are the model's.
func (h *scoreHead) findHidden(float kernels.DType, c model.Config, t *Tensors) error {
	if !h.hidden {
		return nil
	}
	layout, _ := model.AdapterLayout(c, model.Heads{Hidden: true}, nil)
	e := &MismatchError{Path: t.path}
	for _, b := range unread(layout) {
		got, ok := t.Lookup(b.Name)
		switch want := b.tensor(); {
		case !ok:
			e.Missing = append(e.Missing, b.Name)
		case !slices.Equal(got.Shape, want.Shape) || !got.DType.fits(float):
			e.Misshaped = append(e.Misshaped, Misshape{Name: b.Name, Got: got.kind(), Want: want.kind()})
		}
	}
	return e.orNil()
}

// read sets the head of m.
func (h *scoreHead) read(be kernels.Backend, t *Tensors, m *model.Model, weight, bias Tensor, label int) error {
	n := weight.Shape[0]
	for _, x := range []struct {
		from Tensor
		to   string
	}{{weight, scoreWeight}, {bias, scoreBias}} {
		if x.from.Name == "" {
			continue
		}
		if err := h.readLabel(be, t, x.from, n, label, m.View(x.to)); err != nil {
			return err
		}
	}
	if !h.hidden {
		return nil
	}
	layout, _ := model.AdapterLayout(m.Config, model.Heads{Hidden: true}, nil)
	for _, x := range layout {
		if err := t.Read(be, x.Name, m.View(x.Name)); err != nil {
			return err
		}
	}
	return nil
}

// readLabel sets to to a label's part of a tensor of n: the label's own or, of a head that scores tokens, the part of
// right less the one of wrong.
func (h *scoreHead) readLabel(be kernels.Backend, t *Tensors, x Tensor, n, label int, to kernels.Buffer) error {
	all, err := be.Alloc(be.Float(), x.Len())
	if err != nil {
		return err
	}
	defer be.Free(all)
	if err := t.Read(be, x.Name, all); err != nil {
		return err
	}
	width := x.Len() / n
	if !h.tokens || n == 1 {
		be.Copy(to, all.Slice(label*width, (label+1)*width))
		be.Sync()
		return nil
	}
	host := make([]float32, x.Len())
	be.Copy(kernels.Host(host), all)
	be.Sync()
	right := host[width:]
	for i := range right {
		right[i] -= host[i]
	}
	be.Copy(to, kernels.Host(right))
	be.Sync()
	return nil
}

// describe is describe for a model with this head. Its config.json names a language model's class with another end.
func (h scoreHead) describe(path, backbone string) (*Description, error) {
	d, err := describe(path, ReadClassifierConfig, OpenFolder, func(t *Tensors, c model.Config) error {
		if err := h.plain(t); err != nil {
			return err
		}
		if _, _, err := h.find(kernels.F32, c, t, 0); err != nil {
			return err
		}
		return cmp.Or(t.foreignNames(), t.fits(c, false))
	})
	if err != nil || !d.Known {
		return d, err
	}
	d.Backbone = backbone
	what := "completions at their ends"
	if h.tokens {
		what = "the steps of completions"
	}
	d.Notes = append(d.Notes, "a reward model, which writes no text: it scores "+what+" (exp eval RUN --score-by "+
		"FOLDER; reward.weights)")
	return d, nil
}
