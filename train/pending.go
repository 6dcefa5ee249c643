package train

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"exp/train/rl"
	"exp/train/rollout"
)

// Pending is a step of a State whose completions were sampled before the checkpoint and are
// trained on after it. The policy that sampled them is gone, so they cannot be drawn again.
type Pending struct {
	Step    int                `json:"step"`
	Sampled int                `json:"sampled"` // steps that the policy had finished
	Batches int                `json:"batches"`
	Epoch   int                `json:"epoch"`
	Spread  float64            `json:"spread,omitempty"`
	Rows    []PendingRow       `json:"rows"`
	Groups  []int              `json:"groups"`
	Greedy  map[string]float64 `json:"greedy,omitempty"` // baselines by problem
	// GreedyTokens counts the tokens of completions that were sampled for baselines.
	GreedyTokens int `json:"greedy_tokens,omitempty"`

	Metrics []PendingMetric `json:"metrics,omitempty"`
	Events  []PendingEvent  `json:"events,omitempty"`
}

// PendingRow is a completion with its verdict. Numbers are little-endian bytes, so they
// read back exactly.
type PendingRow struct {
	Problem   string         `json:"problem"`
	Sample    int            `json:"sample"`
	Tokens    []byte         `json:"tokens"`
	LogProbs  []byte         `json:"logprobs"`
	Entropies []byte         `json:"entropies"`
	Text      ExactText      `json:"text"`
	Finish    rollout.Finish `json:"finish"`
	Inserted  []rollout.Span `json:"inserted,omitempty"`
	Asked     *rollout.Asked `json:"asked,omitempty"`
	Acts      []rollout.Act  `json:"acts,omitempty"`
	Verdict   PendingVerdict `json:"verdict"`
}

// PendingVerdict is a verdict whose texts read back exactly.
type PendingVerdict struct {
	rollout.Verdict
	Answer, Reason ExactText // in place of the verdict's
}

// PendingEvent is an event whose text reads back exactly.
type PendingEvent struct {
	Kind string
	Text ExactText
}

// ExactText is a text that reads back from JSON byte by byte. A completion may end within a
// character; its bytes are then no UTF-8, and JSON keeps them in base64, else as a string.
type ExactText string

// encodedText is a text in JSON that is not UTF-8.
type encodedText struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (x ExactText) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(x)) {
		return json.Marshal(string(x))
	}
	return json.Marshal(encodedText{[]byte(x)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (x *ExactText) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var e encodedText
		err := json.Unmarshal(b, &e)
		*x = ExactText(e.Base64)
		return err
	}
	return json.Unmarshal(b, (*string)(x))
}

// PendingMetric is a metric stored by its bits, because it may be NaN or infinite.
type PendingMetric struct {
	Name string `json:"name"`
	Bits uint64 `json:"bits"`
}

// pendingOf encodes a collected step.
func pendingOf(c *collected) Pending {
	p := Pending{Step: c.step, Sampled: c.sampled, Batches: c.batches, Epoch: c.epoch, Spread: c.meanSpread,
		Groups: c.groups, GreedyTokens: c.greedyTokens}
	for i := range c.all {
		t := &c.all[i]
		done := t.Completion.Named()
		p.Rows = append(p.Rows, PendingRow{Problem: t.Problem.ID, Sample: t.Sample,
			Tokens:   littleEndian(done.Tokens),
			LogProbs: littleEndian(done.LogProbs), Entropies: littleEndian(done.Entropies),
			Text: ExactText(done.Text), Finish: done.Finish, Inserted: done.Inserted, Asked: done.Asked,
			Acts:    done.Acts,
			Verdict: PendingVerdict{t.Verdict, ExactText(t.Verdict.Answer), ExactText(t.Verdict.Reason)}})
	}
	for _, e := range c.events {
		p.Events = append(p.Events, PendingEvent{e.Kind, ExactText(e.Text)})
	}
	if c.baseline != nil {
		p.Greedy = make(map[string]float64, len(c.baseline))
		for problem, score := range c.baseline {
			p.Greedy[problem.ID] = score
		}
	}
	for _, m := range c.metrics {
		p.Metrics = append(p.Metrics, PendingMetric{m.Name, math.Float64bits(m.Value)})
	}
	return p
}

