package prompt

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"exp/experiments/quantity"
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
	// Video says how it reads a video; nil: not at all. It enters digests of prompts with videos alone.
	Video *VideoReader `json:"-"`
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
	if x.Video != nil {
		list = append(list, tok.Token(x.Video.Pad))
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
	return p.checkVideos(q.Images)
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
	if err := p.checkPads(images, ids); err != nil {
		return nil, err
	}
	if len(images) == 0 {
		return ids, nil
	}
	out, next, left := make([]int32, 0, len(ids)), 0, [][]int32(nil) // of the picture at hand
	for _, id := range ids {
		if !p.isPad(id) {
			out = append(out, id)
			continue
		}
		if len(left) == 0 {
			pic := images[next]
			next++
			_, pad, err := p.pads(pic)
			if err == nil && pad != id {
				err = fmt.Errorf("the chat template writes %s for it", p.Tokenizer.Token(id))
			}
			if err == nil {
				left, err = p.tokensAt(pic)
			}
			if err != nil {
				return nil, fmt.Errorf("image %d, %v: %w", next, pic, err)
			}
		}
		out, left = append(out, left[0]...), left[1:]
	}
	return slices.Clip(out), nil
}

// checkPads returns an error unless there is a pad for each image, and as many as each video needs.
func (p *Prompter) checkPads(images []rollout.Picture, ids []int32) error {
	kinds := []struct {
		pad   int32
		what  string
		count func(n int) string
		video bool
	}{{p.images.Pad, "image", countedImages, false}, {-1, "video", countedVideos, true}}
	if p.images.Video != nil {
		kinds[1].pad = p.images.Video.Pad
	}
	for _, kind := range kinds {
		shown, want, pads := 0, 0, 0
		for _, pic := range images {
			if pic.Video() != kind.video {
				continue
			}
			n, _, err := p.pads(pic)
			if err != nil {
				return fmt.Errorf("%v: %w", pic, err)
			}
			shown, want = shown+1, want+n
		}
		for _, id := range ids {
			if id == kind.pad {
				pads++
			}
		}
		pad := ""
		if kind.pad >= 0 {
			pad = p.Tokenizer.Token(kind.pad)
		}
		switch {
		case pads > 0 && shown == 0:
			return fmt.Errorf("its text spells %s, the place of %s, and it has none; data.escape_special: "+
				"true reads it as text", pad, kind.count(1))
		case pads < want:
			return fmt.Errorf("it shows %s, and the chat template writes %s %d times: it needs a template that "+
				"reads content parts of type %s (data.chat)", kind.count(shown), pad, pads, kind.what)
		case pads > want:
			return fmt.Errorf("it shows %s, and its prompt has %s %d times; data.escape_special: true reads those "+
				"in its text as text", kind.count(shown), pad, pads)
		}
	}
	return nil
}

func countedVideos(n int) string {
	if n == 1 {
		return "a video"
	}
	return fmt.Sprintf("%d videos", n)
}

// tokensAt returns the tokens for each pad of a picture.
func (p *Prompter) tokensAt(pic rollout.Picture) ([][]int32, error) {
	if !pic.Video() {
		tokens, err := p.marked(pic)
		return [][]int32{tokens}, err
	}
	x, err := p.video(pic)
	if err != nil {
		return nil, err
	}
	im := model.Image{Rows: x.Rows, Columns: x.Columns, Parts: len(x.Seconds)}
	tokens, err := p.numbered(pic, im, p.images.Video.Pad)
	if err != nil || !p.images.Video.Timed {
		return [][]int32{tokens}, err
	}
	return slices.Collect(slices.Chunk(tokens, x.Rows*x.Columns)), nil
}

// tokensOf returns the tokens of an image.
func (p *Prompter) tokensOf(pic rollout.Picture) ([]int32, error) {
	rows, columns, err := p.images.Size.Tokens(pic.Width, pic.Height)
	if err != nil {
		return nil, err
	}
	return p.numbered(pic, model.Image{Rows: rows, Columns: columns}, p.images.Pad)
}

