package ident

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"testing/iotest"
)

// SHA-256("abc"), FIPS 180-2 appendix B.1.
const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

func TestDigestText(t *testing.T) {
	d := Sum([]byte("abc"))
	if d.String() != abc || d.Short() != abc[:8] {
		t.Errorf("Sum(abc) = %s, %s, want %s", d, d.Short(), abc)
	}
	for _, s := range []string{abc, strings.ToUpper(abc)} {
		if got, err := ParseDigest(s); err != nil || got != d {
			t.Errorf("ParseDigest(%s) = %s, %v", s, got, err)
		}
	}
	if got, err := ParseDigest(""); err != nil || !got.IsZero() || got.String() != "" || got.Short() != "" {
		t.Errorf("ParseDigest of none = %q, %v", got, err)
	}
	for _, s := range []string{"ba78", abc + "00", strings.Replace(abc, "b", "g", 1)} {
		if _, err := ParseDigest(s); err == nil || !strings.Contains(err.Error(), s) {
			t.Errorf("ParseDigest(%s): error %v, want one that quotes it", s, err)
		}
	}
}

func TestDigestJSON(t *testing.T) {
	type row struct{ D, None Digest }
	b, err := json.Marshal(row{D: Sum([]byte("abc"))})
	if want := `{"D":"` + abc + `","None":""}`; err != nil || string(b) != want {
		t.Fatalf("Marshal = %s, %v, want %s", b, err, want)
	}
	got := row{None: Digest{1}}
	if err := json.Unmarshal(b, &got); err != nil || got.D.String() != abc || !got.None.IsZero() {
		t.Errorf("Unmarshal = %+v, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`{"D":"xyz"}`), &got); err == nil || got.D.String() != abc {
		t.Errorf("Unmarshal of nonsense: %v, left %s", err, got.D)
	}
}

func TestDigestSQL(t *testing.T) {
	for _, d := range []Digest{{}, Sum([]byte("abc"))} {
		v, err := d.Value()
		if err != nil {
			t.Fatal(err)
		}
		got := Digest{9}
		if err := got.Scan(v); err != nil || got != d {
			t.Errorf("Scan(Value(%s)) = %s, %v", d, got, err)
		}
	}
	var d Digest
	for _, src := range []any{[]byte{1, 2}, "text", int64(3)} {
		if err := d.Scan(src); err == nil {
			t.Errorf("Scan(%v) took it", src)
		}
	}
}

func TestSumReader(t *testing.T) {
	d, n, err := SumReader(iotest.OneByteReader(strings.NewReader("abc")))
	if err != nil || n != 3 || d.String() != abc {
		t.Errorf("SumReader = %s, %d, %v", d, n, err)
	}
	if _, _, err := SumReader(iotest.ErrReader(iotest.ErrTimeout)); err != iotest.ErrTimeout {
		t.Errorf("SumReader: error %v, want the reader's", err)
	}
}

func TestSumLE(t *testing.T) {
	// 1.0 is 0x3f800000, -2.0 is 0xc0000000; little-endian.
	if got, want := SumLE([]float32{1, -2}), Sum([]byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}); got != want {
		t.Errorf("SumLE(float32) = %s, want %s", got, want)
	}
	if got, want := SumLE([]int32{-2}), Sum([]byte{0xfe, 0xff, 0xff, 0xff}); got != want {
		t.Errorf("SumLE(int32) = %s, want %s", got, want)
	}
	if SumLE([]float64{0}) == SumLE([]float64{math.Copysign(0, -1)}) {
		t.Error("SumLE does not see the sign of zero")
	}
	// Longer than one block: the same as all bytes at once.
	x := make([]uint16, 10001)
	b := make([]byte, 2*len(x))
	for i := range x {
		x[i] = uint16(i * 7)
		b[2*i], b[2*i+1] = byte(x[i]), byte(x[i]>>8)
	}
	if SumLE(x) != Sum(b) {
		t.Error("SumLE over blocks differs from Sum of the bytes")
	}
	if SumLE([]uint16{}) != Sum(nil) {
		t.Error("SumLE of nothing is not the digest of nothing")
	}
}

func BenchmarkSumLE(b *testing.B) {
	x := make([]float32, 1<<20)
	b.SetBytes(4 << 20)
	for b.Loop() {
		SumLE(x)
	}
}
