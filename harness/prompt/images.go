package prompt

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"exp/train/model"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// ImageReader says how a model of text and images reads an image in a prompt.
type ImageReader struct {
	// Pad is the token that the chat template writes for an image.
	Pad int32
	// Place is the text that the chat template writes for an image where the processor puts Written there, which has
	// the pad, before it makes tokens of the text (Gemma 3); empty: the template writes the pad.
	Place   string `json:",omitempty"`
	Written string `json:",omitempty"`
	// Before and After are tokens around each image that the template does not write (InternVL).
	Before, After []int32
	// Marks are texts around parts of it that the template does not write (Idefics3, SmolVLM, Pixtral); nil: none.
	Marks Marks `json:",omitempty"`
	// Size returns the rows and columns of an image's tokens, from its size in pixels.
	Size interface {
		Tokens(width, height int) (rows, columns int, err error)
	}
}

// ImagesError is an error about how the model reads images.
type ImagesError struct {
	Key string // of the configuration
	Err error
}

func (e *ImagesError) Error() string { return "images: " + e.Err.Error() }
func (e *ImagesError) Unwrap() error { return e.Err }

// ReadImages makes the prompter write images as x says; without, it refuses problems with images.
func (p *Prompter) ReadImages(x *ImageReader) {
	p.images = x
	if x != nil && p.template != nil {
		p.template.place, p.template.written = x.Place, x.Written
	}
}

// spellings returns the texts that stand for an image.
func (x *ImageReader) spellings(tok tokenizer.Tokenizer) []string {
	list := []string{tok.Token(x.Pad)}
	if x.Place != "" {
		list = append(list, x.Place)
	}
	return list
}

// OfferImages makes the error about problems with images name the setting that makes the model read them.
func (p *Prompter) OfferImages(setting string) { p.unread = setting + " reads them, " }

// Showing returns a prompter whose prompts have the tokens that show gives to images; the Prompter itself repeats the
// pad, so that its prompts have the right lengths.
func (p *Prompter) Showing(show func(rollout.Picture) (model.Image, error)) *Prompter {
	q := *p
	q.show = show
	return &q
}

// checkImages returns an error if the model cannot read the images of a problem.
func (p *Prompter) checkImages(q *rollout.Problem) error {
	switch {
	case len(q.Images) == 0:
		return nil
	case p.images == nil:
		return fmt.Errorf("it shows %s, and the model reads text alone (%sdata.image_key: none leaves images out)",
			countedImages(len(q.Images)), p.unread)
	case p.template == nil:
		return errors.New("it shows images, which the chat template places, and prompts are plain text; name a " +
			"template: data.chat")
	}
	return nil
}

func countedImages(n int) string {
	if n == 1 {
		return "an image"
	}
	return fmt.Sprintf("%d images", n)
}

// illustrated puts the tokens of images in place of the pads that the chat template wrote.
func (p *Prompter) illustrated(images []rollout.Picture, ids []int32) ([]int32, error) {
	if p.images == nil {
		return ids, nil
	}
	if err := p.known(ids); err != nil { // else a token that the model lacks is one of an image
		return nil, err
	}
	pads := 0
	for _, id := range ids {
		if id == p.images.Pad {
			pads++
		}
	}
	switch pad := p.Tokenizer.Token(p.images.Pad); {
	case pads > 0 && len(images) == 0:
		return nil, fmt.Errorf("its text spells %s, the place of an image, and it has none; data.escape_special: "+
			"true reads it as text", pad)
	case pads < len(images):
		return nil, fmt.Errorf("it shows %s, and the chat template writes %s %d times: it needs a template that "+
			"reads content parts of type image (data.chat)", countedImages(len(images)), pad, pads)
	case pads > len(images):
		return nil, fmt.Errorf("it shows %s, and its prompt has %s %d times; data.escape_special: true reads those "+
			"in its text as text", countedImages(len(images)), pad, pads)
	case pads == 0:
		return ids, nil
	}
	out, next := make([]int32, 0, len(ids)), 0
	for _, id := range ids {
		if id != p.images.Pad {
			out = append(out, id)
			continue
		}
		pic := images[next]
		next++
		tokens, err := p.marked(pic)
		if err != nil {
			return nil, fmt.Errorf("image %d, %v: %w", next, pic, err)
		}
		out = append(out, tokens...)
	}
	return slices.Clip(out), nil
}

