package prompt

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"exp/eval/layout"
	"exp/harness/config"
	"exp/train/model"
	"exp/train/rollout"
)

// videoTemplate is imageTemplate for videos, too, which it writes as <s></s><s>.
var videoTemplate = strings.Replace(imageTemplate, "{% elif 'text'", "{% elif c.type == 'video' %}<s></s><s>{% elif 'text'", 1)

// partsOfLength has a part of 1×2 tokens for each 2 frames of a video, one a second.
type partsOfLength struct{}

func (partsOfLength) Parts(p rollout.Picture) (x VideoParts, err error) {
	if p.Frames > 8 {
		return x, errors.New("too long")
	}
	x.Rows, x.Columns = 1, 2
	for i := range p.Frames / 2 {
		x.Seconds = append(x.Seconds, float64(i)+0.25)
	}
	return x, nil
}

// videoPrompter is imagePrompter for videos, too.
func videoPrompter(t *testing.T, timed bool, set func(c *config.Run)) *Prompter {
	p := imagePrompter(t, videoTemplate, set)
	p.ReadImages(&ImageReader{Pad: padID, Size: tokensOfSize{},
		Video: &VideoReader{Pad: 257, Timed: timed, Start: "<s>", End: "<s>", Size: partsOfLength{}}})
	return p
}

var film = rollout.Picture{Digest: strings.Repeat("c", 64), Width: 20, Height: 10, Format: rollout.VideoFormat, Frames: 4, Rate: 2}

// plays is shows for videos, too.
func plays(text string, pictures ...rollout.Picture) *rollout.Problem {
	parts, _ := rollout.MarkedParts(text, rollout.ImageMark, rollout.VideoMark)
	return &rollout.Problem{ID: "p", Prompt: text, Images: pictures,
		Messages: []rollout.Message{{Role: "user", Parts: rollout.PartList(parts)}}}
}

func bytesOf(s string) (ids []int32) {
	for _, b := range []byte(s) {
		ids = append(ids, int32(b))
	}
	return ids
}

// A video has its parts one after the other, or each behind the time at which it is.
func TestVideoPrompts(t *testing.T) {
	show := func(pic rollout.Picture) (model.Image, error) {
		if !pic.Video() {
			return model.Image{First: 1000, Rows: 1, Columns: 2}, nil
		}
		return model.Image{First: 2000, Rows: 1, Columns: 2, Parts: pic.Frames / 2}, nil
	}
	q := plays("a<video>b<image>", film, small)
	for _, tt := range []struct {
		timed bool
		parts func(a, b []int32) []int32
	}{
		{false, func(a, b []int32) []int32 { return slices.Concat([]int32{256}, a, b, []int32{256}) }},
		{true, func(a, b []int32) []int32 {
			return slices.Concat(bytesOf("<0.2 seconds>"), []int32{256}, a, []int32{256}, bytesOf("<1.2 seconds>"), []int32{256}, b, []int32{256})
		}},
	} {
		p := videoPrompter(t, tt.timed, nil)
		all := func(video []int32, image ...int32) []int32 {
			return slices.Concat([]int32{258, 'a'}, video, []int32{'b'}, image, []int32{259})
		}
		want := all(tt.parts([]int32{257, 257}, []int32{257, 257}), padID, padID)
		for range 2 {
			if got, err := p.Encode(q); err != nil || !slices.Equal(got, want) {
				t.Fatalf("timed %v: %v, %v; want %v", tt.timed, got, err, want)
			}
		}
		shown := p.Showing(show)
		want = all(tt.parts([]int32{2000, 2001}, []int32{2002, 2003}), 1000, 1001)
		if got, err := shown.Encode(q); err != nil || !slices.Equal(got, want) {
			t.Errorf("timed %v: with a gallery %v, %v; want %v", tt.timed, got, err, want)
		}
		if got, err := shown.EncodeChat(q.Messages, nil, true, q.Images...); err != nil || !slices.Equal(got, want) {
			t.Errorf("timed %v: a client %v, %v; want %v", tt.timed, got, err, want)
		}
		ids, text, err := shown.AskedChat(q.Messages, nil, q.Images...)
		const named = "<|im_start|>a<s><video 20×10, 4 frames, sha256:cccccccc><s>b<image 20×10 sha256:aaaaaaaa><|im_end|>"
		if err != nil || !slices.Equal(ids, want) || text != named {
			t.Errorf("timed %v: a program %v, %q, %v; want %v, %q", tt.timed, ids, text, err, want, named)
		}
		// Another length in the same words has other texts.
		longer := film
		longer.Digest, longer.Frames = strings.Repeat("d", 64), 6
		if got, err := p.Encode(plays("a<video>b<image>", longer, small)); err != nil || len(got) <= len(want) {
			t.Errorf("timed %v: a longer video %v, %v", tt.timed, got, err)
		}
		plain, err := p.Encode(q)
		if err != nil {
			t.Fatal(err)
		}
		out, n := p.padded(q.Images, plain)
		if got := p.written(out, q.Images...); n != 2 || !strings.HasSuffix(got, "<s><video 20×10, 4 frames, sha256:cccccccc><s>b<image 20×10 sha256:aaaaaaaa><|im_end|>") {
			t.Errorf("timed %v: %d pictures in %q", tt.timed, n, got)
		}
		p.NoteImages([]rollout.Problem{*q, *plays("<video>", film)})
		if got := p.Plan().Images; got == nil || *got != (ImagePlan{Images: 5, Videos: 2, Tokens: 10, Most: 2, Row: 3, Rows: 2, Different: 6}) {
			t.Errorf("plan %+v", got)
		} else if got.String() != "5 (parts of 2 videos among them) of 2 tokens on average, 2 at most" {
			t.Error(got)
		}
	}
}

