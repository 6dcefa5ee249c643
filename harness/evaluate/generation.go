package evaluate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"exp/harness/config"
	"exp/train/checkpoint"
	"exp/train/pyjson"
)

// generationFile is where a model's publisher recommends how to sample from it.
const generationFile = "generation_config.json"

// Recommended returns the settings of eval.final that the generation_config.json of the weights in a folder
// recommends, the five that vLLM takes from it: temperature, top_p, top_k, min_p and repetition_penalty. Like vLLM it
// passes over do_sample. A folder without such a file recommends nothing.
func Recommended(dir string) ([]config.Value, error) {
	dir, err := weightsIn(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(checkpoint.TextsFolder(dir), generationFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var file map[string]json.RawMessage
	if err := json.Unmarshal(pyjson.Plain(b), &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var list []config.Value
	for _, name := range []string{"temperature", "top_p", "top_k", "min_p", "repetition_penalty"} {
		raw, ok := file[name]
		if !ok || string(raw) == "null" {
			continue
		}
		v := config.Value{Path: "eval.final." + name, From: generationFile}
		var x float64
		if err := json.Unmarshal(raw, &x); err != nil {
			return nil, fmt.Errorf("%s: %s is %s, must be a number: correct the file, or leave its settings out "+
				"(--generation-config none)", path, name, raw)
		}
		if name == "top_k" {
			x = max(0, x) // -1 is off, too
		}
		if k, _ := config.Lookup(v.Path); !k.Range.Has(x) {
			return nil, fmt.Errorf("%s: %s is %s, which %s cannot be: correct the file, or leave its settings out "+
				"(--generation-config none)", path, name, raw, v.Path)
		}
		v.Value = strconv.FormatFloat(x, 'f', -1, 64)
		list = append(list, v)
	}
	return list, nil
}

// RecommendedText formats the list for people.
func RecommendedText(list []config.Value) string {
	var parts []string
	for _, v := range list {
		parts = append(parts, fmt.Sprintf("%s %v", strings.TrimPrefix(v.Path, "eval.final."), v.Value))
	}
	return strings.Join(parts, ", ")
}
