package prompt

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"exp/train/rollout"
	"exp/train/tokenizer"
)

// VideoReader says how a model reads a video in a prompt.
type VideoReader struct {
	// Pad is the token that the chat template writes for a video.
	Pad int32
	// Timed says that each part of a video has a text before it that says when it is, and stands between Start and
	// End, which the template writes around the pad (Qwen3-VL). transformers before 5.16, vLLM and Qwen's own code
	// replace these; later transformers leaves them where they are, too, around all parts.
	Timed      bool
	Start, End string
	// Size says of what parts a video is.
	Size interface {
		Parts(rollout.Picture) (VideoParts, error)
	}
}

// VideoParts are the parts of a video, which all have as many rows and columns of tokens.
type VideoParts struct {
	Rows, Columns int
	Seconds       []float64 // of each
}

// tokens returns the tokens of all parts.
func (x VideoParts) tokens() int { return len(x.Seconds) * x.Rows * x.Columns }

// errNoVideos is returned for problems that show videos to models without.
var errNoVideos = errors.New("it shows a video, and the model reads images alone (data.video_key: none leaves " +
	"videos out)")

// video returns the parts of a video.
func (p *Prompter) video(pic rollout.Picture) (x VideoParts, err error) {
	if p.images == nil || p.images.Video == nil {
		return x, errNoVideos
	}
	return p.images.Video.Size.Parts(pic)
}

// checkVideos returns an error if the model cannot read the videos among pictures.
func (p *Prompter) checkVideos(list []rollout.Picture) error {
	if slices.ContainsFunc(list, rollout.Picture.Video) && (p.images == nil || p.images.Video == nil) {
		return errNoVideos
	}
	return nil
}

// pads returns how many pads stand for a picture in a chat's tokens, and which.
func (p *Prompter) pads(pic rollout.Picture) (n int, pad int32, err error) {
	if !pic.Video() {
		return 1, p.images.Pad, nil
	}
	x, err := p.video(pic)
	if err != nil {
		return 0, 0, err
	}
	if v := p.images.Video; v.Timed {
		return len(x.Seconds), v.Pad, nil
	}
	return 1, p.images.Video.Pad, nil
}

// isPad reports whether a token stands for a picture.
func (p *Prompter) isPad(id int32) bool {
	return id == p.images.Pad || p.images.Video != nil && id == p.images.Video.Pad
}

// timed writes the parts of videos into a rendered chat, in which each video has one pad.
func (p *Prompter) timed(images []rollout.Picture, text string) (string, error) {
	if p.images == nil || p.images.Video == nil || !p.images.Video.Timed ||
		!slices.ContainsFunc(images, rollout.Picture.Video) {
		return text, nil
	}
	v := p.images.Video
	pad := p.Tokenizer.Token(v.Pad)
	var b strings.Builder
	for i, pic := range images {
		if !pic.Video() {
			continue
		}
		before, rest, found := strings.Cut(text, pad)
		if !found { // the number of pads is checked later
			break
		}
		parts, err := p.video(pic)
		if err != nil {
			return "", fmt.Errorf("video %d, %v: %w", i+1, pic, err)
		}
		if strings.HasSuffix(before, v.Start) && strings.HasPrefix(rest, v.End) {
			before, rest = strings.TrimSuffix(before, v.Start), strings.TrimPrefix(rest, v.End)
		}
		b.WriteString(before)
		for _, at := range parts.Seconds {
			fmt.Fprintf(&b, "<%.1f seconds>%s%s%s", at, v.Start, pad, v.End)
		}
		text = rest
	}
	b.WriteString(text)
	return b.String(), nil
}

// between returns how many tokens stand between a video's first token and its last, without the tokens of its parts.
func (p *Prompter) between(x VideoParts) (n int, err error) {
	v := p.images.Video
	if !v.Timed {
		return 0, nil
	}
	for _, at := range x.Seconds[1:] {
		ids, err := p.Tokenizer.Encode(v.End+fmt.Sprintf("<%.1f seconds>", at)+v.Start, tokenizer.Options{Added: true})
		if err != nil {
			return 0, err
		}
		n += len(ids)
	}
	return n, nil
}
