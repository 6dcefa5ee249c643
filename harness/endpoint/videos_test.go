package endpoint

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/dataset"
	"exp/harness/evaluate"
	"exp/harness/inspect"
	"exp/harness/prompt/prompttest"
	"exp/train/picture"
)

// An answer to a chat with a video is the completion that a stage draws for the same prompt, for models that have a video
// in one piece and in parts with times. What a client sends is the video that a folder of the frames is.
func TestChatShowsVideos(t *testing.T) {
	frames := [][]byte{square(t, 1), square(t, 4), square(t, 2)}
	file, err := picture.PackFrames(frames, 3, true)
	if err != nil {
		t.Fatal(err)
	}
	part, err := dataset.FilmPart(file)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(part, url, want string) {
		t.Helper()
		if code, body := post(t, url+"/v1/chat/completions", chatOf("", userOf(part))); code != 400 || !strings.Contains(body, want) {
			t.Errorf("%.40s: %d, %s, want %s", part, code, body, want)
		}
	}
	for _, conf := range []string{prompttest.PictureConfig, prompttest.OtherPictureConfigs()[1]} {
		r, err := evaluate.Folder{Folder: inspect.Folder{Dir: prompttest.VideoFolder(t, conf)}, Values: Values(seeingContext)}.Config()
		if err != nil {
			t.Fatal(err)
		}
		x, h := seeing(t, r)
		want, n := sampledFor(t, r, problemOf(t, "Side?", file, square(t, 3)), 3)
		got := ask(t, h.URL+"/v1/chat/completions", chatOf(`,"logprobs":true`, userOf(string(part), imagePart(square(t, 3)), textPart("Side?"))))
		c := got.Choices[0]
		if c.Message.Content != string([]rune(want.Text)) || got.Usage.Prompt != n {
			t.Errorf("%q of %+v, a stage says %q of %d tokens", c.Message.Content, got.Usage, want.Text, n)
		}
		for i, lp := range c.Logprobs.Content {
			if math.Abs(lp.Logprob-float64(want.LogProbs[i])) > 1e-6 {
				t.Errorf("token %d: log-prob %v, a stage says %v", i, lp.Logprob, want.LogProbs[i])
			}
		}
		refused(`{"type":"video","video":["/etc/passwd"]}`, h.URL, "no video is fetched from there")
		refused(`{"type":"video","video":["`+urlOf(square(t, 1))+`"]}`, h.URL, "a video of 1 frame")
		dir := t.TempDir()
		for i, f := range frames {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".png")), f, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		video, err := x.Video(dir)
		if err != nil || got.Usage.Details.Images != video.Tokens+48 || !strings.HasPrefix(video.Name, "<video 64×48, 3 frames, sha256:") {
			t.Errorf("%+v, %v", video, err)
		}
		if !x.ReadsVideos() {
			t.Error("it reads no videos")
		}
	}
	_, h := seeing(t, seeingConfig(t))
	refused(string(part), h.URL, "reads images alone")
}
