package checkpoint

import (
	"cmp"
	"errors"
	"path/filepath"

	"exp/train/checkpoint/megatron"
	"exp/train/model"
)

// megatron makes c a checkpoint of Megatron. The parent of a step's folder may have the
// config.json of all.
func (c *Container) megatron() {
	c.Kind, c.format = "Megatron", megatronRanks
	if c.Texts != "" {
		return
	}
	full, err := filepath.Abs(c.Path)
	if base := filepath.Base(full); err == nil && (megatron.IsStep(base) || base == distFolder) {
		c.Texts = textsIn(filepath.Join(c.Path, ".."))
	}
}

// openMegatron opens the files of the ranks. Without a config.json the model is as the
// arguments describe it.
func (c *Container) openMegatron() (*Tensors, error) {
	x, err := c.readMegatron()
	if err != nil {
		return nil, err
	}
	c.Ranks = x.Ranks
	return newTensors(c.Path, x.Files, x.Tensors)
}

func (c *Container) readMegatron() (*megatron.Checkpoint, error) {
	var known *model.Config
	if c.Texts != "" {
		conf, err := ReadConfig(c.Texts)
		if err == nil && conf.ReadsImages() {
			err = &ConfigError{Path: filepath.Join(c.Texts, configFile), Problems: []string{"this is a model of " +
				"text and images: its checkpoints of Megatron are not supported"}}
		}
		if err != nil {
			return nil, err
		}
		known = &conf
	}
	return megatron.Open(c.Path, known, c.Vocab)
}

// argsConfig returns the architecture that a checkpoint's arguments describe.
func (c *Container) argsConfig() (model.Config, error) {
	x, err := c.readMegatron()
	if err != nil {
		return model.Config{}, err
	}
	errs := []error{}
	for _, f := range x.Files {
		errs = append(errs, f.Close())
	}
	if len(x.Problems) > 0 {
		return x.Config, &ConfigError{Path: c.Path, Problems: append(x.Problems, "put the model's own config.json "+
			"and tokenizer into "+filepath.Join(c.Path, textsFolder)+", or name their folder: exp merge SRC "+
			"--out DIR --hf-config DIR (or --vocab-size N)")}
	}
	return x.Config, cmp.Or(errors.Join(errs...), x.Config.Validate())
}

// madeConfig returns a config.json for a checkpoint whose arguments describe the model; nil
// for other containers.
func (c *Container) madeConfig(t *Tensors) ([]byte, error) {
	if c.format != megatronRanks || c.Texts != "" {
		return nil, nil
	}
	conf, err := c.argsConfig()
	if err != nil {
		return nil, err
	}
	e, _ := t.Lookup(embedding)
	return configJSON(conf, e.DType, nil)
}
