package layout

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/eval/rows"
)

func readPairs(t *testing.T, lines ...string) ([]Pair, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pairs.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	return Pairs(rows.Read(path), pictured("images"))
}

// Rows in each of TRL's forms give the prompt and two answers.
func TestPairs(t *testing.T) {
	const ask, good, bad = `{"role":"user","content":"?"}`, `{"role":"assistant","content":"ok"}`, `{"role":"assistant","content":"no"}`
	const more = ask + good + `{"role":"user","content":"and?"}`
	list := func(messages string) string { return "[" + strings.ReplaceAll(messages, "}{", "},{") + "]" }
	for _, tt := range []struct {
		name, row        string
		asked            int
		chosen, rejected string // messages, or prompt|answer
	}{
		{"explicit lists", `{"prompt": [` + ask + `], "chosen": [` + good + `], "rejected": [` + bad + `]}`, 1, ask + good, ask + bad},
		{"whole lists", `{"chosen": [` + ask + `,` + good + `], "rejected": [` + ask + `,` + bad + `]}`, 1, ask + good, ask + bad},
		{"whole lists next to a text", `{"prompt": "?", "chosen": [` + ask + `,` + good + `], "rejected": [` + ask + `,` + bad + `]}`, 1, ask + good, ask + bad},
		{"turns", `{"chosen": ` + list(more+good) + `, "rejected": ` + list(more+bad) + `}`, 3, more + good, more + bad},
		{"answers of many turns", `{"chosen": ` + list(ask+good+ask+good) + `, "rejected": ` + list(ask+bad) + `}`, 1, ask + good + ask + good, ask + bad},
		{"system column", `{"system": "s", "chosen": [` + ask + `,` + good + `], "rejected": [` + ask + `,` + bad + `]}`, 2,
			`{"role":"system","content":"s"}` + ask + good, `{"role":"system","content":"s"}` + ask + bad},
		{"explicit texts", `{"prompt": "6*7=", "chosen": "42", "rejected": "43"}`, 0, "6*7=|42", "6*7=|43"},
		{"whole texts", `{"chosen": "It is 6*7: 42", "rejected": "It is 6*7: 43 "}`, 0, "It is 6*7:| 42", "It is 6*7:| 43 "},
		{"the word that parts", `{"chosen": "Go to the cat", "rejected": "Go to the  cart"}`, 0, "Go to the| cat", "Go to the|  cart"},
		{"one goes on", `{"chosen": "Go to sleep", "rejected": "Go to"}`, 0, "Go| to sleep", "Go| to"},
		{"letters of two bytes", `{"chosen": "a é", "rejected": "a è"}`, 0, "a| é", "a| è"},
		{"HH", `{"chosen": "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant: the end", "rejected": "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant: then no"}`, 0,
			"\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant:| the end", "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant:| then no"},
	} {
		got, err := readPairs(t, tt.row)
		if err != nil || len(got) != 1 {
			t.Errorf("%s: %d pairs, %v", tt.name, len(got), err)
			continue
		}
		for i, c := range []Conversation{got[0].Chosen, got[0].Rejected} {
			text := c.Prompt + "|" + c.Target
			if len(c.Messages) > 0 {
				text = ""
				for _, m := range c.Messages {
					b, err := json.Marshal(m)
					if err != nil {
						t.Fatal(err)
					}
					text += string(b)
				}
			}
			if want := []string{tt.chosen, tt.rejected}[i]; text != want || c.Asked != tt.asked {
				t.Errorf("%s: side %d, %d asked: %s, want %d: %s", tt.name, i, c.Asked, text, tt.asked, want)
			}
		}
		if got[0].Same || got[0].Chosen.ID != "0" || got[0].Rejected.ID != "0" {
			t.Errorf("%s: same %v, ids %q and %q", tt.name, got[0].Same, got[0].Chosen.ID, got[0].Rejected.ID)
		}
	}
}