// tokensOf returns the tokens of an image.
func (p *Prompter) tokensOf(pic rollout.Picture) ([]int32, error) {
	rows, columns, err := p.images.Size.Tokens(pic.Width, pic.Height)
	if err != nil {
		return nil, err
	}
	im := model.Image{Rows: rows, Columns: columns}
	if p.show != nil {
		if im, err = p.show(pic); err != nil {
			return nil, err
		}
		if im.Rows != rows || im.Columns != columns {
			return nil, fmt.Errorf("%d×%d tokens in the gallery and %d×%d in the prompt", im.Rows, im.Columns, rows,
				columns)
		}
	}
	out := make([]int32, im.Tokens())
	for i := range out {
		out[i] = p.images.Pad
		if p.show != nil {
			out[i] = im.First + int32(i)
		}
	}
	return out, nil
}

// named replaces the pads in a rendered prompt by the names of images.
func (p *Prompter) named(images []rollout.Picture, text string) string {
	if p.images == nil {
		return text
	}
	pad := p.Tokenizer.Token(p.images.Pad)
	for _, pic := range images {
		text = strings.Replace(text, pad, pic.String(), 1)
	}
	return text
}

// padded returns tokens with one pad for each of the images that they show, the first of a list, and their number.
func (p *Prompter) padded(images []rollout.Picture, ids []int32) (out []int32, n int) {
	if p.images == nil {
		return ids, 0
	}
	for i := 0; i < len(ids); {
		ofImage := ids[i] == p.images.Pad || p.vocab > 0 && int(ids[i]) >= p.vocab
		if !ofImage || n == len(images) {
			out = append(out, ids[i])
			i++
			continue
		}
		out = append(out, p.images.Pad)
		span, err := p.span(images[n])
		if err != nil {
			panic("prompt: an image that has tokens has no size: " + err.Error())
		}
		i, n = i+span, n+1
	}
	return out, n
}

// NoteImages adds the images of problems to those that Plan counts.
func (p *Prompter) NoteImages(problems []rollout.Problem) {
	for i := range problems {
		p.countImages(&p.shown, problems[i].Images)
	}
	if p.noted += len(problems); p.shown != nil {
		p.shown.Rows = p.noted
	}
}

// countImages adds images to a plan, and makes it for the first.
func (p *Prompter) countImages(plan **ImagePlan, images []rollout.Picture) {
	if p.images == nil {
		return
	}
	for _, pic := range images {
		if *plan == nil {
			*plan = &ImagePlan{}
		}
		x := *plan
		x.Images++
		x.Row = max(x.Row, len(images))
		if rows, columns, err := p.images.Size.Tokens(pic.Width, pic.Height); err == nil {
			x.Most = max(x.Most, rows*columns)
			x.Tokens += rows * columns
			if key := (seenImage{x, pic.Digest}); !p.seen[key] {
				if p.seen == nil {
					p.seen = map[seenImage]bool{}
				}
				p.seen[key], x.Different = true, x.Different+rows*columns
			}
		}
	}
}

// HasImages reports whether NoteImages found some.
func (p *Prompter) HasImages() bool { return p.shown != nil }

// TeachesImages reports whether conversations, pairs or answers that were checked show images.
func (p *Prompter) TeachesImages() bool {
	return p.learns != nil && p.learns.Images != nil || p.prefers != nil && p.prefers.Images != nil ||
		p.judged != nil && p.judged.Images != nil
}

// seenImage is an image that a plan has counted.
type seenImage struct {
	plan   *ImagePlan
	digest string
}

// ImagePlan counts the images of prompts.
type ImagePlan struct {
	Images    int `json:"images"`
	Tokens    int `json:"tokens"`           // of all
	Most      int `json:"most"`             // of one
	Row       int `json:"row"`              // most images of one problem or row
	Rows      int `json:"rows,omitempty"`   // problems, with images and without; 0: not known
	Different int `json:"different_tokens"` // of different images
}

// String describes it in a line.
func (x *ImagePlan) String() string {
	return fmt.Sprintf("%d of %d tokens on average, %d at most", x.Images, x.Tokens/max(1, x.Images), x.Most)
}

// among ends a line about what shows the images; empty for none.
func (x *ImagePlan) among() string {
	if x == nil {
		return ""
	}
	return "; images: " + x.String()
}

// errAsksImages is returned for chats that show images which nobody gives.
var errAsksImages = errors.New("a message shows an image that nobody gives; send text alone")

// checkShown returns an error if the model cannot read the images of a chat.
func (p *Prompter) checkShown(list []rollout.Message, images []rollout.Picture) error {
	n := 0
	for _, m := range list {
		n += m.Images()
	}
	switch {
	case n > 0 && len(images) == 0:
		return errAsksImages
	case n != len(images):
		return fmt.Errorf("the messages show %s, and there are %d", countedImages(n), len(images))
	case n > 0 && p.images == nil:
		return fmt.Errorf("they show %s, and the model reads text alone", countedImages(n))
	}
	return nil
}