// numbered returns the tokens of a picture of im's shape, which the gallery gives it, or else pads.
func (p *Prompter) numbered(pic rollout.Picture, im model.Image, pad int32) (out []int32, err error) {
	if p.show != nil {
		want := im
		if im, err = p.show(pic); err != nil {
			return nil, err
		}
		if im.Rows != want.Rows || im.Columns != want.Columns || im.Parts != want.Parts {
			return nil, fmt.Errorf("%d×%d tokens in %d parts in the gallery and %d×%d in %d in the prompt", im.Rows,
				im.Columns, im.Parts, want.Rows, want.Columns, want.Parts)
		}
	}
	out = make([]int32, im.AllTokens())
	for i := range out {
		out[i] = pad
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
	for _, pic := range images {
		pad := p.images.Pad
		if pic.Video() {
			pad = p.images.Video.Pad
		}
		text = strings.Replace(text, p.Tokenizer.Token(pad), pic.String(), 1)
	}
	return text
}

// padded returns tokens with one pad for each of the images that they show, the first of a list, and their number.
func (p *Prompter) padded(images []rollout.Picture, ids []int32) (out []int32, n int) {
	if p.images == nil {
		return ids, 0
	}
	for i := 0; i < len(ids); {
		ofImage := p.isPad(ids[i]) || p.vocab > 0 && int(ids[i]) >= p.vocab
		if !ofImage || n == len(images) {
			out = append(out, ids[i])
			i++
			continue
		}
		if out = append(out, p.images.Pad); images[n].Video() {
			out[len(out)-1] = p.images.Video.Pad
		}
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
	row := 0
	for _, pic := range images {
		if *plan == nil {
			*plan = &ImagePlan{}
		}
		x := *plan
		parts, each, err := p.pieces(pic)
		if row += parts; pic.Video() {
			x.Videos++
		}
		x.Images += parts
		x.Row = max(x.Row, row)
		if err == nil {
			x.Most = max(x.Most, each)
			x.Tokens += parts * each
			if key := (seenImage{x, pic.Digest}); !p.seen[key] {
				if p.seen == nil {
					p.seen = map[seenImage]bool{}
				}
				p.seen[key], x.Different = true, x.Different+parts*each
			}
		}
	}
}

// pieces returns how many images the vision tower encodes for a picture, and the tokens of each.
func (p *Prompter) pieces(pic rollout.Picture) (n, each int, err error) {
	if pic.Video() {
		x, err := p.video(pic)
		return max(1, len(x.Seconds)), x.Rows * x.Columns, err
	}
	rows, columns, err := p.images.Size.Tokens(pic.Width, pic.Height)
	return 1, rows * columns, err
}

// HasImages reports whether NoteImages found some.
func (p *Prompter) HasImages() bool { return p.shown != nil }

// TeachesImages reports whether conversations, pairs or answers that were checked show images.
func (p *Prompter) TeachesImages() bool {
	return p.learns != nil && p.learns.Images != nil || p.prefers != nil && p.prefers.Images != nil ||
		p.judged != nil && p.judged.Images != nil
}

// HasVideos reports whether problems that NoteImages saw show videos, or conversations, pairs or answers that were
// checked do.
func (p *Prompter) HasVideos() bool {
	list := []*ImagePlan{p.shown}
	if p.learns != nil {
		list = append(list, p.learns.Images)
	}
	if p.prefers != nil {
		list = append(list, p.prefers.Images)
	}
	if p.judged != nil {
		list = append(list, p.judged.Images)
	}
	return slices.ContainsFunc(list, func(x *ImagePlan) bool { return x != nil && x.Videos > 0 })
}

// seenImage is an image that a plan has counted.
type seenImage struct {
	plan   *ImagePlan
	digest string
}

// ImagePlan counts the images of prompts. Each part of a video counts as one.
type ImagePlan struct {
	Images    int `json:"images"`
	Videos    int `json:"videos,omitempty"`
	Tokens    int `json:"tokens"`           // of all
	Most      int `json:"most"`             // of one
	Row       int `json:"row"`              // most images of one problem or row
	Rows      int `json:"rows,omitempty"`   // problems, with images and without; 0: not known
	Different int `json:"different_tokens"` // of different images
}

// String describes it in a line.
func (x *ImagePlan) String() string {
	videos := ""
	if x.Videos > 0 {
		videos = fmt.Sprintf(" (parts of %s among them)", quantity.Plural(x.Videos, "video"))
	}
	return fmt.Sprintf("%d%s of %d tokens on average, %d at most", x.Images, videos, x.Tokens/max(1, x.Images), x.Most)
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
	return p.checkVideos(images)
}