// Equal answers are noted, in each form; ids stay apart.
func TestPairsAlike(t *testing.T) {
	const ask, ok = `{"role":"user","content":"?"}`, `{"role":"assistant","content":"ok"}`
	got, err := readPairs(t, `{"id": "x", "prompt": "?", "chosen": "a", "rejected": "a"}`, `{"id": "x", "chosen": "q a", "rejected": "q a"}`,
		`{"chosen": [`+ask+`,`+ok+`], "rejected": [`+ask+`,`+ok+`]}`, `{"prompt": [`+ask+`], "chosen": [`+ok+`], "rejected": [`+ok+`]}`)
	if err != nil || len(got) != 4 {
		t.Fatalf("%d pairs, %v", len(got), err)
	}
	for i, p := range got {
		if !p.Same {
			t.Errorf("pair %d: not the same", i)
		}
	}
	if a, b := got[0].Chosen.ID, got[1].Chosen.ID; a != "x" || b != "x#2" {
		t.Errorf("ids %q and %q", a, b)
	}
}

// An error names the row and the column.
func TestPairErrors(t *testing.T) {
	const ask, ok = `{"role":"user","content":"?"}`, `{"role":"assistant","content":"ok"}`
	const good = `{"prompt": "?", "chosen": "a", "rejected": "b"}`
	for row, want := range map[string]string{
		`{"prompt": "?", "chosen": "a"}`:                                                         "rejected is missing",
		`{"prompt": "?", "completion": "a"}`:                                                     "chosen is missing",
		`{"prompt": "?", "completion": "a", "label": true}`:                                      "chosen is missing. Its label makes it a single answer, which prefer.loss: kto",
		`{"prompt": "?", "chosen": "a", "rejected": [` + ok + `]}`:                               "one of chosen and rejected is a list",
		`{"prompt": [` + ask + `], "chosen": "a", "rejected": "b"}`:                              "one of prompt and chosen is a list",
		`{"prompt": "?", "chosen": "a", "rejected": ""}`:                                         `field "rejected": empty text`,
		`{"prompt": "?", "chosen": 1, "rejected": {}}`:                                           `field "rejected": neither a list of messages nor a text`,
		`{"chosen": {}, "rejected": "b"}`:                                                        `field "chosen": neither a list of messages nor a text`,
		`{"chosen": "abc", "rejected": "abd"}`:                                                   `field "chosen": no prompt and answer in it`,
		`{"system": "s", "chosen": "a b", "rejected": "a c"}`:                                    `field "system": it has no place`,
		`{"chosen": [` + ask + `,` + ok + `], "rejected": [` + ok + `]}`:                         `field "chosen": its first message differs`,
		`{"chosen": [` + ask + `,` + ok + `], "rejected": [` + ask + `]}`:                        `field "rejected": it ends where the other list goes on`,
		`{"chosen": [` + ask + `,` + ok + `], "rejected": [` + ask + `,` + ask + `]}`:            `field "rejected": message 2 is the first that differs`,
		`{"chosen": [], "rejected": []}`:                                                         `field "chosen": no messages`,
		`{"prompt": [` + ask + `], "chosen": [` + ask + `], "rejected": [` + ok + `]}`:           `field "chosen": no message of the assistant`,
		`{"prompt": [` + ask + `,` + ok + `], "chosen": [` + ok + `], "rejected": [` + ok + `]}`: `field "prompt": its last message is the assistant's`,
	} {
		_, err := readPairs(t, good, row)
		if err == nil || !strings.Contains(err.Error(), "pairs.jsonl:2") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want line 2 and %q", row, err, want)
		}
	}
}

