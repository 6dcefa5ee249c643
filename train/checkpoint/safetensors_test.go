package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// threeTensors writes a file with a, b and c of several types.
func threeTensors(t *testing.T) string {
	return writeTensors(t, filepath.Join(t.TempDir(), "x.safetensors"),
		source("b", F32, []int{2, 1}, "\x00\x00\x80\x3f\x00\x00\x00\xc0"),
		source("a", BF16, []int{3}, "\x80\x3f\x00\x40\x40\x40"),
		source("c", "I64", []int{1}, "\x01\x00\x00\x00\x00\x00\x00\x80"))
}

func open(t *testing.T, path string) *Tensors {
	t.Helper()
	x, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

func TestTensorsList(t *testing.T) {
	x := open(t, threeTensors(t))
	var got []string
	for _, tensor := range x.List() {
		got = append(got, tensor.Name+" "+tensor.kind())
	}
	if want := []string{"a BF16 [3]", "b F32 [2,1]", "c I64 [1]"}; !slices.Equal(got, want) {
		t.Errorf("List = %q, want %q", got, want)
	}
	if b, ok := x.Lookup("b"); !ok || b.Bytes() != 8 {
		t.Errorf("Lookup(b) = %v, %v", b, ok)
	}
	if _, ok := x.Lookup("B"); ok {
		t.Error("Lookup found a tensor that is not there")
	}
}

// Sources pass every type on unchanged: the written file has equal bytes.
func TestTensorsSources(t *testing.T) {
	path := threeTensors(t)
	x := open(t, path)
	var again bytes.Buffer
	if err := WriteSafetensors(&again, x.Sources()); err != nil {
		t.Fatal(err)
	}
	if want := readFile(t, path); !bytes.Equal(again.Bytes(), want) {
		t.Errorf("got %q, want %q", again.Bytes(), want)
	}
}

func TestTensorsRead(t *testing.T) {
	le := binary.LittleEndian
	nan := uint32(0x7f800001) // a signalling NaN: kept where types are equal
	path := writeTensors(t, filepath.Join(t.TempDir(), "x.safetensors"),
		source("f32", F32, []int{2}, string(le.AppendUint32(le.AppendUint32(nil, nan), math.Float32bits(-0.0)|1<<31))),
		source("f16", F16, []int{2}, "\x00\x3c\x01\x00"), // 1, 2⁻²⁴
		source("bf16", BF16, []int{2}, "\x80\x3f\x40\x40"),
		source("f64", F64, []int{2}, string(le.AppendUint64(le.AppendUint64(nil, math.Float64bits(0.1)), math.Float64bits(2)))),
		source("i32", I32, []int{2}, "\xff\xff\xff\xff\x07\x00\x00\x00"))
	x := open(t, path)
	single, double := ref.New[float32](), ref.New[float64]()

	got := func(be kernels.Backend, dtype kernels.DType, name string) kernels.Buffer {
		b, err := be.Alloc(dtype, 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Read(be, name, b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	if f := kernels.Elems[float32](got(single, kernels.F32, "f32")); math.Float32bits(f[0]) != nan || math.Float32bits(f[1]) != 1<<31 {
		t.Errorf("f32 = %x, want %x and -0", f, nan)
	}
	for name, want := range map[string][]float32{"f16": {1, 0x1p-24}, "bf16": {1, 3}, "f64": {0.1, 2}} {
		if f := kernels.Elems[float32](got(single, kernels.F32, name)); !slices.Equal(f, want) {
			t.Errorf("%s = %v, want %v", name, f, want)
		}
	}
	if f := kernels.Elems[float64](got(double, kernels.F64, "f64")); f[0] != 0.1 {
		t.Errorf("f64 = %v, want 0.1 unrounded", f)
	}
	if f := kernels.Elems[float64](got(double, kernels.F64, "bf16")); f[1] != 3 {
		t.Errorf("bf16 as f64 = %v, want 3", f)
	}
	if i := kernels.Elems[int32](got(single, kernels.I32, "i32")); !slices.Equal(i, []int32{-1, 7}) {
		t.Errorf("i32 = %v, want [-1 7]", i)
	}
	for _, bad := range []struct {
		name  string
		dtype kernels.DType
	}{{"none", kernels.F32}, {"i32", kernels.F32}, {"f32", kernels.I32}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Read(%s) into %v: no panic", bad.name, bad.dtype)
				}
			}()
			got(single, bad.dtype, bad.name)
		}()
	}
}

// A buffer of several chunks goes to a file and back without changing.
func TestTransferInChunks(t *testing.T) {
	be := refBackend()
	const n = 2*chunk + 3
	from, _ := be.Alloc(kernels.F32, n)
	to, _ := be.Alloc(kernels.F32, n)
	for i := range kernels.Elems[float32](from) {
		kernels.Elems[float32](from)[i] = float32(i) - 0.5
	}
	path := writeTensors(t, filepath.Join(t.TempDir(), "x.safetensors"), NamedBuffer{Name: "x", Data: from}.source(be))
	x := open(t, path)
	if err := x.Read(be, "x", to); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(kernels.Elems[float32](from), kernels.Elems[float32](to)) {
		t.Error("the buffer came back changed")
	}
}

// Cut at any byte, a file is corrupt, and the error names it.
func TestOpenFileTruncatedAnywhere(t *testing.T) {
	path := threeTensors(t)
	whole := readFile(t, path)
	for n := range whole {
		writeFile(t, path, whole[:n])
		_, err := OpenFile(path)
		var e *Error
		if !errors.Is(err, ErrCorrupt) || !errors.As(err, &e) || e.Path != path || e.Hint == "" {
			t.Fatalf("%d of %d bytes: %v, want ErrCorrupt with path and hint", n, len(whole), err)
		}
	}
	writeFile(t, path, append(whole, 0))
	if _, err := OpenFile(path); !errors.Is(err, ErrCorrupt) {
		t.Errorf("one byte more: %v, want ErrCorrupt", err)
	}
}

func TestOpenFileErrors(t *testing.T) {
	dir := t.TempDir()
	length := func(n uint64) []byte { return append(binary.LittleEndian.AppendUint64(nil, n), "{}"...) }
	tests := []struct {
		name, path string
		is         error
		want       string
	}{
		{"absent", filepath.Join(dir, "none"), fs.ErrNotExist, "none"},
		{"a folder", dir, nil, "not a regular file"},
		{"below a file", filepath.Join(writeFile(t, filepath.Join(dir, "f"), nil), "x"), nil, "not a directory"},
		{"empty", filepath.Join(dir, "f"), ErrCorrupt, "0 bytes"},
		{"endless header", writeFile(t, filepath.Join(dir, "endless"), length(1<<63)), ErrCorrupt, "over the format's limit"},
		{"long header", writeFile(t, filepath.Join(dir, "long"), length(3)), ErrCorrupt, "truncated"},
		{"GGUF", writeFile(t, filepath.Join(dir, "model.gguf"), []byte("GGUF\x03\x00\x00\x00\x1a\x00\x00\x00")), nil, "is a GGUF file"},
		{"JSON", writeFile(t, filepath.Join(dir, "config.json"), []byte(`{"model_type": "qwen2"}`)), nil, "is JSON, not weights"},
		{"pickled", writeFile(t, filepath.Join(dir, "pytorch_model.bin"), []byte("PK\x03\x04aaaaaaaaaaaaaaaa")), ErrCorrupt, "is this a safetensors file?"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := OpenFile(tt.path)
			var e *Error
			if !errors.As(err, &e) || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v; want an *Error that is %v and says %q", err, tt.is, tt.want)
			}
		})
	}
}

