package layout

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"exp/eval/rows"
	"exp/train/rollout"
)

// Pictures says which columns of a benchmark's rows hold images, one each, and where a problem shows them. They count
// where data.image_key is the default and a row has no such column.
type Pictures struct {
	Columns []string // the first holds image 1
	// Marked: "<image 2>" in the question or an option stands for image 2, as often as it is written, and images that
	// nothing stands for are not shown. All images come before a text without marks.
	Marked   bool
	Optional bool // a row may have no image
}

// imagesColumn is the default of data.image_key.
const imagesColumn = "images"

// imageNumber matches the place of an image in the texts of MMMU.
var imageNumber = regexp.MustCompile(`<image\s+([0-9]+)>`)

// shows reports whether problems of a row, whose messages are in field, show the layout's pictures.
func (l Layout) shows(r rows.Row, field string) bool {
	return l.Pictures != nil && l.Images.Column == imagesColumn && field == "" && !lists(r, imagesColumn)
}

// picture is an image of a row, by its column.
type picture struct {
	column string
	value  any // nil: the row has none
}

func (c *Pictures) of(r rows.Row) []picture {
	list := make([]picture, len(c.Columns))
	for i, column := range c.Columns {
		list[i] = picture{column: column}
		if v, ok := r.Value(column); ok && v != "" && !isNoImage(v) {
			list[i].value = v
		}
	}
	return list
}

// isNoImage reports whether a value is the object that stands for a missing image.
func isNoImage(v any) bool {
	fields, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for _, x := range fields {
		if x != nil && x != "" {
			return false
		}
	}
	return true
}

// showPictures shows the images of a row in its problem, which is a text.
func (l Layout) showPictures(r rows.Row, p *rollout.Problem) error {
	c, list := l.Pictures, l.Pictures.of(r)
	front := !c.Marked || !imageNumber.MatchString(p.Prompt)
	if front && !slices.ContainsFunc(list, func(x picture) bool { return x.value != nil }) {
		if c.Optional {
			return nil
		}
		return r.Errorf(c.Columns[0], "the row has no image, and its problem is about one: fill the column, or leave "+
			"the images of all rows out with data.image_key: none")
	}
	in := &illustrator{Images: l.Images, row: r}
	parts, err := c.place(in, p.Prompt, list)
	if err != nil {
		return err
	}
	if p.Choice != nil {
		p.Choice = c.marked(p.Choice, front, len(in.list))
	}
	m := rollout.Message{Role: "user", Parts: rollout.PartList(parts)}
	p.Messages, p.Images, p.Prompt = []rollout.Message{m}, in.list, m.Text()
	return nil
}

// place returns the parts of a text with images, and takes these.
func (c *Pictures) place(in *illustrator, text string, list []picture) (parts []json.RawMessage, err error) {
	take := func(x picture) error {
		parts = append(parts, json.RawMessage(rollout.ImagePart))
		if err := in.take(x.value, "the image"); err != nil {
			return in.row.Errorf(x.column, "%w", err)
		}
		return nil
	}
	say := func(s string) {
		if s != "" {
			parts = append(parts, rollout.TextPart(s))
		}
	}
	var marks [][]int
	if c.Marked {
		marks = imageNumber.FindAllStringSubmatchIndex(text, -1)
	}
	if len(marks) == 0 {
		for _, x := range list {
			if x.value == nil {
				continue
			}
			if err := take(x); err != nil {
				return nil, err
			}
		}
	}
	at := 0
	for _, m := range marks {
		say(text[at:m[0]])
		at = m[1]
		n, err := strconv.Atoi(text[m[2]:m[3]])
		if err != nil || n < 1 || n > len(list) || list[n-1].value == nil {
			return nil, in.row.Errorf("", "the text shows %s, and the row has no such image in its columns %s: take "+
				"the place out of the text or fill the column", text[m[0]:m[1]], strings.Join(c.Columns, ", "))
		}
		if err := take(list[n-1]); err != nil {
			return nil, err
		}
	}
	say(text[at:])
	return parts, nil
}

// marked returns a question with an ImageMark for each image that it and its options show, n of them in all.
func (c *Pictures) marked(q *rollout.Choice, front bool, n int) *rollout.Choice {
	out := *q
	if front {
		out.Question = strings.Repeat(rollout.ImageMark, n) + q.Question
		return &out
	}
	out.Question = imageNumber.ReplaceAllString(q.Question, rollout.ImageMark)
	out.Options = slices.Clone(q.Options)
	for i, text := range q.Options {
		out.Options[i] = imageNumber.ReplaceAllString(text, rollout.ImageMark)
	}
	return &out
}

// illustrated returns the layout with the image that a row has in the column image, if it has no others.
func (l Layout) illustrated(r rows.Row) Layout {
	if l.Pictures != nil || len(l.Problem) > 1 || lists(r, imagesColumn) {
		return l
	}
	const column = "image"
	if v, ok := r.Fields[column]; ok && (v == nil || isImageFile(v)) {
		l.Pictures = &Pictures{Columns: []string{column}, Optional: true}
	}
	return l
}

// isImageFile reports whether a value holds an image as Hugging Face's datasets write it, or is a data: URL.
func isImageFile(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.HasPrefix(v, "data:image/")
	case map[string]any:
		_, isText := v["bytes"].(string)
		return isText || isNoImage(v) && has(v, "bytes")
	}
	return false
}

func has(fields map[string]any, name string) bool {
	_, ok := fields[name]
	return ok
}

// unshown returns an error for a row of an unknown benchmark that has images in columns which nothing shows.
func (l Layout) unshown(r rows.Row) error {
	if l.Pictures != nil || l.Images.Column != imagesColumn || r.Has(imagesColumn) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
		v := r.Fields[name]
		if list, ok := v.([]any); ok && len(list) > 0 {
			v = list[0]
		}
		fields, ok := v.(map[string]any)
		if text, _ := fields["bytes"].(string); ok && text != "" && isImageFile(fields) {
			return r.Errorf(name, "the row has an image there, and no known layout of problems says where its text "+
				"shows it: name the column (data.image_key: %[1]s) and write %[2]s at the place; in a suite's "+
				"definition layout.images: %[1]s puts it before the text; data.image_key: none leaves images out",
				name, rollout.ImageMark)
		}
	}
	return nil
}
