// Package gguf writes GGUF files (version 3), the format in which llama.cpp and programs built on it keep a model: its
// settings and its tokenizer as fields, and then its tensors. It knows no model.
package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Field is a setting. Value is a string, bool, uint32, int32, float32, []string or []int32.
type Field struct {
	Key   string
	Value any
}

// Tensor is a tensor of Shape, slowest axis first, as elsewhere in exp; files have the fastest first. Write writes its
// bytes, Type.Bytes(Shape) of them.
type Tensor struct {
	Name  string
	Type  Type
	Shape []int
	Write func(w io.Writer) error
}

const (
	magic   = "GGUF"
	version = 3
	// alignment of tensors in bytes, the format's default.
	alignment = 32
)

// Types of values in a file.
const (
	kindUint32  = 4
	kindInt32   = 5
	kindFloat32 = 6
	kindBool    = 7
	kindString  = 8
	kindArray   = 9
)

// Write writes a file. It returns an error if a tensor writes another number of bytes than its type and shape have,
// and panics if a value has a type that Field does not list.
func Write(to io.Writer, fields []Field, tensors []Tensor) error {
	w := &writer{to: bufio.NewWriterSize(to, 1<<20)}
	w.bytes([]byte(magic))
	w.u32(version)
	w.u64(uint64(len(tensors)))
	w.u64(uint64(len(fields)))
	for _, f := range fields {
		w.text(f.Key)
		w.value(f.Value)
	}
	at := int64(0)
	for _, t := range tensors {
		w.text(t.Name)
		w.u32(uint32(len(t.Shape)))
		for i := range t.Shape {
			w.u64(uint64(t.Shape[len(t.Shape)-1-i]))
		}
		w.u32(uint32(t.Type))
		w.u64(uint64(at))
		at = aligned(at + t.Type.Bytes(t.Shape))
	}
	w.pad()
	for _, t := range tensors {
		if w.err != nil {
			break
		}
		from := w.n
		if err := t.Write(w); err != nil {
			return err
		}
		if got, want := w.n-from, t.Type.Bytes(t.Shape); got != want && w.err == nil {
			return fmt.Errorf("gguf: tensor %s has %d bytes, want %d", t.Name, got, want)
		}
		w.pad()
	}
	if w.err == nil {
		w.err = w.to.Flush()
	}
	return w.err
}

// aligned returns the first place from n on where a tensor may begin.
func aligned(n int64) int64 { return (n + alignment - 1) / alignment * alignment }

// writer writes little-endian values and keeps the first error.
type writer struct {
	to  *bufio.Writer
	n   int64
	err error
}

// Write implements io.Writer.
func (w *writer) Write(b []byte) (int, error) {
	w.bytes(b)
	return len(b), w.err
}

func (w *writer) bytes(b []byte) {
	if w.err == nil {
		_, w.err = w.to.Write(b)
		w.n += int64(len(b))
	}
}

func (w *writer) u32(x uint32) { w.bytes(binary.LittleEndian.AppendUint32(nil, x)) }
func (w *writer) u64(x uint64) { w.bytes(binary.LittleEndian.AppendUint64(nil, x)) }

func (w *writer) text(s string) {
	w.u64(uint64(len(s)))
	w.bytes([]byte(s))
}

func (w *writer) pad() { w.bytes(make([]byte, aligned(w.n)-w.n)) }

func (w *writer) value(v any) {
	switch x := v.(type) {
	case string:
		w.u32(kindString)
		w.text(x)
	case bool:
		w.u32(kindBool)
		b := byte(0)
		if x {
			b = 1
		}
		w.bytes([]byte{b})
	case uint32:
		w.u32(kindUint32)
		w.u32(x)
	case int32:
		w.u32(kindInt32)
		w.u32(uint32(x))
	case float32:
		w.u32(kindFloat32)
		w.u32(math.Float32bits(x))
	case []string:
		w.u32(kindArray)
		w.u32(kindString)
		w.u64(uint64(len(x)))
		for _, s := range x {
			w.text(s)
		}
	case []int32:
		w.u32(kindArray)
		w.u32(kindInt32)
		w.u64(uint64(len(x)))
		for _, i := range x {
			w.u32(uint32(i))
		}
	default:
		panic(fmt.Sprintf("gguf: a value of type %T", v))
	}
}
