package torchsave

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"exp/train/checkpoint/torchfile"
)

func content(dtype string, n int, b []byte) *Content {
	return &Content{DType: dtype, Len: n, Raw: func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}}
}

// Package torchfile reads back the written values; storages are aligned and shared.
func TestRoundTrip(t *testing.T) {
	shared := content("BF16", 6, []byte("abcdefghijkl"))
	args := &Dict{}
	args.Set("layers", 300)
	args.Set("big", 1<<40)
	args.Set("negative", -5)
	args.Set("eps", 1e-6)
	args.Set("flag", true)
	args.Set("none", nil)
	args.Set("dtype", DTypeOf("BF16"))
	namespace := &Object{Class: Global{"argparse", "Namespace"}, State: args}
	root := &Dict{Ordered: true}
	root.Set("args", namespace)
	root.Set("again", namespace)
	root.Set("w", &View{Content: shared, Shape: []int{2, 3}})
	root.Set("part", &View{Content: shared, Offset: 2, Shape: []int{2}, Stride: []int{3}})
	root.Set("empty", &View{Content: content("F32", 0, nil), Shape: []int{0, 4}})
	root.Set("list", List{Tuple{}, Tuple{1}, Tuple{1, 2, 3, 4}, "text"})
	for i := range 300 { // more objects than the short form of the memo has numbers
		root.Set(fmt.Sprint("key", i), i)
	}
	var b bytes.Buffer
	if err := Write(&b, "model", root); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	entries := 0
	for _, f := range z.File {
		if at, err := f.DataOffset(); err != nil || at%storageAlignment != 0 || f.Method != zip.Store {
			t.Errorf("%s: at %d, method %d, %v", f.Name, at, f.Method, err)
		}
		if strings.HasPrefix(f.Name, "model/data/") {
			entries++
		}
	}
	if entries != 2 {
		t.Errorf("%d storages, want 2", entries)
	}
	got, err := torchfile.Open("test", bytes.NewReader(b.Bytes()), 0, int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	layers, _ := got.Get("again").Get("layers").Int()
	big, _ := got.Get("args").Get("big").Int()
	negative, _ := got.Get("args").Get("negative").Int()
	eps, _ := got.Get("args").Get("eps").Float()
	last, _ := got.Get("key299").Int()
	if layers != 300 || big != 1<<40 || negative != -5 || eps != 1e-6 || last != 299 ||
		got.Get("args").Name() != "argparse.Namespace" || got.Get("args").Get("dtype").DType() != "BF16" ||
		got.Get("args").Get("none").Kind() != torchfile.None || got.Get("list").At(2).Len() != 4 {
		t.Errorf("other values: %d %d %d %g %d", layers, big, negative, eps, last)
	}
	for name, want := range map[string]string{"w": "abcdefghijkl", "part": "efkl", "empty": ""} {
		x, err := got.Get(name).Tensor()
		if err != nil {
			t.Fatal(err)
		}
		var raw []byte
		for i := range x.Len() {
			at := x.At + 2*int64(x.Offset+i*x.Strides[len(x.Strides)-1])
			raw = append(raw, b.Bytes()[at:at+2]...)
		}
		if string(raw) != want {
			t.Errorf("%s: %q, want %q", name, raw, want)
		}
	}
	if x, _ := got.Get("w").Tensor(); !slices.Equal(x.Shape, []int{2, 3}) || x.DType != "BF16" {
		t.Errorf("w is %s %v", x.DType, x.Shape)
	}
}

// A value that cannot be written, or a storage of another size, is an error.
func TestRefused(t *testing.T) {
	for name, value := range map[string]any{
		"type":   struct{}{},
		"dtype":  &View{Content: content("F4", 2, []byte("a")), Shape: []int{2}},
		"length": &View{Content: content("F32", 2, []byte("abcd")), Shape: []int{2}},
		"source": &View{Content: &Content{DType: "F32", Len: 1, Raw: func(io.Writer) error { return errors.New("gone") }},
			Shape: []int{1}},
	} {
		if err := Write(io.Discard, "x", value); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
