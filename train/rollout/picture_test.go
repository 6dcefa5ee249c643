package rollout

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Messages with images become text with marks, and take texts around them.
func TestMessageWithImages(t *testing.T) {
	m := Message{Role: "user", Parts: json.RawMessage(`[{"type":"image"},{"type":"text","text":"a <b"},{"type":"image"}]`)}
	if m.Images() != 2 {
		t.Errorf("%d images, want 2", m.Images())
	}
	plain := Message{Role: "system", Content: "c"}
	got := WithoutImages([]Message{plain, m})
	want := []Message{plain, {Role: "user", Content: "<image>a <b<image>"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	around := m.Between("x", " & y")
	if want := `[{"type":"text","text":"x"},{"type":"image"},{"type":"text","text":"a <b"},{"type":"image"},{"type":"text","text":" & y"}]`; string(around.Parts) != want {
		t.Errorf("%s, want %s", around.Parts, want)
	}
	if string(m.Between("", "").Parts) != string(m.Parts) {
		t.Error("nothing around a message changed it")
	}
}

func TestPictureString(t *testing.T) {
	p := Picture{Digest: "ab12cd34ef", Width: 448, Height: 336}
	if got, want := p.String(), "<image 448×336 sha256:ab12cd34>"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Texts and data: URLs that show images.
func TestTextAndDataURL(t *testing.T) {
	for parts, want := range map[string]string{
		`[{"type":"text","text":"a "},{"type":"image"},{"type":"image_url","image_url":{}},{"type":"text","text":"b"}]`: "a <image><image>b",
		`null`: "", `{"type":"text"}`: "",
	} {
		if got := (Message{Role: "user", Parts: json.RawMessage(parts)}).Text(); got != want {
			t.Errorf("%s: %q", parts, got)
		}
	}
	if got := (Message{Content: "a"}).Text(); got != "a" {
		t.Errorf("a text: %q", got)
	}
	marked, n := MarkedParts("<image>a<image>")
	if n != 2 || string(PartList(marked)) != `[{"type":"image"},{"type":"text","text":"a"},{"type":"image"}]` {
		t.Errorf("%s, %d", PartList(marked), n)
	}
	for url, want := range map[string]error{"data:image/png;base64,QUI=": nil, "data:image/png;base64, QUI=\n": nil, "http://x": ErrNotDataURL,
		"data:image/png,QUI=": ErrNotBase64, "data:;base64,Q": base64.CorruptInputError(0)} {
		b, err := DataURL(url)
		if !errors.Is(err, want) || err == nil && string(b) != "AB" {
			t.Errorf("%s: %q, %v, want %v", url, b, err, want)
		}
	}
}
