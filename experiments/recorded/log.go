package recorded

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"exp/experiments/quantity"
	"exp/experiments/store"
)

// Entry is something that happened in a run.
type Entry struct {
	Time  time.Time
	Level store.Level
	Kind  string // "attempt", "stage", "step", "checkpoint", "divergence", or an event's
	Text  string
	Data  json.RawMessage // of an event

	order int    // among entries of equal time
	key   string // tells entries apart
}

// Log reads what happened in a run. Each call of Read returns what the ones before did
// not, so that a log can be followed.
type Log struct {
	DB     *store.DB
	Run    store.Run
	Level  store.Level // the least; LevelDebug includes steps
	Since  time.Time   // of the first entries; zero: all
	Events bool        // only events
	// Metrics are shown with each step.
	Metrics []Heading

	step int64 // the last one read
	seen map[string]bool
}

// Heading is a metric and the word that stands for it.
type Heading struct{ Name, Heading string }

// Levels lists the levels from mild to severe.
func Levels() []store.Level {
	return []store.Level{store.LevelDebug, store.LevelInfo, store.LevelWarn, store.LevelError}
}

func severity(l store.Level) int { return slices.Index(Levels(), l) }

// Read returns the entries since the last call in order of time.
func (r *Log) Read(ctx context.Context) (list []Entry, err error) {
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	all := []func(context.Context) ([]Entry, error){r.events}
	if !r.Events {
		all = append(all, r.attempts, r.stages, r.checkpoints, r.divergences)
		if r.Level == store.LevelDebug {
			all = append(all, r.steps)
		}
	}
	for _, f := range all {
		entries, err := f(ctx)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if r.seen[e.key] || severity(e.Level) < severity(r.Level) || e.Time.Before(r.Since) {
				continue
			}
			if e.Kind != "step" { // steps are read once
				r.seen[e.key] = true
			}
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b Entry) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.order, b.order))
	})
	return list, nil
}

// The order of entries within one millisecond.
const (
	orderAttempt = iota
	orderStage
	orderStep
	orderCheckpoint
	orderEvent
	orderStageEnd
	orderAttemptEnd
)

func (r *Log) events(ctx context.Context) (list []Entry, err error) {
	events, err := r.DB.Events(ctx, r.Run.ID, 0)
	for _, e := range events {
		list = append(list, Entry{e.Time, e.Level, e.Kind, EventText(e.Data), e.Data, orderEvent,
			fmt.Sprint("event ", e.ID)})
	}
	return list, err
}

func (r *Log) attempts(ctx context.Context) (list []Entry, err error) {
	attempts, err := r.DB.Attempts(ctx, r.Run.ID)
	for _, t := range attempts {
		list = append(list, Entry{t.Started, store.LevelInfo, "attempt",
			fmt.Sprintf("attempt %d (%s) begins on %s, process %d, %s", t.N, t.Kind, t.Host, t.PID, t.Device),
			nil, orderAttempt, fmt.Sprint("attempt ", t.N)})
		if t.Ended.IsZero() {
			continue
		}
		text := fmt.Sprintf("attempt %d is %s after %s", t.N, t.Status, quantity.Duration(t.Ended.Sub(t.Started)))
		if t.ExitCode != 0 {
			text += fmt.Sprintf(", exit code %d", t.ExitCode)
		}
		list = append(list, Entry{t.Ended, endLevel(t.Status), "attempt", text, nil, orderAttemptEnd,
			fmt.Sprint("end of attempt ", t.N)})
	}
	return list, err
}

func endLevel(s store.Status) store.Level {
	switch s {
	case store.Failed, store.Diverged:
		return store.LevelError
	case store.Interrupted, store.Stopped:
		return store.LevelWarn
	}
	return store.LevelInfo
}

