package rollout

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Picture is an image that a problem shows.
type Picture struct {
	Digest string `json:"digest"` // SHA-256 of the file, 64 hexadecimal digits
	Width  int    `json:"width"`  // pixels
	Height int    `json:"height"`
	Format string `json:"format"` // "png", "jpeg", "webp", "gif" or "bmp"
	// Encoded is the file itself, in problems of a suite, which bring their images along; else empty.
	Encoded []byte `json:"encoded,omitempty"`
}

// digestDigits is the length of a digest.
const digestDigits = 64

// ImageMark stands for an image in the text of a user's message, as in the files of verl and LLaMA-Factory.
const ImageMark = "<image>"

// ImagePart is the content part of a message that stands for the problem's next image; it has no other field.
const ImagePart = `{"type":"image"}`

// String names the image in texts for people: <image 448×336 sha256:ab12cd34>.
func (p Picture) String() string {
	const shown = 8
	return fmt.Sprintf("<image %d×%d sha256:%s>", p.Width, p.Height, p.Digest[:min(shown, len(p.Digest))])
}

// Part is a part of a message's content.
type Part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (p Part) isImage() bool { return p.Type == "image" || p.Type == "image_url" }

// ContentParts returns the parts of a message's content; nil if it is not a list of them.
func (m Message) ContentParts() (list []Part) {
	if len(m.Parts) == 0 || json.Unmarshal(m.Parts, &list) != nil {
		return nil
	}
	return list
}

// Images returns the number of images that a message shows.
func (m Message) Images() (n int) {
	for _, p := range m.ContentParts() {
		if p.isImage() {
			n++
		}
	}
	return n
}

// Text returns the text of a message, or the joined texts of its parts, with an ImageMark for each image.
func (m Message) Text() string {
	parts := m.ContentParts()
	if parts == nil {
		return m.Content
	}
	var b strings.Builder
	for _, p := range parts {
		if p.isImage() {
			b.WriteString(ImageMark)
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

// WithoutImages returns messages for models that read text alone: an ImageMark stands for each image.
func WithoutImages(list []Message) []Message {
	out := make([]Message, len(list))
	for i, m := range list {
		if out[i] = m; m.Images() > 0 {
			out[i].Parts, out[i].Content = nil, m.Text()
		}
	}
	return out
}

// Errors of DataURL.
var (
	ErrNotDataURL = errors.New("not a data: URL")
	ErrNotBase64  = errors.New("a data: URL that is not in base64 (data:image/png;base64,…)")
)

// DataURL returns what a data: URL holds (RFC 2397) in base64. Its errors are the two above and base64's.
func DataURL(url string) ([]byte, error) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return nil, ErrNotDataURL
	}
	_, data, ok := strings.Cut(rest, ";base64,")
	if !ok {
		return nil, ErrNotBase64
	}
	return base64.StdEncoding.DecodeString(strings.TrimSpace(data))
}

// Between returns a message whose content is a list of parts, with texts before and after them.
func (m Message) Between(before, after string) Message {
	var list []json.RawMessage
	if json.Unmarshal(m.Parts, &list) != nil {
		return m
	}
	if before != "" {
		list = slices.Insert(list, 0, TextPart(before))
	}
	if after != "" {
		list = append(list, TextPart(after))
	}
	m.Parts = PartList(list)
	return m
}

// MarkedParts cuts a text at each ImageMark, and returns its parts and the number of images among them.
func MarkedParts(text string) (parts []json.RawMessage, images int) {
	for i, piece := range strings.Split(text, ImageMark) {
		if i > 0 {
			images++
			parts = append(parts, json.RawMessage(ImagePart))
		}
		if piece != "" {
			parts = append(parts, TextPart(piece))
		}
	}
	return parts, images
}

// TextPart returns a text as a part of a message's content.
func TextPart(s string) json.RawMessage {
	b, err := text(s)
	if err != nil {
		panic("rollout: " + err.Error()) // a text can be written
	}
	return json.RawMessage(`{"type":"text","text":` + string(b) + `}`)
}

// PartList joins parts to a message's content.
func PartList(list []json.RawMessage) json.RawMessage {
	parts := make([][]byte, len(list))
	for i := range list {
		parts[i] = list[i]
	}
	return slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]"))
}
