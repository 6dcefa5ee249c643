package gguf

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math"
	"strings"
	"testing"
)

// A file byte by byte, as the format's description has it.
func TestWrite(t *testing.T) {
	bytesOf := func(b []byte) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := w.Write(b)
			return err
		}
	}
	var got bytes.Buffer
	err := Write(&got, []Field{{"s", "ä"}, {"b", true}, {"c", false}, {"u", uint32(7)}, {"i", int32(-2)}, {"f", float32(1.5)},
		{"l", []string{"x", ""}}, {"n", []int32{1, -1}}},
		[]Tensor{{"t", F32, []int{3}, bytesOf(make([]byte, 12))}, {"m", BF16, []int{2, 4}, bytesOf([]byte("0123456789abcdef"))}})
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	le := func(list ...any) {
		for _, x := range list {
			if s, ok := x.(string); ok {
				want.WriteString(s)
				continue
			}
			_ = binary.Write(&want, binary.LittleEndian, x)
		}
	}
	key := func(name string, kind uint32) { le(uint64(len(name)), name, kind) }
	le("GGUF", uint32(3), uint64(2), uint64(8))
	key("s", 8)
	le(uint64(2), "ä")
	key("b", 7)
	le(byte(1))
	key("c", 7)
	le(byte(0))
	key("u", 4)
	le(uint32(7))
	key("i", 5)
	le(int32(-2))
	key("f", 6)
	le(float32(1.5))
	key("l", 9)
	le(uint32(8), uint64(2), uint64(1), "x", uint64(0))
	key("n", 9)
	le(uint32(5), uint64(2), int32(1), int32(-1))
	le(uint64(1), "t", uint32(1), uint64(3), uint32(0), uint64(0))
	le(uint64(1), "m", uint32(2), uint64(4), uint64(2), uint32(30), uint64(32)) // columns first; the next multiple of 32
	want.Write(make([]byte, 31-(want.Len()-1)%32))
	want.Write(make([]byte, 32))
	want.WriteString("0123456789abcdef" + strings.Repeat("\x00", 16))
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("got\n%swant\n%s", hex.Dump(got.Bytes()), hex.Dump(want.Bytes()))
	}
	err = Write(io.Discard, nil, []Tensor{{"t", F32, []int{3}, bytesOf(make([]byte, 8))}})
	if err == nil || err.Error() != "gguf: tensor t has 8 bytes, want 12" {
		t.Errorf("too few bytes: %v", err)
	}
	if err = Write(&full{40}, []Field{{"s", strings.Repeat("long", 1<<20)}}, nil); err != io.ErrShortWrite {
		t.Errorf("a full disk: %v", err)
	}
}

// full takes so many bytes.
type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	if len(b) > f.left {
		return f.left, io.ErrShortWrite
	}
	f.left -= len(b)
	return len(b), nil
}

// A block by hand: the greatest value, -254, has -127; d is 2.
func TestBlock(t *testing.T) {
	x := make([]float32, 2*Block)
	x[0], x[1], x[2], x[3], x[4] = -254, 2, 3, -5, 0.9
	b, err := Q8.Append([]byte("before"), x)
	if err != nil {
		t.Fatal(err)
	}
	want := "before" + "\x00\x40" + "\x81\x01\x02\xfd\x00" + strings.Repeat("\x00", 27) + strings.Repeat("\x00", 34)
	if string(b) != want {
		t.Errorf("% x, want % x", b, want)
	}
	// llama.cpp multiplies with 1/d, rounded: 58, where 127/greatest gives 59.
	y := make([]float32, Block)
	y[0], y[1] = 2.234022855758667, 1.0290577411651611
	if b, err := Q8.Append(nil, y); err != nil || b[2] != 127 || b[3] != 58 {
		t.Errorf("% x, %v", b, err)
	}
	if n := Q8.Bytes([]int{3, 64}); n != 3*2*34 {
		t.Errorf("%d bytes", n)
	}
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(-1)), 1e8} {
		x[7] = bad
		if _, err := Q8.Append(nil, x); err == nil {
			t.Errorf("no error for %v", bad)
		}
	}
	if _, err := F16.Append(nil, []float32{1e6}); err == nil || !strings.Contains(err.Error(), "1e+06 is beyond F16") {
		t.Errorf("F16: %v", err)
	}
	for of, want := range map[Type]string{F32: "\x00\x00\x80\x3f\x00\x00\x00\xc0", F16: "\x00\x3c\x00\xc0", BF16: "\x80\x3f\x00\xc0"} {
		if b, err := of.Append(nil, []float32{1, -2}); err != nil || string(b) != want || of.Bytes([]int{1, 2}) != int64(len(want)) {
			t.Errorf("%d: % x, %v", of, b, err)
		}
	}
	if Q8.Fits(48) || !Q8.Fits(96) || !F16.Fits(48) {
		t.Error("rows of 48 elements have no whole blocks")
	}
}
