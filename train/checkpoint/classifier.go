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

// tokenClassifier ends the names of architectures that score every token, with score.weight [labels, C] and score.bias
// [labels]: TRL's process reward models, whose two labels are wrong and right.
const tokenClassifier = "ForTokenClassification"

// ReadClassifierConfig is ReadConfig for a folder of a sequence-classification model,
// such as Qwen2ForSequenceClassification, or of one that classifies tokens.
func ReadClassifierConfig(dir string) (model.Config, error) {
	c, _, err := readClassifier(dir)
	return c, err
}

// ClassifiesTokens reports whether the folder's model classifies tokens, not sequences.
func ClassifiesTokens(dir string) (bool, error) {
	_, tokens, err := readClassifier(dir)
	return tokens, err
}

// readClassifier is ReadClassifierConfig, and reports whether the model classifies tokens.
func readClassifier(dir string) (c model.Config, tokens bool, err error) {
	path := filepath.Join(dir, configFile)
	raw, err := readSmall(path, maxHeader)
	if err != nil {
		return c, false, err
	}
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &values); err != nil {
		return c, false, corrupt(path, "", "%v", err)
	}
	var names []string
	if err := json.Unmarshal(values["architectures"], &names); err != nil || len(names) != 1 {
		names = []string{""}
	}
	family, ok := strings.CutSuffix(names[0], classifier)
	if !ok {
		family, tokens = strings.CutSuffix(names[0], tokenClassifier)
	}
	if !ok && !tokens {
		return c, false, &ConfigError{Path: path, Problems: []string{fmt.Sprintf("architectures is %s, not "+
			"one name that ends in %s or %s", values["architectures"], classifier, tokenClassifier)}}
	}
	// The backbone is the language model's.
	values["architectures"], err = json.Marshal([]string{family + "ForCausalLM"})
	if err != nil {
		return c, false, err
	}
	if raw, err = json.Marshal(values); err != nil {
		return c, false, err
	}
	c, err = ParseConfig(path, raw)
	c.TieEmbeddings = false // it has no output projection to tie
	return c, tokens, err
}

// LoadClassifier loads a frozen sequence-classification model from a folder, with row label
// of its score.weight as value head. Of a model that classifies tokens by two labels, wrong and right, the head is the
// difference of right and wrong: the logit of right. It holds weights as a Backbone does. Close it afterwards.
func LoadClassifier(be kernels.Backend, dir string, label int) (*model.Model, error) {
	c, tokens, err := readClassifier(dir)
	if err != nil {
		return nil, err
	}
	t, err := OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	load := LoadClassifierFrom
	if tokens {
		load = loadTokenClassifier
	}
	m, err := load(be, c, t, label)
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
	score, err := scoreTensor(be, c, t)
	switch {
	case err != nil:
		return nil, err
	case label < 0 || label >= score.Shape[0]:
		return nil, &Error{Op: "read", Path: t.path, Tensor: scoreWeight,
			Err: fmt.Errorf("it has %d labels, counted from 0, so no label %d", score.Shape[0], label)}
	}
	if _, biased := t.Lookup(scoreBias); biased {
		return nil, &MismatchError{Path: t.path, Unexpected: []string{scoreBias}}
	}
	m, err := scoring(be, c, t)
	if err != nil {
		return nil, err
	}
	rows, err := be.Alloc(be.Float(), score.Len())
	if err != nil {
		return m, err
	}
	defer be.Free(rows)
	if err := t.Read(be, scoreWeight, rows); err != nil {
		return m, err
	}
	be.Copy(m.View(scoreWeight), rows.Slice(label*c.Width, (label+1)*c.Width))
	be.Sync()
	m.Refresh()
	return m, nil
}

// Tensors of a classifier's head.
const scoreWeight, scoreBias = "score.weight", "score.bias"

// scoreTensor finds the weights of a classifier's head.
func scoreTensor(be kernels.Backend, c model.Config, t *Tensors) (Tensor, error) {
	score, ok := t.Lookup(scoreWeight)
	switch {
	case !ok:
		return score, &MismatchError{Path: t.path, Missing: []string{scoreWeight}}
	case len(score.Shape) != 2 || score.Shape[1] != c.Width || !score.DType.fits(be.Float()):
		return score, &MismatchError{Path: t.path, Misshaped: []Misshape{{Name: scoreWeight, Got: score.kind(),
			Want: fmt.Sprintf("%s [labels,%d]", score.DType, c.Width)}}}
	}
	return score, nil
}

// loadTokenClassifier is LoadClassifierFrom for a model that classifies tokens, by two labels or one.
func loadTokenClassifier(be kernels.Backend, c model.Config, t *Tensors, label int) (*model.Model, error) {
	score, err := scoreTensor(be, c, t)
	if err != nil {
		return nil, err
	}
	bias, biased := t.Lookup(scoreBias)
	n := score.Shape[0]
	switch {
	case n > 2 || label > 0:
		return nil, &Error{Op: "read", Path: t.path, Tensor: scoreWeight, Err: fmt.Errorf("it has %d labels; of a "+
			"model that classifies tokens two can be read, wrong and right, or one, and label 0 is the logit of right",
			n)}
	case biased && (bias.Len() != n || !bias.DType.fits(be.Float())):
		return nil, &MismatchError{Path: t.path, Misshaped: []Misshape{{Name: scoreBias, Got: bias.kind(),
			Want: fmt.Sprintf("%s [%d]", bias.DType, n)}}}
	}
	m, err := scoring(be, c, t)
	if err != nil {
		return nil, err
	}
	for _, x := range []Tensor{score, bias} {
		if x.Name == "" {
			continue // no bias
		}
		if err := readLogit(be, t, x, n, m.View(x.Name)); err != nil {
			return m, err
		}
	}
	m.Refresh()
	return m, nil
}

// readLogit sets to to the last of the n parts of a tensor, less the one before it if there are two.
func readLogit(be kernels.Backend, t *Tensors, x Tensor, n int, to kernels.Buffer) error {
	all, err := be.Alloc(be.Float(), x.Len())
	if err != nil {
		return err
	}
	defer be.Free(all)
	if err := t.Read(be, x.Name, all); err != nil {
		return err
	}
	host := make([]float32, x.Len())
	be.Copy(kernels.Host(host), all)
	be.Sync()
	width := len(host) / n
	right := host[len(host)-width:]
	for i := range right {
		if n == 2 {
			right[i] -= host[i]
		}
	}
	be.Copy(to, kernels.Host(right))
	be.Sync()
	return nil
}

// scoring loads a frozen backbone with a value head, which the caller sets.
func scoring(be kernels.Backend, c model.Config, t *Tensors) (*model.Model, error) {
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
	return m, nil
}
