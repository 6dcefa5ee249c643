// Package evaluate configures the evaluation of weights on suites: of a run's final weights,
// or of the weights in a folder, which nothing trained here. Package run executes it.
package evaluate

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"exp/harness/config"
	"exp/harness/inspect"
	harness "exp/harness/run"
	"exp/harness/stage"
)

// longest is how long a completion of a folder's weights may be where no flag and no
// protocol says it, in tokens.
const longest = 1024

// Folder says how the weights of a folder are evaluated.
type Folder struct {
	inspect.Folder                // with a model; adapters are put on it
	User           string         // the user's own configuration; may be empty
	Values         []config.Value // of flags
	Sets           []string       // expressions, as config.Input has them
}

// Config is the configuration of the evaluation: a run that trains nothing, which is
// recorded like any other, so that the same again is taken from the store. Unless
// rollout.max_sequences is set, it halves that until sampling fits into half of the memory
// that the weights leave free; the number changes no result.
func (f Folder) Config() (*config.Resolved, error) {
	dir, err := weightsIn(f.Dir)
	if err != nil {
		return nil, err
	}
	made := []config.Value{
		{Path: "version", Value: 1}, {Path: "task.kind", Value: "math"},
		{Path: "data.train.source", Value: config.None}, {Path: "data.val.source", Value: config.None},
		{Path: "data.test.source", Value: config.None},
		{Path: "model.init", Value: "pretrained"}, {Path: "model.base", Value: dir},
		{Path: "rollout.max_new_tokens", Value: longest}, {Path: "train.steps", Value: 0},
	}
	name := nameOf(dir)
	if f.Adapter != "" {
		adapter, err := filepath.Abs(f.Adapter)
		if err != nil {
			return nil, err
		}
		made = append(made, config.Value{Path: "model.adapter", Value: adapter})
		name = adaptedName(name, adapter)
	}
	if f.Text {
		made = append(made, config.Value{Path: "model.part", Value: "text"})
	}
	made = append(made, config.Value{Path: "name", Value: name})
	return fitting(config.Input{File: "exp eval " + dir, Made: made, User: f.User, Values: f.Values, Sets: f.Sets})
}

// fitting loads a configuration with as many sequences as fit.
func fitting(in config.Input) (*config.Resolved, error) {
	r, err := config.Load(in)
	if err != nil || r.Origin("rollout.max_sequences") != "default" {
		return r, err
	}
	made, memory := in.Made[:len(in.Made):len(in.Made)], harness.ThisMachine().Memory
	for n := r.Run.Rollout.MaxSequences; n > 1 && memory > 0; {
		e, err := harness.NewEstimate(r)
		if err != nil || e.Total()-e.Memory[0].Bytes <= (memory-e.Memory[0].Bytes)/2 {
			break // the plan reports what is wrong with the model
		}
		n /= 2
		in.Made = append(made, config.Value{Path: "rollout.max_sequences", Value: n})
		if r, err = config.Load(in); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// NoWeightsError says that a folder is not one of weights.
type NoWeightsError struct{ Dir string }

func (e *NoWeightsError) Error() string {
	return e.Dir + " has no config.json: it is no folder of weights"
}

// Hint says what is needed.
func (e *NoWeightsError) Hint() string {
	return "a folder in the layout of Hugging Face is needed, with config.json, tokenizer.json and *.safetensors; " +
		"every run that trains leaves one, model, in its own folder"
}

// ExitCode is the one of what is not there.
func (e *NoWeightsError) ExitCode() int { return 3 }

// weightsIn is the absolute path of a folder of weights: one with a config.json, or a run's
// own folder, whose merged weights are meant.
func weightsIn(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for _, d := range []string{dir, filepath.Join(dir, stage.MergedDir)} {
		if _, err := os.Stat(filepath.Join(d, "config.json")); err == nil {
			return d, nil
		}
	}
	return "", &NoWeightsError{dir}
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// nameOf names an evaluation after the folder; the folder of a run's merged weights after
// the run.
func nameOf(dir string) string {
	name := filepath.Base(dir)
	if parent := filepath.Base(filepath.Dir(dir)); name == stage.MergedDir && len(parent) == 64 {
		name = parent[:8]
	}
	name = "eval-" + strings.Trim(notInNames.ReplaceAllString(name, "-"), "-")
	return name[:min(len(name), 64)]
}

// adaptedName is the name of an evaluation of a model with adapters.
func adaptedName(name, adapter string) string {
	own := strings.Trim(notInNames.ReplaceAllString(filepath.Base(adapter), "-"), "-")
	return fmt.Sprintf("%s-%s", name[:min(len(name), 40)], own[:min(len(own), 23)])
}

// PassK are the k of pass@k for n samples: the powers of two up to n.
func PassK(n int) (list []string) {
	for k := 1; k <= max(1, n); k *= 2 {
		list = append(list, fmt.Sprint(k))
	}
	return list
}
