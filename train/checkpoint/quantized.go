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

// This file has what formats of quantized modules have in common: GPTQ, AWQ, compressed-tensors and bitsandbytes
// (gptq.go, awq.go, compressed.go, bitsandbytes.go). A folder has several tensors for a module's weight. They are
// multiplied out while they are read, in the type of their scales, as the format's own library does it, and then
// rounded to the type of the model, as transformers does it when it loads the model. Nothing is quantized again.

// quantizer is how config.json says that weights are quantized.
type quantizer struct {
	method string
	as     DType // the model's type; "" if the file does not say it
	format string

	bits      int  // of GPTQ's and AWQ's integers
	groupSize int  // inputs that share a scale; -1: all
	byModule  bool // whether bits and groupSize differ between modules
	lessOne   bool // GPTQ's zero points are stored less 1
	unordered bool // groups are not in the order of inputs
	modules   bool // some weights of compressed-tensors are not in FP8
	eight     bool // integers of bitsandbytes have 8 bits

	tables map[[2]int]*extent.Values // of integers, which many modules share
}

// readMethods names what is read, for errors.
const readMethods = "of quantized weights only FP8 (E4M3) and gpt-oss's MXFP4, GPTQ, AWQ (gemm), compressed-tensors " +
	"and bitsandbytes are supported"

// quantizer returns how weights are quantized, nil if they are not, or only in FP8 or MXFP4; why says what is not
// supported.
func (r *settings) quantizer() (q *quantizer, why string) {
	in := r.inner(quantization)
	if in == nil {
		return nil, ""
	}
	q = &quantizer{as: r.ownType()}
	if !in.maybe("quant_method", &q.method) && (in.has("load_in_4bit") || in.has("load_in_8bit")) {
		q.method = bitsMethod // as transformers takes it
	}
	switch q.method {
	case gptqMethod:
		why = q.readGPTQ(in)
	case awqMethod:
		why = q.readAWQ(in)
	case compressedMethod:
		if why = q.readCompressed(in); why == "" && !q.modules {
			return nil, ""
		}
	case bitsMethod:
		why = q.readBits(in)
	default:
		return nil, ""
	}
	return q, why
}

// ownType returns the floating-point type that the file gives the model, "" if none that is known.
func (r *settings) ownType() DType {
	for _, in := range []*settings{r, r.inner("text_config")} {
		for _, key := range []string{"dtype", "torch_dtype"} {
			if name := ""; in.holds(key) && json.Unmarshal(in.values[key], &name) == nil {
				return typeNamed(strings.TrimPrefix(name, "torch."))
			}
		}
	}
	return ""
}

// typeNamed returns torch's floating-point type of a name, "" for others.
func typeNamed(name string) DType {
	return map[string]DType{"float16": F16, "bfloat16": BF16, "float32": F32}[name]
}

// refuseQuantized refuses what is not read.
func (r *settings) refuseQuantized(a architecture) {
	refuse := func(format string, args ...any) {
		r.problem("%s: %s; use the unquantized model", quantization, fmt.Sprintf(format, args...))
	}
	if r.has("compression_config") {
		refuse("it is called compression_config in this file, which is not supported")
	}
	if !r.has(quantization) {
		return
	}
	q, why := r.quantizer()
	switch _, _, fp8 := r.fp8(); {
	case why != "":
		refuse("%s", why)
	case q != nil && a.kind == "gpt2":
		refuse("%s of this class, whose maps are transposed, is not supported", q.method)
	case q == nil && !fp8 && !(a.mxfp4 && r.mxfp4()):
		method := ""
		if r.inner(quantization).orEmpty().maybe("quant_method", &method); method != "" {
			method = fmt.Sprintf("quant_method is %q; ", method)
		}
		refuse("%s%s", method, readMethods)
	}
}

