package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"exp/kernels"
	"exp/train/model"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
)

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

// prover compares a model with the folder that was written of it, with tensors in the
// given types.
type prover func(be kernels.Backend, m *model.Model, dir string, as dtypes) error

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

// probe loads the folder into a fresh model and compares what both compute for a
// fixed batch, bit for bit. The architecture comes from the folder too.
//
// Where tensors were written in a narrower type than m's, the comparison is with a model
// whose weights are m's, rounded here.
func probe(be kernels.Backend, m *model.Model, dir string, as dtypes) error {
	want, err := expected(be, m, as)
	if err != nil {
		return err
	}
	c, err := ReadConfig(dir)
	if err != nil {
		return err
	}
	fresh, err := model.New(be, c, m.Heads, false)
	if err != nil {
		return err
	}
	defer fresh.Close()
	if err := LoadFolder(be, fresh, dir); err != nil {
		return err
	}
	if err := LoadHeads(be, fresh, dir); err != nil {
		return err
	}
	got, err := answers(be, fresh)
	if err != nil {
		return err
	}
	for i := range want {
		if err := compare(dir, got[i], want[i]); err != nil {
			return err
		}
	}
	return nil
}

// expected computes what a folder of m's tensors in the given types must compute.
func expected(be kernels.Backend, m *model.Model, as dtypes) ([]answer, error) {
	own := dtypeOf(be.Float())
	if !slices.ContainsFunc(m.Tensors(), func(t model.Tensor) bool { return as(t) != own }) {
		return answers(be, m)
	}
	narrow, err := model.New(be, m.Config, m.Heads, false)
	if err != nil {
		return nil, err
	}
	defer narrow.Close()
	for _, t := range m.Tensors() {
		if err := roundInto(be, narrow.View(t.Name), m.View(t.Name), as(t)); err != nil {
			return nil, fmt.Errorf("probe: %s: %w", t.Name, err)
		}
	}
	narrow.Refresh()
	return answers(be, narrow)
}

// roundInto sets dst to src, rounded to type t and widened again.
func roundInto(be kernels.Backend, dst, src kernels.Buffer, t DType) error {
	if t == dtypeOf(be.Float()) {
		be.Copy(dst, src)
		return nil
	}
	host := make([]float32, min(src.Len(), chunk))
	raw := make([]byte, len(host)*t.bits()/8)
	for lo := 0; lo < src.Len(); lo += len(host) {
		n := min(len(host), src.Len()-lo)
		be.Copy(kernels.Host(host[:n]), src.Slice(lo, lo+n))
		be.Sync()
		if err := t.encodeFloats(raw, host[:n]); err != nil {
			return err
		}
		t.float32s(host[:n], raw)
		be.Copy(dst.Slice(lo, lo+n), kernels.Host(host[:n]))
		be.Sync()
	}
	return nil
}

// answer is a model's output for the probe's batch.
type answer struct {
	what    string
	columns int
	size    int // bytes of a number
	raw     []byte
}

// compare returns a *ProbeError for the first number that differs.
func compare(dir string, got, want answer) error {
	if bytes.Equal(got.raw, want.raw) {
		return nil
	}
	if len(got.raw) != len(want.raw) {
		return &ProbeError{Path: dir, What: "the number of " + want.what, Got: uint64(len(got.raw)), Want: uint64(len(want.raw))}
	}
	i := 0
	for got.raw[i] == want.raw[i] {
		i++
	}
	i /= want.size
	number := func(a answer) uint64 {
		var b [8]byte
		copy(b[:], a.raw[i*a.size:(i+1)*a.size])
		return binary.LittleEndian.Uint64(b[:])
	}
	return &ProbeError{Path: dir, What: want.what, Row: i / want.columns, Column: i % want.columns, Got: number(got), Want: number(want)}
}

