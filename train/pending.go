package train

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

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
	Rows    []PendingRow       `json:"rows"`
	Groups  []int              `json:"groups"`
	Greedy  map[string]float64 `json:"greedy,omitempty"` // by problem
	Metrics []PendingMetric    `json:"metrics,omitempty"`
	Events  []Event            `json:"events,omitempty"`
}

// PendingRow is a completion with its verdict. Numbers are little-endian bytes, so they
// read back exactly.
type PendingRow struct {
	Problem   string          `json:"problem"`
	Sample    int             `json:"sample"`
	Tokens    []byte          `json:"tokens"`
	LogProbs  []byte          `json:"logprobs"`
	Entropies []byte          `json:"entropies"`
	Text      string          `json:"text"`
	Finish    rollout.Finish  `json:"finish"`
	Verdict   rollout.Verdict `json:"verdict"`
}

// PendingMetric is a metric stored by its bits, because it may be NaN or infinite.
type PendingMetric struct {
	Name string `json:"name"`
	Bits uint64 `json:"bits"`
}

// pendingOf encodes a collected step.
func pendingOf(c *collected) Pending {
	p := Pending{Step: c.step, Sampled: c.sampled, Batches: c.batches, Epoch: c.epoch, Groups: c.groups,
		Events: c.events}
	for i := range c.all {
		t := &c.all[i]
		p.Rows = append(p.Rows, PendingRow{Problem: t.Problem.ID, Sample: t.Sample,
			Tokens:   littleEndian(t.Completion.Tokens),
			LogProbs: littleEndian(t.Completion.LogProbs), Entropies: littleEndian(t.Completion.Entropies),
			Text: t.Completion.Text, Finish: t.Completion.Finish, Verdict: t.Verdict})
	}
	if c.greedy != nil {
		p.Greedy = make(map[string]float64, len(c.greedy))
		for problem, score := range c.greedy {
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
	c := &collected{step: p.Step, sampled: p.Sampled, batches: p.Batches, epoch: p.Epoch, groups: p.Groups,
		events: p.Events}
	for _, r := range p.Rows {
		at, ok := problem[r.Problem]
		if !ok {
			return nil, fmt.Errorf("train: checkpoint refers to problem %s, which is not in the data", r.Problem)
		}
		done := &rollout.Completion{Text: r.Text, Finish: r.Finish}
		if err := fromLittleEndian(&done.Tokens, r.Tokens); err != nil {
			return nil, err
		}
		if err := fromLittleEndian(&done.LogProbs, r.LogProbs); err != nil {
			return nil, err
		}
		if err := fromLittleEndian(&done.Entropies, r.Entropies); err != nil {
			return nil, err
		}
		c.all = append(c.all, Trajectory{Problem: &t.Problems[at], Sample: r.Sample, Prompt: t.prompt[at],
			Completion: done, Verdict: r.Verdict})
	}
	for _, at := range p.Groups {
		if at < 0 || at+t.cfg.Samples > len(c.all) {
			return nil, fmt.Errorf("train: step %d of the checkpoint has %d completions and a group at %d", p.Step,
				len(c.all), at)
		}
	}
	if p.Greedy != nil {
		c.greedy = make(map[*rollout.Problem]float64, len(p.Greedy))
		for id, score := range p.Greedy {
			at, ok := problem[id]
			if !ok {
				return nil, fmt.Errorf("train: checkpoint refers to problem %s, which is not in the data", id)
			}
			c.greedy[&t.Problems[at]] = score
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
