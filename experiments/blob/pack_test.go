package blob

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"exp/experiments/ident"
)

// sample stands for what the harness packs.
type sample struct {
	Text     string    `json:"text"`
	Tokens   []int32   `json:"tokens"`
	LogProbs []float32 `json:"logprobs"`
}

func randomSample(r *rand.Rand) sample {
	n := r.IntN(200)
	s := sample{Text: strings.Repeat("x<y & ", r.IntN(10)), Tokens: make([]int32, n), LogProbs: make([]float32, n)}
	for i := range n {
		s.Tokens[i] = r.Int32()
		s.LogProbs[i] = float32(-r.ExpFloat64())
	}
	return s
}

func TestPackRoundTrip(t *testing.T) {
	const seed = 17
	r := rand.New(rand.NewPCG(seed, 0))
	d := At(t.TempDir())
	records := make([]sample, 1200) // some 3 MB of JSON
	w := d.NewPackWriter()
	for i := range records {
		records[i] = randomSample(r)
		if err := w.Add(records[i]); err != nil {
			t.Fatal(err)
		}
	}
	refs, packs, err := w.Close()
	if err != nil || len(refs) != len(records) {
		t.Fatalf("Close: %d refs, %v, want %d", len(refs), err, len(records))
	}
	if len(packs) < 2 || len(packs) > 5 {
		t.Errorf("%d packs, want a few of 1 MiB", len(packs))
	}
	for _, p := range packs {
		if err := d.Verify(p.Digest, p.Size); err != nil {
			t.Error(err)
		}
	}
	reader := d.NewPackReader()
	defer reader.Close()
	for _, i := range r.Perm(len(records))[:50] {
		var got sample
		if err := reader.Read(refs[i], &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(records[i], got); diff != "" {
			t.Fatalf("seed %d: record %d (-want +got):\n%s", seed, i, diff)
		}
	}
}

// A pack has the documented format: one zstd frame of JSON lines.
func TestPackIsJSONLines(t *testing.T) {
	d := At(t.TempDir())
	w := d.NewPackWriter()
	for _, v := range []any{map[string]int{"a": 1}, "two\n<lines>", nil} {
		if err := w.Add(v); err != nil {
			t.Fatal(err)
		}
	}
	refs, packs, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Bytes(packs[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	dec, _ := zstd.NewReader(nil)
	defer dec.Close()
	raw, err := dec.DecodeAll(b, nil)
	if want := "{\"a\":1}\n\"two\\n<lines>\"\nnull\n"; err != nil || string(raw) != want {
		t.Errorf("pack holds %q, %v, want %q", raw, err, want)
	}
	want := []Ref{{packs[0].Digest, 0, 7}, {packs[0].Digest, 8, 14}, {packs[0].Digest, 23, 4}}
	if diff := cmp.Diff(want, refs); diff != "" {
		t.Errorf("refs (-want +got):\n%s", diff)
	}
}

func TestPackSameRecordsSamePack(t *testing.T) {
	pack := func() ident.Digest {
		r := rand.New(rand.NewPCG(1, 1))
		w := At(t.TempDir()).NewPackWriter()
		for range 50 {
			w.Add(randomSample(r))
		}
		_, packs, err := w.Close()
		if err != nil || len(packs) != 1 {
			t.Fatalf("%d packs, %v", len(packs), err)
		}
		return packs[0].Digest
	}
	if a, b := pack(), pack(); a != b {
		t.Errorf("packs %s and %s of the same records", a, b)
	}
}

func TestPackRefusesARecord(t *testing.T) {
	d := At(t.TempDir())
	w := d.NewPackWriter()
	w.Add("first")
	var e *json.UnsupportedValueError
	if err := w.Add(math.NaN()); !errors.As(err, &e) || !strings.Contains(err.Error(), "record 1") {
		t.Errorf("NaN: error %v", err)
	}
	if err := w.Add(strings.Repeat("x", maxPack)); err == nil {
		t.Error("took a record that no pack may hold")
	}
	w.Add("second")
	refs, _, err := w.Close()
	if err != nil || len(refs) != 2 {
		t.Fatalf("Close: %d refs, %v, want 2", len(refs), err)
	}
	reader := d.NewPackReader()
	defer reader.Close()
	var got string
	if err := reader.Read(refs[1], &got); err != nil || got != "second" {
		t.Errorf("after refused records: %q, %v", got, err)
	}
}

func TestPackEmpty(t *testing.T) {
	refs, packs, err := At(t.TempDir()).NewPackWriter().Close()
	if len(refs) != 0 || len(packs) != 0 || err != nil {
		t.Errorf("Close of nothing: %v, %v, %v", refs, packs, err)
	}
}

func TestPackReaderRefusesDamage(t *testing.T) {
	d := At(t.TempDir())
	w := d.NewPackWriter()
	w.Add("record")
	refs, _, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	good := refs[0]
	store := func(b []byte) ident.Digest {
		digest, err := d.PutBytes(b)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	bytesOfGood, _ := d.Bytes(good.Pack)
	bomb, _ := zstd.NewWriter(nil)
	tests := map[string]Ref{
		"past the end":     {good.Pack, good.Off, good.Len + 10},
		"before the start": {good.Pack, -1, 2},
		"overflow":         {good.Pack, 1, math.MaxInt64},
		"not a record":     {good.Pack, good.Off + 1, good.Len - 1},
		"not zstd":         {store([]byte("text")), 0, 1},
		"empty":            {store(nil), 0, 1},
		"truncated":        {store(bytesOfGood[:len(bytesOfGood)-5]), good.Off, good.Len},
		"too large":        {store(bomb.EncodeAll(make([]byte, maxPack+1), nil)), 0, 1},
	}
	reader := d.NewPackReader()
	defer reader.Close()
	for name, ref := range tests {
		var v any
		if err := reader.Read(ref, &v); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: read %v, error %v, want ErrCorrupt", name, v, err)
		}
	}
	var got string
	if err := reader.Read(good, &got); err != nil || got != "record" {
		t.Errorf("the good record after bad ones: %q, %v", got, err)
	}
	if err := os.Remove(d.Path(good.Pack)); err != nil {
		t.Fatal(err)
	}
	other := d.NewPackReader()
	defer other.Close()
	if err := other.Read(good, &got); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing pack: error %v", err)
	}
}

func BenchmarkPackAdd(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	s := randomSample(r)
	w := At(b.TempDir()).NewPackWriter()
	for b.Loop() {
		if err := w.Add(s); err != nil {
			b.Fatal(err)
		}
	}
}
