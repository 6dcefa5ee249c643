package suite

import (
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"

	"exp/eval/layout"
	"exp/train/rollout"
)

// A benchmark of pictures has its own graders, which know the options that its prompts do not show.
func TestPictures(t *testing.T) {
	image := `{"bytes":"` + base64.StdEncoding.EncodeToString([]byte("\x89PNG")) + `"}`
	dir := files(t, map[string]string{
		"vision.jsonl": `{"id":"test_Art_1","image":` + image + `,"options":"['oil', 'ink']","answer":"B","subject":"Art"}`,
		"charts.jsonl": `{"type":"human_test","question":"Sum?","answer":"14","image":` + image + `}`,
		"scan.jsonl":   `{"questionId":"1","question":"Date?","image":` + image + `,"answers":["May 1","1 May"]}`,
		"photo.jsonl": `{"image_id":"a","question_id":3,"question":"brand?","image":` + image +
			`,"answers":["noks","noks","noks","nok"]}`,
		"vista.jsonl": `{"pid":"8","question":"How far?","decoded_image":` + image + `,"choices":null,"precision":2,"answer":"1.4",` +
			`"question_type":"free_form","answer_type":"float"}`,
		"own.jsonl":   `{"puzzle":"Sum?","sum":"14","photo":` + image + `}`,
		"own.yaml":    "name: own\nfile: own.jsonl\nlayout: {problem: puzzle, answer: sum, images: photo}\n",
		"none.yaml":   "name: none\nfile: own.jsonl\nlayout: {problem: puzzle, answer: sum, images: none}\n",
		"silent.yaml": "name: silent\nfile: own.jsonl\nlayout: {problem: puzzle, answer: sum}\n",
	})
	images := &layout.Images{Column: "images", Begins: func(b []byte) bool { return string(b) == "\x89PNG" },
		Take: func(b []byte) (rollout.Picture, error) { return rollout.Picture{Digest: "11", Encoded: b}, nil }}
	for _, tt := range []struct {
		file, graders, prompt string
		right, wrong          string // responses
	}{
		{"vision.jsonl", "exp mmmu_pro", "<image>", "I think it may well show some ink on paper", "Answer: A"},
		{"charts.jsonl", "exp chartqa", "<image>Sum?", "14.5", "15"},
		{"scan.jsonl", "exp anls", "<image>Date?", "1 Mai", "2 July"},
		{"photo.jsonl", "exp textvqa", "<image>brand?", "noks", "nok"},                       // two people of four, and one
		{"vista.jsonl", "exp mathvista", "<image>How far?", "Answer: 1.404", "Answer: 1.44"}, // two decimals
		{"own.yaml", "exp math_dapo math_reward", "<image>Sum?", "\\boxed{14}", "\\boxed{15}"},
		{"none.yaml", "exp math_dapo math_reward", "Sum?", "\\boxed{14}", "\\boxed{15}"},
	} {
		s, err := Read("", filepath.Join(dir, tt.file), Options{Images: images})
		if err != nil {
			t.Errorf("%s: %v", tt.file, err)
			continue
		}
		data, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back := &Suite{Name: s.Name, Graders: s.Graders}
		if err := back.Decode(data); err != nil {
			t.Fatal(err)
		}
		p := back.Problems[0]
		if got := strings.Join(s.Graders, " "); got != tt.graders || p.Prompt != tt.prompt ||
			len(p.Images) != strings.Count(tt.prompt, rollout.ImageMark) {
			t.Errorf("%s: graders %s, %q, %d images", tt.file, got, p.Prompt, len(p.Images))
		}
		g, err := Grader(s.Graders[len(s.Graders)-1])
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]bool{tt.right: true, tt.wrong: false} {
			if v, err := g.Grade(t.Context(), &p, &rollout.Completion{Text: text}); err != nil || v.Correct != want {
				t.Errorf("%s, %q: %+v, %v", tt.file, text, v, err)
			}
		}
	}
	_, err := Read("", filepath.Join(dir, "silent.yaml"), Options{Images: images})
	if err == nil || !strings.Contains(err.Error(), `own.jsonl:1: field "photo": the row has an image there`) {
		t.Errorf("an image that nothing shows: %v", err)
	}
}
