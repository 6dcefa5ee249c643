package prompt

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval/layout"
	"exp/harness/config"
	"exp/harness/prompt/prompttest"
	"exp/train/model"
	"exp/train/rollout"
)

// imageTemplate writes content parts as Qwen2-VL's template does; <pad> stands for an image.
const imageTemplate = "{% for m in messages %}<|im_start|>{% if m.content is string %}{{ m.content }}{% else %}" +
	"{% for c in m.content %}{% if c.type == 'image' %}<pad>{% elif 'text' in c %}{{ c.text }}{% endif %}{% endfor %}" +
	"{% endif %}<|im_end|>{% endfor %}"

// padID is <pad> in prompttest.ModelFolder.
const padID = 260

// tokensOfSize has a token for each 10×10 pixels.
type tokensOfSize struct{}

func (tokensOfSize) Tokens(width, height int) (rows, columns int, err error) {
	if width < 10 {
		return 0, 0, errors.New("too small")
	}
	return height / 10, width / 10, nil
}

func imagePrompter(t *testing.T, template string, set func(c *config.Run)) *Prompter {
	t.Helper()
	p, err := prompterOf(t, prompttest.ModelFolder(t, false, map[string]string{"chat_template.jinja": template}), set)
	if err != nil {
		t.Fatal(err)
	}
	p.ReadImages(&ImageReader{Pad: padID, Size: tokensOfSize{}})
	return p
}

func shows(text string, pictures ...rollout.Picture) *rollout.Problem {
	var parts []json.RawMessage
	for i, piece := range strings.Split(text, rollout.ImageMark) {
		if i > 0 {
			parts = append(parts, json.RawMessage(rollout.ImagePart))
		}
		if piece != "" {
			parts = append(parts, rollout.TextPart(piece))
		}
	}
	return &rollout.Problem{ID: "p", Prompt: text, Images: pictures,
		Messages: []rollout.Message{{Role: "user", Parts: rollout.PartList(parts)}}}
}

var (
	small = rollout.Picture{Digest: strings.Repeat("a", 64), Width: 20, Height: 10}
	large = rollout.Picture{Digest: strings.Repeat("b", 64), Width: 30, Height: 20}
)

// An image is as many pads as it has tokens, or its tokens in the gallery.
func TestImagePrompts(t *testing.T) {
	p := imagePrompter(t, imageTemplate, nil)
	q := shows("a<image>b<image>", small, large)
	want := []int32{258, 'a', padID, padID, 'b', padID, padID, padID, padID, padID, padID, 259}
	for range 2 { // the second time out of the cache
		if got, err := p.Encode(q); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v, %v; want %v", got, err, want)
		}
	}
	first := map[string]int32{small.Digest: 1000, large.Digest: 2000}
	shown := p.Showing(func(pic rollout.Picture) (model.Image, error) {
		rows, columns, err := tokensOfSize{}.Tokens(pic.Width, pic.Height)
		return model.Image{First: first[pic.Digest], Rows: rows, Columns: columns}, err
	})
	want = []int32{258, 'a', 1000, 1001, 'b', 2000, 2001, 2002, 2003, 2004, 2005, 259}
	if got, err := shown.Encode(q); err != nil || !slices.Equal(got, want) {
		t.Errorf("with a gallery %v, %v; want %v", got, err, want)
	}
	// Another image in the same words has the same cached text, and tokens of its own.
	want = []int32{258, 'a', 2000, 2001, 2002, 2003, 2004, 2005, 'b', 1000, 1001, 259}
	if got, err := shown.Encode(shows("a<image>b<image>", large, small)); err != nil || !slices.Equal(got, want) {
		t.Errorf("the other way round %v, %v; want %v", got, err, want)
	}
	text, err := shown.Text(q)
	if err != nil || text != "<|im_start|>a<image 20×10 sha256:aaaaaaaa>b<image 30×20 sha256:bbbbbbbb><|im_end|>" {
		t.Errorf("text %q, %v", text, err)
	}
	around := *p
	around.ReadImages(&ImageReader{Pad: padID, Before: []int32{256}, After: []int32{257}, Size: tokensOfSize{}})
	want = []int32{258, 'a', 256, padID, padID, 257, 'b', 256, padID, padID, 257, 259}
	if got, err := around.Encode(shows("a<image>b<image>", small, small)); err != nil || !slices.Equal(got, want) {
		t.Errorf("between tokens %v, %v; want %v", got, err, want)
	}
	p.NoteImages([]rollout.Problem{*q, *shows("<image>", large)})
	if got := p.Plan().Images; got == nil || *got != (ImagePlan{Images: 3, Tokens: 14, Most: 6, Row: 2, Rows: 2, Different: 8}) {
		t.Errorf("plan %+v", got)
	}
}

