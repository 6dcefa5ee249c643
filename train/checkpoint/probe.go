package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"exp/kernels"
	"exp/train/model"
)

// ProbeError is returned when a folder that was written does not compute what the
// model computes. It names the first number that differs.
type ProbeError struct {
	Path        string // of the folder
	What        string // "logits", "log Z" or "values"
	Row, Column int    // logits [R,V], log Z [S,1], values [R,1]
	Got, Want   uint64 // bits, of the folder's model and of the one that was merged
}

func (e *ProbeError) Error() string {
	return fmt.Sprintf("merge %s: %s differ at row %d, column %d: the folder gives bits %#x, the model %#x",
		e.Path, e.What, e.Row, e.Column, e.Got, e.Want)
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

// answer is what a model computes for the probe's batch.
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