// collectedOf decodes it. problem finds a problem and its encoded prompt.
func collectedOf(p Pending, problem map[string]int, t *Trainer) (*collected, error) {
	c := &collected{step: p.Step, sampled: p.Sampled, batches: p.Batches, epoch: p.Epoch, meanSpread: p.Spread,
		groups: p.Groups, greedyTokens: p.GreedyTokens}
	for _, e := range p.Events {
		c.events = append(c.events, Event{Kind: e.Kind, Text: string(e.Text)})
	}
	for _, r := range p.Rows {
		at, ok := problem[r.Problem]
		if !ok {
			return nil, fmt.Errorf("train: checkpoint refers to problem %s, which is not in the data", r.Problem)
		}
		done := &rollout.Completion{Text: string(r.Text), Finish: r.Finish, Inserted: r.Inserted, Asked: r.Asked,
			Acts: r.Acts}
		if err := fromLittleEndian(&done.Tokens, r.Tokens); err != nil {
			return nil, err
		}
		if err := fromLittleEndian(&done.LogProbs, r.LogProbs); err != nil {
			return nil, err
		}
		if err := fromLittleEndian(&done.Entropies, r.Entropies); err != nil {
			return nil, err
		}
		if err := t.show(done); err != nil {
			return nil, err
		}
		verdict := r.Verdict.Verdict
		verdict.Answer, verdict.Reason = string(r.Verdict.Answer), string(r.Verdict.Reason)
		c.all = append(c.all, Trajectory{Problem: &t.Problems[at], Sample: r.Sample,
			Prompt: done.PromptOf(t.prompt[at]), Completion: done, Verdict: verdict})
	}
	for _, at := range p.Groups {
		if at < 0 || at+t.cfg.Samples > len(c.all) {
			return nil, fmt.Errorf("train: step %d of the checkpoint has %d completions and a group at %d", p.Step,
				len(c.all), at)
		}
	}
	if p.Greedy != nil {
		c.baseline = make(map[*rollout.Problem]float64, len(p.Greedy))
		for id, score := range p.Greedy {
			at, ok := problem[id]
			if !ok {
				return nil, fmt.Errorf("train: checkpoint refers to problem %s, which is not in the data", id)
			}
			c.baseline[&t.Problems[at]] = score
		}
	}
	for _, m := range p.Metrics {
		c.metrics = append(c.metrics, rl.Metric{Name: m.Name, Value: math.Float64frombits(m.Bits)})
	}
	return c, nil
}

func littleEndian[T int32 | float32](x []T) []byte {
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, x) // writing to memory cannot fail
	return b.Bytes()
}

func fromLittleEndian[T int32 | float32](dst *[]T, b []byte) error {
	if len(b)%4 != 0 {
		return fmt.Errorf("train: %d bytes are not a whole number of 32-bit values", len(b))
	}
	*dst = make([]T, len(b)/4)
	return binary.Read(bytes.NewReader(b), binary.LittleEndian, *dst)
}

// show gives the images of a completion from a record, which an agent brought, their tokens here.
func (t *Trainer) show(c *rollout.Completion) error {
	return c.Show(func(im rollout.ShownImage) (int32, error) {
		if t.Show == nil {
			return 0, errors.New("train: an agent brought an image, and nothing shows it to the model")
		}
		x, err := t.Show(im.Picture)
		if err == nil && x.AllTokens() != im.Tokens {
			err = fmt.Errorf("it has %d tokens here, and %d in the record", x.AllTokens(), im.Tokens)
		}
		return x.First, err
	})
}

// Brought returns the images that agents brought to completions that State holds.
func (t *Trainer) Brought() (list []rollout.Picture) {
	add := func(c *rollout.Completion) {
		for _, im := range c.Brought() {
			list = append(list, im.Picture)
		}
	}
	for _, c := range t.pending {
		for i := range c.all {
			add(c.all[i].Completion)
		}
	}
	if t.tracker != nil {
		for _, k := range t.tracker.known {
			if k.last != nil {
				add(k.last)
			}
		}
	}
	return list
}
