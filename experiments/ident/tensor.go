package ident

import (
	"fmt"
	"slices"
	"strings"
)

// Tensor is one leaf in the digest of a set of weights.
type Tensor struct {
	Name  string
	DType string // as in safetensors: "F32", "BF16"
	Shape []int
	Data  Digest // SHA-256 of the raw little-endian elements (SumLE)
}

// leaf is H("exp/tensor/1", {name, dtype, shape, sha256}).
func (t Tensor) leaf() (Digest, error) {
	return Hash("exp/tensor/1", map[string]any{
		"name": t.Name, "dtype": t.DType, "shape": t.Shape, "sha256": t.Data,
	})
}

// Weights returns the digest of a set of tensors,
//
//	H("exp/weights/1", [leaf of each tensor, by name])
//
// independent of file format, order and sharding. Two tensors with the same name are an
// error.
func Weights(tensors []Tensor) (Digest, error) {
	sorted := slices.Clone(tensors)
	slices.SortFunc(sorted, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	leaves := make([]Digest, len(sorted))
	for i, t := range sorted {
		if i > 0 && t.Name == sorted[i-1].Name {
			return Digest{}, fmt.Errorf("weights: two tensors are named %q", t.Name)
		}
		leaf, err := t.leaf()
		if err != nil {
			return Digest{}, fmt.Errorf("weights: tensor %q: %w", t.Name, err)
		}
		leaves[i] = leaf
	}
	return Hash("exp/weights/1", leaves)
}
