package rollout

import (
	"encoding/json"
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
