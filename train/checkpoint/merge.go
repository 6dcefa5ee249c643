package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"exp/kernels"
	"exp/train/model"
)

// MergeOptions are what a Hugging Face folder needs beside the model.
type MergeOptions struct {
	// Tokenizer holds the tokenizer's files by name, and other files of the source that
	// are kept byte for byte: chat templates, also additional_chat_templates/NAME. A
	// generation_config.json among them is kept; otherwise one is written from EndIDs.
	Tokenizer map[string][]byte
	// EndIDs are the token ids that end a completion.
	EndIDs []int32
	// Origin is what is kept of the folder that the model came from; nil for none.
	Origin *Origin
	// DType is the type of the weights: F32, BF16 or F16. Empty keeps the types of
	// Origin, and without one those of the model.
	DType DType
	// ShardBytes is how many bytes of tensors a file may have; 0 for those of Origin's
	// largest file, if it has several, and at most 5 GB.
	ShardBytes int64
	// Replace exchanges what is at the target. Without it that is an error.
	Replace bool
}

// dtypes says in which type a tensor is written.
type dtypes func(model.Tensor) DType

// check refuses what is no language model, and returns the types of its tensors.
func (o MergeOptions) check(be kernels.Backend, c model.Config, h model.Heads) (dtypes, error) {
	if !h.LM {
		return nil, errors.New("the model has no output projection, so it is no language model")
	}
	if c.MaxPositions < 2 {
		return nil, errors.New("the model has one position: no room for a prompt and a token")
	}
	return o.dtypes(be)
}

// shardBytes is how many bytes of tensors a file may have: as the source has them, if it
// is cut.
func (o MergeOptions) shardBytes() int64 {
	switch {
	case o.ShardBytes > 0:
		return o.ShardBytes
	case o.Origin != nil && o.Origin.ShardBytes > 0:
		return min(o.Origin.ShardBytes, shardBytes)
	}
	return shardBytes
}

// mergeFolder writes files, proves what lies there under another name, and publishes it.
func (d disk) mergeFolder(dir string, replace bool, contents map[string]func(w io.Writer) error,
	texts map[string][]byte, prove func(tmp string) error) ([]FileInfo, error) {
	if _, err := os.Lstat(dir); err == nil && !replace {
		return nil, taken("merge", dir)
	}
	out, err := d.stage("merge", dir)
	if err != nil {
		return nil, err
	}
	defer out.discard()
	files, err := out.mergeFiles(contents, texts)
	if err != nil {
		return nil, err
	}
	if err := prove(out.tmp); err != nil {
		return nil, err
	}
	return files, out.publish(replace)
}

// dtypes says in which type each tensor is written. Auxiliary heads keep the model's.
func (o MergeOptions) dtypes(be kernels.Backend) (dtypes, error) {
	own := dtypeOf(be.Float())
	switch o.DType {
	case "", own, F32, BF16, F16:
	default:
		return nil, fmt.Errorf("weights cannot be written as %s; F32, BF16 and F16 can be", o.DType)
	}
	return func(t model.Tensor) DType {
		switch {
		case t.Auxiliary():
			return own
		case o.DType != "":
			return o.DType
		case o.Origin == nil:
			return own
		}
		switch d := o.Origin.DTypes[t.Name]; d {
		case F32, BF16, F16:
			return d
		}
		return own
	}, nil
}

// mergeTexts returns the files that are not weights, by name.
func mergeTexts(c model.Config, tensors []model.Tensor, dir string, o MergeOptions,
	as dtypes) (map[string][]byte, error) {
	dtype := mostOf(tensors, as)
	config, err := configJSON(c, dtype, o.EndIDs)
	if o.Origin != nil {
		config, err = patchConfig(o.Origin.Config, c, dtype, o.EndIDs)
	}
	if err != nil {
		return nil, mergeError(dir, err)
	}
	texts := map[string][]byte{generationFile: generationJSON(o.EndIDs)}
	maps.Copy(texts, o.Tokenizer)
	for _, name := range sortedKeys(o.Tokenizer) {
		if !mayKeep(name) {
			return nil, mergeError(dir, fmt.Errorf("the tokenizer may not have a file %q", name))
		}
	}
	texts[configFile] = config
	return texts, nil
}

// mostOf is the type that most elements of plain weights have.
func mostOf(tensors []model.Tensor, as dtypes) DType {
	count := map[DType]int{}
	best := F32
	for _, t := range tensors {
		if t.Auxiliary() {
			continue
		}
		d := as(t)
		if count[d] += t.Len(); count[d] > count[best] {
			best = d
		}
	}
	return best
}

// keptFolder is the one folder that a model's folder may have.
const keptFolder = "additional_chat_templates"

// mayKeep reports whether a file of the source may be written: one that is no weights
// and no config.json, in the folder itself or among the chat templates.
func mayKeep(name string) bool {
	folder, base := path.Split(name)
	reserved := append(slices.Collect(maps.Values(headFiles())), configFile, indexFile)
	return filepath.IsLocal(base) && base == filepath.Base(base) && (folder == "" || folder == keptFolder+"/") &&
		!slices.Contains(reserved, name) && !strings.HasSuffix(base, ".safetensors")
}

func mergeError(dir string, err error) error { return &Error{Op: "merge", Path: dir, Err: err} }

// mergeFiles writes the folder's files and returns them by name.
func (s *staging) mergeFiles(contents map[string]func(w io.Writer) error, texts map[string][]byte) (
	[]FileInfo, error) {
	for name, text := range texts {
		contents[name] = func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		}
	}
	var files []FileInfo
	for _, name := range sortedKeys(contents) {
		info, err := s.write(name, contents[name])
		if err != nil {
			return nil, err
		}
		files = append(files, info)
	}
	return files, nil
}
