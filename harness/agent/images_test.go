package agent

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"exp/harness/dataset"
	"exp/train/rollout"
)

// files are images of problems, by digest.
type files map[string][]byte

func (f files) Describe(encoded []byte) (rollout.Picture, error) { return dataset.Describe(encoded) }
func (f files) Knows(digest string) bool                         { return f[digest] != nil }
func (f files) File(p rollout.Picture) ([]byte, error) {
	if !f.Knows(p.Digest) {
		return nil, errors.New("lost")
	}
	return f[p.Digest], nil
}

// dot returns an image file of a pixel.
func dot(t *testing.T, shade uint8) (rollout.Picture, []byte) {
	t.Helper()
	im := image.NewGray(image.Rect(0, 0, 1, 1))
	im.SetGray(0, 0, color.Gray{Y: shade})
	var b bytes.Buffer
	if err := png.Encode(&b, im); err != nil {
		t.Fatal(err)
	}
	pic, err := dataset.Describe(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return pic, b.Bytes()
}

// Requests show the images of problems where a conversation begins. The same words about another image are another
// conversation.
func TestImagesOfConversations(t *testing.T) {
	a, rawA := dot(t, 10)
	b, rawB := dot(t, 20)
	_, rawC := dot(t, 30)
	o := options()
	o.Images, o.Conversations = files{a.Digest: rawA, b.Digest: rawB}, Last
	var shown []string
	o.Chat = func(list []rollout.Message, tools json.RawMessage, images ...rollout.Picture) ([]int32, string, error) {
		for _, p := range images {
			shown = append(shown, p.Digest)
		}
		return bytesOf(written(list)), written(list), nil
	}
	x := playedBy(t, o, &policy{says: []string{"yes", "no", "so"}})
	user := func(raw []byte) string {
		return `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
			base64.StdEncoding.EncodeToString(raw) + `"}},{"type":"text","text":"what?"}]}`
	}
	const yes, more = `{"role":"assistant","content":"yes"}`, `{"role":"user","content":"sure?"}`
	if got, why := x.chat("", user(rawA)); !strings.Contains(got, `"yes"`) || len(shown) != 1 || shown[0] != a.Digest {
		t.Fatalf("%s, %s; shown %q", got, why, shown)
	}
	if got, why := x.chat("", user(rawA), yes, more); !strings.Contains(got, `"no"`) || len(shown) != 1 {
		t.Errorf("%s, %s; shown %q: the request goes on", got, why, shown)
	}
	if got, why := x.chat("", user(rawB), yes, more); !strings.Contains(got, `"so"`) || len(shown) != 2 || shown[1] != b.Digest {
		t.Errorf("%s, %s; shown %q: the request begins another conversation", got, why, shown)
	}
	for _, tt := range []struct {
		messages []string
		want     string
	}{
		{[]string{user(rawC)}, "messages [0]: content[0]: the image cannot be read: agents may show the images of problems alone, and it is none of them"},
		{[]string{user(rawB), yes, more, `{"role":"assistant","content":"so"}`, user(rawA)}, "messages: an image in a message that continues a conversation"},
	} {
		if code, why := x.chat("", tt.messages...); !strings.HasPrefix(code, "400 ") || !strings.Contains(why, tt.want) {
			t.Errorf("%s %s, want %q", code, why, tt.want)
		}
	}
	blind := playedBy(t, options(), &policy{says: []string{"yes"}})
	if code, why := blind.chat("", user(rawA)); !strings.HasPrefix(code, "400 ") || !strings.Contains(why, "the model reads text alone") {
		t.Errorf("%s %s", code, why)
	}
}

// A program gets the messages of a problem with its images, which it can pass on.
func TestTaskWithImages(t *testing.T) {
	pic, raw := dot(t, 10)
	lost, _ := dot(t, 11)
	o := options()
	o.Images = files{pic.Digest: raw}
	a := New(o)
	defer a.Close()
	parts := rollout.PartList([]json.RawMessage{json.RawMessage(rollout.ImagePart), rollout.TextPart("what?")})
	p := &rollout.Problem{Messages: []rollout.Message{{Role: "system", Content: "s"}, {Role: "user", Parts: parts}}, Images: []rollout.Picture{pic}}
	list, err := a.messagesOf(p)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(list)
	want := `[{"role":"system","content":"s"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
		base64.StdEncoding.EncodeToString(raw) + `"}},{"type":"text","text":"what?"}]}]`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if string(p.Messages[1].Parts) != string(parts) {
		t.Error("the problem has changed")
	}
	p.Images[0] = lost
	if _, err := a.Play(context.Background(), rollout.Episode{Problem: p}); err == nil || !strings.Contains(err.Error(), "image 1: lost") {
		t.Errorf("a lost image: %v", err)
	}
}
