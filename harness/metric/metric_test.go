package metric

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"exp/eval"
)

// Every row has the facts that people need, in readable form.
func TestRows(t *testing.T) {
	seen := map[string]bool{}
	headings := map[string]string{}
	for _, m := range All() {
		switch first, _ := utf8.DecodeRuneInString(m.Title); {
		case seen[m.Name]:
			t.Errorf("%s is there twice", m.Name)
		case m.Title == "" || m.Definition == "":
			t.Errorf("%s has title %q and definition %q", m.Name, m.Title, m.Definition)
		case unicode.IsLower(first) && !strings.HasPrefix(m.Title, "verl's"):
			if !wildcard.MatchString(strings.Fields(m.Title)[0]) {
				t.Errorf("title %q of %s begins with a small letter", m.Title, m.Name)
			}
		case strings.HasSuffix(m.Definition, "."):
			t.Errorf("the definition of %s ends like a sentence: reports put its name behind it", m.Name)
		}
		if m.Shown&(OnProgress|OverSteps) != 0 && m.Heading == "" {
			t.Errorf("%s has a column and no heading", m.Name)
		}
		if m.Shown&OverSteps != 0 {
			if other := headings[m.Heading]; other != "" {
				t.Errorf("%s and %s share the heading %s", other, m.Name, m.Heading)
			}
			headings[m.Heading] = m.Name
		}
		seen[m.Name] = true
	}
}

// Each metric of an evaluation has a face, and no face is of anything else.
func TestFaces(t *testing.T) {
	var names []string
	for _, d := range slices.Concat(eval.Definitions(nil), eval.Families()) {
		names = append(names, d.Name)
		if faces()[d.Name].title == "" {
			t.Errorf("%s has no title", d.Name)
		}
	}
	for name := range faces() {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not a metric of an evaluation", name)
		}
	}
}

func TestFind(t *testing.T) {
	for _, tt := range []struct{ name, unit, title, part string }{
		{"actor/kl_coef", "", "Coefficient of KL in the objective", "loss_coef"}, // it was once recorded in nats
		{"reward/format/mean", Reward, "Part format of the reward", "the reward's part format"},
		{"pass@16", Share, "Pass@16", "one of 16 samples"},
		{"val/pass@1", Share, "Accuracy on validation problems", "held-out"},
		{"val/pass@4", Share, "Pass@4 on validation problems", "one of 4 samples"},
		{"val/answer_entropy_norm", Share,
			"Entropy of the answers over its greatest value on validation problems", "ln n"},
		{"val/unheard_of", "", "unheard_of on validation problems", ""},
		{"val-core/gsm8k/acc/maj@4/mean", "", "verl's maj@4/mean of acc on gsm8k", "maj@4/mean of acc"},
		{"val-aux/openai/gsm8k/acc/std@4", "", "verl's std@4 of acc on openai/gsm8k", "std@4 of acc"},
		{"rollout_corr/rollout_rs_seq_mean_k3_mean", Nats, "seq_mean_k3, mean", "seq_mean_k3 of trainer"},
		{"rollout_corr/rollout_rs_seq_mean_k3_seq_mean", Nats, "seq_mean_k3, mean over completions",
			"seq_mean_k3 of trainer"},
		{"rollout_corr/rollout_rs_seq_masked_fraction", Share, "Completions with rejected tokens", "any criterion"},
		{"timing_per_token_ms/gen", "ms", "Sampling, per token", "sampled tokens"},
	} {
		m, ok := Find(tt.name)
		same := m.Name == tt.name && m.Unit == tt.unit && m.Title == tt.title
		if !ok || !same || !strings.Contains(m.Definition, tt.part) {
			t.Errorf("%s: %+v, %t", tt.name, m, ok)
		}
	}
	if m, ok := Find("perf/mfu/actor"); ok || m.Name != "perf/mfu/actor" || Unit("perf/mfu/actor") != "" {
		t.Errorf("a metric of another program: %+v, %t", m, ok)
	}
}

func TestCounts(t *testing.T) {
	for name, want := range map[string][2]string{
		"actor/entropy":         {"nats per token", "nats per token"},
		"train/accuracy":        {"share of completions", "share of completions"},
		"val/distinct_correct":  {"solutions per problem", "solutions per problem"},
		"val/solution_clusters": {"groups per problem", "per problem"},
		"critic/score/mean":     {"reward", ""},
		"actor/grad_norm":       {"", ""},
		"perf/throughput":       {"tokens/s", "tokens/s"},
	} {
		m, _ := Find(name)
		if got := [2]string{m.Counts(), m.AxisUnit()}; got != want {
			t.Errorf("%s counts %q, want %q", name, got, want)
		}
	}
}

func TestAmong(t *testing.T) {
	solved := []string{"distinct_correct", "pass@16", "pass@4", "pass@1", "length_mean", "solved_two_ways",
		"pass_gap@16"}
	for _, tt := range []struct {
		names []string
		place Shown
		want  []string
	}{
		{solved, InLists, []string{"pass@1", "pass@16", "distinct_correct"}},
		{solved, Tested, []string{"pass@1", "pass@16", "distinct_correct", "solved_two_ways"}},
		{solved, Summarized, []string{"pass@1", "distinct_correct"}},
		{[]string{"pass@1", "pass@x"}, Tested, []string{"pass@1"}},
		{[]string{"pass@1", "policy_entropy", "distinct_correct", "kl_target"}, InLists,
			[]string{"kl_target", "pass@1", "policy_entropy", "distinct_correct"}},
		{nil, InLists, nil},
	} {
		if diff := cmp.Diff(tt.want, Among(tt.names, tt.place)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.names, diff)
		}
	}
}

func TestPassK(t *testing.T) {
	for name, want := range map[string]int{"pass@1": 1, "pass@64": 64, "pass@": 0, "pass@x": 0, "pass_gap@4": 0,
		"val/pass@4": 0} {
		if k, ok := PassK(name); k != want || ok != (want > 0) {
			t.Errorf("the K of %s is %d, %t", name, k, ok)
		}
	}
}

func TestInSentence(t *testing.T) {
	for title, want := range map[string]string{"Mean reward": "mean reward", "KL in the reward": "KL in the reward",
		"FlowRL loss": "FlowRL loss", "χ² of tokens": "χ² of tokens", "Policy": "policy"} {
		if got := (Metric{Title: title}).InSentence(); got != want {
			t.Errorf("%s reads %s", title, got)
		}
	}
}

// What compares the samples of a problem is also missing if online evaluation draws one.
func TestAbsentValidation(t *testing.T) {
	for name, several := range map[string]bool{"val/pass@1": false, "val/pass@4": true, "val/majority": false,
		"val/distinct_correct": false, "val/distinct_correct_solved": false, "val/solution_clusters": true,
		"val/self_bleu": true, "val/distinct_2": true, "val/two_correct_clusters": true, "val/unheard_of": false} {
		m, _ := Find(name)
		if got := strings.HasSuffix(m.Absent, "or eval.online.n is 1"); got != several {
			t.Errorf("%s is absent since %q; needs several samples: %v", name, m.Absent, several)
		}
	}
}