// notes returns notes for people on how the weights are read.
func (q *quantizer) notes() []string {
	as := "the type of their scales"
	if q.as != "" {
		as = string(q.as) + ", the model's type"
	}
	list := []string{fmt.Sprintf("weights are quantized by %s in the files: here they are multiplied by their scales "+
		"as its own library does it, rounded to %s, and written so", q.method, as)}
	if q.eight {
		list = append(list, "bitsandbytes quantizes activations, too, when it computes with weights of 8 bits: here "+
			"they are not quantized")
	}
	if q.as != BF16 {
		list = append(list, "only weights that are all BF16 take 2 bytes a parameter in memory, others 4: exp merge "+
			"--dtype bf16 writes a folder with rounded weights that takes 2")
	}
	return list
}

// module returns the module of a tensor that only a quantized one has.
func (q *quantizer) module(p place) (layer string, ok bool) {
	switch q.method {
	case gptqMethod, awqMethod:
		return strings.CutSuffix(p.Name, wordsEnd)
	case compressedMethod:
		if layer, ok = strings.CutSuffix(p.Name, packedEnd); ok {
			return layer, true
		}
	case bitsMethod:
		if layer, _, ok = strings.Cut(p.Name, stateEnd); ok {
			return layer, true
		}
	}
	if p.DType == "I8" && (q.method != bitsMethod || q.eight) {
		return strings.CutSuffix(p.Name, ".weight")
	}
	return "", false
}

// widen returns the weight of a module.
func (q *quantizer) widen(m *quantizedModule) (place, error) {
	switch q.method {
	case gptqMethod:
		return q.widenGPTQ(m)
	case awqMethod:
		return q.widenAWQ(m)
	case compressedMethod:
		return q.widenCompressed(m)
	}
	return q.widenBits(m)
}

// looksQuantized reports whether a tensor may be one of a quantized module, of any method.
func (p place) looksQuantized() bool {
	for _, method := range []string{gptqMethod, compressedMethod, bitsMethod} {
		if _, ok := (&quantizer{method: method, eight: true}).module(p); ok {
			return true
		}
	}
	return false
}

// widenQuantized replaces the tensors of quantized modules by their weights. If config.json has another method, which
// is not read, they stay.
func (t *Tensors) widenQuantized() error {
	var q *quantizer
	var raw []byte
	var layers []string
	for _, name := range slices.Sorted(maps.Keys(t.where)) {
		p, ok := t.where[name]
		if !ok || !p.looksQuantized() {
			continue
		}
		if q == nil {
			r, err := settings{}, error(nil)
			raw, err = readSmall(filepath.Join(filepath.Dir(p.file.Name()), configFile), maxConfig)
			if err != nil || json.Unmarshal(raw, &r.values) != nil {
				return nil // a file alone
			}
			if !r.has(quantization) && strings.HasSuffix(name, wordsEnd) {
				return p.unexplained()
			}
			why := ""
			t.dropCacheScales(&r)
			if q, why = r.quantizer(); q == nil || why != "" {
				return nil // ReadConfig says why
			}
		}
		layer, ok := q.module(p)
		if !ok {
			continue
		}
		m := &quantizedModule{t: t, layer: layer, first: p}
		wide, err := q.widen(m)
		if err != nil {
			return err
		}
		for _, used := range m.used {
			delete(t.where, used)
		}
		if err := t.put(p.file.Name(), wide); err != nil {
			return err
		}
		layers = append(layers, layer)
	}
	if q != nil && q.method == gptqMethod {
		return t.dropZeroBiases(raw, layers)
	}
	return nil
}

// unexplained is the error for a quantized module in a folder whose config.json does not say how.
func (p place) unexplained() error {
	return &Error{Op: "read", Path: p.file.Name(), Tensor: p.stored,
		Err: errors.New("belongs to a quantized module, but config.json has no quantization_config"),
		Hint: "if quantize_config.json or quant_config.json says how, copy it into config.json as " +
			"quantization_config, with quant_method gptq or awq"}
}

