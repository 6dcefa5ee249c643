package checkpoint

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/train/model"
)

// patterned is a tensor whose elements are all different 16-bit patterns, repeated.
func patterned(name string, dtype DType, shape ...int) Source {
	t := Tensor{Name: name, DType: dtype, Shape: shape}
	return Source{Tensor: t, Raw: func(w io.Writer) error {
		raw := make([]byte, t.Bytes())
		for i := range t.Len() {
			switch h := uint16(i * 40503); dtype {
			case BF16, F16:
				binary.LittleEndian.PutUint16(raw[2*i:], h)
			case F32, I32:
				binary.LittleEndian.PutUint32(raw[4*i:], uint32(h)<<16|uint32(i&0xffff))
			case F64:
				binary.LittleEndian.PutUint64(raw[8*i:], math.Float64bits(float64(i)/3))
			}
		}
		_, err := w.Write(raw)
		return err
	}}
}

// Stream delivers the values of the plain decoder, in pieces that begin on whole rows,
// whatever the types and the number of pieces.
func TestStream(t *testing.T) {
	const rows, width = 4099, 1031 // some pieces, no power of two
	path := filepath.Join(t.TempDir(), "x.safetensors")
	writeTensors(t, path, patterned("bf16", BF16, rows, width), patterned("f16", F16, rows, width), patterned("f32", F32, 701, width),
		patterned("f64", F64, 701, width), patterned("i32", I32, 17), patterned("none", F32, 0, 3), patterned("one", BF16, 1))
	x, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	wants := []Want{{"f16", kernels.F32, 64 * width}, {"bf16", kernels.F32, 64 * width}, {"bf16", kernels.BF16, 64 * width}, {"f32", kernels.F32, 1}, {"f64", kernels.F32, 0},
		{"f64", kernels.F64, 7}, {"f32", kernels.F64, 0}, {"i32", kernels.I32, 0}, {"none", kernels.F32, 0}, {"one", kernels.F32, 9}}
	x.byPlace(wants)
	got := map[Want][]byte{}
	err = x.Stream(wants, func(w Want, piece kernels.Buffer, from int) error {
		size := piece.DType().Size()
		if from*size != len(got[w]) || piece.DType() != w.As || w.Align > 0 && from%w.Align != 0 {
			t.Fatalf("%+v: a piece of %s at %d after %d bytes", w, piece.DType(), from, len(got[w]))
		}
		got[w] = append(got[w], elementBytes(piece)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wants {
		if want := plainly(t, x, w); !slices.Equal(got[w], want) {
			t.Errorf("%+v: %d bytes, want %d others", w, len(got[w]), len(want))
		}
	}
}

// elementBytes is a host buffer as little-endian bytes.
func elementBytes(b kernels.Buffer) []byte {
	var raw []byte
	le := binary.LittleEndian
	for i := range b.Len() {
		switch b.DType() {
		case kernels.BF16:
			raw = le.AppendUint16(raw, kernels.Bits(b)[i])
		case kernels.F64:
			raw = le.AppendUint64(raw, math.Float64bits(kernels.Elems[float64](b)[i]))
		case kernels.I32:
			raw = le.AppendUint32(raw, uint32(kernels.Elems[int32](b)[i]))
		default:
			raw = le.AppendUint32(raw, math.Float32bits(kernels.Elems[float32](b)[i]))
		}
	}
	return raw
}

// plainly reads a tensor in one go and converts it element by element.
func plainly(t *testing.T, x *Tensors, w Want) []byte {
	t.Helper()
	raw, err := io.ReadAll(x.raw(w.Name))
	if err != nil {
		t.Fatal(err)
	}
	p := x.where[w.Name]
	if dtypeNamed(w.As) == p.DType {
		return raw
	}
	narrow := make([]float32, p.Len())
	p.DType.float32s(narrow, raw)
	if w.As == kernels.F32 {
		return elementBytes(kernels.Host(narrow))
	}
	wide := make([]float64, len(narrow))
	for i, f := range narrow {
		wide[i] = float64(f)
	}
	return elementBytes(kernels.Host(wide))
}

func TestStreamErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	writeTensors(t, path, patterned("a", BF16, 5000, 4000))
	x, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	stop, calls := errors.New("stop"), 0
	err = x.Stream([]Want{{Name: "a", As: kernels.F32}}, func(Want, kernels.Buffer, int) error { calls++; return stop })
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("%d calls, then %v; want one and its error", calls, err)
	}
	if err := os.Truncate(path, 1<<20); err != nil {
		t.Fatal(err)
	}
	err = x.Stream([]Want{{Name: "a", As: kernels.BF16}}, func(Want, kernels.Buffer, int) error { return nil })
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("a file that became shorter: %v, want ErrCorrupt", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("BF16 of another type: no panic")
		}
	}()
	x.where["b"] = place{Tensor: Tensor{Name: "b", DType: F32, Shape: []int{1}}}
	_ = x.Stream([]Want{{Name: "b", As: kernels.BF16}}, nil)
}