func (r *Log) stages(ctx context.Context) (list []Entry, err error) {
	stages, err := r.DB.Stages(ctx, r.Run.ID)
	for _, s := range stages {
		name := s.Name()
		if s.Status == store.Cached {
			list = append(list, Entry{s.Started, store.LevelInfo, "stage",
				fmt.Sprintf("%s cached (%s, produced by run %s)", name, s.SID.Short(), s.ReusedRun.Short()),
				nil, orderStage, fmt.Sprint("stage ", s.ID)})
			continue
		}
		list = append(list, Entry{s.Started, store.LevelInfo, "stage", name + " begins", nil, orderStage,
			fmt.Sprint("stage ", s.ID)})
		if s.Ended.IsZero() {
			continue
		}
		text := fmt.Sprintf("%s %s", name, s.Status)
		if s.WallS > 0 {
			text += " in " + quantity.Duration(quantity.Seconds(s.WallS))
		}
		if s.Error != "" {
			text += ": " + s.Error
		}
		list = append(list, Entry{s.Ended, endLevel(s.Status), "stage", text, nil, orderStageEnd,
			fmt.Sprint("end of stage ", s.ID)})
	}
	return list, err
}

func (r *Log) checkpoints(ctx context.Context) (list []Entry, err error) {
	saved, err := r.DB.Checkpoints(ctx, r.Run.ID)
	for _, s := range saved {
		list = append(list, Entry{s.Time, store.LevelInfo, "checkpoint",
			fmt.Sprintf("step %d, %s, chain %s", s.Step, quantity.Bytes(s.Bytes), s.Chain.Short()),
			nil, orderCheckpoint, fmt.Sprint("checkpoint ", s.Step)})
	}
	return list, err
}

func (r *Log) divergences(ctx context.Context) (list []Entry, err error) {
	found, err := r.DB.Divergences(ctx, r.Run.ID)
	for _, d := range found {
		list = append(list, Entry{d.Time, store.LevelError, "divergence", d.What.Text(), nil, orderEvent,
			fmt.Sprint("divergence ", d.ID)})
	}
	return list, err
}

func (r *Log) steps(ctx context.Context) (list []Entry, err error) {
	steps, err := r.DB.Steps(ctx, r.Run.ID, r.step+1, store.AllSteps)
	if err != nil || len(steps) == 0 {
		return nil, err
	}
	values, err := r.measured(ctx, steps[0].Det.Step)
	if err != nil {
		return nil, err
	}
	for _, s := range steps {
		list = append(list, Entry{s.Time, store.LevelDebug, "step",
			fmt.Sprintf("step %d of %d, %s%s tokens, chain %s", s.Det.Step, r.Run.StepsTotal, values[s.Det.Step],
				quantity.Count(s.Tokens), s.Chain.Short()),
			nil, orderStep, fmt.Sprint("step ", s.Det.Step)})
		r.step = s.Det.Step
	}
	return list, err
}

// measured returns the metrics of Log.Metrics at each step from a step on, as text: "reward 0.250, ".
func (r *Log) measured(ctx context.Context, from int64) (map[int64]string, error) {
	texts := map[int64]string{}
	if len(r.Metrics) == 0 {
		return texts, nil
	}
	var names []string
	for _, m := range r.Metrics {
		names = append(names, m.Name)
	}
	curves, err := r.DB.MetricsOf(ctx, r.Run.ID, names, from, store.AllSteps)
	for _, m := range r.Metrics {
		for _, c := range curves {
			if c.Name != m.Name {
				continue
			}
			for i, step := range c.Steps {
				texts[step] += m.Heading + " " + quantity.Short(c.Values[i]) + ", "
			}
		}
	}
	return texts, err
}

// EventText is the text of an event, with its step; or its data.
func EventText(data json.RawMessage) string {
	m, _ := Decode(data).(map[string]any)
	text, ok := m["text"].(string)
	if !ok {
		var b bytes.Buffer
		if json.Compact(&b, data) != nil {
			return string(data)
		}
		return b.String()
	}
	if step, ok := m["step"].(float64); ok && !strings.Contains(text, "step") {
		text = "step " + strconv.FormatInt(int64(step), 10) + ": " + text
	}
	return text
}
