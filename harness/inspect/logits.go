package inspect

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"exp/kernels"
	"exp/train/checkpoint"
	"exp/train/model"
)

// maxSequences limits the size of the file of token ids.
const maxSequences = 256 << 20

// ReadSequences reads {"sequences": [[ids], …]}.
func ReadSequences(r io.Reader) ([][]int32, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxSequences+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxSequences {
		return nil, fmt.Errorf("over %d MiB of token ids", maxSequences>>20)
	}
	var v struct {
		Sequences []tokenIDs `json:"sequences"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf(`not {"sequences": [[ids], …]}: %w`, err)
	}
	if len(v.Sequences) == 0 {
		return nil, errors.New(`not {"sequences": [[ids], …]}: it holds no sequences`)
	}
	list := make([][]int32, len(v.Sequences))
	for i, ids := range v.Sequences {
		list[i] = ids
	}
	return list, nil
}

// tokenIDs is a list of ids without null, which encoding/json would read as 0.
type tokenIDs []int32

// UnmarshalJSON implements json.Unmarshaler.
func (t *tokenIDs) UnmarshalJSON(raw []byte) error {
	if bytes.Contains(raw, []byte("null")) {
		return errors.New("null is not a token id")
	}
	return json.Unmarshal(raw, (*[]int32)(t))
}

// Logits writes the float32 logits of sequences of token ids as a safetensors file:
// tensor logits.I [T,V] for sequence I of T tokens; row t holds the logits after token
// t. It loads the folder's model on be. Memory: the model, the activations of the
// longest sequence, and a few rows of logits.
//
// If rotary frequencies depend on the sequence length, each sequence is computed as a
// whole, up to the length the model was made for.
func Logits(be kernels.Backend, f Folder, sequences [][]int32, w io.Writer) error {
	c, err := f.Config()
	if err != nil {
		return err
	}
	if c.Rope.FixedLength() > 0 {
		c.MaxPositions = max(c.MaxPositions, int(c.Rope.Factor*float64(c.Rope.Original)))
	}
	longest, err := check(c, sequences)
	if err != nil {
		return err
	}
	if !c.Learned {
		c.MaxPositions = longest // the tables need not be longer
	}
	p, err := open(be, c, f)
	if err != nil {
		return err
	}
	defer p.close()
	sources := make([]checkpoint.Source, len(sequences))
	for i, ids := range sequences {
		sources[i] = checkpoint.Source{
			Tensor: checkpoint.Tensor{Name: fmt.Sprintf("logits.%d", i), DType: checkpoint.F32,
				Shape: []int{len(ids), c.Vocab}},
			Raw: func(w io.Writer) error { return p.write(w, ids) },
		}
	}
	return checkpoint.WriteSafetensors(w, sources)
}

// check returns the length of the longest sequence; the error names every sequence that
// the model cannot compute.
func check(c model.Config, sequences [][]int32) (longest int, err error) {
	const most = 10
	var errs []error
	for i, ids := range sequences {
		longest = max(longest, len(ids))
		bad := slices.IndexFunc(ids, func(id int32) bool { return id < 0 || int(id) >= c.Vocab })
		switch {
		case len(ids) == 0:
			errs = append(errs, fmt.Errorf("sequence %d is empty", i))
		case len(ids) > c.MaxPositions:
			errs = append(errs, fmt.Errorf("sequence %d has %d tokens, the model has %d positions", i, len(ids),
				c.MaxPositions))
		case bad >= 0:
			errs = append(errs, fmt.Errorf("sequence %d: token %d is %d, ids go from 0 to %d", i, bad,
				ids[bad], c.Vocab-1))
		}
	}
	if len(errs) > most {
		errs = append(errs[:most], fmt.Errorf("and %d more", len(errs)-most))
	}
	if len(errs) > 0 {
		return 0, &SequenceError{errors.Join(errs...)}
	}
	return longest, nil
}

// SequenceError says which sequences the model cannot compute, and why.
type SequenceError struct{ Err error }

func (e *SequenceError) Error() string { return e.Err.Error() }

// Unwrap returns e.Err.
func (e *SequenceError) Unwrap() error { return e.Err }

// prober computes the logits of one sequence at a time.
type prober struct {
	be   kernels.Backend
	m    *model.Model
	ws   *model.Workspace
	rows kernels.Buffer // [some,V] logits
	host []float32
	raw  []byte
}

// rowBytes is about how much device memory the logits take.
const rowBytes = 32 << 20

func open(be kernels.Backend, c model.Config, f Folder) (*prober, error) {
	m, err := f.load(be, c)
	if err != nil {
		if m != nil {
			m.Close()
		}
		return nil, err
	}
	p := &prober{be: be, m: m}
	p.ws, err = model.NewWorkspace(be, c, m.Heads, model.Capacity{Tokens: c.MaxPositions, Sequences: 1},
		model.KeepNothing)
	if err == nil {
		p.rows, err = be.Alloc(be.Float(), min(max(1, rowBytes/4/c.Vocab), c.MaxPositions)*c.Vocab)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	p.host, p.raw = make([]float32, p.rows.Len()), make([]byte, 4*p.rows.Len())
	return p, nil
}

func (p *prober) close() {
	if !p.rows.Empty() {
		p.be.Free(p.rows)
	}
	if p.ws != nil {
		p.ws.Close()
	}
	p.m.Close()
}

// write writes the logits of a sequence, little-endian.
func (p *prober) write(w io.Writer, ids []int32) error {
	if p.m.Config.Rope.FixedLength() > 0 {
		p.m.SetLength(len(ids))
	}
	V := p.m.Config.Vocab
	p.ws.Load(model.Batch{Tokens: ids, Offsets: []int32{0, int32(len(ids))}, Prompt: []int32{int32(len(ids))}})
	p.m.Forward(p.ws)
	step := p.rows.Len() / V
	for lo := 0; lo < len(ids); lo += step {
		n := min(step, len(ids)-lo)
		out := p.rows.Slice(0, n*V)
		p.m.AllLogits(p.ws, lo, n, out)
		p.be.Copy(kernels.Host(p.host[:n*V]), out)
		p.be.Sync()
		for i, f := range p.host[:n*V] {
			binary.LittleEndian.PutUint32(p.raw[4*i:], math.Float32bits(f))
		}
		if _, err := w.Write(p.raw[:4*n*V]); err != nil {
			return err
		}
	}
	return nil
}
