package config

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// A loss sets the defaults of its paper, and keys that it does not read are refused.
func TestPreferLosses(t *testing.T) {
	text, err := os.ReadFile(recipes + "prefer_cpu.yaml")
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.Replace(string(text), "  pairs_per_step: 16\n  sft_weight: 1\n", "", 1)
	for _, tt := range []struct {
		sets  []string
		want  Preferring
		wrong map[string]string // set: error
	}{
		{nil, Preferring{Loss: "sigmoid", Reference: ReferenceStart}, nil},
		{[]string{"prefer.loss=ipo"}, Preferring{Loss: "ipo", Reference: ReferenceStart, PerToken: true},
			map[string]string{"prefer.chosen_weight=2": "prefer.chosen_weight has no effect", "prefer.smoothing=0.1": "prefer.smoothing has no effect: prefer.loss is ipo"}},
		{[]string{"prefer.loss=robust"}, Preferring{Loss: "robust", Reference: ReferenceStart, Smoothing: 0.1},
			map[string]string{"prefer.smoothing=0.5": "prefer.smoothing must be >= 0 and < 0.5", "prefer.target_margin=1": "has no effect"}},
		{[]string{"prefer.loss=exo_pair"}, Preferring{Loss: "exo_pair", Reference: ReferenceStart, Smoothing: 0.001},
			map[string]string{"prefer.smoothing=0": "prefer.smoothing is 0, and exo_pair takes its logarithm"}},
		{[]string{"prefer.loss=apo_zero", "prefer.per_token=true", "prefer.reference=none"}, Preferring{Loss: "apo_zero", Reference: ReferenceNone, PerToken: true},
			map[string]string{"prefer.smoothing=0.1": "prefer.smoothing has no effect"}},
		{[]string{"prefer.loss=orpo"}, Preferring{Loss: "orpo", SFTWeight: 1}, map[string]string{
			"prefer.reference=start": "prefer.reference has no effect: prefer.loss is orpo", "prefer.per_token=true": "prefer.per_token has no effect: prefer.loss is orpo"}},
		{[]string{"prefer.loss=kto"}, Preferring{Loss: "kto", AnswersPerStep: 32, ChosenWeight: 1, RejectedWeight: 1}, map[string]string{
			"prefer.reference=none": "prefer.reference has no effect: prefer.loss is kto", "prefer.pairs_per_step=8": "prefer.pairs_per_step has no effect",
			"prefer.sft_weight=1": "prefer.sft_weight has no effect", "prefer.answers_per_step=1": "prefer.answers_per_step must be >= 2"}},
	} {
		in := Input{File: "x.yaml", Data: []byte(plain), Sets: tt.sets}
		got := load(t, in).Run.Prefer
		got = Preferring{Loss: got.Loss, Reference: got.Reference, PerToken: got.PerToken, Smoothing: got.Smoothing,
			SFTWeight: got.SFTWeight, AnswersPerStep: got.AnswersPerStep, ChosenWeight: got.ChosenWeight, RejectedWeight: got.RejectedWeight}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q: %+v, want %+v", tt.sets, got, tt.want)
		}
		for set, want := range tt.wrong {
			in.Sets = append(tt.sets, set)
			if errs := failure(t, in); !strings.Contains(errs.Error(), want) {
				t.Errorf("%q with %s: %v, want %q", tt.sets, set, errs, want)
			}
		}
	}
}
