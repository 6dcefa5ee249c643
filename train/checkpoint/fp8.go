package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"exp/train/checkpoint/extent"
)

// This file has weights in FP8, which are widened to BF16 as transformers and vLLM do. A folder holds them as
//
//	….weight [N,K] in E4M3, and ….weight_scale_inv or ….weight_scale: one scale for each block of
//	quantization_config's weight_block_size, one for each row [N,1], or one for all [1]
//
// and perhaps scales of activations, which only products in FP8 use.

const e4m3 DType = "F8_E4M3"

// fp8 returns whether the file says that weights are in FP8, and the size of a block, 0 if it says none.
func (r *settings) fp8() (rows, cols int, ok bool) {
	q := r.inner(quantization)
	method, format := "", "e4m3"
	if q == nil || !q.maybe("quant_method", &method) {
		return 0, 0, false
	}
	block := func(in *settings, key string) bool { // the same wherever the file says it
		var list []int
		if !in.has(key) {
			return true
		}
		if !in.maybe(key, &list) || len(list) != 2 || list[0] < 1 || list[1] < 1 ||
			rows > 0 && (list[0] != rows || list[1] != cols) {
			return false
		}
		rows, cols = list[0], list[1]
		return true
	}
	switch method {
	case "fp8":
		experts := method
		q.maybe("expert_dtype", &experts) // DeepSeek-V4's may be fp4
		if q.maybe("fmt", &format); format != "e4m3" && format != "float8_e4m3fn" || experts != method ||
			!block(q, "weight_block_size") {
			return 0, 0, false
		}
		if _, said := q.values["weight_block_size"]; !said {
			return 128, 128, true // transformers' default; null means no blocks
		}
		return rows, cols, true
	case compressedMethod:
		found := false
		groups := q.inner("config_groups").orEmpty()
		q.maybe("format", &format)
		for _, name := range sortedKeys(groups.values) {
			kind, bits, own := "", 0, format
			group := groups.inner(name)
			if group == nil {
				return 0, 0, false
			}
			group.maybe("format", &own)
			w := group.inner("weights")
			switch {
			case w == nil || !w.maybe("type", &kind) || !w.maybe("num_bits", &bits):
				return 0, 0, false
			case kind == "float" && bits == 8 && (own == floatFormat || own == naiveFormat):
				if !block(w, "block_structure") {
					return 0, 0, false
				}
				found = true
			case format == floatFormat:
				return 0, 0, false
			}
		}
		return rows, cols, found
	}
	return 0, 0, false
}

// widenFP8 replaces weights in FP8, which have scales, by BF16, and drops the scales, unless config.json has them
// quantized by another method.
func (t *Tensors) widenFP8() error {
	rows, cols, read := 0, 0, false
	for _, name := range slices.Sorted(maps.Keys(t.where)) {
		p := t.where[name]
		layer, ok := strings.CutSuffix(name, ".weight")
		if !ok || p.DType != e4m3 {
			continue
		}
		scaled := ""
		for _, end := range []string{".weight_scale_inv", ".weight_scale"} {
			if _, ok := t.where[layer+end]; ok {
				scaled = layer + end
				break
			}
		}
		if scaled == "" {
			continue
		}
		if !read {
			r := settings{}
			read = true
			raw, err := readSmall(filepath.Join(filepath.Dir(p.file.Name()), configFile), maxConfig)
			if err == nil && json.Unmarshal(raw, &r.values) == nil {
				t.dropCacheScales(&r)
				ok := false
				if rows, cols, ok = r.fp8(); !ok && r.has(quantization) {
					return nil // another method, which only its config.json explains
				}
			}
		}
		wide, err := p.widened(t.where[scaled], rows, cols)
		if err != nil {
			return &Error{Op: "read", Path: p.file.Name(), Tensor: p.stored, Err: err,
				Hint: "use the unquantized model, or one in FP8 as DeepSeek, Qwen or compressed-tensors write it"}
		}
		t.where[name] = wide
		delete(t.where, scaled)
		for _, end := range append(activationEnds(), ".activation_scale") {
			delete(t.where, layer+end)
		}
	}
	return nil
}

// widened returns p in BF16, with scales of blocks of some rows and columns, 0 if that is not known.
func (p place) widened(scales place, rows, cols int) (place, error) {
	if len(p.Shape) != 2 || p.Len() == 0 || len(p.replicas) > 0 || len(scales.replicas) > 0 {
		return p, errors.New("is in FP8 with scales, but no matrix in one piece")
	}
	grid := scales.Shape
	if len(grid) < 2 && scales.Len() == 1 {
		grid = []int{1, 1}
	}
	if len(grid) != 2 {
		return p, errors.New("is in FP8 with more than one scale, but these are no matrix")
	}
	s := extent.Scales{Data: scales.data, Type: string(scales.DType)}
	s.Rows, s.Cols = blockOf(p.Shape[0], grid[0], rows), blockOf(p.Shape[1], grid[1], cols)
	if s.Rows < 1 || s.Cols < 1 {
		blocks := "blocks of which config.json says no size (weight_block_size)"
		if rows > 0 {
			blocks = fmt.Sprintf("the blocks of %d × %d in config.json", rows, cols)
		}
		return p, fmt.Errorf("is in FP8 of shape %v, but scales of shape %v fit neither rows, nor the whole, nor %s",
			p.Shape, grid, blocks)
	}
	switch {
	case s.Type == "U8":
		s.Type = "F8_E8M0"
	case s.Type != string(F32) && s.Type != string(BF16) && s.Type != "F8_E8M0":
		return p, errors.New("is in FP8 with scales in " + s.Type + "; only F32, BF16 and F8_E8M0 can be read")
	}
	own := p.derived(p.Name, p.Shape, func(x extent.Extent) extent.Extent {
		return extent.FP8(x, p.Shape[0], p.Shape[1], s)
	})
	own.DType, own.split = BF16, false
	return own, nil
}

// blockOf returns how many of n rows have one of so many scales: all, the given number, or one; 0 if nothing fits.
// Other shares are not guessed: two scales of 192 rows may mean blocks of 96 or of 128.
func blockOf(n, scales, given int) int {
	switch {
	case scales == 1:
		return n
	case given > 0 && (n+given-1)/given == scales:
		return given
	case scales == n:
		return 1
	}
	return 0
}