// answers computes the logits of the probe's batch, and what the auxiliary heads
// make of it.
func answers(be kernels.Backend, m *model.Model) ([]answer, error) {
	b := probeBatch(m.Config)
	ws, err := model.NewWorkspace(be, m.Config, m.Heads, model.Capacity{Tokens: len(b.Tokens), Sequences: len(b.Prompt)}, model.KeepNothing)
	if err != nil {
		return nil, err
	}
	defer ws.Close()
	V := m.Config.Vocab
	logits, err := be.Alloc(be.Float(), b.Scored()*V)
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	defer be.Free(logits)
	ws.Load(b)
	m.Forward(ws)
	m.Logits(ws, logits)
	list := []answer{hostAnswer(be, "logits", V, logits)}
	if m.Heads.LogZ != nil {
		m.LogZ(ws, false)
		list = append(list, hostAnswer(be, "log Z", 1, ws.LogZ()))
	}
	if m.Heads.Value {
		m.Values(ws)
		list = append(list, hostAnswer(be, "values", 1, ws.Value()))
	}
	return list, nil
}

func hostAnswer(be kernels.Backend, what string, columns int, b kernels.Buffer) answer {
	var raw bytes.Buffer
	if err := writeBuffer(&raw, be, b); err != nil {
		panic("checkpoint: " + err.Error()) // a bytes.Buffer takes everything
	}
	return answer{what: what, columns: columns, size: b.DType().Size(), raw: raw.Bytes()}
}

// probeBatch returns three sequences whose tokens are spread over the vocabulary,
// as long as 24 tokens: long enough that positions and attention matter.
func probeBatch(c model.Config) model.Batch {
	b := model.Batch{Offsets: []int32{0}}
	spread := uint32(math.Round(float64(c.Vocab) * (math.Sqrt(5) - 1) / 2)) // golden section
	next := uint32(1)
	for _, n := range []int{24, 11, 2} {
		n = max(2, min(n, c.MaxPositions))
		for range n {
			next += spread
			b.Tokens = append(b.Tokens, int32(next%uint32(c.Vocab)))
		}
		b.Offsets = append(b.Offsets, int32(len(b.Tokens)))
		b.Prompt = append(b.Prompt, int32(1+n/4))
	}
	return b
}

// Auxiliary selects the value head and the log Z head.
func Auxiliary(t model.Tensor) bool { return t.Auxiliary() }

// LoadFolder sets the plain parameters of m from the weights of a Hugging Face
// folder, as LoadWeights does. Auxiliary heads keep what they have.
func LoadFolder(be kernels.Backend, m *model.Model, dir string) error {
	t, err := OpenFolder(dir)
	if err != nil {
		return err
	}
	return errors.Join(LoadWeights(be, m, t, Plain), t.Close())
}

// LoadHeads sets the auxiliary heads of m from the files that Merge wrote to dir.
func LoadHeads(be kernels.Backend, m *model.Model, dir string) error {
	files := headFiles()
	for _, head := range heads(m) {
		path := filepath.Join(dir, files[head])
		t, err := OpenFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return &Error{Op: "read", Path: path, Err: err, Hint: "the folder was merged from a model without this head"}
		}
		if err != nil {
			return err
		}
		err = LoadWeights(be, m, t, func(t model.Tensor) bool { return headOf(t.Name) == head })
		if err := errors.Join(err, t.Close()); err != nil {
			return err
		}
	}
	return nil
}

// heads returns the auxiliary heads of m, in order.
func heads(m *model.Model) []string {
	found := map[string]bool{}
	for _, b := range Buffers(m, Auxiliary) {
		found[headOf(b.Name)] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// WriteAdapters writes the adapters of m as folder dir in PEFT's layout
// (adapter_config.json, adapter_model.safetensors) and returns its files. base is what
// PEFT calls base_model_name_or_path. An existing dir is replaced.
func WriteAdapters(be kernels.Backend, m *model.Model, dir, base string) ([]FileInfo, error) {
	return writeAdapters(m.Heads.Adapters, Weights(be, m, Plain), dir, base,
		slices.Sorted(slices.Values(m.Heads.Adapters.Targets)))
}
