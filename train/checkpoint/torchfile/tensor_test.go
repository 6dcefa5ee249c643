package torchfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/checkpoint/fault"
)

// floats returns n float32 elements 0, 1, 2, …
func floats(n int) []byte {
	b := []byte{}
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, uint32(i)) // bits, not values
	}
	return b
}

// elements reads a tensor of 4-byte elements through a file.
func elements(t *testing.T, x Tensor, archive []byte) []uint32 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.pt")
	if err := os.WriteFile(path, archive, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e := x.Extent(f)
	raw := make([]byte, e.Size())
	if _, err := e.ReadAt(raw, 0); err != nil && len(raw) > 0 {
		t.Fatal(err)
	}
	list := []uint32{}
	for i := 0; i < len(raw); i += 4 {
		list = append(list, binary.LittleEndian.Uint32(raw[i:]))
	}
	return list
}

func TestTensor(t *testing.T) {
	const float = "torch.FloatStorage"
	parameter := func(x string) string {
		return call(global("torch._utils", "_rebuild_parameter"), x, "\x88", global("collections", "OrderedDict")+")R")
	}
	plain := tensor(storage(float, "0", 12), 0, []int{3, 4}, []int{4, 1})
	for _, tt := range []struct {
		name, pickle, dtype string
		shape               []int
		want                []uint32
	}{
		{"plain", plain, "F32", []int{3, 4}, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		{"transposed", tensor(storage(float, "0", 12), 0, []int{4, 3}, []int{1, 4}), "F32", []int{4, 3},
			[]uint32{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}},
		{"slice", tensor(storage(float, "0", 12), 5, []int{2, 2}, []int{4, 1}), "F32", []int{2, 2}, []uint32{5, 6, 9, 10}},
		{"one row", tensor(storage(float, "0", 12), 8, []int{1, 4}, []int{99, 1}), "F32", []int{1, 4},
			[]uint32{8, 9, 10, 11}},
		{"scalar", tensor(storage(float, "0", 12), 7, nil, nil), "F32", []int{}, []uint32{7}},
		{"expanded", tensor(storage(float, "0", 12), 3, []int{3}, []int{0}), "F32", []int{3}, []uint32{3, 3, 3}},
		{"empty", tensor(storage(float, "e", 0), 0, []int{0, 4}, []int{4, 1}), "F32", []int{0, 4}, []uint32{}},
		{"empty behind the end", tensor(storage(float, "0", 12), 99, []int{0}, []int{1}), "F32", []int{0}, []uint32{}},
		{"parameter", parameter(plain), "F32", []int{3, 4}, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		{"tensor with attributes", call(global("torch._tensor", "_rebuild_from_type_v2"),
			global("torch._utils", "_rebuild_tensor_v2"), global("torch.nn", "Parameter"),
			tuple(storage(float, "0", 12), integer(1), ints(2), ints(1), "\x89", "N"), dict()), "F32", []int{2},
			[]uint32{1, 2}},
		{"untyped storage", call(global("torch._utils", "_rebuild_tensor_v3"), storage("torch.storage.UntypedStorage", "0", 48),
			integer(2), ints(2), ints(1), "\x89", "N", global("torch", "uint32")), "U32", []int{2}, []uint32{2, 3}},
		{"integers", tensor(storage("torch.IntStorage", "0", 12), 0, []int{1}, []int{1}), "I32", []int{1}, []uint32{0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			archive := packed(t, pickled(tt.pickle), map[string][]byte{"0": floats(12), "e": nil})
			n, err := open(archive)
			if err != nil {
				t.Fatal(err)
			}
			if !n.IsTensor() {
				t.Errorf("%s is not recognized", show(n))
			}
			x, err := n.Tensor()
			if err != nil {
				t.Fatal(err)
			}
			if x.DType != tt.dtype || !cmp.Equal(x.Shape, tt.shape) {
				t.Errorf("got %s %v, want %s %v", x.DType, x.Shape, tt.dtype, tt.shape)
			}
			if diff := cmp.Diff(tt.want, elements(t, x, archive)); diff != "" {
				t.Errorf("elements (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTensorErrors(t *testing.T) {
	const float = "torch.FloatStorage"
	of := func(size, stride []int) string { return tensor(storage(float, "0", 12), 0, size, stride) }
	rebuild := global("torch._utils", "_rebuild_tensor_v2")
	for _, tt := range []struct{ name, pickle, want string }{
		{"a date", call(global("datetime", "datetime"), "C\x01x"), "is datetime.datetime, not a tensor"},
		{"a number", "K\x01", "is an integer, not a tensor"},
		{"beyond the storage", of([]int{3, 5}, []int{4, 1}), "goes up to element 12 of a storage of 12"},
		{"negative size", of([]int{-1}, []int{1}), "size [-1]"},
		{"negative stride", of([]int{2}, []int{-1}), "strides [-1]"},
		{"overflow of the size", of([]int{1 << 31, 1 << 31, 1 << 31}, []int{0, 0, 0}), "too large"},
		{"overflow of the strides", of([]int{3, 3}, []int{1 << 62, 1 << 62}), "too large"},
		{"expanded a million times", of([]int{1 << 25}, []int{0}), "too often"},
		{"sizes without strides", of([]int{2, 2}, []int{1}), "without an offset, a size and strides"},
		{"negative offset", tensor(storage(float, "0", 12), -1, []int{1}, []int{1}), "without an offset"},
		{"no storage", tensor("N", 0, []int{1}, []int{1}), "without a storage"},
		{"another storage", tensor(storage(float, "9", 12), 0, []int{1}, []int{1}), `no storage "9"`},
		{"another length", tensor(storage(float, "0", 13), 0, []int{1}, []int{1}), "48 bytes, not 13 elements of 4"},
		{"another type", tensor(storage("torch.QInt8Storage", "0", 12), 0, []int{1}, []int{1}), "torch.QInt8Storage"},
		{"another module", tensor(storage("evil.FloatStorage", "0", 12), 0, []int{1}, []int{1}), "evil.FloatStorage"},
		{"not a storage", tensor("K\x01Q", 0, []int{1}, []int{1}), "not to a storage"},
		{"untyped without a type", tensor(storage("torch.storage.UntypedStorage", "0", 48), 0, []int{1}, []int{1}),
			"without an element type"},
		{"an unknown type", call(global("torch._utils", "_rebuild_tensor_v3"), storage("torch.storage.UntypedStorage",
			"0", 48), integer(0), ints(1), ints(1), "\x89", "N", global("torch", "float4")), "torch.float4"},
		{"conjugated", call(rebuild, storage(float, "0", 12), integer(0), ints(1), ints(1), "\x89", "N",
			dict(text("conj"), "\x88")), "conjugated"},
		{"a parameter in a circle", call(global("torch._utils", "_rebuild_parameter"), "N"), "is None, not a tensor"},
		{"no arguments", rebuild + ")R", "without a storage"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, err := open(packed(t, pickled(tt.pickle), map[string][]byte{"0": floats(12)}))
			if err != nil {
				t.Fatal(err)
			}
			x, err := n.Tensor()
			if err == nil {
				t.Fatalf("got %+v", x)
			}
			if e := (*fault.Error)(nil); !errors.As(err, &e) || e.Path != "x.pt" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want %q", err, tt.want)
			}
		})
	}
}

func TestArchiveErrors(t *testing.T) {
	good := packed(t, pickled("N"), map[string][]byte{"0": floats(3)})
	with := func(change func(b []byte) []byte) []byte { return change(bytes.Clone(good)) }
	replace := func(old, new string) []byte { return bytes.ReplaceAll(bytes.Clone(good), []byte(old), []byte(new)) }
	for _, tt := range []struct {
		name    string
		archive []byte
		want    string
	}{
		{"empty", nil, "not an archive of torch.save"},
		{"text", []byte("version https://git-lfs"), `begins with "version "`},
		{"safetensors", []byte("\x10\x00\x00\x00\x00\x00\x00\x00{\"__metadata__\":{}}"), "is in the format of safetensors"},
		{"text and a brace", []byte("\x10\x00\x00\x00\x00\x00\x00{"), "not an archive of torch.save"},
		{"truncated", with(func(b []byte) []byte { return b[:len(b)/2] }), "truncated"},
		{"no pickle", replace("data.pkl", "date.pkl"), "no data.pkl"},
		{"two folders", replace("top/version", "ab/data.pkl"), "two files data.pkl"},
		{"big-endian", replace("little", "biglit"), `byte order is "biglit"`},
		{"old", []byte("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."), "torch before 1.6"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := open(tt.archive)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
