package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"exp/experiments/recorded"
	"exp/experiments/store"
)

// show passes a problem's messages on, with their images, and asks once more about them. What may not be shown must be
// refused in between.
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
	const other = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAAD0lEQVR4nGMQUDD48EAAAAZnAkFaM/QcAAAAAElFTkSuQmCC"
	refused("agents may show the images of problems alone", []json.RawMessage{[]byte(`{"role":"user","content":[{"type":"image_url",` +
		`"image_url":{"url":"data:image/png;base64,` + other + `"}}]}`)})
	said := askPolicy(e.BaseURL, e.Messages)
	answer, err := json.Marshal(map[string]string{"role": "assistant", "content": said})
	if err != nil {
		panic(err)
	}
	messages := append(e.Messages, answer)
	refused("an image in a message that continues a conversation", append(messages[:len(messages):len(messages)], e.Messages...))
	next := askPolicy(e.BaseURL, append(messages, []byte(`{"role":"user","content":"Sure?"}`)))
	return fmt.Sprintf(`{"id": %q, "score": %v, "answer": "%d"}`, e.ID, float64((len(said)+len(next))%5)/4, len(next))
}

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
	for _, scope := range []string{"train", "eval"} {
		list, _, err := recorded.Completions{DB: a.db, Run: res.Run, Query: store.SampleQuery{Scope: scope}}.Read(context.Background(), 0)
		if err != nil || len(list) == 0 {
			t.Fatal(len(list), err)
		}
		for _, c := range list {
			if !strings.Contains(c.Prompt, "<s><image ") || !strings.Contains(c.Prompt, "×24 sha256:") || c.Reason != "as the agent says" {
				t.Fatalf("%s, sample %d: prompt %q, %s", c.Item, c.K, c.Prompt, c.Reason)
			}
		}
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
	done, _ := l.execute(l.plan(0, sets...))
	if done.Run.Chain != res.Run.Chain {
		t.Errorf("chain %s, want %s", done.Run.Chain.Short(), res.Run.Chain.Short())
	}
	sameOutputs(t, l.outputs(done.Run.ID), whole.outputs(res.Run.ID))
}