func TestImagePromptErrors(t *testing.T) {
	escape := func(c *config.Run) { c.Data.EscapeSpecial = true }
	short := func(c *config.Run) { c.Data.MaxPromptTokens, c.Data.Truncate = 8, "left" }
	tiny := rollout.Picture{Width: 5, Height: 50}
	for _, tt := range []struct {
		name, template string
		set            func(c *config.Run)
		q              *rollout.Problem
		want           string
	}{
		{"a text spells the pad", imageTemplate, nil, shows("<pad><image>", small), "has <pad> 2 times"},
		{"a text without images spells it", imageTemplate, nil, &rollout.Problem{Prompt: "<pad>"}, "spells <pad>"},
		{"a template for texts", "{% for m in messages %}{{ m.role }}{% endfor %}", nil, shows("<image>", small), "writes <pad> 0 times"},
		{"no template", imageTemplate, func(c *config.Run) { c.Data.Chat = config.None }, shows("<image>", small), "plain text"},
		{"too long", imageTemplate, short, shows("<image>?", large), "has 9 tokens, data.max_prompt_tokens is 8; raise it, or set data.filter_overlong or a lower data.image_max_pixels"},
		{"too small", imageTemplate, nil, shows("<image>", tiny), "image 1, <image 5×50 sha256:>: too small"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := imagePrompter(t, tt.template, tt.set).Encode(tt.q)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	q := shows("<pad><image>", small)
	got, err := imagePrompter(t, imageTemplate, escape).Encode(q)
	if want := slices.Concat([]int32{258}, []int32{'<', 'p', 'a', 'd', '>', padID, padID, 259}); err != nil || !slices.Equal(got, want) {
		t.Errorf("escaped: %v, %v; want %v", got, err, want)
	}
	const named = "<|im_start|><pad><image 20×10 sha256:aaaaaaaa><|im_end|>"
	if text, err := imagePrompter(t, imageTemplate, escape).Text(q); err != nil || text != named {
		t.Errorf("escaped: text %q, %v; want %q", text, err, named)
	}
	p := imagePrompter(t, imageTemplate, nil)
	if _, text, err := p.AskedChat(q.Messages, nil, small); err != nil || text != named {
		t.Errorf("a program asks: text %q, %v; want %q", text, err, named)
	}
	if _, _, err := p.AskedChat(q.Messages, nil); err == nil || !strings.Contains(err.Error(), "a message shows an image that nobody gives") {
		t.Errorf("a program asks with an image: %v", err)
	}
	if _, err := p.EncodeChat(q.Messages, nil, true); err == nil || !strings.Contains(err.Error(), "a message shows an image that nobody gives") {
		t.Errorf("a client asks with an image: %v", err)
	}
	p.ReadImages(nil)
	if _, err := p.Encode(q); err == nil || !strings.Contains(err.Error(), "it shows an image, and the model reads text alone") {
		t.Errorf("a model of text: %v", err)
	}
	if kept, err := imagePrompter(t, imageTemplate, func(c *config.Run) { c.Data.MaxPromptTokens, c.Data.FilterOverlong = 8, true }).
		Fitting([]rollout.Problem{*shows("<image>?", large), *shows("<image>", small)}); err != nil || len(kept) != 1 || kept[0].Images[0].Width != 20 {
		t.Errorf("filter: %v, %v", kept, err)
	}
}

// Chats that clients and agents ask show images in the order of their parts. Text that spells the place of an image is
// text: a client's other special tokens are tokens, an agent's are not.
func TestAskedImages(t *testing.T) {
	p := imagePrompter(t, imageTemplate, nil).Showing(func(pic rollout.Picture) (model.Image, error) {
		rows, columns, err := tokensOfSize{}.Tokens(pic.Width, pic.Height)
		return model.Image{First: int32(1000 * rows), Rows: rows, Columns: columns}, err
	})
	q := shows("<image><pad><image><|im_end|>", small, large)
	pad := []int32{'<', 'p', 'a', 'd', '>'}
	images := func(end ...int32) []int32 {
		return slices.Concat([]int32{258, 1000, 1001}, pad, []int32{2000, 2001, 2002, 2003, 2004, 2005}, end, []int32{259})
	}
	if got, err := p.EncodeChat(q.Messages, nil, true, q.Images...); err != nil || !slices.Equal(got, images(259)) {
		t.Errorf("a client: %v, %v; want %v", got, err, images(259))
	}
	if vars, err := p.WithVars(map[string]any{"a": 1}); err != nil {
		t.Error(err)
	} else if got, err := vars.EncodeChat(q.Messages, nil, true, q.Images...); err != nil || !slices.Equal(got, images(259)) {
		t.Errorf("a client with variables: %v, %v", got, err)
	}
	spelled := []int32{}
	for _, b := range []byte("<|im_end|>") {
		spelled = append(spelled, int32(b))
	}
	got, text, err := p.AskedChat(shows("<image><image><|im_end|>", small, large).Messages, nil, small, large)
	want := slices.Concat([]int32{258, 1000, 1001, 2000, 2001, 2002, 2003, 2004, 2005}, spelled, []int32{259})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("an agent: %v, %v; want %v", got, err, want)
	}
	if want := "<|im_start|><image 20×10 sha256:aaaaaaaa><image 30×20 sha256:bbbbbbbb><|im_end|><|im_end|>"; text != want {
		t.Errorf("text %q, want %q", text, want)
	}
	// Where a conversation goes on, after the token 259 that ended the turn.
	got, err = p.Answered(259, nil, shows("<image><|im_end|>", large).Messages, 0, large)
	want = slices.Concat([]int32{258, 2000, 2001, 2002, 2003, 2004, 2005}, spelled, []int32{259})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("it goes on: %v, %v; want %v", got, err, want)
	}
	if _, err := p.Answered(259, nil, shows("<image>", large).Messages, 0); err == nil || !strings.Contains(err.Error(), "that nobody gives") {
		t.Errorf("it goes on without the image: %v", err)
	}
	if got, err := p.EncodeChat(shows("<pad>").Messages, nil, true); err != nil || !slices.Equal(got, slices.Concat([]int32{258}, pad, []int32{259})) {
		t.Errorf("without images: %v, %v", got, err)
	}
	if _, err := p.EncodeChat(q.Messages, nil, true, small); err == nil || !strings.Contains(err.Error(), "the messages show 2 images, and there are 1") {
		t.Errorf("one image too few: %v", err)
	}
	if _, err := p.EncodeChat(q.Messages, nil, true, small, large, small); err == nil || !strings.Contains(err.Error(), "the messages show 2 images, and there are 3") {
		t.Errorf("one image too many: %v", err)
	}
	p.ReadImages(nil)
	if _, err := p.EncodeChat(q.Messages, nil, true, q.Images...); err == nil || !strings.Contains(err.Error(), "they show 2 images, and the model reads text alone") {
		t.Errorf("a model of text: %v", err)
	}
}

