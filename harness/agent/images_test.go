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
	"slices"
	"strings"
	"testing"

	"exp/harness/dataset"
	"exp/harness/openai"
	"exp/train/rollout"
	"exp/train/toolcall"
)

// shelf has images of two tokens each, with ids from 1000 on. The first ones are the problems'.
type shelf struct {
	own   int
	full  error // of the disk
	list  []rollout.Picture
	files [][]byte
}

func (s *shelf) place(digest string) int {
	return slices.IndexFunc(s.list, func(p rollout.Picture) bool { return p.Digest == digest })
}

// Take implements Images.
func (s *shelf) Take(encoded []byte) (rollout.Picture, error) {
	p, err := dataset.Describe(encoded)
	if err != nil {
		return p, &ImageError{err}
	}
	if err = s.full; err == nil && s.place(p.Digest) < 0 {
		s.list, s.files = append(s.list, p), append(s.files, encoded)
	}
	return p, err
}

// File implements Images.
func (s *shelf) File(p rollout.Picture) ([]byte, error) {
	if at := s.place(p.Digest); at >= 0 {
		return s.files[at], nil
	}
	return nil, errors.New("lost")
}

// Shown implements Images.
func (s *shelf) Shown(id int32) (im rollout.ShownImage, brought, ok bool) {
	if id < 1000 {
		return im, false, false
	}
	n := (id - 1000) / 2
	return rollout.ShownImage{Picture: s.list[n], First: 1000 + 2*n, Tokens: 2}, int(n) >= s.own, true
}

