package prompt

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/harness/prompt/prompttest"
	"exp/train/picture"
	"exp/train/rollout"
)

// goldenSquares is testdata/gemma.json, which gemma.py made with transformers.
type goldenSquares struct {
	Template  string
	Tokenizer json.RawMessage
	Prompts   []struct {
		Messages []rollout.Message
		Images   int
		IDs      []int32
	}
}

// squarePrompter returns a prompter for images that become squares of 16 pixels, four tokens.
func squarePrompter(t *testing.T) (*Prompter, goldenSquares) {
	t.Helper()
	var g goldenSquares
	raw, err := os.ReadFile(filepath.Join("testdata", "gemma.json"))
	if err == nil {
		err = json.Unmarshal(raw, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := prompterOf(t, prompttest.ModelFolder(t, false, map[string]string{"tokenizer.json": string(g.Tokenizer),
		"chat_template.jinja": g.Template, "generation_config.json": `{"eos_token_id": 260}`,
		"tokenizer_config.json": `{"bos_token": "<bos>", "eos_token": "<end_of_turn>"}`}), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := picture.NewSettings()
	s.Patch, s.Merge, s.Frames, s.Tile, s.MinPixels, s.MaxPixels, s.Uncut = 4, 2, 1, 16, 256, 256, true
	pad, _ := p.Tokenizer.TokenID("<image_soft_token>")
	p.ReadImages(&ImageReader{Pad: pad, Size: s, Place: "<start_of_image>",
		Written: "\n\n<start_of_image><image_soft_token><end_of_image>\n\n"})
	return p, g
}

// Prompts that show images have the ids of Gemma 3's processor, whose line ends join the line ends around them.
func TestSquaresAsTransformers(t *testing.T) {
	p, g := squarePrompter(t)
	for i, x := range g.Prompts {
		images := picturesOf(slices.Repeat([][2]int{{30, 20}}, x.Images))
		q := &rollout.Problem{ID: "p", Messages: x.Messages, Images: images}
		if got, err := p.Encode(q); err != nil || !slices.Equal(got, x.IDs) {
			t.Errorf("%d: %q (%v), of transformers %q", i, p.written(got), err, p.written(x.IDs))
		}
		if got, err := p.EncodeChat(x.Messages, nil, true, images...); err != nil || !slices.Equal(got, x.IDs) {
			t.Errorf("%d, as a chat: %q (%v)", i, p.written(got), err)
		}
	}
	x := g.Prompts[0]
	text, err := p.Text(&rollout.Problem{Messages: x.Messages, Images: picturesOf([][2]int{{30, 20}})})
	const want = "<bos><start_of_turn>user\n\n\n<start_of_image><image 30×20 sha256:aaaaaaaa><end_of_image>\n\nFind x.<end_of_turn>\n" +
		"<start_of_turn>model\n"
	if err != nil || text != want {
		t.Errorf("%q (%v), want %q", text, err, want)
	}
}

// Text that spells the place of an image is not one.
func TestSquaresThatTextSpells(t *testing.T) {
	p, _ := squarePrompter(t)
	spelled := []rollout.Message{{Role: "user", Content: "What is <start_of_image>?"}}
	_, err := p.Encode(&rollout.Problem{Messages: spelled})
	if err == nil || !strings.Contains(err.Error(), "its text spells <image_soft_token>, the place of an image") {
		t.Errorf("a problem: %v", err)
	}
	ids, err := p.EncodeChat(spelled, nil, true)
	if err != nil || !strings.Contains(p.written(ids), "What is <start_of_image>?") || slices.Contains(ids, p.images.Pad) {
		t.Errorf("a chat: %q (%v)", p.written(ids), err)
	}
}
