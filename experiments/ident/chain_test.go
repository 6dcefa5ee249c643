package ident

import (
	"maps"
	"math"
	"testing"
)

func TestDetDiffers(t *testing.T) {
	tests := []struct {
		want Field
		edit func(*Det)
	}{
		{"", func(*Det) {}},
		{"step", func(d *Det) { d.Step, d.Items = 2, Digest{} }},
		{"items", func(d *Det) { d.Items, d.Rewards = Digest{1}, Digest{1} }},
		{"tokens", func(d *Det) { d.Tokens = Digest{1} }},
		{"logprobs", func(d *Det) { d.LogProbs = Digest{1} }},
		{"rewards", func(d *Det) { d.Rewards = Digest{1} }},
		{"params", func(d *Det) { d.Params = Digest{1} }},
		{"metrics.loss", func(d *Det) { d.Metrics["loss"] = 0 }}, // was -0
		{"metrics.kl", func(d *Det) { d.Metrics["kl"], d.Metrics["loss"] = 1, 1 }},
		{"metrics.kl", func(d *Det) { delete(d.Metrics, "kl") }},
		{"metrics.entropy", func(d *Det) { d.Metrics["entropy"] = math.NaN() }},
	}
	base := exampleDet()
	start, err := base.Next(Digest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		d := exampleDet()
		tt.edit(&d)
		if got := base.Differs(d); got != tt.want {
			t.Errorf("Differs = %q, want %q", got, tt.want)
		}
		if got := d.Differs(base); got != tt.want {
			t.Errorf("Differs the other way = %q, want %q", got, tt.want)
		}
		// The chain sees exactly what Differs sees.
		next, err := d.Next(Digest{})
		if err != nil || (next == start) != (tt.want == "") {
			t.Errorf("%q: chain %s, %v; unchanged %s", tt.want, next, err, start)
		}
	}
}

func TestFieldMetric(t *testing.T) {
	for f, want := range map[Field]string{FieldTokens: "", "metrics.actor/entropy": "actor/entropy"} {
		if got, ok := f.Metric(); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %v; want %q", f, got, ok, want)
		}
	}
}

func TestChainSeesNaNPayload(t *testing.T) {
	a, b := exampleDet(), exampleDet()
	a.Metrics, b.Metrics = maps.Clone(a.Metrics), maps.Clone(b.Metrics)
	a.Metrics["loss"] = math.Float64frombits(0x7ff8000000000001)
	b.Metrics["loss"] = math.Float64frombits(0x7ff8000000000002)
	ca, _ := a.Next(Digest{})
	cb, _ := b.Next(Digest{})
	if ca == cb || a.Differs(b) != "metrics.loss" {
		t.Error("two NaNs of different bits are one step")
	}
	if same, _ := a.Next(Digest{}); same != ca {
		t.Error("a NaN is not its own step")
	}
}

func TestChainDependsOnWhatCameBefore(t *testing.T) {
	a, _ := exampleDet().Next(Digest{1})
	b, _ := exampleDet().Next(Digest{2})
	if a == b {
		t.Error("the chain forgets")
	}
	if _, err := (Det{Metrics: map[string]float64{"\xff": 1}}).Next(Digest{}); err == nil {
		t.Error("took a metric's name that is not UTF-8")
	}
}
