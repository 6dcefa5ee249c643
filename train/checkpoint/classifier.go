package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

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
// such as Qwen2ForSequenceClassification, or of one that classifies tokens, or of another class of reward models
// (scoreHeads).
func ReadClassifierConfig(dir string) (model.Config, error) {
	c, _, err := readClassifier(dir)
	return c, err
}

// ClassifiesTokens reports whether the folder's model classifies tokens, not sequences.
func ClassifiesTokens(dir string) (bool, error) {
	_, h, err := readClassifier(dir)
	return h.tokens, err
}

// ClassifierHeads returns the heads of the model that LoadClassifier makes of a folder.
func ClassifierHeads(dir string) (model.Heads, error) {
	_, h, err := readClassifier(dir)
	return h.heads(), err
}

// causal ends the names of language models' architectures.
const causal = "ForCausalLM"

// readClassifier is ReadClassifierConfig, and returns the model's head.
func readClassifier(dir string) (c model.Config, h scoreHead, err error) {
	path := filepath.Join(TextsFolder(dir), configFile)
	raw, err := readSmall(path, maxHeader)
	if err != nil {
		return c, h, err
	}
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &values); err != nil {
		return c, h, corrupt(path, "", "%v", err)
	}
	var names []string
	if err := json.Unmarshal(values["architectures"], &names); err != nil || len(names) != 1 {
		names = []string{""}
	}
	h, family, ok := scoreHeadOf(names[0])
	if !ok {
		return c, h, &ConfigError{Path: path, Problems: []string{fmt.Sprintf("architectures is %s, not "+
			"one name that ends in %s or %s, nor in ForRewardModel, ForProcessRewardModel or ForPrmModel; a language "+
			"model scores by two tokens that may come next", values["architectures"], classifier, tokenClassifier)}}
	}
	// The backbone is the language model's.
	values["architectures"], err = json.Marshal([]string{family + causal})
	if err != nil {
		return c, h, err
	}
	if raw, err = json.Marshal(values); err != nil {
		return c, h, err
	}
	c, err = ParseConfig(path, raw)
	c.TieEmbeddings = false // it has no output projection to tie
	return c, h, err
}

// LoadClassifier loads a frozen sequence-classification model from a folder, with row label
// of its score.weight as value head. Of a model that classifies tokens by two labels, wrong and right, the head is the
// difference of right and wrong: the logit of right. It holds weights as a Backbone does. Close it afterwards.
func LoadClassifier(be kernels.Backend, dir string, label int) (*model.Model, error) {
	c, h, err := readClassifier(dir)
	if err != nil {
		return nil, err
	}
	t, err := OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	m, err := h.load(be, c, t, label)
	if err := errors.Join(err, t.Close()); err != nil {
		if m != nil {
			m.Close()
		}
		return nil, err
	}
	return m, nil
}

// LoadClassifierFrom is LoadClassifier for tensors of an architecture that scores sequences.
func LoadClassifierFrom(be kernels.Backend, c model.Config, t *Tensors, label int) (*model.Model, error) {
	h, _, _ := scoreHeadOf(classifier)
	return h.load(be, c, t, label)
}

// Tensors of a value head.
const scoreWeight, scoreBias = "score.weight", "score.bias"

// load is LoadClassifier for tensors of a model with this head. Close the model even after an error.
func (h scoreHead) load(be kernels.Backend, c model.Config, t *Tensors, label int) (*model.Model, error) {
	if err := h.plain(t); err != nil {
		return nil, err
	}
	weight, bias, err := h.find(be.Float(), c, t, label)
	if err != nil {
		return nil, err
	}
	m, err := scoring(be, c, t, h.heads())
	if err != nil {
		return nil, err
	}
	if err := h.read(be, t, m, weight, bias, label); err != nil {
		return m, err
	}
	m.Refresh()
	return m, nil
}

// scoring loads a frozen backbone with a value head, which the caller sets.
func scoring(be kernels.Backend, c model.Config, t *Tensors, heads model.Heads) (*model.Model, error) {
	base, err := LoadBackbone(be, c, false, t.Frozen(), t)
	if err != nil {
		return nil, err
	}
	m, err := model.NewOn(base, heads, false)
	if err != nil {
		base.Close()
		return nil, err
	}
	m.OwnBackbone()
	return m, nil
}