// tokens returns the tokens of images.
func (s *shelf) tokens(images []rollout.Picture) (ids []int32) {
	for _, p := range images {
		first := int32(1000 + 2*s.place(p.Digest))
		ids = append(ids, first, first+1)
	}
	return ids
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

// Requests show the images of problems and others, where a conversation begins and where it goes on. The same words
// about another image are another conversation. Completions name the images that agents bring in the order in which
// they show them, whatever ids their tokens have.
func TestImagesOfConversations(t *testing.T) {
	a, rawA := dot(t, 10)
	b, rawB := dot(t, 20)
	c, rawC := dot(t, 30)
	o := options()
	images := &shelf{own: 1, list: []rollout.Picture{a}, files: [][]byte{rawA}}
	if _, err := images.Take(rawC); err != nil { // another episode brought it
		t.Fatal(err)
	}
	o.Images, o.Conversations = images, All
	o.MaxConversations = 2
	var shown []string
	var earlier []int // images before a reply
	note := func(list []rollout.Picture) []int32 {
		for _, p := range list {
			shown = append(shown, p.Digest)
		}
		return images.tokens(list)
	}
	o.Chat = func(list []rollout.Message, tools json.RawMessage, images ...rollout.Picture) ([]int32, string, error) {
		return append(note(images), bytesOf(written(list))...), written(list), nil
	}
	o.Reply = func(end int32, _ []toolcall.Call, list []rollout.Message, before int, images ...rollout.Picture) ([]int32, error) {
		earlier = append(earlier, before)
		return append(note(images), bytesOf(written(list))...), nil
	}
	x := playedBy(t, o, &policy{says: []string{"yes", "no", "so", "well"}})
	user := func(raw []byte) string {
		return `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
			base64.StdEncoding.EncodeToString(raw) + `"}},{"type":"text","text":"what?"}]}`
	}
	const yes, more = `{"role":"assistant","content":"yes"}`, `{"role":"user","content":"sure?"}`
	if got, why := x.chat("", user(rawA)); !strings.Contains(got, `"yes"`) || len(shown) != 1 || shown[0] != a.Digest {
		t.Fatalf("%s, %s; shown %q", got, why, shown)
	}
	if got, why := x.chat("", user(rawB), yes, more); !strings.Contains(got, `"no"`) || len(shown) != 2 || shown[1] != b.Digest {
		t.Errorf("%s, %s; shown %q: the request begins another conversation", got, why, shown)
	}
	if got, why := x.chat("", user(rawA), yes, more); !strings.Contains(got, `"so"`) || len(shown) != 2 {
		t.Errorf("%s, %s; shown %q: the request goes on", got, why, shown)
	}
	if code, why := x.chat("", user(rawA), user([]byte("no"))); !strings.HasPrefix(code, "400 ") ||
		!strings.Contains(why, "messages [1]: content[0]: the image cannot be read: it is not an image file") {
		t.Errorf("%s %s", code, why)
	}
	got, why := x.chat("", user(rawB), yes, more, `{"role":"assistant","content":"no"}`, user(rawA), user(rawC))
	if !strings.Contains(got, `"well"`) || len(shown) != 4 || shown[2] != a.Digest || shown[3] != c.Digest {
		t.Errorf("%s, %s; shown %q", got, why, shown)
	}
	if !slices.Equal(earlier, []int{1, 1}) { // the problem's, in the first conversation; b, in the second
		t.Errorf("%d images came before", earlier)
	}
	done := x.end()
	list := done.Brought()
	if len(list) != 2 || list[0].Digest != b.Digest || list[0].First != 1004 || list[1].Digest != c.Digest || list[1].First != 1002 {
		t.Fatalf("%+v", list)
	}
	if want := a.String() + c.String() + "[user]"; !strings.Contains(done.Text, want) {
		t.Errorf("%q, want %q in it", done.Text, want)
	}
	named := done.Named()
	if err := named.Check(); err != nil {
		t.Error(err)
	}
	if got := named.Later()[0].Tokens[:3]; !slices.Equal(got, []int32{-2, -1, '['}) {
		t.Errorf("the second conversation begins with %d", got)
	}
	if at := slices.Index(named.Tokens, -4); at < 2 || !slices.Equal(named.Tokens[at-2:at+2], []int32{1000, 1001, -4, -3}) {
		t.Errorf("%d", named.Tokens)
	}
	blind := playedBy(t, options(), &policy{says: []string{"yes"}})
	if code, why := blind.chat("", user(rawA)); !strings.HasPrefix(code, "400 ") || !strings.Contains(why, "the model reads text alone") {
		t.Errorf("%s %s", code, why)
	}
}

// A file that holds no image is refused, and the agent may go on. One that cannot be kept ends the run: where it can be,
// an agent that goes on without it would have other answers.
func TestImagesLost(t *testing.T) {
	_, raw := dot(t, 10)
	o := options()
	o.Images = &shelf{full: errors.New("the disk is full")}
	a := New(o)
	defer a.Close()
	if got := a.bodyLimit(); got != openai.MostImageBody {
		t.Errorf("requests of %d bytes at most", got)
	}
	message := func(raw []byte) string {
		return `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + base64.StdEncoding.EncodeToString(raw) + `"}}]}`
	}
	p := &policy{says: []string{"yes"}}
	if c, err := a.Play(context.Background(), episodeOf(p, "image ask end", message([]byte("no")))); err != nil || c.Text != "yes" {
		t.Errorf("a file without an image: %q, %v", c.Text, err)
	}
	_, err := a.Play(context.Background(), episodeOf(p, "image ask hang", message(raw)))
	if want := "problem p1: an image that the agent brought: the disk is full"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A program gets the messages of a problem with its images, which it can pass on.
func TestTaskWithImages(t *testing.T) {
	pic, raw := dot(t, 10)
	lost, _ := dot(t, 11)
	o := options()
	o.Images = &shelf{list: []rollout.Picture{pic}, files: [][]byte{raw}}
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

func (s *shelf) Film(part json.RawMessage) ([]byte, error) {
	return dataset.PictureFiles().FilmOf(part)
}

func (s *shelf) FilmPart(encoded []byte) (json.RawMessage, error) { return dataset.FilmPart(encoded) }
