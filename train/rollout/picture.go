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

// Picture is an image or a video that a problem shows.
type Picture struct {
	Digest string `json:"digest"` // SHA-256 of the file, 64 hexadecimal digits
	Width  int    `json:"width"`  // pixels
	Height int    `json:"height"`
	Format string `json:"format"` // "png", "jpeg", "webp", "gif" or "bmp"; VideoFormat
	// Frames, of a video, are as many as it has; 0: an image. Rate is how many follow each other in a second, 0 as
	// many as the run reads. Sampled says that the run reads them all.
	Frames  int     `json:"frames,omitempty"`
	Rate    float64 `json:"rate,omitempty"`
	Sampled bool    `json:"sampled,omitempty"`
	// Encoded is the file itself, in problems of a suite, which bring their images along; else empty.
	Encoded []byte `json:"encoded,omitempty"`
}

// digestDigits is the length of a digest.
const digestDigits = 64

// VideoFormat is the format of files with all frames of a video (package picture).
const VideoFormat = "video"

// Video reports whether the picture is a video.
func (p Picture) Video() bool { return p.Format == VideoFormat }

// ImageMark and VideoMark stand for an image and a video in the text of a user's message, as in the files of verl and
// LLaMA-Factory.
const (
	ImageMark = "<image>"
	VideoMark = "<video>"
)

// ImagePart and VideoPart are the content parts of a message that stand for the problem's next picture, which is an
// image or a video; they have no other field.
const (
	ImagePart = `{"type":"image"}`
	VideoPart = `{"type":"video"}`
)

// String names the picture in texts for people: <image 448×336 sha256:ab12cd34>, or
// <video 448×336, 16 frames, sha256:ab12cd34>.
func (p Picture) String() string {
	const shown = 8
	digest := p.Digest[:min(shown, len(p.Digest))]
	if p.Video() {
		return fmt.Sprintf("<video %d×%d, %d frames, sha256:%s>", p.Width, p.Height, p.Frames, digest)
	}
	return fmt.Sprintf("<image %d×%d sha256:%s>", p.Width, p.Height, digest)
}

// Part returns the content part that stands for the picture.
func (p Picture) Part() json.RawMessage {
	if p.Video() {
		return json.RawMessage(VideoPart)
	}
	return json.RawMessage(ImagePart)
}

// Part is a part of a message's content.
type Part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (p Part) isImage() bool { return p.Type == "image" || p.Type == "image_url" }
func (p Part) isVideo() bool { return p.Type == "video" || p.Type == "video_url" }

// ContentParts returns the parts of a message's content; nil if it is not a list of them.
func (m Message) ContentParts() (list []Part) {
	if len(m.Parts) == 0 || json.Unmarshal(m.Parts, &list) != nil {
		return nil
	}
	return list
}

// Images returns the number of images and videos that a message shows.
func (m Message) Images() (n int) {
	for _, p := range m.ContentParts() {
		if p.isImage() || p.isVideo() {
			n++
		}
	}
	return n
}

// Text returns the text of a message, or the joined texts of its parts, with a mark for each image and video.
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
		if p.isVideo() {
			b.WriteString(VideoMark)
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

// WithoutImages returns messages for models that read text alone: a mark stands for each image and video.
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

// MarkedParts cuts a text at each of the marks, ImageMark unless others are given, and returns its parts and the marks
// among them, in order.
func MarkedParts(text string, marks ...string) (parts []json.RawMessage, found []string) {
	if len(marks) == 0 {
		marks = []string{ImageMark}
	}
	for {
		at, next := len(text), ""
		for _, m := range marks {
			if i := strings.Index(text, m); i >= 0 && i < at {
				at, next = i, m
			}
		}
		if at > 0 {
			parts = append(parts, TextPart(text[:at]))
		}
		switch next {
		case "":
			return parts, found
		case VideoMark:
			parts = append(parts, json.RawMessage(VideoPart))
		default:
			parts = append(parts, json.RawMessage(ImagePart))
		}
		found, text = append(found, next), text[at+len(next):]
	}
}

// Marks returns the marks of pictures, each once: an ImageMark if any is an image, a VideoMark if any is a video.
func Marks(list []Picture) (marks []string) {
	if slices.ContainsFunc(list, func(p Picture) bool { return !p.Video() }) {
		marks = append(marks, ImageMark)
	}
	if slices.ContainsFunc(list, Picture.Video) {
		marks = append(marks, VideoMark)
	}
	return marks
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
