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

// Merge writes a model as Hugging Face folder dir and returns its files by name:
//
//	config.json, generation_config.json, the tokenizer's files
//	model.safetensors         what a plain language model has, without a tied head; or
//	                          model-00001-of-00002.safetensors, … and their index
//	proj_z.safetensors        the log Z head, if m has one
//	value_head.safetensors    the value head, if m has one
//
// Before the folder gets its name, a fresh model is loaded from it and computes a
// fixed batch; if one bit of its logits, or of its heads' results, is not m's, the
// error is a *ProbeError. Where weights are rounded (to nearest, ties to even), the
// comparison is with m after its weights were rounded. On any error dir is as it was
// before. It needs room on the device for a second model.
func Merge(be kernels.Backend, m *model.Model, dir string, o MergeOptions) ([]FileInfo, error) {
	return system().merge(be, m, dir, o, probe)
}

// prover compares a model with the folder that was written of it, with tensors in the
// given types.
type prover func(be kernels.Backend, m *model.Model, dir string, as dtypes) error

// dtypes says in which type a tensor is written.
type dtypes func(model.Tensor) DType

func (d disk) merge(be kernels.Backend, m *model.Model, dir string, o MergeOptions, prove prover) ([]FileInfo, error) {
	as, err := o.check(be, m.Config, m.Heads)
	if err != nil {
		return nil, mergeError(dir, err)
	}
	texts, err := mergeTexts(m.Config, m.Tensors(), dir, o, as)
	if err != nil {
		return nil, err
	}
	contents := contentsOf(be, m, as, o.shardBytes())
	return d.mergeFolder(dir, o.Replace, contents, texts, func(tmp string) error { return prove(be, m, tmp, as) })
}

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
func (d disk) mergeFolder(dir string, replace bool, contents map[string]func(w io.Writer) error, texts map[string][]byte, prove func(tmp string) error) ([]FileInfo, error) {
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
func mergeTexts(c model.Config, tensors []model.Tensor, dir string, o MergeOptions, as dtypes) (map[string][]byte, error) {
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

// contentsOf are the files of a model's weights, by name.
func contentsOf(be kernels.Backend, m *model.Model, as dtypes, limit int64) map[string]func(w io.Writer) error {
	var plain []Source
	for _, t := range m.Tensors() {
		if !t.Auxiliary() {
			plain = append(plain, rounded(be, m.View(t.Name), t, as(t)))
		}
	}
	contents := weightContents(plain, limit)
	for _, head := range heads(m) {
		contents[headFiles()[head]] = func(w io.Writer) error {
			return WriteSafetensors(w, Weights(be, m, func(t model.Tensor) bool { return headOf(t.Name) == head }))
		}
	}
	return contents
}

// rounded is a tensor of a model as a source of type as.
func rounded(be kernels.Backend, b kernels.Buffer, t model.Tensor, as DType) Source {
	return Source{Tensor: Tensor{Name: t.Name, DType: as, Shape: t.Shape}, Raw: func(w io.Writer) error {
		if err := writeFloats(w, be, b, as); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		return nil
	}}
}

// mergeFiles writes the folder's files and returns them by name.
func (s *staging) mergeFiles(contents map[string]func(w io.Writer) error, texts map[string][]byte) ([]FileInfo, error) {
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