// A margin is a number where a row has one; only RatedPairs reads it.
func TestRatedPairs(t *testing.T) {
	const pair = `"prompt": "?", "chosen": "a", "rejected": "b"`
	path := filepath.Join(t.TempDir(), "pairs.jsonl")
	write := func(lines ...string) {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("{"+pair+`, "margin": -0.5}`, "{"+pair+"}", "{"+pair+`, "margin": null}`)
	got, err := RatedPairs(rows.Read(path))
	if err != nil || len(got) != 3 || got[0].Margin == nil || *got[0].Margin != -0.5 || got[1].Margin != nil || got[2].Margin != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if plain, err := Pairs(rows.Read(path), nil); err != nil || plain[0].Margin != nil {
		t.Errorf("Pairs reads a margin: %+v, %v", plain, err)
	}
	write("{" + pair + `, "margin": [1]}`)
	if _, err := RatedPairs(rows.Read(path)); err == nil || !strings.Contains(err.Error(), "pairs.jsonl:1: field \"margin\"") {
		t.Errorf("a list: %v", err)
	}
}

// Both sides show the images of the row, and the prompts of both the same ones.
func TestPairImages(t *testing.T) {
	url := func(width int) string {
		return `"data:image/png;base64,` + base64.StdEncoding.EncodeToString(pngOf(t, width, 10)) + `"`
	}
	const good, bad = `{"role": "assistant", "content": "ok"}`, `{"role": "assistant", "content": "no"}`
	own := func(width int) string {
		return `{"role": "user", "content": [{"type": "image", "image": ` + url(width) + `}, {"type": "text", "text": "?"}]}`
	}
	const ask = `{"role": "user", "content": "<image>?"}`
	column := `, "images": [` + url(3) + `]}`
	for _, row := range []string{
		`{"prompt": [` + ask + `], "chosen": [` + good + `], "rejected": [` + bad + `]` + column,
		`{"chosen": [` + ask + `, ` + good + `], "rejected": [` + ask + `, ` + bad + `]` + column,
		`{"chosen": [` + own(3) + `, ` + good + `], "rejected": [` + own(3) + `, ` + bad + `]}`,
	} {
		list, err := readPairs(t, row)
		if err != nil || list[0].Same {
			t.Errorf("%s: %v", row, err)
			continue
		}
		for _, c := range []Conversation{list[0].Chosen, list[0].Rejected} {
			if got := string(c.Messages[0].Parts); len(c.Images) != 1 || c.Images[0].Width != 3 || c.Asked != 1 ||
				got != `[{"type":"image"},{"type":"text","text":"?"}]` {
				t.Errorf("%s: %d images, %s", row, len(c.Images), got)
			}
		}
	}
	// After the prompt, each side may show other images. Answers in the same words about others are not the same.
	list, err := readPairs(t, `{"prompt": [`+own(3)+`], "chosen": [`+good+`, `+own(4)+`, `+good+`], "rejected": [`+good+`, `+own(5)+`, `+good+`]}`)
	if err != nil || list[0].Same {
		t.Fatalf("%+v, %v", list, err)
	}
	widths := []int{}
	for _, x := range list[0].Pictures() {
		widths = append(widths, x.Width)
	}
	if !slices.Equal(widths, []int{3, 4, 5}) {
		t.Errorf("images of %d pixels, want 3, 4, 5", widths)
	}
	for row, want := range map[string]string{
		`{"chosen": [` + own(3) + `, ` + good + `], "rejected": [` + own(4) + `, ` + bad + `]}`:     "the prompts of chosen and rejected show different images",
		`{"prompt": [` + own(3) + `], "chosen": [` + good + `], "rejected": [` + bad + `]` + column: "the row has 1 image, but its chosen side has 0 <image>",
		`{"prompt": "<image>?", "chosen": "ok", "rejected": "no"` + column:                          "texts show no images; make prompt and chosen lists of messages",
		`{"chosen": "<image>? ok", "rejected": "<image>? no"` + column:                              "texts show no images; make chosen and rejected lists of messages",
	} {
		if _, err := readPairs(t, row); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "pairs.jsonl:1") {
			t.Errorf("%s: %v, want %q", row, err, want)
		}
	}
}
