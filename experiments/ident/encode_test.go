package ident

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"unicode/utf8"
)

func TestEncodeEqualValues(t *testing.T) {
	type name string
	tests := []struct {
		name string
		a, b any
	}{
		{"widths of integers", int8(5), uint16(5)},
		{"int and int64", 5, int64(5)},
		{"-0 and +0", math.Copysign(0, -1), 0.0},
		{"float32", float32(0.5), 0.5},
		{"named string", name("x"), "x"},
		{"nil list and empty list", []any(nil), []any{}},
		{"typed list", []string{"a", "b"}, []any{"a", "b"}},
		{"array", [2]int{1, 2}, []int64{1, 2}},
		{"byte array", [3]byte{1, 2, 3}, []byte{1, 2, 3}},
		{"digest", Digest{1}, append([]byte{1}, make([]byte, 31)...)},
		{"typed map", map[name]float64{"x": 1}, map[string]any{"x": 1.0}},
		{"nested", map[string][]int{"x": {1}}, map[string]any{"x": []any{int64(1)}}},
	}
	for _, tt := range tests {
		a, errA := Encode(tt.a)
		b, errB := Encode(tt.b)
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: %x (%v) and %x (%v) differ", tt.name, a, errA, b, errB)
		}
	}
}

func TestEncodeDifferentValues(t *testing.T) {
	values := []any{
		nil, true, false, 0, 1, -1, 1.0, 0.0, math.Inf(1), math.Inf(-1), "", "1", "n", []byte{}, []byte("1"),
		[]any{}, []any{nil}, []any{1, 2}, []any{[]any{1}, 2}, []any{[]any{1, 2}}, map[string]any{},
		map[string]any{"": nil}, map[string]any{"a": "b"}, []any{"a", "b"}, map[string]any{"ab": ""}, "true",
	}
	seen := map[string]any{}
	for _, v := range values {
		b, err := Encode(v)
		if err != nil {
			t.Fatalf("Encode(%#v): %v", v, err)
		}
		if other, ok := seen[string(b)]; ok {
			t.Errorf("%#v and %#v have one encoding, %x", v, other, b)
		}
		seen[string(b)] = v
	}
}

func TestEncodeRefuses(t *testing.T) {
	tests := []struct {
		v    any
		want string
	}{
		{math.NaN(), "canonical encoding: NaN has none"},
		{"a\xff", `canonical encoding: "a\xff" is not UTF-8`},
		{uint64(1 << 63), "canonical encoding: 9223372036854775808 does not fit 64 signed bits"},
		{struct{}{}, "canonical encoding: a struct {} has none"},
		{new(int), "canonical encoding: a *int has none"},
		{map[int]string{1: "x"}, "canonical encoding: a map[int]string has none: keys must be strings"},
		{map[string]any{"\xff": 1}, `canonical encoding: "\xff" is not UTF-8`},
		{map[string]any{"train": map[string]any{"lr": []any{1.0, math.NaN()}}}, "canonical encoding of train.lr[1]: NaN has none"},
		{[]any{map[string]any{"x": math.NaN()}}, "canonical encoding of [0].x: NaN has none"},
	}
	for _, tt := range tests {
		_, err := Encode(tt.v)
		var e *EncodeError
		if !errors.As(err, &e) || err.Error() != tt.want {
			t.Errorf("Encode(%v): error %v, want %s", tt.v, err, tt.want)
		}
	}
}

// The order of filling a map does not show.
func TestEncodeMapOrder(t *testing.T) {
	const seed = 5
	r := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		n := r.IntN(20)
		a, b := map[string]any{}, map[string]any{}
		for _, i := range r.Perm(n) {
			a[fmt.Sprint("k", i)] = i
		}
		for _, i := range r.Perm(n) {
			b[fmt.Sprint("k", i)] = i
		}
		ea, _ := Encode(a)
		eb, _ := Encode(b)
		if !bytes.Equal(ea, eb) {
			t.Fatalf("seed %d: encodings of one map of %d keys differ", seed, n)
		}
	}
}

// Encoding is injective: decode reads back the value and uses every byte.
func FuzzEncodeInjective(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte("\x07\x03\x06\x02abc\x05\x00\x07\x01\x04xx"))
	f.Fuzz(func(t *testing.T, program []byte) {
		v, _ := buildValue(program, 4)
		b, err := Encode(v)
		if err != nil {
			t.Fatalf("Encode(%#v): %v", v, err)
		}
		got, rest := decode(t, b)
		if len(rest) != 0 || !reflect.DeepEqual(got, v) {
			t.Fatalf("decode(Encode(%#v)) = %#v with %d bytes left", v, got, len(rest))
		}
	})
}

// buildValue makes a small value of decode's types from the bytes of a program.
func buildValue(p []byte, depth int) (any, []byte) {
	if len(p) == 0 {
		return nil, nil
	}
	op, p := p[0], p[1:]
	take := func(n int) []byte {
		n = min(n, len(p))
		b := p[:n]
		p = p[n:]
		return b
	}
	switch op % 8 {
	case 0:
		return nil, p
	case 1:
		return op&8 != 0, p
	case 2:
		var b [8]byte
		copy(b[:], take(8))
		return int64(binary.BigEndian.Uint64(b[:])), p
	case 3:
		var b [8]byte
		copy(b[:], take(8))
		if f := math.Float64frombits(binary.BigEndian.Uint64(b[:])); f == f && f != 0 {
			return f, p
		}
		return 0.0, p
	case 4:
		s := string(take(int(op / 8)))
		if !utf8.ValidString(s) {
			s = fmt.Sprintf("%x", s)
		}
		return s, p
	case 5:
		return append([]byte{}, take(int(op/8))...), p
	}
	if depth == 0 {
		return "deep", p
	}
	n := int(op/8) % 5
	if op%8 == 6 {
		list := make([]any, n)
		for i := range list {
			list[i], p = buildValue(p, depth-1)
		}
		return list, p
	}
	m := map[string]any{}
	for i := range n {
		m[fmt.Sprintf("%x-%d", take(1), i)], p = buildValue(p, depth-1)
	}
	return m, p
}

// decode reads one value from the front of b; only tests need it.
func decode(t *testing.T, b []byte) (any, []byte) {
	t.Helper()
	kind, b := b[0], b[1:]
	size32 := func() int {
		n := binary.BigEndian.Uint32(b)
		b = b[4:]
		return int(n)
	}
	switch kind {
	case 'n':
		return nil, b
	case 't', 'f':
		return kind == 't', b
	case 'i':
		return int64(binary.BigEndian.Uint64(b)), b[8:]
	case 'd':
		return math.Float64frombits(binary.BigEndian.Uint64(b)), b[8:]
	case 's':
		n := size32()
		return string(b[:n]), b[n:]
	case 'b':
		n := binary.BigEndian.Uint64(b)
		return b[8:][:n:n], b[8+n:]
	case 'l':
		list := make([]any, size32())
		for i := range list {
			list[i], b = decode(t, b)
		}
		return list, b
	case 'm':
		m := map[string]any{}
		last := ""
		for i := range size32() {
			var k, v any
			k, b = decode(t, b)
			v, b = decode(t, b)
			if i > 0 && k.(string) <= last {
				t.Fatalf("key %q after %q", k, last)
			}
			last = k.(string)
			m[last] = v
		}
		return m, b
	}
	t.Fatalf("unknown type byte %q", kind)
	return nil, nil
}

func BenchmarkEncode(b *testing.B) {
	v := map[string]any{}
	for i := range 60 {
		v[fmt.Sprintf("metric/%02d", i)] = float64(i)
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = Append(buf[:0], v)
	}
}
