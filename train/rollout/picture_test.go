package rollout

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
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
	if !slices.Equal(n, []string{ImageMark, ImageMark}) || string(PartList(marked)) != `[{"type":"image"},{"type":"text","text":"a"},{"type":"image"}]` {
		t.Errorf("%s, %v", PartList(marked), n)
	}
	for url, want := range map[string]error{"data:image/png;base64,QUI=": nil, "data:image/png;base64, QUI=\n": nil, "http://x": ErrNotDataURL,
		"data:image/png,QUI=": ErrNotBase64, "data:;base64,Q": base64.CorruptInputError(0)} {
		b, err := DataURL(url)
		if !errors.Is(err, want) || err == nil && string(b) != "AB" {
			t.Errorf("%s: %q, %v, want %v", url, b, err, want)
		}
	}
}

// Videos have marks, parts and names of their own, and are counted with images.
func TestMessageWithVideos(t *testing.T) {
	m := Message{Role: "user", Parts: json.RawMessage(`[{"type":"video"},{"type":"text","text":"a"},{"type":"image"},{"type":"video_url"}]`)}
	if got := m.Text(); m.Images() != 3 || got != "<video>a<image><video>" {
		t.Errorf("%d pictures in %q", m.Images(), got)
	}
	parts, found := MarkedParts("x<video><image>y", ImageMark, VideoMark)
	want := `[{"type":"text","text":"x"},{"type":"video"},{"type":"image"},{"type":"text","text":"y"}]`
	if got := string(PartList(parts)); got != want || !slices.Equal(found, []string{VideoMark, ImageMark}) {
		t.Errorf("%s, %v", got, found)
	}
	if parts, found := MarkedParts("x<video>"); len(parts) != 1 || found != nil {
		t.Errorf("without videos: %s, %v", parts, found)
	}
	video, image := Picture{Digest: "ab12cd34ef", Width: 448, Height: 336, Format: VideoFormat, Frames: 16}, Picture{Format: "png"}
	if got, want := video.String(), "<video 448×336, 16 frames, sha256:ab12cd34>"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, tt := range []struct {
		list []Picture
		want []string
	}{{nil, nil}, {[]Picture{image}, []string{ImageMark}}, {[]Picture{video}, []string{VideoMark}},
		{[]Picture{video, image, video}, []string{ImageMark, VideoMark}}} {
		if got := Marks(tt.list); !slices.Equal(got, tt.want) {
			t.Errorf("marks of %v: %v", tt.list, got)
		}
	}
	if string(video.Part()) != VideoPart || string(image.Part()) != ImagePart {
		t.Error("parts of pictures")
	}
}