// The jobs' pieces come in order, small and large, even twice from one tensor; reading can end
// before the last.
func TestReadAhead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	writeTensors(t, path, patterned("w", BF16, 1000, 33), patterned("v", BF16, 77))
	x, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var jobs []job
	for _, p := range []model.Piece{{Name: "w", N: 100}, {Name: "w", From: 100, N: 100}, {Name: "v", N: 1}, {Name: "w", From: 50, N: 3}, {Name: "v", N: 1},
		{Name: "w", From: 999, N: 1}, {Name: "w", N: 1000}, {Name: "w", From: 990, N: 10}, {Name: "w"}} {
		jobs = append(jobs, x.rows(p, kernels.F32))
	}
	whole := map[string][]byte{}
	for _, name := range []string{"w", "v"} {
		whole[name] = plainly(t, x, Want{Name: name, As: kernels.F32})
	}
	for end := range len(jobs) + 1 {
		r := readAhead(jobs)
		for i, j := range jobs[:end] {
			got, err := r.take()
			if err != nil {
				t.Fatal(err)
			}
			if want := whole[j.Name][4*j.from:][:4*j.n]; !slices.Equal(elementBytes(got), want) {
				t.Errorf("job %d of %d: other elements", i, end)
			}
		}
		r.stop()
	}
}

// A backbone that AutoModel saved, and a text model inside another, load like plain ones.
func TestLoadOtherNames(t *testing.T) {
	be := refBackend()
	m := newModel(t, be, toyQwen2, model.Heads{LM: true}, false)
	for _, tt := range []struct {
		name   string
		rename func(string) string
		open   func(dir string) (*Tensors, error)
	}{
		{"AutoModel", func(s string) string { return strings.TrimPrefix(s, "model.") }, OpenFolder},
		{"text of transformers 4", func(s string) string { return "language_model." + s }, OpenTextFolder},
		{"text of transformers 5", func(s string) string { return "model.language_model." + strings.TrimPrefix(s, "model.") }, OpenTextFolder},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sources := Weights(be, m, Plain)
			for i := range sources {
				sources[i].Name = tt.rename(sources[i].Name)
			}
			if strings.HasPrefix(tt.name, "text") {
				sources = append(sources, source("vision_tower.x", "U8", []int{1}, "x"))
			}
			dir := t.TempDir()
			writeTensors(t, filepath.Join(dir, weightsFile), sources...)
			x, err := tt.open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer x.Close()
			got := emptyModel(t, be, toyQwen2, model.Heads{LM: true})
			if err := LoadWeights(be, got, x, Plain); err != nil {
				t.Fatal(err)
			}
			for _, tensor := range m.Tensors() {
				if !slices.Equal(bufferBytes(be, got.View(tensor.Name)), bufferBytes(be, m.View(tensor.Name))) {
					t.Errorf("%s is another", tensor.Name)
				}
			}
		})
	}
}

func TestLoadForeignNames(t *testing.T) {
	be := refBackend()
	dir := t.TempDir()
	writeTensors(t, filepath.Join(dir, weightsFile), source("transformer.wte.weight", F32, []int{1}, "1234"))
	err := LoadFolder(be, emptyModel(t, be, toyQwen2, model.Heads{LM: true}), dir)
	var e *Error
	if !errors.As(err, &e) || e.Tensor != "transformer.wte.weight" || e.Hint == "" {
		t.Errorf("got %v, want an *Error about transformer.wte.weight with a hint", err)
	}
	if _, err := OpenTextFolder(dir); err == nil {
		t.Error("no error for a folder without a text model")
	}
}

func BenchmarkStream(b *testing.B) {
	path := filepath.Join(b.TempDir(), "x.safetensors")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	if err := WriteSafetensors(f, []Source{patterned("w", BF16, 32<<10, 1<<10)}); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	x, err := OpenFile(path)
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	nothing := func(Want, kernels.Buffer, int) error { return nil }
	for name, op := range map[string]func() error{
		"as=bf16": func() error { return x.Stream([]Want{{Name: "w", As: kernels.BF16}}, nothing) },
		"as=f32":  func() error { return x.Stream([]Want{{Name: "w", As: kernels.F32}}, nothing) },
		"digest":  func() error { _, err := x.Digests(nil); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(64 << 20)
			for range b.N {
				if err := op(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
