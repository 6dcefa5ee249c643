package rl

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"
)

// lists are the settings of every estimator and loss by name.
func lists() map[string][]Setting {
	all := map[string][]Setting{}
	for _, e := range Estimators() {
		all["estimator "+e.Name] = e.Settings
	}
	for _, l := range PolicyLosses() {
		all["loss "+l.Name] = l.Settings
	}
	return all
}

// A setting is declared once, and what it names is a setting of the same list.
func TestDeclarations(t *testing.T) {
	first := map[string]Setting{}
	for name, list := range lists() {
		keys := map[string]Setting{}
		for _, s := range list {
			if _, twice := keys[s.Key]; twice || s.Key == "" || s.Help == "" {
				t.Errorf("%s lists %q twice, or without help", name, s.Key)
			}
			keys[s.Key] = s
			plain := s
			plain.From, plain.Cases, plain.Where = "", nil, nil
			if other, ok := first[s.Key]; ok && !reflect.DeepEqual(plain, other) {
				t.Errorf("%s has another declaration of %s", name, s.Key)
			}
			first[s.Key] = plain
			if word, isWord := s.Default.(string); isWord != (s.Words != nil) || isWord && !slices.Contains(s.Words, word) {
				t.Errorf("%s: the default %v is not one of %q", s.Key, s.Default, s.Words)
			}
		}
		for _, s := range list {
			named := []Condition{{Key: s.Below}, {Key: s.UpTo}, {Key: s.From}}
			for _, c := range append(append(named, s.While...), s.Where...) {
				other, ok := keys[c.Key]
				if c.Key != "" && !ok {
					t.Errorf("%s does not list %s, which %s names", name, c.Key, s.Key)
				}
				for _, w := range c.Words {
					if !slices.Contains(other.Words, w) {
						t.Errorf("%s: %s is never %q", s.Key, c.Key, w)
					}
				}
			}
		}
	}
}

// The settings that a preset of FlowRL gives make the residual of its variant.
func TestFlowRLPresets(t *testing.T) {
	for name, v := range FlowRLVariants() {
		c := Defaults("", "flowrl").With(FlowPreset, name)
		for _, s := range flowRLSettings() {
			for _, x := range s.Cases {
				if x.Word == name {
					c = c.With(s, x.Value)
				}
			}
		}
		want := v.Loss
		want.Clip.Dual = 0 // not used
		if got := flowRLConfig(c); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if e, s := flowRLAdvantages(c); e.Name != "grpo" || s.Bool(scaleStd) != v.Scale {
			t.Errorf("%s: advantages %s with %v", name, e.Name, s)
		}
	}
	raw := Defaults("", "flowrl").With(FlowReward, "raw")
	if e, _ := flowRLAdvantages(raw); e.Name != "score" {
		t.Errorf("the raw reward by %s", e.Name)
	}
	if at := FlowRLPresets(); at[0] != "recipe" || len(at) != len(FlowRLVariants()) || !slices.IsSorted(at[1:]) {
		t.Errorf("presets %v", at)
	}
}

func TestSettingsAreRead(t *testing.T) {
	a := Settings{"gamma": 0.5, "critic.warmup_steps": 3}
	b := a.With(discount, 0.25)
	if a.Float(discount) != 0.5 || b.Float(discount) != 0.25 || b.Int(CriticWarmup) != 3 || Settings(nil).With(FlowLogZ, true).Bool(FlowLogZ) != true {
		t.Errorf("%v, %v", a, b)
	}
	if c := Defaults("gae", "dro"); !maps.Equal(c, Settings{"gamma": 1.0, "lambda": 1.0, "critic.warmup_steps": 0, "critic.clip_value": 0.5, "lambda_alpha": 0.0, "critic.lambda": math.Inf(1), "pf_ppo.method": "none", "pf_ppo.power": 2.0}) {
		t.Errorf("defaults %v", c)
	}
	for name, read := range map[string]func(){
		"a setting without a value": func() { a.Float(lambda) },
		"an int as a float64":       func() { a.Float(CriticWarmup) },
		"a word that is none":       func() { PrimeOf(Defaults("prime", "").With(primeLoss, "bon")) },
	} {
		if !panics(read) {
			t.Errorf("%s is read", name)
		}
	}
}
