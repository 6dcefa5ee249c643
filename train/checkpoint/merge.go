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

// MergeOptions are the non-weight inputs of a Hugging Face folder.
type MergeOptions struct {
	// Tokenizer holds the tokenizer's files by name, and other source files copied byte for
	// byte: chat templates, including additional_chat_templates/NAME. A
	// generation_config.json among them is kept; otherwise one is written from EndIDs.
	Tokenizer map[string][]byte
	// EndIDs are the token ids that end a completion.
	EndIDs []int32
	// Origin holds what to keep of the model's source folder; nil for none.
	Origin *Origin
	// DType is the type of the weights: F32, BF16 or F16. Empty keeps Origin's types or,
	// without Origin, the model's.
	DType DType
	// ShardBytes limits a file's bytes of tensors; 0 means the size of Origin's largest
	// file, if Origin has several, and at most 5 GB.
	ShardBytes int64
	// Replace swaps out an existing target, which is otherwise an error.
	Replace bool
}

// dtypes returns the written type of a tensor.
type dtypes func(model.Tensor) DType

// check refuses anything but a language model, and returns the types of its tensors.
func (o MergeOptions) check(be kernels.Backend, c model.Config, h model.Heads) (dtypes, error) {
	if !h.LM {
		return nil, errors.New("the model has no output projection, so it is not a language model")
	}
	if c.MaxPositions < 2 {
		return nil, errors.New("the model has a single position: a prompt and a token do not fit")
	}
	return o.dtypes(be)
}

// shardBytes returns the limit of a file's bytes of tensors: the source's, if the source is
// sharded.
func (o MergeOptions) shardBytes() int64 {
	switch {
	case o.ShardBytes > 0:
		return o.ShardBytes
	case o.Origin != nil && o.Origin.ShardBytes > 0:
		return min(o.Origin.ShardBytes, shardBytes)
	}
	return shardBytes
}

// mergeFolder writes files, proves them under a temporary name, and publishes the folder.
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

// dtypes returns the written type of each tensor. Auxiliary heads keep the
// model's.
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
		case o.DType != "" && !t.Constant(): // rounded, a router's bias would choose other experts
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

// mergeTexts returns the non-weight files by name.
func mergeTexts(c model.Config, tensors []model.Tensor, dir string, o MergeOptions,
	as dtypes) (map[string][]byte, error) {
	dtype := mostOf(tensors, as)
	var config []byte
	var err error
	switch {
	case o.Origin == nil && c.ReadsImages():
		err = errNoTower
	case o.Origin == nil:
		config, err = configJSON(c, dtype, o.EndIDs)
	default:
		if config, err = patchConfig(o.Origin.Config, c, dtype, o.EndIDs); err == nil {
			config, err = withoutFurtherLayers(config)
		}
	}
	if err != nil {
		return nil, mergeError(dir, err)
	}
	texts := map[string][]byte{generationFile: generationJSON(o.EndIDs)}
	if c.ReadsImages() {
		maps.Copy(texts, o.Origin.Processor)
	}
	maps.Copy(texts, o.Tokenizer)
	for _, name := range sortedKeys(o.Tokenizer) {
		if !mayKeep(name) {
			return nil, mergeError(dir, fmt.Errorf("the tokenizer may not have a file %q", name))
		}
	}
	texts[configFile] = config
	return texts, nil
}

// mostOf returns the type of most elements of plain weights.
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

// keptFolder is the only subfolder that a model folder may have.
const keptFolder = "additional_chat_templates"

// mayKeep reports whether a source file may be copied: neither weights nor config.json, in
// the folder itself or among the chat templates.
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
