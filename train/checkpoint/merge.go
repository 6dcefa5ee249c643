package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"exp/kernels"
	"exp/train/model"
)

// MergeOptions are what a Hugging Face folder needs beside the model.
type MergeOptions struct {
	// Tokenizer holds the tokenizer's files by name. A generation_config.json among
	// them is kept; otherwise one is written from EndIDs.
	Tokenizer map[string][]byte
	// EndIDs are the token ids that end a completion.
	EndIDs []int32
	// Replace exchanges what is at the target. Without it that is an error.
	Replace bool
}

// Merge writes a model as Hugging Face folder dir and returns its files by name:
//
//	config.json, generation_config.json, the tokenizer's files
//	model.safetensors         what a plain language model has
//	proj_z.safetensors        the log Z head, if m has one
//	value_head.safetensors    the value head, if m has one
//
// Before the folder gets its name, a fresh model is loaded from it and computes a
// fixed batch; if one bit of its logits, or of its heads' results, is not m's, the
// error is a *ProbeError. On any error dir is as it was before. It needs room on
// the device for a second model.
func Merge(be kernels.Backend, m *model.Model, dir string, o MergeOptions) ([]FileInfo, error) {
	return system().merge(be, m, dir, o, probe)
}

// prover compares a model with the folder that was written of it.
type prover func(be kernels.Backend, m *model.Model, dir string) error

func (d disk) merge(be kernels.Backend, m *model.Model, dir string, o MergeOptions, prove prover) ([]FileInfo, error) {
	if !m.Heads.LM {
		return nil, mergeError(dir, errors.New("the model has no output projection, so it is no language model"))
	}
	if m.Config.MaxPositions < 2 {
		return nil, mergeError(dir, errors.New("the model has one position: no room for a prompt and a token"))
	}
	texts, err := mergeTexts(be, m, dir, o)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(dir); err == nil && !o.Replace {
		return nil, taken("merge", dir)
	}
	out, err := d.stage("merge", dir)
	if err != nil {
		return nil, err
	}
	defer out.discard()
	files, err := out.mergeFiles(be, m, texts)
	if err != nil {
		return nil, err
	}
	if err := prove(be, m, out.tmp); err != nil {
		return nil, err
	}
	return files, out.publish(o.Replace)
}

// mergeTexts returns the files that are not weights, by name.
func mergeTexts(be kernels.Backend, m *model.Model, dir string, o MergeOptions) (map[string][]byte, error) {
	config, err := configJSON(m.Config, be.Float(), o.EndIDs)
	if err != nil {
		return nil, mergeError(dir, err)
	}
	texts := map[string][]byte{generationFile: generationJSON(o.EndIDs)}
	maps.Copy(texts, o.Tokenizer)
	reserved := append(slices.Collect(maps.Values(headFiles())), configFile, weightsFile, indexFile)
	for _, name := range slices.Sorted(maps.Keys(o.Tokenizer)) {
		if slices.Contains(reserved, name) || name != filepath.Base(name) || !filepath.IsLocal(name) {
			return nil, mergeError(dir, fmt.Errorf("the tokenizer may not have a file %q", name))
		}
	}
	texts[configFile] = config
	return texts, nil
}

func mergeError(dir string, err error) error { return &Error{Op: "merge", Path: dir, Err: err} }

// mergeFiles writes the folder's files and returns them by name.
func (s *staging) mergeFiles(be kernels.Backend, m *model.Model, texts map[string][]byte) ([]FileInfo, error) {
	contents := map[string]func(w io.Writer) error{
		weightsFile: func(w io.Writer) error { return WriteSafetensors(w, Weights(be, m, Plain)) },
	}
	for name, text := range texts {
		contents[name] = func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		}
	}
	for _, head := range heads(m) {
		contents[headFiles()[head]] = func(w io.Writer) error {
			return WriteSafetensors(w, Weights(be, m, func(t model.Tensor) bool { return headOf(t.Name) == head }))
		}
	}
	var files []FileInfo
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		info, err := s.write(name, contents[name])
		if err != nil {
			return nil, err
		}
		files = append(files, info)
	}
	return files, nil
}
