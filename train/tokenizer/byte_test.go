package tokenizer

import (
	"slices"
	"testing"
)

func TestByte(t *testing.T) {
	var b Byte
	for text, want := range map[string][]int32{
		"":                   {},
		"a÷\n":               {'a', 0xC3, 0xB7, '\n'},
		"\xff\x00":           {0xFF, 0},
		"a" + EndToken + "b": {'a', 256, 'b'},
	} {
		got, err := b.Encode(text, Options{Added: true})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Encode(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	if got, _ := b.Encode(EndToken, Options{}); len(got) != len(EndToken) {
		t.Errorf("without Added the end token is %d tokens, want %d", len(got), len(EndToken))
	}
	ids := []int32{'a', 256, 0xE2, 0x82, 'b', 999}
	if got, want := b.Decode(ids), "a\uFFFDb"; got != want {
		t.Errorf("Decode = %q, want %q", got, want)
	}
	if got, want := b.DecodeAll(ids), "a"+EndToken+"\uFFFDb"; got != want {
		t.Errorf("DecodeAll = %q, want %q", got, want)
	}
}

// Pipeline and ReadFiles read Byte's files as a tokenizer equal to Byte.
func TestByteFiles(t *testing.T) {
	files := Byte{}.Files()
	tok, err := ReadFiles(files)
	if err != nil || tok.Description() != "byte/1" {
		t.Fatalf("read back as %v, %v", tok, err)
	}
	s, err := readSettings(files)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPipeline(files["tokenizer.json"], s)
	if err != nil {
		t.Fatal(err)
	}
	text := "a÷ 日本\n\t" + EndToken + "\x00~"
	for _, o := range []Options{{}, {Added: true}} {
		want, _ := Byte{}.Encode(text, o)
		if got, err := p.Encode(text, o); err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v: %v, %v, want %v", o, got, err, want)
		}
	}
	if got, want := p.EndIDs(), (Byte{}).EndIDs(); !slices.Equal(got, want) {
		t.Errorf("EndIDs = %v, want %v", got, want)
	}
	for id := range int32(257) {
		if got := p.Token(id); got != (Byte{}).Token(id) || string(p.Piece(id)) != string(Byte{}.Piece(id)) {
			t.Errorf("token %d: %q, %q", id, got, p.Piece(id))
		}
		if back, ok := (Byte{}).TokenID(p.Token(id)); !ok || back != id {
			t.Errorf("TokenID(%q) = %d, %v, want %d", p.Token(id), back, ok, id)
		}
	}
}
