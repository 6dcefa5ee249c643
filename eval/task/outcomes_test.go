package task

import (
	"errors"
	"math"
	"testing"
)

func newTestOutcomes(t *testing.T) *outcomes {
	t.Helper()
	o, err := newOutcomes(Outcomes{Count: 12, Modes: []Mode{{2, 1, 1}, {9, 0.5, 0.8}}}, Reward{Wrong: -1})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOutcomesReward(t *testing.T) {
	task := newTestOutcomes(t)
	tests := []struct {
		text    string
		reward  float64
		correct bool
		answer  string
	}{
		{"2", 1, true, "2"},                   // the first mode; the second is 14 widths away
		{"3", math.Exp(-0.5), true, "3"},      // 0.607, one width off
		{"0", math.Exp(-2), false, "0"},       // 0.135, two widths
		{"9", 0.8, true, "9"},                 //
		{"A", 0.8 * math.Exp(-2), false, "A"}, // outcome 10, two widths of 0.5
		{"", -1, false, ""},
		{"?", -1, false, ""},
		{"22", -1, false, ""},
		{"C", -1, false, ""}, // outcome 12 of 12
		{"é", -1, false, ""},
	}
	for _, tt := range tests {
		v := gradeText(t, task, outcomesProblem(t, task), tt.text)
		if math.Abs(v.Reward-tt.reward) > 1e-9 || v.Correct != tt.correct || v.Answer != tt.answer {
			t.Errorf("%q: got %+v, want %+v", tt.text, v, tt)
		}
	}
}

// Enumerate agrees with Grade and lists each one-token completion once.
func TestOutcomesEnumerate(t *testing.T) {
	var task Enumerable = newTestOutcomes(t)
	list := task.Enumerate()
	if got, want := len(list), len(task.Alphabet())+1; got != want {
		t.Errorf("%d completions, want %d: one per character and the end token", got, want)
	}
	seen := make(map[string]bool)
	for _, o := range list {
		v := gradeText(t, task, outcomesProblem(t, task), o.Text)
		if seen[o.Text] || v.Reward != o.Reward || v.Correct != o.Correct {
			t.Errorf("%+v: graded %+v, seen before %v", o, v, seen[o.Text])
		}
		seen[o.Text] = true
	}
	if list[0].Text != "0" || list[10].Text != "A" {
		t.Errorf("outcomes out of order: %+v", list)
	}
}

func TestOutcomesGenerate(t *testing.T) {
	task := newTestOutcomes(t)
	problems, err := task.Generate(Test, 24, 7)
	if err != nil {
		t.Fatal(err)
	}
	targets, ids := make(map[string]int), make(map[string]bool)
	for _, p := range problems {
		checkAlphabet(t, task, p)
		targets[p.Target]++
		ids[p.ID] = true
	}
	if len(targets) != 12 || targets["0"] != 2 || targets["B"] != 2 {
		t.Errorf("targets %v, want each of 12 twice", targets)
	}
	if len(ids) != 24 {
		t.Errorf("%d ids, want 24", len(ids))
	}
}

func TestOutcomesConfig(t *testing.T) {
	mode := Mode{0, 1, 1}
	tests := []struct {
		key string
		cfg Outcomes
	}{
		{"count", Outcomes{1, []Mode{mode}}},
		{"count", Outcomes{63, []Mode{mode}}},
		{"modes", Outcomes{12, nil}},
		{"modes", Outcomes{12, []Mode{{12, 1, 1}}}},
		{"modes", Outcomes{12, []Mode{{-1, 1, 1}}}},
		{"modes", Outcomes{12, []Mode{{0, 0, 1}}}},
		{"modes", Outcomes{12, []Mode{{0, math.NaN(), 1}}}},
		{"modes", Outcomes{12, []Mode{mode, {0, 1, math.Inf(1)}}}},
	}
	for _, tt := range tests {
		_, err := New(Config{Kind: "outcomes", Outcomes: tt.cfg})
		var bad *ConfigError
		if !errors.As(err, &bad) || bad.Key != "task.outcomes."+tt.key {
			t.Errorf("%+v: error %v, want one of task.outcomes.%s", tt.cfg, err, tt.key)
		}
	}
}
