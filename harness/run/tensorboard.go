package run

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"exp/experiments/store"
	"exp/experiments/trackers"
	"exp/harness/config"
	"exp/harness/stage"
	"exp/train/rollout"
)

// boardRecord writes a run's TensorBoard events (store.tensorboard). After an error it writes
// no more: the error becomes a warning and an event of the run, and the run continues.
type boardRecord struct {
	x    *execution
	live *trackers.Live // nil: none
}

// openBoard opens the events of the run, if it has a folder for them.
func (x *execution) openBoard(ctx context.Context) *boardRecord {
	b := &boardRecord{x: x}
	dir := x.p.Config.Run.Store.TensorBoard
	if dir == config.None {
		return b
	}
	c, err := x.DB.Config(ctx, x.run.Config)
	if err == nil {
		b.live, err = trackers.OpenLive(dir, x.run, c.JSON)
	}
	b.check(ctx, err)
	return b
}

// warnNoBoard warns that steps from the cache write no events, unless an earlier execution wrote them.
func (x *execution) warnNoBoard() {
	dir := x.p.Config.Run.Store.TensorBoard
	if dir == config.None || trackers.HasLive(dir, x.run) {
		return
	}
	x.Watch.Warn(fmt.Sprintf("the steps come from the cache, so store.tensorboard gets no events of them: "+
		"exp export %s DIR --format tensorboard writes them to a new folder", x.run.RID.Short()))
}

// boardFailed is the kind of the event of a failed write.
const boardFailed = "tensorboard-failed"

// check ends the writing after an error.
func (b *boardRecord) check(ctx context.Context, err error) {
	if err == nil {
		return
	}
	if b.live != nil {
		_ = b.live.Close() // the write's error says it all
		b.live = nil
	}
	text := "TensorBoard events end here: " + err.Error()
	b.x.Watch.Warn(text)
	data, err := json.Marshal(map[string]string{"text": text})
	if err == nil {
		_ = b.x.DB.AddEvent(ctx, store.Event{Run: b.x.run.ID, Level: store.LevelWarn, Kind: boardFailed, Data: data})
	}
}

// step writes a finished step.
func (b *boardRecord) step(s stage.Step) {
	if b.live == nil {
		return
	}
	scalars := maps.Clone(s.Measured)
	if scalars == nil {
		scalars = map[string]float64{}
	}
	maps.Copy(scalars, s.Det.Metrics)
	of := b.x.run.StepsTotal
	var texts []trackers.Text
	if every := max(1, of/boardTexts); s.Det.Step == 1 || s.Det.Step%every == 0 || s.Det.Step == of {
		texts = append(texts, trackers.Text{Tag: "completions", Markdown: b.completions(s)})
	}
	b.write(s.Det.Step, scalars, texts)
}

// add writes scores of the weights after a step, which is written unless it is 0.
func (b *boardRecord) add(step int64, scalars map[string]float64) {
	switch {
	case step == 0:
		b.write(step, scalars, nil)
	case b.live != nil:
		b.check(context.Background(), b.live.Add(time.Now(), step, scalars))
	}
}

// write writes the metrics of a step, and the end after the last one.
func (b *boardRecord) write(step int64, scalars map[string]float64, texts []trackers.Text) {
	if b.live == nil {
		return
	}
	now := time.Now()
	fresh, err := b.live.Step(now, step, scalars, texts)
	if err == nil && fresh && step == b.x.run.StepsTotal {
		err = b.live.Done(now)
	}
	b.check(context.Background(), err)
}

const (
	boardTexts       = 20   // steps of a run with completions
	boardCompletions = 3    // of such a step, each of another problem
	boardLetters     = 2000 // of a prompt or completion
)

// completions shows the first completion of the step's first problems in Markdown.
func (b *boardRecord) completions(s stage.Step) string {
	var out strings.Builder
	shown := 0
	var before *rollout.Problem
	for i := range s.Trajectories {
		t := &s.Trajectories[i]
		if t.Problem == before || shown == boardCompletions {
			continue
		}
		before = t.Problem
		shown++
		prompt := t.Problem.Prompt
		if text, err := b.x.p.External.Prompter.Text(t.Problem); err == nil {
			prompt = text
		}
		prompt = promptOf(t.Completion, prompt)
		verdict := "not graded"
		if t.Verdict.Status == rollout.Graded {
			verdict = fmt.Sprintf("reward %.3g", t.Verdict.Reward)
		}
		fmt.Fprintf(&out, "**%s**, %s\n\n%s\n%s\n", t.Problem.ID, verdict, quoted(prompt), quoted(t.Completion.Text))
	}
	return out.String()
}

// quoted is text as a block of code in Markdown.
func quoted(text string) string {
	if runes := []rune(text); len(runes) > boardLetters {
		text = string(runes[:boardLetters]) + "…"
	}
	return "    " + strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\n", "\n    ") + "\n"
}

func (b *boardRecord) close() {
	if b.live != nil {
		b.check(context.Background(), b.live.Close())
	}
}