// A file that is cut while it is open is an error of the tensor that is read, not
// a short tensor.
func TestReadOfAFileThatShrinks(t *testing.T) {
	path := threeTensors(t)
	x := open(t, path)
	if err := os.Truncate(path, int64(len(readFile(t, path)))-1); err != nil {
		t.Fatal(err)
	}
	be := refBackend()
	b, _ := be.Alloc(kernels.F32, 3)
	var e *Error
	if err := x.Read(be, "a", b); !errors.Is(err, ErrCorrupt) || !errors.As(err, &e) || e.Tensor != "a" || e.Path != path {
		t.Errorf("Read: %v, want ErrCorrupt about a", err)
	}
	if err := x.Sources()[0].Raw(io.Discard); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Raw: %v, want ErrCorrupt", err)
	}
}

// An unreadable file is an error with its path. (The superuser may read all.)
func TestOpenFileWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("the superuser has every permission")
	}
	path := threeTensors(t)
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	var e *Error
	if _, err := OpenFile(path); !errors.Is(err, fs.ErrPermission) || !errors.As(err, &e) || e.Hint == "" {
		t.Errorf("got %v, want fs.ErrPermission with a hint", err)
	}
}

func TestTensorsEqual(t *testing.T) {
	x := open(t, writeTensors(t, filepath.Join(t.TempDir(), "x.safetensors"),
		source("a", "U8", []int{4}, "abcd"), source("same", "U8", []int{4}, "abcd"),
		source("other", "U8", []int{4}, "abce"), source("shape", "U8", []int{2, 2}, "abcd"), source("type", "I8", []int{4}, "abcd")))
	for name, want := range map[string]bool{"a": true, "same": true, "other": false, "shape": false, "type": false} {
		if got, err := x.equal("a", name); got != want || err != nil {
			t.Errorf("equal(a, %s) = %v, %v; want %v", name, got, err, want)
		}
	}
}
