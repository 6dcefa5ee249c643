package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"exp/eval/rows"
	"exp/train/rollout"
)

// illustrator puts the images of a row into a problem.
type illustrator struct {
	*Images
	row    rows.Row
	column []any // values of the images' column
	films  []any // values of the videos' column
	used   int   // of column
	played int   // of films
	asked  int   // images and videos that the messages show
	list   []rollout.Picture
}

// of returns the illustrator of a row.
func (x *Images) of(r rows.Row) (*illustrator, error) {
	if x.Films == nil && lists(r, videosColumn) {
		return nil, r.Errorf(videosColumn, "the problem has videos, which models do not read here; rename the column "+
			"to leave them out")
	}
	in := &illustrator{Images: x, row: r, column: column(r, x.Column)}
	if x.Films != nil {
		in.films = column(r, x.Films.Column)
	}
	return in, nil
}

// check returns an error unless the messages show each image of the column. where names them.
func (x *illustrator) check(where string) error {
	switch n := len(x.column); {
	case n > x.used && x.asked == 0:
		return x.row.Errorf(x.Column, "the row has %s, and its %s shows none: write %s where each belongs, in a "+
			"user's message, or leave the images out with data.image_key: none", counted(n), where, rollout.ImageMark)
	case n != x.used:
		return x.row.Errorf(x.Column, "the row has %s, but its %s has %d %s", counted(n), where, x.used,
			rollout.ImageMark)
	}
	if n := len(x.films); n != x.played {
		return x.row.Errorf(x.Films.Column, "the row has %s, and its %s shows %d: write %s where each belongs, in a "+
			"user's message, or leave the videos out with data.video_key: none", countedVideos(n), where, x.played,
			rollout.VideoMark)
	}
	return nil
}

func countedVideos(n int) string {
	if n == 1 {
		return "1 video"
	}
	return fmt.Sprintf("%d videos", n)
}

// message replaces the images of a message, whose parts the file has as values, by ImageParts, and returns their
// number.
func (x *illustrator) message(m *rollout.Message, values []map[string]any) (n int, err error) {
	defer func() { x.asked += n }()
	if m.Parts == nil {
		if m.Role == "user" && len(x.marked()) > 0 {
			return x.marks(m)
		}
		return 0, nil
	}
	if values == nil {
		return 0, nil
	}
	var parts []json.RawMessage
	for i, v := range values {
		raw, image, err := x.part(v)
		if err != nil {
			return 0, fmt.Errorf("part %d: %w", i+1, err)
		}
		if image {
			n++
		}
		parts = append(parts, raw...)
	}
	if n == 0 && x.textParts(values) {
		return 0, nil
	}
	if n > 0 && m.Role != "user" {
		return 0, fmt.Errorf("an image in a message of role %s; only a user's may have some", m.Role)
	}
	m.Content, m.Parts = "", rollout.PartList(parts)
	return n, nil
}

// turn is message for one of a conversation. It leaves content without images and videos as it is.
func (x *illustrator) turn(m *rollout.Message, values []map[string]any) (n int, err error) {
	pictured := func(v map[string]any) bool {
		_, has := ownImage(v)
		_, film := ownVideo(v)
		return isImage(v, has) || x.Films != nil && isVideo(v, film) || !x.textParts([]map[string]any{v})
	}
	if m.Parts != nil && !slices.ContainsFunc(values, pictured) {
		return 0, nil
	}
	return x.message(m, values)
}

// isImage reports whether a part of content is an image. has: it brings one.
func isImage(v map[string]any, has bool) bool {
	kind, _ := v["type"].(string)
	return kind == imageType || kind == "image_url" || kind == "input_image" || kind == "" && has
}

// marked returns the marks that stand for pictures of the row's columns.
func (x *illustrator) marked() (marks []string) {
	if len(x.column) > 0 {
		marks = append(marks, rollout.ImageMark)
	}
	if len(x.films) > 0 {
		marks = append(marks, rollout.VideoMark)
	}
	return marks
}

// textParts reports whether no part has a mark that a column's image or video stands for.
func (x *illustrator) textParts(values []map[string]any) bool {
	return !slices.ContainsFunc(values, func(v map[string]any) bool {
		text, _ := v["text"].(string)
		return x.hasMark(text)
	})
}

// hasMark reports whether a text has a mark that a column's image or video stands for.
func (x *illustrator) hasMark(text string) bool {
	return slices.ContainsFunc(x.marked(), func(mark string) bool { return strings.Contains(text, mark) })
}

// marks makes parts of a text with <image> and <video>.
func (x *illustrator) marks(m *rollout.Message) (n int, err error) {
	parts, n, err := x.split(m.Content)
	if err != nil || n == 0 {
		return 0, err
	}
	m.Content, m.Parts = "", rollout.PartList(parts)
	return n, nil
}

// split cuts a text at each mark, and takes an image or a video for each.
func (x *illustrator) split(text string) (parts []json.RawMessage, n int, err error) {
	parts, found := rollout.MarkedParts(text, x.marked()...)
	for i, mark := range found {
		next := x.next
		if mark == rollout.VideoMark {
			next = x.nextFilm
		}
		if err := next(); err != nil {
			return nil, i + 1, err
		}
	}
	return parts, len(found), nil
}

// next takes the next image of the column. One too many is counted, and refused later.
func (x *illustrator) next() error {
	x.used++
	if x.used > len(x.column) {
		return nil
	}
	return x.take(x.column[x.used-1], fmt.Sprintf("%s, image %d", x.Column, x.used))
}

// nextFilm is next for videos.
func (x *illustrator) nextFilm() error {
	x.played++
	if x.played > len(x.films) {
		if x.Films == nil || x.Films.Column == "" {
			return errors.New("it shows a video, and the row has none (data.video_key)")
		}
		return nil
	}
	return x.play(x.films[x.played-1], fmt.Sprintf("%s, video %d", x.Films.Column, x.played))
}

// play adds a video.
func (x *illustrator) play(v any, where string) error { return x.add(x.film, v, where) }

// take adds an image.
func (x *illustrator) take(v any, where string) error { return x.add(x.encoded, v, where) }

// add adds what read makes of a value; paths there begin in the folder of the row's file.
func (x *illustrator) add(read func(v any, dir string) ([]byte, error), v any, where string) error {
	encoded, err := read(v, filepath.Dir(x.row.Path))
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	pic, err := x.Take(encoded)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	x.list = append(x.list, pic)
	return nil
}

// part returns a part of content as templates take it, and whether it is an image or a video.
func (x *illustrator) part(v map[string]any) (raw []json.RawMessage, image bool, err error) {
	kind, _ := v["type"].(string)
	own, has := ownImage(v)
	film, films := ownVideo(v)
	switch {
	case x.Films != nil && isVideo(v, films):
		if films {
			err = x.play(film, "its video")
		} else {
			err = x.nextFilm()
		}
		return []json.RawMessage{json.RawMessage(rollout.VideoPart)}, true, err
	case isImage(v, has):
		if has {
			err = x.take(own, "its image")
		} else {
			err = x.next()
		}
		return []json.RawMessage{json.RawMessage(rollout.ImagePart)}, true, err
	case kind == "" || kind == "text" || kind == "input_text":
		text, ok := v["text"].(string)
		if !ok {
			return nil, false, errors.New("it has no text")
		}
		if x.hasMark(text) {
			raw, n, err := x.split(text)
			return raw, n > 0, err
		}
		return []json.RawMessage{rollout.TextPart(text)}, false, nil
	}
	return nil, false, fmt.Errorf("it is of type %q; models read text and images here", kind)
}
