// Package convert turns checkpoints of other trainers into folders in Hugging Face's
// layout, which every program can read.
package convert

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/train/checkpoint"
)

// MergeOptions say how Merge writes a folder.
type MergeOptions struct {
	DType    string // one of DTypes
	Config   string // folder with config.json and tokenizer; empty: where the checkpoint has them
	Vocab    int    // tokens, for Megatron's checkpoints that do not say; 0: not known
	Replace  bool   // overwrite an existing target
	Progress func(done, total int64)
}

// Merged describes a folder that Merge wrote, in the schema exp.merge/1.
type Merged struct {
	Source    string   `json:"source"` // where the weights were found
	Container string   `json:"container"`
	Ranks     int      `json:"ranks"` // 0 if not of several
	Out       string   `json:"out"`
	Class     string   `json:"class"`
	DType     string   `json:"dtype"` // of most elements
	Tensors   int      `json:"tensors"`
	Bytes     int64    `json:"bytes"` // of all files
	Files     []File   `json:"files"`
	Notes     []string `json:"notes"`
}

// File is one file of the folder.
type File struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// DTypes returns the number types that weights can be written in; the first keeps their type.
func DTypes() []string { return []string{"keep", "bf16", "f32"} }

// TargetError says why Merge does not write to a place.
type TargetError struct {
	Path string
	Why  string
	Ask  bool // whether Replace would allow it
}

func (e *TargetError) Error() string { return e.Path + " " + e.Why }

// Merge writes the weights at path src as Hugging Face folder out. If ctx ends, nothing is
// left.
func Merge(ctx context.Context, src, out string, o MergeOptions) (*Merged, error) {
	types := map[string]checkpoint.DType{"keep": "", "bf16": checkpoint.BF16, "f32": checkpoint.F32}
	dtype, ok := types[o.DType]
	if !ok {
		panic("convert: no type " + o.DType)
	}
	c, err := find(src, o.Config, o.Vocab)
	if err != nil {
		return nil, err
	}
	if err := target(out, c, o.Replace); err != nil {
		return nil, err
	}
	p, err := checkpoint.Pack(ctx, c, out, checkpoint.PackOptions{DType: dtype, Replace: o.Replace,
		Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	return described(p, out), nil
}

// target checks that out may be written: it must not exist, or be a model's folder to be
// replaced that the weights do not come from.
func target(out string, c *checkpoint.Container, replace bool) error {
	if _, err := os.Lstat(out); err != nil {
		return nil // if that is trouble, writing reports it
	}
	if !replace {
		return &TargetError{Path: out, Why: "already exists", Ask: true}
	}
	models := []string{"config.json", "model.safetensors", "huggingface/config.json", "model.gguf"}
	if !slices.ContainsFunc(models, func(name string) bool {
		info, err := os.Stat(filepath.Join(out, name))
		return err == nil && info.Mode().IsRegular()
	}) {
		return &TargetError{Path: out, Why: "is not a model's folder, so it is not replaced"}
	}
	for _, from := range []string{c.Path, c.Texts} {
		if from != "" && inside(from, out) {
			return &TargetError{Path: out, Why: "holds the source " + from + ", which must stay"}
		}
	}
	return nil
}

// inside reports whether a path is a folder or lies below it.
func inside(path, dir string) bool {
	real := func(p string) string {
		if q, err := filepath.EvalSymlinks(p); err == nil {
			p = q
		}
		if q, err := filepath.Abs(p); err == nil {
			p = q
		}
		return p
	}
	rel, err := filepath.Rel(real(dir), real(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
