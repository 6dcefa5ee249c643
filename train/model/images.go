package model

import (
	"fmt"

	"exp/kernels"
)

// This file has what models of text and images add (Qwen2-VL, arXiv:2409.12191; Qwen2.5-VL, arXiv:2502.13923;
// Qwen3-VL, arXiv:2511.21631). A frozen vision tower (package vision) turns an image into features, which stand for
// the embeddings of its tokens. The tokens of an image have ids of their own beyond the vocabulary, so equal tokens
// always have equal features, in prefixes that sequences share, too.

// ImageSettings says how a language model reads images; the zero value: not at all.
type ImageSettings struct {
	// Sections are the rotary pairs that turn by time, by height and by width; together they are all pairs.
	Sections [3]int
	// Interleaved says that the pairs of the three take turns (Qwen3-VL), not one section after another.
	Interleaved bool `json:",omitempty"`
	// Deep is the number of first layers whose outputs get further features of the tokens added (DeepStack,
	// arXiv:2406.04334).
	Deep int `json:",omitempty"`
}

// Image is an image as a language model reads it: Rows·Columns tokens with the ids from First on, row by row.
type Image struct {
	First         int32
	Rows, Columns int
}

// Tokens returns the number of tokens.
func (im Image) Tokens() int { return im.Rows * im.Columns }

// Images gives a model the images that its sequences show.
type Images interface {
	// Of returns the image that a token belongs to. It panics if there is none.
	Of(id int32) Image
	// Features computes features [1+Deep][Rows·Columns][Width] on a backend: the embeddings of the image's tokens, then
	// what is added after each of the first Deep layers. They depend on the image alone. Nobody changes them. It
	// panics with an *ImageError if the image cannot be read.
	Features(be kernels.Backend, im Image) []float32
}

// ImageError reports an image that cannot be read.
type ImageError struct{ Err error }

func (e *ImageError) Error() string { return "image: " + e.Err.Error() }
func (e *ImageError) Unwrap() error { return e.Err }

// SetImages gives the model the images of its sequences.
func (m *Model) SetImages(x Images) { m.images = x }

// ReadsImages reports whether models of configuration c read images.
func (c Config) ReadsImages() bool { return c.Images.Sections != [3]int{} }

// validate reports invalid settings.
func (s ImageSettings) validate(c Config) (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("model: images: "+format, args...)) }
	if s == (ImageSettings{}) {
		return nil
	}
	sum := 0
	for _, n := range s.Sections {
		if n < 0 {
			bad("a section of %d rotary pairs", n)
		}
		sum += n
	}
	if sum != c.rotated()/2 {
		bad("sections %v are %d rotary pairs, a head has %d", s.Sections, sum, c.rotated()/2)
	}
	if s.Deep < 0 || s.Deep > c.Layers {
		bad("features are added after %d of %d layers", s.Deep, c.Layers)
	}
	return errs
}
