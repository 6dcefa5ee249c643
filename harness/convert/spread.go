package convert

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"exp/train/checkpoint"
	"exp/train/checkpoint/megatron"
)

// Formats returns what Spread writes: Hugging Face's layout, Megatron's, verl's FSDP, and llama.cpp's GGUF.
func Formats() []string { return []string{"hf", "megatron", "fsdp", "gguf"} }

// GGUFTypes returns the types in which matrices are written to GGUF; the first keeps their own.
func GGUFTypes() []string { return checkpoint.GGUFTypes() }

// SpreadOptions say how Spread writes a checkpoint.
type SpreadOptions struct {
	To      string // one of Formats
	Config  string // folder with config.json and tokenizer; empty: where the checkpoint has them
	Vocab   int    // tokens, for Megatron's checkpoints that do not say; 0: not known
	Replace bool

	TP, PP, VP, EP int    // Megatron's ranks along each axis
	Ranks          int    // of FSDP
	Type           string // of GGUF, one of GGUFTypes
	Progress       func(done, total int64)
}

// GridError says why a model cannot be cut as asked.
type GridError struct{ Err error }

func (e *GridError) Error() string { return e.Err.Error() }

// Unwrap returns e.Err.
func (e *GridError) Unwrap() error { return e.Err }

// Spread writes the weights at path src as folder out in another format, bit for bit except for GGUF of another type
// than theirs. If ctx ends, nothing is left.
func Spread(ctx context.Context, src, out string, o SpreadOptions) (*Merged, error) {
	if o.To == "hf" {
		return Merge(ctx, src, out, MergeOptions{DType: "keep", Config: o.Config, Vocab: o.Vocab, Replace: o.Replace,
			Progress: o.Progress})
	}
	c, err := find(src, o.Config, o.Vocab)
	if err != nil {
		return nil, err
	}
	if err := target(out, c, o.Replace); err != nil {
		return nil, err
	}
	s := checkpoint.SpreadOptions{FSDP: o.Ranks, Replace: o.Replace}
	if o.To == "megatron" {
		s.Megatron = &megatron.Grid{TP: o.TP, PP: o.PP, VP: o.VP, EP: o.EP}
	}
	if o.Progress != nil {
		s.Progress = func(done int64) { o.Progress(done, max(done, sizeOf(c.Path))) }
	}
	if o.To == "gguf" {
		p, err := checkpoint.WriteGGUF(ctx, c, out, checkpoint.GGUFOptions{Type: o.Type, Replace: o.Replace,
			Progress: s.Progress})
		if err != nil {
			return nil, err
		}
		return described(p, out), nil
	}
	p, err := checkpoint.Spread(ctx, c, out, s)
	if errors.Is(err, checkpoint.ErrGrid) {
		return nil, &GridError{err}
	}
	if err != nil {
		return nil, err
	}
	return described(p, out), nil
}

// find returns the weights at a path.
func find(src, config string, vocab int) (*checkpoint.Container, error) {
	c, err := checkpoint.FindContainer(src)
	if err != nil {
		return nil, err
	}
	if c.Vocab = vocab; config != "" {
		c.Texts = checkpoint.TextsFolder(config)
	}
	return c, nil
}

// sizeOf returns the bytes of a file, or of the files of a folder and those below it.
func sizeOf(path string) (total int64) {
	err := filepath.WalkDir(path, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	if err != nil {
		return 0
	}
	return total
}

// described describes a folder.
func described(p *checkpoint.Packed, out string) *Merged {
	m := &Merged{Source: p.Source, Container: p.Container, Ranks: p.Ranks, Out: out, Class: p.Class,
		DType: string(p.DType), Tensors: p.Tensors, Files: []File{}, Notes: append([]string{}, p.Notes...)}
	for _, f := range p.Files {
		m.Files = append(m.Files, File{f.Name, f.Bytes})
		m.Bytes += f.Bytes
	}
	return m
}
