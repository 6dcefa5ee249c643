package rollout

import (
	"bytes"
	"encoding/json"
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

// part is a part of a message's content.
type part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// parts returns the parts of a message's content, if it is a list of them.
func (m Message) parts() (list []part) {
	if len(m.Parts) == 0 || json.Unmarshal(m.Parts, &list) != nil {
		return nil
	}
	return list
}

// Images returns the number of images that a message shows.
func (m Message) Images() (n int) {
	for _, p := range m.parts() {
		if p.Type == "image" || p.Type == "image_url" {
			n++
		}
	}
	return n
}

// WithoutImages returns messages for models that read text alone: an ImageMark stands for each image.
func WithoutImages(list []Message) []Message {
	out := make([]Message, len(list))
	for i, m := range list {
		out[i] = m
		if m.Images() == 0 {
			continue
		}
		var b strings.Builder
		for _, p := range m.parts() {
			if p.Type == "text" {
				b.WriteString(p.Text)
			} else {
				b.WriteString(ImageMark)
			}
		}
		out[i].Parts, out[i].Content = nil, b.String()
	}
	return out
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
