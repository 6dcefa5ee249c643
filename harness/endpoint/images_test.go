package endpoint

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"exp/harness/config"
	"exp/harness/dataset"
	"exp/harness/evaluate"
	"exp/harness/inspect"
	"exp/harness/openai"
	"exp/harness/prompt/prompttest"
	"exp/harness/stage"
	"exp/kernels/cpu"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/rollout"
)

const seeingContext = 256

// seeingConfig is the configuration of a tiny model of text and images.
func seeingConfig(t *testing.T) *config.Resolved {
	t.Helper()
	r, err := evaluate.Folder{Folder: inspect.Folder{Dir: prompttest.PictureFolder(t, prompttest.PictureConfig)}, Values: Values(seeingContext)}.Config()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// seeing opens the model.
func seeing(t *testing.T, r *config.Resolved) (*Model, *httptest.Server) {
	t.Helper()
	be, err := cpu.Open(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	x, err := Open(r, be, "seeing")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return x, opens(t, x)
}

// square returns a PNG file of 64×48 pixels, 48 tokens, with a square whose color depends on a number.
func square(t testing.TB, n int) []byte {
	t.Helper()
	im := image.NewRGBA(image.Rect(0, 0, 64, 48))
	for y := range 48 {
		for x := range 64 {
			c := color.RGBA{30, 30, 60, 255}
			if x < 24 && y < 20 {
				c = color.RGBA{uint8(250 - 40*n), uint8(20 + 40*n), uint8(n / 6), 255}
			}
			im.SetRGBA(x, y, c)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, im); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func urlOf(encoded []byte) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(encoded)
}

// imagePart and textPart are parts of content as clients send them.
func imagePart(encoded []byte) string {
	return `{"type":"image_url","image_url":{"url":"` + urlOf(encoded) + `","detail":"high"}}`
}

func textPart(text string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, text) }

// userOf returns a message with parts.
func userOf(parts ...string) string {
	return `{"role":"user","content":[` + strings.Join(parts, ",") + `]}`
}

func chatOf(fields string, messages ...string) string {
	return `{"messages":[` + strings.Join(messages, ",") + `],"max_tokens":24,"seed":3,"ignore_eos":true` + fields + `}`
}

// problemOf is a problem whose prompt shows images before a text.
func problemOf(t *testing.T, text string, files ...[]byte) *rollout.Problem {
	t.Helper()
	q := &rollout.Problem{ID: "p", Prompt: text}
	var parts []json.RawMessage
	for _, f := range files {
		pic, err := dataset.Carry(f)
		if err != nil {
			t.Fatal(err)
		}
		q.Images, parts = append(q.Images, pic), append(parts, pic.Part())
	}
	q.Messages = []rollout.Message{{Role: "user", Parts: rollout.PartList(append(parts, rollout.TextPart(text)))}}
	return q
}

// sampledFor draws the completion of a problem as stages do, with the seed of the endpoint.
func sampledFor(t *testing.T, r *config.Resolved, q *rollout.Problem, seed int64) (rollout.Completion, int) {
	t.Helper()
	be, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	m, err := stage.Pretrained(r, be)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	g, tower, err := stage.NewGallery(&r.Run, be, m.Config.Vocab, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer tower.Close()
	m.SetImages(g)
	prompts, err := stage.NewPrompter(&r.Run)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := prompts.Showing(func(p rollout.Picture) (model.Image, error) {
		read := func() ([]byte, error) { return p.Encoded, nil }
		if p.Video() {
			return g.AddVideo(p.Digest, dataset.ClipOf(p), read)
		}
		return g.Add(p.Digest, p.Width, p.Height, read)
	}).Encode(q)
	if err != nil {
		t.Fatal(err)
	}
	o := stage.EngineOptions(&r.Run, m.Config, 1, nil)
	o.MaxSequences = 2
	e, err := generate.New(be, m, never{prompts.Vocabulary()}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	out, err := e.Sample(t.Context(), []rollout.Request{{Prompt: ids, Seeds: seeds(&seed, 1)}},
		rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: 24}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out[0][0], len(ids)
}

// never is a vocabulary in which no token ends an answer.
type never struct{ generate.Vocabulary }

func (never) EndIDs() []int32 { return nil }

// An answer to a chat with images is the completion that a stage draws for the same prompt, token by token, whole and
// as a stream, and so is a conversation's.
func TestChatShowsImages(t *testing.T) {
	r := seeingConfig(t)
	x, h := seeing(t, r)
	a, b := square(t, 1), square(t, 4)
	answers := map[string]bool{}
	for _, files := range [][][]byte{{a}, {b}, {a, b}, {b, a}} {
		var parts []string
		for _, f := range files {
			parts = append(parts, imagePart(f))
		}
		want, n := sampledFor(t, r, problemOf(t, "Side?", files...), 3)
		body := chatOf(`,"logprobs":true`, userOf(append(parts, textPart("Side?"))...))
		got := ask(t, h.URL+"/v1/chat/completions", body)
		c := got.Choices[0]
		if c.Message.Content != string([]rune(want.Text)) || got.Usage.Prompt != n || got.Usage.Details.Images != 48*len(files) {
			t.Errorf("%d images: %q of %+v, a stage says %q of %d tokens", len(files), c.Message.Content, got.Usage, want.Text, n)
		}
		if len(c.Logprobs.Content) != len(want.LogProbs) {
			t.Fatalf("%d log-probs, want %d", len(c.Logprobs.Content), len(want.LogProbs))
		}
		for i, lp := range c.Logprobs.Content {
			if math.Abs(lp.Logprob-float64(want.LogProbs[i])) > 1e-6 {
				t.Errorf("token %d: log-prob %v, a stage says %v", i, lp.Logprob, want.LogProbs[i])
			}
		}
		answers[fmt.Sprint(c.Logprobs.Content)] = true
		var streamed strings.Builder
		for _, part := range stream(t, h.URL+"/v1/chat/completions", strings.Replace(body, "{", `{"stream":true,`, 1)) {
			for _, c := range part.Choices {
				streamed.WriteString(c.Delta.Content)
			}
		}
		if streamed.String() != c.Message.Content {
			t.Errorf("streamed %q, whole %q", streamed.String(), c.Message.Content)
		}
	}
	if len(answers) != 4 {
		t.Errorf("%d different answers to 4 prompts", len(answers))
	}
	// A conversation says the same.
	seed := int64(3)
	talk := x.NewConversation("", Sampling{Temperature: 1, TopP: 1, New: 24, Seed: &seed, Least: 24})
	p, err := x.Image(a)
	if err != nil || p.Tokens != 48 || !strings.HasPrefix(p.Name, "<image 64×48 sha256:") {
		t.Fatal(p, err)
	}
	said, err := talk.Ask(t.Context(), "Side?", func(string) error { return nil }, p)
	if err != nil {
		t.Fatal(err)
	}
	want := ask(t, h.URL+"/v1/chat/completions", strings.Replace(chatOf(`,"min_tokens":24`, userOf(imagePart(a), textPart("Side?"))), `,"ignore_eos":true`, "", 1))
	if got := string([]rune(said.Text)); got != want.Choices[0].Message.Content || said.Prompt != want.Usage.Prompt {
		t.Errorf("a conversation says %q, the endpoint %+v", got, want)
	}
	next, err := talk.Ask(t.Context(), "Sure?", func(string) error { return nil })
	if err != nil || next.Prompt < said.Prompt+said.New {
		t.Errorf("the next question has %d tokens (%v), the first with its answer %d", next.Prompt, err, said.Prompt+said.New)
	}
}

// The next turn of a conversation finds the pages of its images, and a text that spells the place of an image is text.
func TestImagesOfTheNextTurn(t *testing.T) {
	_, h := seeing(t, seeingConfig(t))
	first := userOf(imagePart(square(t, 2)), textPart("Side?"))
	one := ask(t, h.URL+"/v1/chat/completions", chatOf("", first))
	answer, err := json.Marshal(one.Choices[0].Message.Content)
	if err != nil {
		t.Fatal(err)
	}
	two := ask(t, h.URL+"/v1/chat/completions", chatOf("", first, `{"role":"assistant","content":`+string(answer)+`}`, userOf(textPart("Sure?"))))
	if d := two.Usage.Details; d.Cached < 48 || d.Images != 48 {
		t.Errorf("%+v of the second turn, the image has 48 tokens", d)
	}
	other := ask(t, h.URL+"/v1/chat/completions", chatOf("", userOf(imagePart(square(t, 3)), textPart("Side?"))))
	if d := other.Usage.Details; d.Cached > 32 { // what stands before the image
		t.Errorf("%+v of another image", d)
	}
	spelled := ask(t, h.URL+"/v1/chat/completions", chatOf("", userOf(imagePart(square(t, 2)), textPart("<pad>"))))
	if n, want := spelled.Usage.Prompt, one.Usage.Prompt-len("Side?")+len("<pad>"); n != want || spelled.Usage.Details.Images != 48 {
		t.Errorf("a prompt that spells <pad> has %d tokens, want %d", n, want)
	}
	text := ask(t, h.URL+"/v1/chat/completions", chatOf(`,"repetition_penalty":1.5`, `{"role":"user","content":"<pad> a"}`))
	if text.Usage.Details.Images != 0 || text.Usage.Prompt <= len("<pad> a") {
		t.Errorf("a text that spells <pad>: %+v", text.Usage)
	}
	ask(t, h.URL+"/v1/chat/completions", chatOf(`,"repetition_penalty":1.5,"n":3`, first))
	tool := `{"role":"tool","tool_call_id":"x","content":[` + textPart("a screen:") + "," + imagePart(square(t, 2)) + `]}`
	if got := ask(t, h.URL+"/v1/chat/completions", chatOf("", `{"role":"user","content":"look"}`, tool)); got.Usage.Details.Images != 48 {
		t.Errorf("a tool shows an image: %+v", got.Usage)
	}
}

// What cannot be shown is refused by its place, and the endpoint goes on.
func TestImagesThatAreRefused(t *testing.T) {
	x, h := seeing(t, seeingConfig(t))
	_, blind := opened(t, Options{})
	good := square(t, 1)
	image := func(url string) string { return `{"type":"image_url","image_url":` + url + `}` }
	many := slices.Repeat([]string{imagePart(good)}, 65)
	for _, tt := range []struct{ name, url, body, want string }{
		{"a model of text", blind.URL, chatOf("", userOf(imagePart(good))), "messages [0]: content[0]: it shows an image, and the model reads text alone"},
		{"http", h.URL, chatOf("", `{"role":"system","content":"s"}`, userOf(textPart("a"), image(`"https://example.com/a.png"`))),
			"messages [1]: content[1]: image_url is https://example.com/a.png: no image is fetched from there; send a data: URL"},
		{"base64", h.URL, chatOf("", userOf(image(`{"url":"data:image/png;base64,!!"}`))), "messages [0]: content[0]: image_url: illegal base64 data"},
		{"not base64", h.URL, chatOf("", userOf(image(`"data:image/png,abc"`))), "not in base64"},
		{"no image", h.URL, chatOf("", userOf(image(`"`+urlOf([]byte("hello"))+`"`))), "content[0]: the image cannot be read: it is not an image file"},
		{"a cut image", h.URL, chatOf("", userOf(textPart("a"), imagePart(good[:len(good)-30]))), "content[1]: the image cannot be read: "},
		{"no url", h.URL, chatOf("", userOf(image(`{"detail":"low"}`))), `image_url must be {\"url\"`},
		{"null", h.URL, chatOf("", userOf(image(`null`))), `image_url must be {\"url\"`},
		{"assistant", h.URL, chatOf("", userOf(textPart("a")), `{"role":"assistant","content":[`+imagePart(good)+`]}`),
			"messages [1]: content[0]: an image in a message of role assistant"},
		{"audio", h.URL, chatOf("", userOf(`{"type":"input_audio"}`)), `content[0] is of type \"input_audio\": only text, image_url, video_url and video`},
		{"many", h.URL, chatOf("", userOf(many...)), "more than 64 images"},
		{"long", h.URL, chatOf("", userOf(slices.Repeat([]string{imagePart(square(t, 5))}, 6)...)), "shorten messages, or make images smaller"},
	} {
		code, text := post(t, tt.url+"/v1/chat/completions", tt.body)
		if code != http.StatusBadRequest || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %d %s, want %q", tt.name, code, text, tt.want)
		}
	}
	if pic, err := dataset.Describe(square(t, 5)); err != nil || x.gallery.Knows(pic.Digest) {
		t.Error("the image of a prompt that is too long has ids", err)
	}
	for _, id := range []int{x.vocab, x.vocab + 48} { // the second one after an image had it
		if code, text := post(t, h.URL+"/v1/completions", fmt.Sprintf(`{"prompt":[%d]}`, id)); code != 400 || !strings.Contains(text, "the model has 0 to") {
			t.Errorf("token %d: %d %s", id, code, text)
		}
		ask(t, h.URL+"/v1/chat/completions", chatOf("", userOf(imagePart(good))))
	}
	for size, want := range map[int]int{openai.MostBody: http.StatusBadRequest, openai.MostImageBody: http.StatusRequestEntityTooLarge} {
		if code, text := post(t, h.URL+"/v1/chat/completions", `{"messages":[`+userOf(textPart(strings.Repeat("x", size)))+`]}`); code != want {
			t.Errorf("a text of %d MiB: %d %.200s, want %d", size>>20, code, text, want)
		}
	}
	if _, err := x.Image(good[:40]); err == nil {
		t.Error("a picture of 40 bytes")
	}
}

// An endpoint that is shown many images keeps the few that it may; some of its clients go away.
func TestImagesAreLetGo(t *testing.T) {
	x, h := seeing(t, seeingConfig(t))
	const most = 3
	x.gallery.Keep(most, fileRoom)
	first := ask(t, h.URL+"/v1/chat/completions", chatOf("", userOf(imagePart(square(t, 0)))))
	var digests []string
	for n := range 30 {
		pic, err := dataset.Carry(square(t, n))
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, pic.Digest)
		body := chatOf(`,"n":2`, userOf(imagePart(pic.Encoded)))
		if n%3 == 1 {
			ctx, leave := context.WithTimeout(t.Context(), time.Duration(n)*time.Millisecond/2)
			req, err := http.NewRequestWithContext(ctx, "POST", h.URL+"/v1/chat/completions", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			if r, err := http.DefaultClient.Do(req); err == nil {
				r.Body.Close()
			}
			leave()
			continue
		}
		ask(t, h.URL+"/v1/chat/completions", body)
	}
	known := func() (n int) {
		for _, d := range digests {
			if x.gallery.Knows(d) {
				n++
			}
		}
		return n
	}
	for end := time.Now().Add(10 * time.Second); known() > most && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // until the engine has seen who left
	}
	if n := known(); n > most || n == 0 {
		t.Errorf("%d images are kept, want %d", n, most)
	}
	if x.gallery.Knows(digests[0]) {
		t.Error("the first image is kept")
	}
	again := ask(t, h.URL+"/v1/chat/completions", chatOf("", userOf(imagePart(square(t, 0)))))
	if again.Choices[0].Message.Content != first.Choices[0].Message.Content || again.Usage.Details.Cached >= 48 {
		t.Errorf("the first image again: %+v, first %+v", again, first)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open != 0 {
		t.Errorf("%d completions are open", x.open)
	}
}

// The plan of memory has what reads images.
func TestNeedsOfImages(t *testing.T) {
	r := seeingConfig(t)
	parts, total, err := Needs(r)
	if err != nil {
		t.Fatal(err)
	}
	weights, one := stage.TowerBytes(&r.Run, r.Run.Data.MaxPromptTokens)
	want := map[string]int64{"vision tower": weights, "activations of an image": one, "images": featureRoom + fileRoom}
	sum := int64(0)
	for _, p := range parts {
		sum += p.Bytes
		if p.Bytes > 0 && want[p.Name] == p.Bytes {
			delete(want, p.Name)
		}
	}
	if sum != total || len(want) > 0 {
		t.Errorf("%+v, total %d", parts, total)
	}
}
