package stage

import (
	"encoding/json"
	"fmt"

	"exp/eval/task"
	"exp/experiments/ident"
	"exp/harness/config"
	"exp/train/checkpoint"
	"exp/train/tokenizer"
)

// External are the digests of what a configuration names but does not contain.
type External struct {
	Data      map[string]ident.Digest // records of each source that is a file, by split
	Weights   ident.Digest            // tensors of a pretrained model; zero for random weights
	Tokenizer ident.Digest
}

// Externals reads and digests what the configuration names. Errors point to the key.
func Externals(r *config.Resolved) (External, error) {
	x := External{Data: map[string]ident.Digest{}}
	c := &r.Run
	for _, s := range splits(c) {
		if s.conf.Source == config.Generated || s.conf.Source == config.None {
			continue
		}
		d, err := dataDigest(c, s.conf.Source)
		if err != nil {
			return x, r.ErrorAt(s.key, config.CodeData, err.Error(), "")
		}
		x.Data[string(s.name)] = d
	}
	if c.Model.Init == "pretrained" {
		d, err := weightsDigest(c.Model.Base)
		if err != nil {
			return x, r.ErrorAt("model.base", config.CodeData, err.Error(), "")
		}
		x.Weights = d
		if want := c.Model.Digest; want != "" && want != d.String() {
			return x, r.ErrorAt("model.digest", config.CodeDigest, fmt.Sprintf("model.digest does not match %q", c.Model.Base), "found "+d.String())
		}
	}
	tok, err := Tokenizer(c)
	if err != nil {
		return x, r.ErrorAt("tokenizer.kind", config.CodeData, err.Error(), "")
	}
	x.Tokenizer, err = ident.Hash("exp/tokenizer/1", tok.Description())
	return x, err
}

// dataDigest is that of a source's canonical records, whatever file they are in.
func dataDigest(c *config.Run, path string) (ident.Digest, error) {
	t, err := task.New(taskConfig(c))
	if err != nil {
		return ident.Digest{}, err
	}
	problems, err := task.ReadFile(t, path)
	if err != nil {
		return ident.Digest{}, err
	}
	records := ident.NewRecords()
	for i := range problems {
		b, err := json.Marshal(&problems[i])
		if err != nil {
			return ident.Digest{}, err
		}
		if err := records.Add(b); err != nil {
			return ident.Digest{}, err
		}
	}
	return records.Digest(), nil
}

func weightsDigest(dir string) (d ident.Digest, err error) {
	t, err := checkpoint.OpenFolder(dir)
	if err != nil {
		return d, err
	}
	defer t.Close()
	return digestTensors(t.Sources())
}

// Tokenizer returns the configured tokenizer: the characters of the task, or that
// of the pretrained folder.
func Tokenizer(c *config.Run) (tokenizer.Tokenizer, error) {
	if c.Tokenizer.Kind == "model" {
		return tokenizer.ReadFolder(c.Model.Base)
	}
	t, err := task.New(taskConfig(c))
	if err != nil {
		return nil, err
	}
	return tokenizer.NewChar(t.Alphabet())
}
