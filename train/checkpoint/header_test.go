package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// The bytes that the format's own library writes for these tensors, whatever the
// order they are given in.
func TestWriteSafetensorsGolden(t *testing.T) {
	b := source("b", F32, []int{2, 1}, "\x00\x00\x80\x3f\x00\x00\x00\xc0") // 1, -2
	a := source("a<é>", BF16, []int{3}, "\x80\x3f\x00\x40\x40\x40")        // 1, 2, 3
	s := source("s", F32, nil, "\x00\x00\x00\x3f")                         // a scalar, 0.5
	e := source("e", F32, []int{0, 4}, "")
	header := `{"__metadata__":{"format":"pt"}` +
		`,"b":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}` +
		`,"e":{"dtype":"F32","shape":[0,4],"data_offsets":[8,8]}` +
		`,"s":{"dtype":"F32","shape":[],"data_offsets":[8,12]}` +
		`,"a<é>":{"dtype":"BF16","shape":[3],"data_offsets":[12,18]}}` + " "
	if len(header)%8 != 0 {
		t.Fatalf("header of %d bytes is not padded", len(header))
	}
	want := string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header +
		"\x00\x00\x80\x3f\x00\x00\x00\xc0" + "\x00\x00\x00\x3f" + "\x80\x3f\x00\x40\x40\x40"
	for _, order := range [][]Source{{a, b, e, s}, {s, e, b, a}} {
		var got bytes.Buffer
		if err := WriteSafetensors(&got, order); err != nil {
			t.Fatal(err)
		}
		if got.String() != want {
			t.Errorf("got  %q\nwant %q", got.String(), want)
		}
	}
}

func TestWriteSafetensorsPanics(t *testing.T) {
	tests := map[string][]Source{
		"two of a name":  {source("a", F32, []int{0}, ""), source("a", F32, []int{0}, "")},
		"metadata":       {source("__metadata__", F32, []int{0}, "")},
		"too few bytes":  {source("a", F32, []int{1}, "123")},
		"too many bytes": {source("a", F32, []int{1}, "12345")},
	}
	for name, tensors := range tests {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			WriteSafetensors(&bytes.Buffer{}, tensors)
		})
	}
}

// errAfter is a writer that fails once it has taken n bytes.
type errAfter struct{ n int }

var errFull = errors.New("full")

func (w *errAfter) Write(p []byte) (int, error) {
	if len(p) > w.n {
		return w.n, errFull
	}
	w.n -= len(p)
	return len(p), nil
}

func TestWriteSafetensorsReturnsErrors(t *testing.T) {
	tensors := []Source{source("a", "U8", []int{8}, "12345678")}
	var whole bytes.Buffer
	if err := WriteSafetensors(&whole, tensors); err != nil {
		t.Fatal(err)
	}
	for n := range whole.Len() {
		if err := WriteSafetensors(&errAfter{n}, tensors); !errors.Is(err, errFull) {
			t.Fatalf("room for %d of %d bytes: %v, want errFull", n, whole.Len(), err)
		}
	}
}

