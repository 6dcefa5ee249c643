// Package evaluate configures the evaluation of weights on suites: a run's final
// weights, or weights in a folder that nothing here trained. Package run executes it.
package evaluate

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/forecast"
	"exp/harness/hub"
	"exp/harness/inspect"
	"exp/harness/stage"
	"exp/train/checkpoint"
)

// longest is the default limit of a completion in tokens, if no flag or protocol sets
// one.
const longest = 1024

// Folder says how to evaluate the weights in a folder.
type Folder struct {
	inspect.Folder // holds a model; adapters apply to it
	// hub:…, if the folder is where the cache has it; empty: it is the user's
	Ref    string
	Find   func(hub.Ref) (hub.Found, error) // looks up Ref
	User   string                           // the user's own configuration; may be empty
	Own    []config.Value                   // of the run that made the weights; flags that switch them off do so
	Values []config.Value                   // of flags
	// Generation takes the settings of Recommended, where neither flags nor the user's configuration set them.
	Generation bool
	Sets       []string // expressions, as in config.Input
}

// Config returns the configuration of the evaluation: a run that trains nothing. It is
// recorded like any other, so repeating it reads the store. Unless
// rollout.max_sequences is set, Config halves it until sampling fits into half of the
// memory left by the weights; the number changes no result.
func (f Folder) Config() (*config.Resolved, error) {
	dir, err := weightsIn(f.Dir)
	if err != nil {
		return nil, err
	}
	name, base := nameOf(dir), dir
	if f.Ref != "" {
		name, base = nameOf(strings.Split(f.Ref, "@")[0]), f.Ref
	}
	made := []config.Value{
		{Path: "version", Value: 1}, {Path: "task.kind", Value: "math"},
		{Path: "data.train.source", Value: config.None}, {Path: "data.val.source", Value: config.None},
		{Path: "data.test.source", Value: config.None},
		{Path: "model.init", Value: "pretrained"}, {Path: "model.base", Value: base},
		{Path: "rollout.max_new_tokens", Value: longest}, {Path: "train.steps", Value: 0},
	}
	if f.Adapter != "" {
		adapter, err := filepath.Abs(f.Adapter)
		if err != nil {
			return nil, err
		}
		made = append(made, config.Value{Path: "model.adapter", Value: adapter})
		name = adaptedName(name, adapter)
	}
	if f.Part != "" {
		made = append(made, config.Value{Path: "model.part", Value: f.Part})
	}
	made = append(append(made, config.Value{Path: "name", Value: name}), f.Own...)
	if f.Generation {
		list, err := Recommended(f.Dir)
		if err != nil {
			return nil, err
		}
		made = append(made, list...)
	}
	return fitting(config.Input{File: "exp eval " + dir, Made: made, User: f.User, Values: f.Values, Sets: f.Sets,
		Find: f.Find})
}

// fitting loads a configuration with as many sequences as fit.
func fitting(in config.Input) (*config.Resolved, error) {
	r, err := config.Load(in)
	if err != nil || r.Origin("rollout.max_sequences") != "default" {
		return r, err
	}
	made, memory := in.Made[:len(in.Made):len(in.Made)], device.Memory(&r.Run)
	for n := r.Run.Rollout.MaxSequences; n > 1 && memory > 0; {
		e, err := forecast.Of(r, 1).Estimate()
		if err != nil || e.Total()-e.Memory[0].Bytes <= (memory-e.Memory[0].Bytes)/2 {
			break // the plan reports errors in the model
		}
		n /= 2
		in.Made = append(made, config.Value{Path: "rollout.max_sequences", Value: n})
		if r, err = config.Load(in); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// NoWeightsError says that a folder holds no weights, or weights without a config.json.
type NoWeightsError struct {
	Dir  string
	Kind string // of the weights; empty: there are none
}

func (e *NoWeightsError) Error() string {
	return e.Dir + " has no config.json, so it cannot be evaluated"
}

// Hint says what the folder needs.
func (e *NoWeightsError) Hint() string {
	if e.Kind != "" {
		return fmt.Sprintf("the weights are there (%s): put the model's config.json and tokenizer into %s, or merge "+
			"both: exp merge %s --out DIR --hf-config CONFIG", e.Kind, filepath.Join(e.Dir, "huggingface"), e.Dir)
	}
	return "give a folder in Hugging Face's layout, with config.json, tokenizer.json and *.safetensors, or a " +
		"checkpoint of verl; every training run leaves one in its folder, named model. exp merge SRC --out DIR " +
		"--hf-config CONFIG adds the config.json of another folder to weights without one"
}

// ExitCode is the code for something that is not there.
func (e *NoWeightsError) ExitCode() int { return 3 }

// weightsIn returns the absolute path of weights that have a config.json, or of the merged
// weights in a run's folder.
func weightsIn(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for _, d := range []string{dir, filepath.Join(dir, stage.MergedDir)} {
		if _, err := os.Stat(filepath.Join(checkpoint.TextsFolder(d), "config.json")); err == nil {
			return d, nil
		}
	}
	kind := ""
	if c, err := checkpoint.FindContainer(dir); err == nil {
		kind = c.Kind
	}
	return "", &NoWeightsError{Dir: dir, Kind: kind}
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// nameOf names an evaluation after the folder, or after the run if the folder holds a
// run's merged weights.
func nameOf(dir string) string {
	name := filepath.Base(dir)
	if parent := filepath.Base(filepath.Dir(dir)); name == stage.MergedDir && len(parent) == 64 {
		name = parent[:8]
	}
	name = "eval-" + strings.Trim(notInNames.ReplaceAllString(name, "-"), "-")
	return name[:min(len(name), 64)]
}

// adaptedName names the evaluation of a model with adapters.
func adaptedName(name, adapter string) string {
	own := strings.Trim(notInNames.ReplaceAllString(filepath.Base(adapter), "-"), "-")
	return fmt.Sprintf("%s-%s", name[:min(len(name), 40)], own[:min(len(own), 23)])
}

// PassK returns the k of pass@k for n samples: the powers of two up to n.
func PassK(n int) (list []string) {
	for k := 1; k <= max(1, n); k *= 2 {
		list = append(list, fmt.Sprint(k))
	}
	return list
}