// countingTemplate writes chats as Qwen2-VL's template does with add_vision_id, and opens answers.
const countingTemplate = "{% set n = namespace(k=0) %}{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}" +
	"{{ m.content }}{% else %}{% for c in m.content %}{% if c.type == 'image' %}{% set n.k = n.k + 1 %}Picture {{ n.k }}: <pad>" +
	"{% elif 'text' in c %}{{ c.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}" +
	"{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"

// A conversation with images has the tokens that the template gives it as a whole, and learns no image.
func TestImageConversation(t *testing.T) {
	p := imagePrompter(t, countingTemplate, nil)
	q := layout.Conversation{Where: "talks.jsonl:1"}
	say := func(role, text string) rollout.Message { return rollout.Message{Role: role, Content: text} }
	q.Messages = []rollout.Message{shows("<image>?").Messages[0], say("assistant", "One."), shows("and <image><image>").Messages[0],
		say("assistant", "Two <b>.")}
	q.Images = []rollout.Picture{small, large, small}
	x, plan, err := p.Conversations(t.Context(), []layout.Conversation{q})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := p.EncodeChat(q.Messages, nil, false, q.Images...)
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Concat(x[0].Prompt, x[0].Tokens)
	if !slices.Equal(got, whole[:len(whole)-1]) { // without the line end behind the last turn
		t.Errorf("%q, want %q", p.written(got), p.written(whole))
	}
	learned := ""
	at := 0
	for _, s := range append(x[0].Inserted, rollout.Span{Start: len(x[0].Tokens)}) {
		learned += p.written(x[0].Tokens[at:s.Start])
		at = s.End
	}
	if want := "One.<|im_end|>Two <b>.<|im_end|>"; learned != want {
		t.Errorf("%q is learned, want %q", learned, want)
	}
	if want := (ImagePlan{Images: 3, Tokens: 10, Most: 6, Row: 3, Different: 8}); plan.Images == nil ||
		*plan.Images != want || plan.Tokens != len(got) {
		t.Errorf("plan %+v of %d tokens, want %+v of %d", plan.Images, plan.Tokens, want, len(got))
	}
	// In a gallery each token of an image has its id, in the same places.
	first := map[string]int32{small.Digest: 1000, large.Digest: 2000}
	shown := p.Showing(func(pic rollout.Picture) (model.Image, error) {
		rows, columns, err := tokensOfSize{}.Tokens(pic.Width, pic.Height)
		return model.Image{First: first[pic.Digest], Rows: rows, Columns: columns}, err
	})
	shown.vocab = 300
	y, _, err := shown.Conversations(t.Context(), []layout.Conversation{q})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int32{1000, 1001, 2000, 2001, 2002, 2003, 2004, 2005, 1000, 1001},
		slices.DeleteFunc(slices.Concat(y[0].Prompt, y[0].Tokens), func(id int32) bool { return id < 1000 })); diff != "" {
		t.Errorf("tokens of images (-want +got):\n%s", diff)
	}
	const text = "<|im_start|>user\nPicture 1: <image 20×10 sha256:aaaaaaaa>?<|im_end|>\n<|im_start|>assistant\n|One.<|im_end|>|\n<|im_start|>user\n" +
		"and Picture 2: <image 30×20 sha256:bbbbbbbb>Picture 3: <image 20×10 sha256:aaaaaaaa><|im_end|>\n<|im_start|>assistant\n|Two <b>.<|im_end|>|"
	for i, parts := range [][]ConversationPart{p.parts(&q, x[0]), shown.parts(&q, y[0])} {
		got := ""
		for _, part := range parts {
			got += part.Text + "|"
		}
		if got != text {
			t.Errorf("%d: parts %q, want %q", i, got, text)
		}
	}
	spelled := q
	spelled.Messages = append([]rollout.Message{shows("<pad><image>?").Messages[0]}, q.Messages[1:]...)
	z, _, err := p.Conversations(t.Context(), []layout.Conversation{spelled})
	if err != nil || !strings.Contains(p.parts(&spelled, z[0])[0].Text, "<pad>Picture 1: <image 20×10 sha256:aaaaaaaa>?") {
		t.Errorf("a question that spells the place of an image: %+v, %v", p.parts(&spelled, z[0]), err)
	}
	// A cut within the second question leaves out the whole of it, and no part of an image.
	p.sft.MaxTokens = len(x[0].Prompt) + x[0].Inserted[0].End - 10
	cut, _, err := p.Conversations(t.Context(), []layout.Conversation{q})
	if err != nil || p.written(cut[0].Tokens) != "One.<|im_end|>" || len(cut[0].Inserted) > 0 {
		t.Errorf("cut: %+v, %v", cut[0], err)
	}
	p.sft.MaxTokens = 0
	q.Messages[3].Content = "<pad>"
	if _, _, err := p.Conversations(t.Context(), []layout.Conversation{q}); err == nil ||
		!strings.Contains(err.Error(), "talks.jsonl:1: message 4: its text spells <pad>") {
		t.Errorf("an answer that spells the place of an image: %v", err)
	}
	p.ReadImages(nil)
	if _, _, err := p.Conversations(t.Context(), []layout.Conversation{q}); err == nil ||
		!strings.Contains(err.Error(), "talks.jsonl:1: it shows 3 images, and the model reads text alone") {
		t.Errorf("a model of text: %v", err)
	}
}
