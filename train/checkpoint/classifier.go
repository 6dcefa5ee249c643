package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"exp/kernels"
	"exp/train/model"
)

// classifier ends the names of architectures that score a sequence: a language model's
// backbone and score.weight [labels, C], without bias, applied at the last token.
const classifier = "ForSequenceClassification"

// ReadClassifierConfig is ReadConfig for a folder of a sequence-classification model,
// such as Qwen2ForSequenceClassification.
func ReadClassifierConfig(dir string) (model.Config, error) {
	path := filepath.Join(dir, configFile)
	raw, err := readSmall(path, maxHeader)
	if err != nil {
		return model.Config{}, err
	}
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &values); err != nil {
		return model.Config{}, corrupt(path, "", "%v", err)
	}
	var names []string
	if err := json.Unmarshal(values["architectures"], &names); err != nil || len(names) != 1 ||
		!strings.HasSuffix(names[0], classifier) {
		return model.Config{}, &ConfigError{Path: path, Problems: []string{fmt.Sprintf("architectures is %s, not "+
			"one name that ends in %s", values["architectures"], classifier)}}
	}
	// The backbone is the language model's.
	values["architectures"], err = json.Marshal([]string{strings.TrimSuffix(names[0], classifier) + "ForCausalLM"})
	if err != nil {
		return model.Config{}, err
	}
	if raw, err = json.Marshal(values); err != nil {
		return model.Config{}, err
	}
	c, err := ParseConfig(path, raw)
	c.TieEmbeddings = false // it has no output projection to tie
	return c, err
}

// LoadClassifier loads a frozen sequence-classification model from a folder, with row label
// of its score.weight as value head. It holds weights as a Backbone does. Close it afterwards.
func LoadClassifier(be kernels.Backend, dir string, label int) (*model.Model, error) {
	c, err := ReadClassifierConfig(dir)
	if err != nil {
		return nil, err
	}
	t, err := OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	m, err := LoadClassifierFrom(be, c, t, label)
	if err := errors.Join(err, t.Close()); err != nil {
		if m != nil {
			m.Close()
		}
		return nil, err
	}
	return m, nil
}

// LoadClassifierFrom is LoadClassifier for tensors of an architecture.
func LoadClassifierFrom(be kernels.Backend, c model.Config, t *Tensors, label int) (*model.Model, error) {
	const weight, bias = "score.weight", "score.bias"
	score, ok := t.Lookup(weight)
	switch {
	case !ok:
		return nil, &MismatchError{Path: t.path, Missing: []string{weight}}
	case len(score.Shape) != 2 || score.Shape[1] != c.Width || !score.DType.fits(be.Float()):
		return nil,
			&MismatchError{Path: t.path,
				Misshaped: []Misshape{{Name: weight, Got: score.kind(), Want: fmt.Sprintf("%s [labels,%d]",
					score.DType, c.Width)}}}
	case label < 0 || label >= score.Shape[0]:
		return nil, &Error{Op: "read", Path: t.path, Tensor: weight,
			Err: fmt.Errorf("it has %d labels, counted from 0, so no label %d", score.Shape[0], label)}
	}
	if _, biased := t.Lookup(bias); biased {
		return nil, &MismatchError{Path: t.path, Unexpected: []string{bias}}
	}
	base, err := LoadBackbone(be, c, false, t.Frozen(), t)
	if err != nil {
		return nil, err
	}
	m, err := model.NewOn(base, model.Heads{Value: true}, false)
	if err != nil {
		base.Close()
		return nil, err
	}
	m.OwnBackbone()
	rows, err := be.Alloc(be.Float(), score.Len())
	if err != nil {
		return m, err
	}
	defer be.Free(rows)
	if err := t.Read(be, weight, rows); err != nil {
		return m, err
	}
	be.Copy(m.View(weight), rows.Slice(label*c.Width, (label+1)*c.Width))
	be.Sync()
	m.Refresh()
	return m, nil
}
