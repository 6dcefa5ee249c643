package ident

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Det holds the part of a training step that must repeat bit for bit. Items, Tokens,
// LogProbs and Rewards are digests rather than the data (the specification lists the item
// ids), so a store that keeps them can name the field where two trajectories diverge,
// and recompute a chain. Time never enters.
type Det struct {
	Step     int64
	Items    Digest // of the problem ids of the batch, in order
	Tokens   Digest // of the sampled token ids
	LogProbs Digest // of the sampler's log-probs, as bits
	Rewards  Digest // of the rewards, as bits
	Params   Digest // of the parameters after the step; zero if not taken
	// Metrics are the deterministic ones, by name. They enter as raw bits: -0 is
	// not +0 and NaN payloads count.
	Metrics map[string]float64
}

// ChainStart returns the chain before the first step, H("exp/chain/1", rid).
func ChainStart(rid Digest) Digest { return mustHash("exp/chain/1", rid) }

// Next returns the chain after step d,
//
//	c_t = SHA-256(c_{t-1} ‖ CE(d))
//
// so equal chains mean equal trajectories so far. The error is an *EncodeError about a
// metric's name.
func (d Det) Next(prev Digest) (Digest, error) {
	bits := make(map[string][]byte, len(d.Metrics))
	for name, v := range d.Metrics {
		bits[name] = binary.BigEndian.AppendUint64(nil, math.Float64bits(v))
	}
	b, err := Append(prev[:len(prev):len(prev)], map[string]any{
		"step": d.Step, "items": d.Items, "tokens": d.Tokens, "logprobs": d.LogProbs,
		"rewards": d.Rewards, "params": orNull(d.Params), "metrics": bits,
	})
	if err != nil {
		return Digest{}, fmt.Errorf("chain of step %d: %w", d.Step, err)
	}
	return sha256.Sum256(b), nil
}

// Field names a field of Det; a metric is "metrics." and its name.
type Field string

// The fields of a step, in the order that a step produces them. Metrics follow.
const (
	FieldStep     Field = "step"
	FieldItems    Field = "items"
	FieldTokens   Field = "tokens"
	FieldLogProbs Field = "logprobs"
	FieldRewards  Field = "rewards"
	FieldParams   Field = "params"
)

const metricPrefix = "metrics."

// Metric returns the metric's name if f is a metric.
func (f Field) Metric() (name string, ok bool) { return strings.CutPrefix(string(f), metricPrefix) }

// Differs returns the first field that differs between d and other, in the order that a step
// produces them, then metrics by name ("metrics.actor/entropy"); empty if they are equal.
func (d Det) Differs(other Det) Field {
	if d.Step != other.Step {
		return FieldStep
	}
	for _, f := range []struct {
		name Field
		a, b Digest
	}{
		{FieldItems, d.Items, other.Items},
		{FieldTokens, d.Tokens, other.Tokens},
		{FieldLogProbs, d.LogProbs, other.LogProbs},
		{FieldRewards, d.Rewards, other.Rewards},
		{FieldParams, d.Params, other.Params},
	} {
		if f.a != f.b {
			return f.name
		}
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(d.Metrics)), maps.Keys(other.Metrics))
	slices.Sort(names)
	for _, name := range names {
		a, inD := d.Metrics[name]
		b, inOther := other.Metrics[name]
		if inD != inOther || math.Float64bits(a) != math.Float64bits(b) {
			return Field(metricPrefix + name)
		}
	}
	return ""
}
