package run

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"exp/experiments/ident"
	"exp/experiments/keep"
	"exp/experiments/recorded"
	"exp/experiments/store"
)

// picture returns an image file of so many pixels.
func picture(width, height int, shade uint8) []byte {
	im := image.NewGray(image.Rect(0, 0, width, height))
	for i := range im.Pix {
		im.Pix[i] = shade + uint8(i)%7
	}
	var b bytes.Buffer
	if err := png.Encode(&b, im); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// userShows returns a message that shows image files.
func userShows(text string, files ...[]byte) json.RawMessage {
	parts := `{"type":"text","text":"` + text + `"}`
	for _, f := range files {
		parts += `,{"type":"image_url","image_url":{"url":"data:image/png;base64,` + base64.StdEncoding.EncodeToString(f) + `"}}`
	}
	return []byte(`{"role":"user","content":[` + parts + `]}`)
}

// show passes a problem's messages on, with their images, and asks once more with an image of its own, which depends on
// the answer. What cannot be shown must be refused in between.
func (e *agentEpisode) show() string {
	refused := func(want string, messages []json.RawMessage) {
		b, err := json.Marshal(map[string]any{"messages": messages})
		if err != nil {
			panic(err)
		}
		r, err := http.Post(e.BaseURL+"/chat/completions", "application/json", bytes.NewReader(b))
		if err != nil {
			panic(err)
		}
		defer r.Body.Close()
		if b, err = io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusBadRequest || !strings.Contains(string(b), want) {
			panic(fmt.Sprintf("%d %s, %v; want %q", r.StatusCode, b, err, want))
		}
	}
	big := picture(96, 96, 9)
	refused("messages [0]: content[1]: the image cannot be read: it is not an image file", []json.RawMessage{userShows("", []byte("no"))})
	refused("messages [0]: content[2]: the image cannot be read: PNG", []json.RawMessage{userShows("", big, big[:60])})
	refused("messages [0]: content[1]: the image cannot be read: an image of 1×300 pixels", []json.RawMessage{userShows("", picture(1, 300, 9))})
	refused("data.max_prompt_tokens is 96", []json.RawMessage{userShows("", big, big)})
	if os.Getenv(agentWaits) != "" && len(e.ID)%2 == 0 { // then images come in another order
		time.Sleep(3 * time.Millisecond)
	}
	said := askPolicy(e.BaseURL, e.Messages)
	answer, err := json.Marshal(map[string]string{"role": "assistant", "content": said})
	if err != nil {
		panic(err)
	}
	messages := append(e.Messages, answer)
	own := picture(24, 16, uint8(crc32.ChecksumIEEE(fmt.Append(nil, e.Messages, said))))
	next := askPolicy(e.BaseURL, append(messages, userShows("Sure?", own, own)))
	return fmt.Sprintf(`{"id": %q, "score": %v, "answer": "%d"}`, e.ID, float64((len(said)+len(next))%5)/4, len(next))
}

// agentWaits is a variable that makes some episodes wait.
const agentWaits = "EXP_TEST_AGENT_WAITS"

func agentImageSets(dir, data string, more ...string) []string {
	return imageSets(dir, data, append([]string{"rollout.tools={kind: agent, command: [" + os.Args[0] + ", agent-program, shows], max_turns: 3, workers: 2}",
		"rollout.max_new_tokens=48", "eval.final.max_new_tokens=48", "store.samples.eval=all"}, more...)...)
}

// Agents pass a problem's images on. A run has the same bits however many episodes are played at once, learns from what
// the policy says of the images, and can be verified.
func TestAgentShowsImages(t *testing.T) {
	dir, data := pictureFolder(t), squares(t)
	sets := agentImageSets(dir, data)
	a, b := newLab(t), newLab(t)
	res, _ := a.execute(a.plan(1, sets...))
	t.Setenv(agentWaits, "1")
	other, _ := b.execute(b.plan(1, append(sets, "rollout.tools.workers=1", "rollout.tools.episodes=4", "rollout.max_sequences=3")...))
	sameOutputs(t, a.outputs(res.Run.ID), b.outputs(other.Run.ID))
	if res.Run.RID != other.Run.RID {
		t.Errorf("two runs, %s and %s", res.Run.RID, other.Run.RID)
	}
	if v := a.verify(a.plan(1, sets...), VerifyOptions{Level: LevelSample, Completions: 1000}); !v.OK || v.SampledSteps == 0 || len(v.Sampled) < 8 {
		t.Errorf("%d completions sampled again: %+v", len(v.Sampled), v.Findings)
	}
	if v := a.verify(a.plan(1, sets...), VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("%+v", v.Findings)
	}
	brought := map[string]bool{}
	for _, scope := range []string{"train", "eval"} {
		list, _, err := recorded.Completions{DB: a.db, Run: res.Run, Query: store.SampleQuery{Scope: scope}}.Read(context.Background(), 0)
		if err != nil || len(list) == 0 {
			t.Fatal(len(list), err)
		}
		for _, c := range list {
			if !strings.Contains(c.Prompt, "<s><image ") || !strings.Contains(c.Prompt, "×24 sha256:") || c.Reason != "as the agent says" {
				t.Fatalf("%s, sample %d: prompt %q, %s", c.Item, c.K, c.Prompt, c.Reason)
			}
			if len(c.Images) == 0 {
				continue // no room was left
			}
			im := c.Images[0]
			name := "<image 24×16 sha256:" + im.Digest[:8] + ">"
			parts := c.Parts()
			at := slices.IndexFunc(parts, func(p recorded.Part) bool { return p.Tool })
			if len(c.Images) != 1 || im.First != -6 || im.Tokens != 6 || at < 0 || strings.Count(parts[at].Text, name) != 2 {
				t.Fatalf("%s, sample %d: %+v, %+v", c.Item, c.K, c.Images, parts)
			}
			if at := slices.Index(c.TokenIDs, -6); !slices.Equal(c.TokenIDs[at:at+6], []int32{-6, -5, -4, -3, -2, -1}) {
				t.Errorf("%s, sample %d: tokens %d", c.Item, c.K, c.TokenIDs)
			}
			brought[im.Digest] = true
		}
	}
	if len(brought) < 4 {
		t.Errorf("the agents brought %d images", len(brought))
	}
	a.removeUnneeded()
	for digest := range brought {
		im, err := a.db.FindImage(context.Background(), res.Run.ID, digest[:8])
		if err != nil || im.Digest.String() != digest || im.Format != "png" {
			t.Errorf("image %s: %+v, %v", digest, im, err)
		}
		if _, err := a.db.Blobs.Bytes(im.Digest); err != nil {
			t.Error(err)
		}
	}
	shown := ident.Sum(picture(96, 96, 9)) // where the prompt was too long: no completion has it
	if a.db.Blobs.Has(shown, int64(len(picture(96, 96, 9)))) {
		t.Error("an image that no completion shows is kept")
	}
}

// removeUnneeded removes all files that nothing in the store needs, however young.
func (l *lab) removeUnneeded() {
	l.t.Helper()
	plan, err := keep.Sweep(context.Background(), l.db, keep.Options{Now: time.Now().Add(24 * time.Hour), Budget: -1})
	if err != nil {
		l.t.Fatal(err)
	}
	if res, err := keep.Apply(context.Background(), l.db, plan); err != nil || len(res.Items) == 0 {
		l.t.Fatalf("%+v, %v", res, err)
	}
}

// An agent's run that is stopped goes on to the bits of an undisturbed run, though completions with images wait to be
// learned.
func TestAgentShowsImagesAgain(t *testing.T) {
	dir, data := pictureFolder(t), squares(t)
	sets := agentImageSets(dir, data, "train.steps=4", "rollout.staleness=1", "eval.final.suites=[]", "eval.online.every_steps=0")
	whole := newLab(t)
	res, _ := whole.execute(whole.plan(0, sets...))
	l := newLab(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := l.try(ctx, l.plan(0, sets...), &quiet{progress: func(stage string, done int) {
		if stage == "train" && done == 2 {
			cancel()
		}
	}})
	var e *InterruptedError
	if !errors.As(err, &e) || e.Stage != "train" {
		t.Fatalf("stopped with %v", err)
	}
	l.removeUnneeded()
	done, _ := l.execute(l.plan(0, sets...))
	if done.Run.Chain != res.Run.Chain {
		t.Errorf("chain %s, want %s", done.Run.Chain.Short(), res.Run.Chain.Short())
	}
	sameOutputs(t, l.outputs(done.Run.ID), whole.outputs(res.Run.ID))
}