// quantizedModule has the tensors of a quantized module.
type quantizedModule struct {
	t     *Tensors
	layer string // its name
	first place  // the tensor by which it was found
	used  []string
}

// fault returns an error about a tensor of the module.
func (m *quantizedModule) fault(p place, format string, args ...any) error {
	return &Error{Op: "read", Path: p.file.Name(), Tensor: p.stored, Err: fmt.Errorf(format, args...),
		Hint: "fetch the folder again, with its config.json; or use the unquantized model"}
}

// find returns the tensor of the module with that end of its name, and takes it.
func (m *quantizedModule) find(end string) (place, bool) {
	p, ok := m.t.where[m.layer+end]
	if ok {
		m.used = append(m.used, m.layer+end)
	}
	return p, ok
}

// need returns a tensor that must be there, in one piece, of one of those types and with that number of dimensions.
func (m *quantizedModule) need(end string, dims int, types ...DType) (place, error) {
	p, ok := m.find(end)
	if !ok {
		return p, m.missing(end)
	}
	return p, m.check(p, dims, types...)
}

// missing returns the error for a tensor of the module that is not there.
func (m *quantizedModule) missing(end string) error {
	return m.fault(m.first, "cannot be read without %s, which is missing", m.layer+end)
}

// check checks the type and the number of dimensions of a tensor.
func (m *quantizedModule) check(p place, dims int, types ...DType) error {
	switch {
	case len(p.replicas) > 0:
		return m.fault(p, "is quantized, but not in one piece")
	case !slices.Contains(types, p.DType):
		return m.fault(p, "is %s; only %s can be read", p.kind(), strings.Trim(fmt.Sprint(types), "[]"))
	case len(p.Shape) != dims || p.Len() == 0:
		return m.fault(p, "is %s; it should have %s, and elements", p.kind(), count(dims, "dimension"))
	}
	return nil
}

// fits checks a tensor's shape, which follows from another's.
func (m *quantizedModule) fits(p, from place, shape ...int) error {
	if !slices.Equal(p.Shape, shape) {
		return m.fault(p, "is %s, but %s is %s: its shape should be %v", p.kind(), from.stored, from.kind(), shape)
	}
	return nil
}

// integers returns the values of integers less an offset, or of such two's complements.
func (q *quantizer) integers(offset int, signed bool) *extent.Values {
	key := [2]int{offset, 0}
	if signed {
		key[1] = 1
	}
	if q.tables == nil {
		q.tables = map[[2]int]*extent.Values{}
	}
	if q.tables[key] == nil {
		q.tables[key] = extent.Integers(offset, signed)
	}
	return q.tables[key]
}

// scaleTypes are the types of scales that are read.
func scaleTypes() []DType { return []DType{F16, BF16, F32} }

// weight returns the module's weight [rows,cols] of scaled codes, in the model's type or, if it is not known, the
// scales'.
func (q *quantizer) weight(m *quantizedModule, rows, cols int, s extent.Scaling) (place, error) {
	as := q.as
	if as == "" {
		as = DType(s.ScaleType)
	}
	s.Type = string(as)
	own := m.first
	own.Name, own.DType, own.Shape = m.layer+".weight", as, []int{rows, cols}
	if _, ok := own.size(); !ok {
		return own, m.fault(m.first, "is the weight of a module of %d × %d, which is too large", rows, cols)
	}
	return own.derived(own.Name, own.Shape, func(extent.Extent) extent.Extent { return extent.Scaled(s) }), nil
}

// transposed returns the elements of a matrix [rows,cols], of some bytes each, in the order of its columns.
func transposed(x extent.Extent, rows, cols int, size int64) extent.Extent {
	return extent.Strided(x, 0, size, extent.Loop{N: int64(cols), Stride: size},
		extent.Loop{N: int64(rows), Stride: int64(cols) * size})
}
