package layout

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"exp/eval/rows"
	"exp/train/rollout"
)

// Images says how the images of rows become images of problems. A row has them in a column, a list or one of them:
//
//	{"bytes": …, "path": …}   as Hugging Face's datasets keep them; bytes may be null, then the path counts
//	shapes/3.png              a path from the folder of the data file, or an absolute one
//	data:image/png;base64,…   a data URL, or the base64 alone
//
// An <image> in the text of a user's message stands for the next one, as in the files of verl, EasyR1 and
// LLaMA-Factory; so does a content part {"type": "image"}. A part may also bring its own, as OpenAI's do:
// {"type": "image_url", "image_url": {"url": "data:…"}}, or Qwen's: {"type": "image", "image": …}.
type Images struct {
	Column string // verl's image_key; empty: none, and <image> is text
	// Take says what an image file is. It is called for each image of each row, in order.
	Take func(encoded []byte) (rollout.Picture, error)
	// Begins reports whether data begins as an image file does, which tells files from paths and base64.
	Begins func(data []byte) bool
	// Films says how videos are read, which Take gets, too; nil: rows with videos are refused.
	Films *Films
}

// Columns says which columns of rows to read besides a layout's own.
type Columns struct {
	Prompt string   // the problem's text or messages; empty: where a known layout has it
	Keep   []string // further ones for Facts.Columns
	Images *Images  // nil: rows with images are refused
}

// videosColumn is verl's.
const videosColumn = "videos"

// textOnly returns an error if a row has images or videos in verl's columns for them.
func textOnly(r rows.Row) error {
	for _, column := range []string{imagesColumn, videosColumn} {
		if lists(r, column) {
			return r.Errorf(column, "the problem has %s, and models read text alone here; rename the column to leave "+
				"them out", column)
		}
	}
	return nil
}

// lists reports whether a column holds a list that is not empty.
func lists(r rows.Row, column string) bool {
	v, _ := r.Value(column)
	list, ok := v.([]any)
	return ok && len(list) > 0
}

// onlyTexts returns an error if a message contains anything but text, such as an image.
func onlyTexts(m rollout.Message) error {
	for _, part := range m.ContentParts() {
		if t := part.Type; t != "" && t != "text" {
			return fmt.Errorf("a part of type %q, and models read text alone here", t)
		}
	}
	return nil
}

// imageType is the type of a part that stands for the next image.
const imageType = "image"

// illustrate adds the images of a row to its problem, whose messages are in field; empty: it has only a text.
func (x *Images) illustrate(r rows.Row, field string, p *rollout.Problem) error {
	in, err := x.of(r)
	if err != nil {
		return err
	}
	values := [][]map[string]any(nil)
	if field != "" {
		v, _ := r.Value(field)
		values = contentValues(v)
	}
	messages := p.Messages
	if len(messages) == 0 {
		messages = []rollout.Message{{Role: "user", Content: p.Prompt}}
	}
	messages = slices.Clone(messages)
	for i := range messages {
		var own []map[string]any
		if i < len(values) {
			own = values[i]
		}
		if _, err := in.message(&messages[i], own); err != nil {
			return r.Errorf(field, "message %d: %w", i+1, err)
		}
	}
	if err := in.check("prompt"); err != nil || in.asked == 0 {
		return err
	}
	p.Messages, p.Images = messages, in.list
	for _, m := range messages {
		if m.Role == "user" {
			p.Prompt = m.Text()
		}
	}
	return nil
}

func counted(n int) string {
	if n == 1 {
		return "1 image"
	}
	return fmt.Sprintf("%d images", n)
}

// contentValues returns the parts of messages as the file has them, where their content is a list of objects.
func contentValues(v any) [][]map[string]any {
	list, _ := v.([]any)
	out := make([][]map[string]any, len(list))
	for i, m := range list {
		fields, _ := m.(map[string]any)
		parts, _ := fields["content"].([]any)
		for _, part := range parts {
			fields, _ := part.(map[string]any)
			out[i] = append(out[i], fields)
		}
	}
	return out
}

// ownImage returns the image that a part of content brings.
func ownImage(v map[string]any) (any, bool) {
	for _, name := range []string{"image", "image_url", "url", "path", "base64"} {
		switch y := v[name].(type) {
		case nil:
		case map[string]any:
			if url, ok := y["url"]; ok && url != nil {
				return url, true
			}
			return y, true
		default:
			return y, true
		}
	}
	return nil, false
}

// mostImage bounds an image file, in bytes.
const mostImage = 256 << 20

// encoded returns the bytes of an image file; paths are relative to a folder.
func (x *Images) encoded(v any, folder string) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return x.named(v, folder)
	case map[string]any:
		for _, name := range []string{"bytes", "encoded"} {
			switch b := v[name].(type) {
			case nil:
			case string:
				if b == "" {
					continue
				}
				if x.Begins([]byte(b)) {
					return []byte(b), nil
				}
				if raw, ok := x.decoded64(b); ok {
					return raw, nil
				}
				return nil, fmt.Errorf("its %s are not an image file (PNG, JPEG, WebP, GIF or BMP)", name)
			default:
				return nil, fmt.Errorf("its %s are not bytes, nor base64", name)
			}
		}
		if path, ok := v["path"].(string); ok && path != "" {
			return imageFile(path, folder)
		}
		return nil, errors.New("it has neither bytes nor a path")
	case nil:
		return nil, errors.New("it is null")
	}
	return nil, fmt.Errorf("it is neither an object with bytes or path nor a text")
}

// named returns the file that a text is or names: the file itself, a data URL, base64, or a path.
func (x *Images) named(text, folder string) ([]byte, error) {
	if x.Begins([]byte(text)) {
		return []byte(text), nil
	}
	switch raw, err := rollout.DataURL(text); {
	case errors.Is(err, rollout.ErrNotDataURL):
	case err != nil || !x.Begins(raw):
		return nil, errors.New("its data URL is not one of an image in base64 (data:image/png;base64,…)")
	default:
		return raw, nil
	}
	if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
		return nil, fmt.Errorf("%s is on the network, and runs read none from there: download it and name the file",
			text)
	}
	if raw, ok := x.decoded64(text); ok {
		return raw, nil
	}
	return imageFile(strings.TrimPrefix(text, "file://"), folder)
}

// decoded64 returns the image file that a text spells in base64; ok is false if it spells none.
func (x *Images) decoded64(text string) (raw []byte, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	return raw, err == nil && x.Begins(raw)
}

// imageFile reads a file.
func imageFile(path, folder string) ([]byte, error) {
	if path == "" {
		return nil, errors.New("it is empty")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	f, err := os.Open(path)
	if err != nil {
		const shown = 200 // a path is shorter; base64 of something else is not
		if len(path) > shown {
			return nil, errors.New("it is neither base64 of an image file nor a path")
		}
		return nil, err
	}
	defer f.Close() // only read: an error on closing loses nothing
	b, err := io.ReadAll(io.LimitReader(f, mostImage+1))
	if err == nil && len(b) > mostImage {
		err = fmt.Errorf("%s has more than %d MiB", path, mostImage>>20)
	}
	return b, err
}

// hasBytes reports whether a value of a row has a text that is not UTF-8, such as an image file.
func hasBytes(v any) bool {
	switch v := v.(type) {
	case string:
		return !utf8.ValidString(v)
	case []any:
		return slices.ContainsFunc(v, hasBytes)
	case map[string]any:
		for _, x := range v {
			if hasBytes(x) {
				return true
			}
		}
	}
	return false
}