// Headers that must be refused, and a word of the reason. The data have 8 bytes.
func TestParseHeaderRefuses(t *testing.T) {
	one := func(s string) string { return `{"a":` + s + `}` }
	tests := []struct{ name, header, tensor, want string }{
		{"empty", ``, "", "begin with {"},
		{"not an object", `[]`, "", "begin with {"},
		{"leading space", ` {}`, "", "begin with {"},
		{"not UTF-8", "{\"\xff\":1}", "", "UTF-8"},
		{"cut", `{"a":{"dtype":"F32"`, "a", "EOF"},
		{"cut after a tensor", `{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}`, "", "EOF"},
		{"rest", `{} {}`, "", "after the end"},
		{"padding of zeros", "{}\x00", "", "after the end"},
		{"repeated key", `{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}`, "", "repeated key"},
		{"key twice", one(`{"dtype":"U8","dtype":"U8","shape":[8],"data_offsets":[0,8]}`), "a", "repeated key"},
		{"tensor is a list", one(`[1]`), "a", "object"},
		{"tensor is null", one(`null`), "a", "object"},
		{"unknown key", one(`{"dtype":"U8","shape":[8],"data_offsets":[0,8],"order":"C"}`), "a", `unknown key "order"`},
		{"key in capitals", one(`{"DTYPE":"U8","shape":[8],"data_offsets":[0,8]}`), "a", `unknown key "DTYPE"`},
		{"no dtype", one(`{"shape":[8],"data_offsets":[0,8]}`), "a", "needs dtype"},
		{"dtype null", one(`{"dtype":null,"shape":[8],"data_offsets":[0,8]}`), "a", "needs dtype"},
		{"no shape", one(`{"dtype":"U8","data_offsets":[0,8]}`), "a", "needs dtype"},
		{"no offsets", one(`{"dtype":"U8","shape":[8]}`), "a", "needs dtype"},
		{"one offset", one(`{"dtype":"U8","shape":[8],"data_offsets":[8]}`), "a", "needs dtype"},
		{"three offsets", one(`{"dtype":"U8","shape":[8],"data_offsets":[0,8,8]}`), "a", "needs dtype"},
		{"null offset", one(`{"dtype":"U8","shape":[8],"data_offsets":[null,8]}`), "a", "needs dtype"},
		{"fractional shape", one(`{"dtype":"U8","shape":[8.5],"data_offsets":[0,8]}`), "a", "8.5"},
		{"negative shape", one(`{"dtype":"U8","shape":[-8],"data_offsets":[0,8]}`), "a", "negative"},
		{"null dimension", one(`{"dtype":"U8","shape":[null],"data_offsets":[0,8]}`), "a", "missing dimension"},
		{"endless shape", one(`{"dtype":"U8","shape":[` + strings.Repeat("1,", 600) + `8],"data_offsets":[0,8]}`), "a", "list of"},
		{"unknown dtype", one(`{"dtype":"F31","shape":[2],"data_offsets":[0,8]}`), "a", `unknown dtype "F31"`},
		{"dtype in lower case", one(`{"dtype":"f32","shape":[2],"data_offsets":[0,8]}`), "a", `unknown dtype "f32"`},
		// 2³²·2³²·32 bits is 2⁶⁹; 2³²·2³⁰·2 would wrap to a small number.
		{"overflow", one(`{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}`), "a", "too large"},
		{"overflow to zero", one(`{"dtype":"F64","shape":[4294967296,2147483648,4],"data_offsets":[0,0]}`), "a", "too large"},
		{"half a byte", one(`{"dtype":"F4","shape":[3],"data_offsets":[0,1]}`), "a", "whole number of bytes"},
		{"size is not the shape's", one(`{"dtype":"F32","shape":[3],"data_offsets":[0,8]}`), "a", "F32 [3] takes 12 bytes"},
		{"end before begin", one(`{"dtype":"F32","shape":[2],"data_offsets":[8,0]}`), "a", "data_offsets"},
		{"negative begin", one(`{"dtype":"F32","shape":[4],"data_offsets":[-8,8]}`), "a", "data_offsets"},
		{"beyond the end", one(`{"dtype":"F32","shape":[3],"data_offsets":[0,12]}`), "a", "truncated"},
		{"rest of data", one(`{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`), "", "end at byte 4"},
		{"no tensors", `{}`, "", "end at byte 0"},
		{"hole at the start", one(`{"dtype":"F32","shape":[1],"data_offsets":[4,8]}`), "a", "begins at byte 4"},
		{"hole", `{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}`, "b", "begins at byte 4"},
		{"overlap", `{"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}`, "b", "begins at byte 4"},
		{"same place", `{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}`, "b", "begins at byte 0"},
		{"metadata is a list", `{"__metadata__":[]}`, "", "object"},
		{"metadata of numbers", `{"__metadata__":{"format":1}}`, "", "not a string"},
		{"metadata of null", `{"__metadata__":{"format":null}}`, "", "not a string"},
		{"metadata twice", `{"__metadata__":{},"__metadata__":{}}`, "", "repeated key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			entries, err := parseHeader("some.file", []byte(tt.header), 8)
			var e *Error
			if !errors.As(err, &e) || !errors.Is(err, ErrCorrupt) {
				t.Fatalf("got %v, %v; want an *Error that is ErrCorrupt", entries, err)
			}
			if e.Path != "some.file" || e.Tensor != tt.tensor || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q about tensor %q; want tensor %q and %q", err, e.Tensor, tt.tensor, tt.want)
			}
		})
	}
}

// Files of other writers: any order, no metadata, no padding, spaces inside.
func TestParseHeaderAccepts(t *testing.T) {
	header := ` "b" : {"data_offsets":[2, 8], "dtype":"U8","shape":[2,3]},
		"empty":{"dtype":"I64","shape":[0],"data_offsets":[2,2]},
		"a":{"shape":[1],"data_offsets":[0,2],"dtype":"F16"}}   `
	entries, err := parseHeader("f", []byte("{"+header), 8)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(entries)
	if want := "[{{a F16 [1]} 0 2} {{empty I64 [0]} 2 2} {{b U8 [2 3]} 2 8}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What parseHeader accepts covers the data exactly, and writing the same tensors
// gives a header that it accepts too.
func FuzzParseHeader(f *testing.F) {
	f.Add([]byte(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`), int64(8))
	f.Add([]byte(`{"__metadata__":{"k":"v"},"a":{"dtype":"F4","shape":[2,1],"data_offsets":[0,1]}} `), int64(1))
	f.Add([]byte(`{"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`), int64(0))
	f.Fuzz(func(t *testing.T, raw []byte, dataLen int64) {
		dataLen &= 1<<40 - 1
		entries, err := parseHeader("f", raw, dataLen)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || !errors.Is(err, ErrCorrupt) || e.Path != "f" {
				t.Fatalf("error of an unknown kind: %v", err)
			}
			return
		}
		var at int64
		var sources []Source
		for _, e := range entries {
			if e.begin != at || e.end-e.begin != e.Bytes() {
				t.Fatalf("%+v begins not at %d or has not %d bytes", e, at, e.Bytes())
			}
			at = e.end
			sources = append(sources, Source{Tensor: e.Tensor})
		}
		if at != dataLen {
			t.Fatalf("tensors end at %d of %d", at, dataLen)
		}
		again, err := parseHeader("f", header(inFileOrder(sources))[8:], dataLen)
		if err != nil || len(again) != len(entries) {
			t.Fatalf("written again: %d of %d tensors, %v", len(again), len(entries), err)
		}
	})
}
