package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"exp/kernels"
	"exp/train/model"
)

// MergeClassifier writes a reward model as Hugging Face folder dir, as MergeTensors writes a language model, and
// returns its files by name. The class is the one of sequence classification with one label, such as
// Qwen2ForSequenceClassification, and score.weight [1,C] has the type of most weights.
//
// In a batch transformers takes the score of the last token that is not pad. No text that the model reads may end
// with it.
func MergeClassifier(be kernels.Backend, x Trained, pad int32, dir string, o MergeOptions) ([]FileInfo, error) {
	as, err := o.dtypes(be)
	if err != nil {
		return nil, mergeError(dir, err)
	}
	if !x.Heads.Score || x.Heads.LM || x.Heads.Adapters != nil {
		return nil, mergeError(dir, errors.New("the model has no score head"))
	}
	if err := x.check(); err != nil {
		return nil, err
	}
	tensors, _ := model.Layout(x.Config, model.Heads{})
	most := mostOf(tensors, as)
	plain, heads := x.sources(be, tensors, func(t model.Tensor) DType {
		if t.Auxiliary() {
			return most
		}
		return as(t)
	})
	for _, list := range heads {
		plain = append(plain, list...)
	}
	texts, err := mergeTexts(x.Config, tensors, dir, o, as)
	if err == nil {
		texts[configFile], err = classifierJSON(texts[configFile], pad)
	}
	if err != nil {
		return nil, mergeError(dir, err)
	}
	fused := fuseExperts(plain, sourceTensor, fusedSource)
	published := publish(fused, sourceTensor, stackedSource, turnedSource, x.Config)
	return system().mergeFolder(dir, o.Replace, weightContents(published, o.shardBytes()), texts,
		func(tmp string) error { return x.proveClassifier(tmp, plain) })
}

// classifierJSON turns the config.json of a language model into a config.json of a classifier with one label.
func classifierJSON(config []byte, pad int32) ([]byte, error) {
	var values struct{ Architectures []string }
	if err := json.Unmarshal(config, &values); err != nil {
		return nil, err
	}
	class, err := classifierOf(values.Architectures)
	if err != nil {
		return nil, err
	}
	return setKeys(config, map[string]any{"architectures": []string{class}, "pad_token_id": pad,
		"id2label": map[string]string{"0": "LABEL_0"}, "label2id": map[string]int{"LABEL_0": 0}})
}

// classifierOf returns the class of sequence classification that belongs to a language model's.
func classifierOf(architectures []string) (string, error) {
	if len(architectures) == 1 {
		if family, ok := strings.CutSuffix(architectures[0], causal); ok {
			return family + classifier, nil
		}
	}
	return "", fmt.Errorf("architectures is %q: a classifier can be written only of a class that ends in ForCausalLM",
		architectures)
}

// CheckClassifier says why no classifier can be written of the model; nil if one can.
func (o *Origin) CheckClassifier() error {
	var values struct{ Architectures []string }
	if err := json.Unmarshal(o.Config, &values); err != nil {
		return err
	}
	_, err := classifierOf(values.Architectures)
	return err
}

// proveClassifier reads back the folder written from sources.
func (x Trained) proveClassifier(dir string, list []Source) error {
	c, err := ReadClassifierConfig(dir)
	if err != nil {
		return err
	}
	want := x.Config
	want.TieEmbeddings = false
	if !reflect.DeepEqual(c, want) {
		return mergeError(dir, fmt.Errorf("%s describes another model: %+v, not %+v", configFile, c, want))
	}
	t, err := OpenFolder(dir)
	if err != nil {
		return err
	}
	return errors.Join(t.holds(list), t.Close())
}
