package prompt

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/eval/layout"
	"exp/harness/config"
	"exp/harness/prompt/prompttest"
	"exp/train/model"
	"exp/train/picture"
	"exp/train/rollout"
)

// goldenTiles is testdata/tiles.json, which tiles.py made with transformers.
type goldenTiles struct {
	Template  string
	Tokenizer json.RawMessage
	Prompts   []struct {
		Messages []rollout.Message
		Images   [][2]int
		IDs      []int32
	}
}

// tilePrompter returns a prompter for images that become tiles of 56 pixels, four tokens each, their longer side 150.
func tilePrompter(t *testing.T, set func(c *config.Run)) (*Prompter, goldenTiles) {
	t.Helper()
	var g goldenTiles
	raw, err := os.ReadFile(filepath.Join("testdata", "tiles.json"))
	if err == nil {
		err = json.Unmarshal(raw, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	template, err := json.Marshal(map[string]string{"chat_template": g.Template})
	if err != nil {
		t.Fatal(err)
	}
	p, err := prompterOf(t, prompttest.ModelFolder(t, false, map[string]string{"tokenizer.json": string(g.Tokenizer),
		"chat_template.json": string(template), "generation_config.json": `{"eos_token_id": 258}`,
		"tokenizer_config.json": `{"bos_token": "<|im_start|>", "eos_token": "<end_of_utterance>"}`}), set)
	if err != nil {
		t.Fatal(err)
	}
	s := picture.NewSettings()
	s.Patch, s.Merge, s.Frames, s.MinPixels, s.MaxPixels, s.Tile, s.LongSide = 14, 2, 1, 1, 150*150, 56, true
	marks := &TileMarks{Around: "<fake_token_around_image>", Whole: "<global-img>", Size: s}
	p.ReadImages(&ImageReader{Pad: 260, Size: s, Marks: marks})
	return p, g
}

func picturesOf(sizes [][2]int) (list []rollout.Picture) {
	for i, size := range sizes {
		list = append(list, rollout.Picture{Digest: strings.Repeat(string(rune('a'+i)), 64), Width: size[0], Height: size[1]})
	}
	return list
}

// Prompts that show tiles have the ids of SmolVLM's processor; texts alone need parts in its template, too.
func TestTilesAsTransformers(t *testing.T) {
	p, g := tilePrompter(t, nil)
	for i, x := range g.Prompts {
		q := &rollout.Problem{ID: "p", Messages: x.Messages, Images: picturesOf(x.Images)}
		if got, err := p.Encode(q); err != nil || !slices.Equal(got, x.IDs) {
			t.Errorf("%d: %v (%v), of transformers %v", i, got, err, x.IDs)
		}
		for k, m := range q.Messages {
			if text := m.Images() == 0; text { // as a text, not as a part
				var parts []struct{ Text string }
				if err := json.Unmarshal(m.Parts, &parts); err != nil {
					t.Fatal(err)
				}
				q.Messages[k] = rollout.Message{Role: m.Role, Content: parts[0].Text}
			}
		}
		if got, err := p.Encode(q); err != nil || !slices.Equal(got, x.IDs) {
			t.Errorf("%d, with texts: %v (%v)", i, got, err)
		}
	}
	// In a gallery the pads have the image's ids, in order.
	shown := p.Showing(func(pic rollout.Picture) (model.Image, error) {
		rows, columns, err := p.images.Size.Tokens(pic.Width, pic.Height)
		return model.Image{First: 1000, Rows: rows, Columns: columns}, err
	})
	x, next := g.Prompts[0], int32(1000)
	got, err := shown.Encode(&rollout.Problem{Messages: x.Messages, Images: picturesOf(x.Images)})
	for i, id := range x.IDs {
		if id == 260 {
			id, next = next, next+1
		}
		if err != nil || got[i] != id {
			t.Fatalf("token %d of %v (%v) is not %d", i, got, err, id)
		}
	}
	for _, id := range got {
		if id > 264 && int(id)-1000 >= 7*4 {
			t.Errorf("token %d of 7 tiles", id)
		}
	}
}

// An answer is learned as the template writes it, with a space that no prompt ends with, and images have their names in
// the text.
func TestTilesOfConversations(t *testing.T) {
	p, g := tilePrompter(t, nil)
	x := g.Prompts[2] // ends where the assistant speaks for the second time
	q := layout.Conversation{}
	q.Messages = append(slices.Clone(x.Messages), rollout.Message{Role: "assistant", Content: "So."})
	q.Messages[1] = rollout.Message{Role: "assistant", Content: "Both."} // as package layout reads it
	q.Images = picturesOf(x.Images)
	list, _, err := p.Conversations(t.Context(), []layout.Conversation{q})
	if err != nil {
		t.Fatal(err)
	}
	c := list[0]
	got := slices.Concat(c.Prompt, c.Tokens)
	whole, err := p.EncodeChat(q.Messages, nil, false, q.Images...)
	if err != nil || !slices.Equal(got[:len(x.IDs)], x.IDs) || !slices.Equal(got, whole[:len(whole)-1]) { // without a line end
		t.Errorf("%q (%v), want %q", p.written(got), err, p.written(whole))
	}
	q.Messages[1].Content = " Both." // as the policy wrote it
	if again, err := p.EncodeChat(q.Messages, nil, false, q.Images...); err != nil || !slices.Equal(again, whole) {
		t.Errorf("with the space: %q (%v)", p.written(again), err)
	}
	text := ""
	for _, part := range p.parts(&q, c) {
		text += part.Text + "|"
	}
	const want = "<|im_start|>User:<fake_token_around_image><row_1_col_1><image 300×50 sha256:aaaaaaaa><fake_token_around_image>" +
		"<fake_token_around_image><row_1_col_1><image 50×300 sha256:bbbbbbbb><fake_token_around_image><end_of_utterance>\nAssistant:|" +
		" Both.<end_of_utterance>|\nUser: Why?<end_of_utterance>\nAssistant:| So.<end_of_utterance>|"
	if text != want {
		t.Errorf("parts %q, want %q", text, want)
	}
	d, err := p.Demonstration(&rollout.Problem{Prompt: "1+1?", Target: "2"})
	if err != nil || d.Text != " 2" {
		t.Errorf("a demonstration %+v, %v", d, err)
	}
	m, err := p.Taught(&rollout.Problem{Prompt: "1+1?", Target: " 2"}, 258)
	if err != nil || p.written(m.Tokens) != " 2<end_of_utterance>" {
		t.Errorf("a target %+v, %v", m, err)
	}
}

// Pixtral's processor writes 2×3 tokens as two rows, with a mark behind each.
func TestRowMarks(t *testing.T) {
	p := imagePrompter(t, imageTemplate, nil)
	p.ReadImages(&ImageReader{Pad: padID, Size: tokensOfSize{}, Marks: &RowMarks{"<s>", "</s>", tokensOfSize{}}})
	want := []int32{258, 'a', padID, padID, padID, 256, padID, padID, padID, 257, padID, padID, 257, 259}
	q := shows("a<image><image>", large, small)
	got, err := p.Encode(q)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v (%v), want %v", got, err, want)
	}
	if ids, n := p.padded(q.Images, got); n != 2 || !slices.Equal(ids, []int32{258, 'a', padID, 257, padID, 257, 259}) {
		t.Errorf("%d images among %v", n, ids)
	}
	p.ReadImages(&ImageReader{Pad: padID, Size: tokensOfSize{}, Marks: &RowMarks{"<s>", "</s>", tokensOfSize{}}})
	if _, err := p.Encode(shows("<image>", rollout.Picture{Width: 5, Height: 50})); err == nil || !strings.Contains(err.Error(), "too small") {
		t.Errorf("an image that is too small: %v", err)
	}
}

type noTiling struct{ picture.Settings }

func (noTiling) Tiling(int, int) (int, int, error) { return 0, 0, errors.New("no tiles") }

func TestTileErrors(t *testing.T) {
	p, g := tilePrompter(t, nil)
	q := &rollout.Problem{Messages: g.Prompts[0].Messages, Images: picturesOf(g.Prompts[0].Images)}
	p.vocab = 263 // the model lacks <row_1_col_2>
	if _, err := p.Encode(q); err == nil || !strings.Contains(err.Error(), `row_1_col_2>" among its tokens: the text has the token 263`) {
		t.Errorf("a token beyond the vocabulary: %v", err)
	}
	p.images.Marks = &TileMarks{Size: noTiling{}}
	if _, err := p.Encode(q); err == nil || !strings.Contains(err.Error(), "image 1, <image 100×40") || !strings.Contains(err.Error(), "no tiles") {
		t.Errorf("an image that has no tiles: %v", err)
	}
}
