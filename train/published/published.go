// Package published knows the sizes of models on the Hugging Face hub, for plans of models that are not here. No
// stage imports it: a longer list leaves the ids of runs as they are.
package published

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"exp/train/checkpoint"
	"exp/train/model"
)

// lines has one for each architecture on the Hugging Face hub that a plan should know without the
// model's files: the names that have it, the number of parameters, and the settings of its config.json that give
// sizes, or another model with what differs from it. The numbers come from https://huggingface.co/NAME.
//
//go:embed models.jsonl
var lines string

// entry is one line of it. Parameters is 0 where the hub counts an image encoder too, or numbers of
// several types.
type entry struct {
	Models     []string                   `json:"models"`
	Like       string                     `json:"like"`
	Parameters int                        `json:"parameters"`
	Config     map[string]json.RawMessage `json:"config"`
}

// byName maps names to lines, each with all of its settings.
var byName = sync.OnceValue(func() map[string]entry {
	all := map[string]entry{}
	for line := range strings.Lines(lines) {
		var m entry
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			panic(fmt.Sprintf("models.jsonl: %v in %s", err, line)) // a test reads them all
		}
		if base, ok := all[m.Like]; ok {
			settings := maps.Clone(base.Config)
			maps.Copy(settings, m.Config)
			m.Config, m.Parameters = settings, base.Parameters
		}
		for _, name := range m.Models {
			all[name] = m
		}
	}
	return all
})

// Model returns the architecture of a model by its name on the Hugging Face hub, so a
// plan can count parameters and memory without the files. A model whose files are present is
// described by its own config.json instead.
func Model(name string) (model.Config, bool) {
	m, ok := byName()[name]
	if !ok {
		return model.Config{}, false
	}
	c, err := m.config(name)
	return c, err == nil
}

func (m entry) config(name string) (model.Config, error) {
	raw, err := json.Marshal(m.Config)
	if err != nil {
		return model.Config{}, err
	}
	return checkpoint.ParseConfig(name, raw)
}

// Names returns the names that Model knows, sorted.
func Names() []string { return slices.Sorted(maps.Keys(byName())) }
