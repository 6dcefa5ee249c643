package tokenizer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// A vocabulary is two maps, and the last entry of a text or an id wins.
func TestVocabularyIsTwoMaps(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	v := newVocabulary()
	ids, texts := map[string]int32{}, map[int32]string{}
	for range 5000 {
		text, id := fmt.Sprint(random.IntN(3000)), random.Int32N(3000)
		if err := v.set(text, int64(id)); err != nil {
			t.Fatal(err)
		}
		ids[text], texts[id] = id, text
	}
	if got := maps.Collect(v.byText()); !maps.Equal(got, ids) {
		t.Errorf("%d texts with ids, want %d", len(got), len(ids))
	}
	if got := maps.Collect(v.byID()); !maps.Equal(got, texts) {
		t.Errorf("%d ids with texts, want %d", len(got), len(texts))
	}
	for i := range int32(4000) {
		text := fmt.Sprint(i)
		want, known := ids[text]
		if got, ok := v.id(text); got != want || ok != known {
			t.Errorf("id of %s is %d, %v, want %d, %v", text, got, ok, want, known)
		}
		name, known := texts[i]
		if got, ok := v.of(i); got != name || ok != known {
			t.Errorf("text of %d is %q, %v, want %q, %v", i, got, ok, name, known)
		}
	}
	if v.texts() != len(ids) {
		t.Errorf("%d texts, want %d", v.texts(), len(ids))
	}
}

func TestEmptyVocabulary(t *testing.T) {
	v := newVocabulary()
	if _, ok := v.id("a"); ok || v.size() != 0 {
		t.Errorf("it has the text a, %v, and size %d", ok, v.size())
	}
}

// Keys whose lower halves are equal, as the merges of one token with many others have.
func TestPairsGrow(t *testing.T) {
	p := newPairs[int32](0)
	for a := range int32(2000) {
		p.set(pairKey(a, 7), -1)
		p.set(pairKey(a, 7), a)
	}
	for a := range int32(4000) {
		if v, ok := p.get(pairKey(a, 7)); ok != (a < 2000) || ok && v != a {
			t.Fatalf("pair %d, 7 is %d, %v", a, v, ok)
		}
	}
	if p.used != 2000 || len(p.keys) > 4096 {
		t.Errorf("%d pairs in %d slots", p.used, len(p.keys))
	}
}