// Settings of videos are in the digest of prompts that show some, and in no other.
func TestVideosInDigest(t *testing.T) {
	digest := func(p *Prompter, list ...rollout.Problem) string {
		p.NoteImages(list)
		d, err := p.SettingsDigest()
		if err != nil {
			t.Fatal(err)
		}
		return d.String()
	}
	image, video := *shows("<image>", small), *plays("<video>", film)
	plain := digest(imagePrompter(t, imageTemplate, nil), image)
	if got := digest(videoPrompter(t, true, nil), image); got != plain {
		t.Error("a reader of videos changes the digest of prompts with images")
	}
	if a, b := digest(videoPrompter(t, true, nil), video), digest(videoPrompter(t, false, nil), video); a == b || a == plain {
		t.Error("how videos are read changes no digest")
	}
}

func TestVideoPromptErrors(t *testing.T) {
	long := film
	long.Frames = 10
	for _, tt := range []struct {
		name  string
		timed bool
		q     *rollout.Problem
		want  string
	}{
		{"a text spells the pad", false, plays("</s><video>", film), "it shows a video, and its prompt has </s> 2 times"},
		{"a text without videos spells it", true, &rollout.Problem{Prompt: "</s>"}, "spells </s>, the place of a video"},
		{"too long", true, plays("<video>", long), "too long"},
		{"too long in one piece", false, plays("<video>", long), "too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := videoPrompter(t, tt.timed, nil).Encode(tt.q)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	q := plays("<video>", film)
	p := imagePrompter(t, videoTemplate, nil)
	if _, err := p.Encode(q); err == nil || !strings.Contains(err.Error(), "reads images alone (data.video_key: none") {
		t.Errorf("a model of images: %v", err)
	}
	if _, err := p.EncodeChat(q.Messages, nil, true, film); err == nil || !strings.Contains(err.Error(), "reads images alone") {
		t.Errorf("a client asks a model of images: %v", err)
	}
	if _, err := imagePrompter(t, imageTemplate, nil).Encode(q); err == nil {
		t.Error("a template without videos")
	}
}

// A conversation that a model learns shows videos between its turns.
func TestVideoConversations(t *testing.T) {
	for _, timed := range []bool{false, true} {
		p := videoPrompter(t, timed, nil)
		ask := func(text string) rollout.Message {
			return rollout.Message{Role: "user", Parts: plays(text).Messages[0].Parts}
		}
		said := rollout.Message{Role: "assistant", Content: "x"}
		c := layout.Conversation{Problem: rollout.Problem{ID: "c", Images: []rollout.Picture{film, small, film},
			Messages: []rollout.Message{ask("<video>a<image>"), said, ask("b<video>"), said}}}
		c.Asked = 1
		var x Conversation
		got, err := p.conversation(&c, &x)
		if err != nil {
			t.Fatal(err)
		}
		var text string
		for _, part := range p.parts(&c, got) {
			text += part.Text
		}
		if n := strings.Count(text, "<video 20×10, 4 frames, sha256:cccccccc>"); n != 2 || !strings.Contains(text, "<image 20×10") {
			t.Errorf("timed %v: %d videos in %q", timed, n, text)
		}
		if seconds := strings.Count(text, " seconds>"); seconds != map[bool]int{true: 2}[timed] { // the first of each
			t.Errorf("timed %v: %d times in %q", timed, seconds, text)
		}
	}
}
