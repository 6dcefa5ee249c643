package eval

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval/stat"
	"exp/train/rollout"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Two problems with four samples each. Of a, answers x x y z are right, right,
// right, wrong; of b, one sample has no answer and one no verdict.
func twoProblems() ([]rollout.Problem, []Sample, []rollout.Verdict) {
	problems := []rollout.Problem{{ID: "a"}, {ID: "b"}, {ID: "never sampled"}}
	completion := func(finish rollout.Finish, entropies ...float32) rollout.Completion {
		return rollout.Completion{Tokens: make([]int32, len(entropies)), Entropies: entropies, Finish: finish}
	}
	short, long := completion(rollout.FinishStop, 0.5, 0.25), completion(rollout.FinishLength, 1, 1, 1, 1)
	samples := []Sample{
		{"a", 0, short}, {"a", 1, short}, {"a", 2, short}, {"a", 3, long},
		{"b", 0, short}, {"b", 1, short}, {"b", 2, long}, {"b", 3, long},
	}
	graded := func(correct bool, answer string, reward float64) rollout.Verdict {
		return rollout.Verdict{Status: rollout.Graded, Correct: correct, Answer: answer, Reward: reward}
	}
	verdicts := []rollout.Verdict{
		graded(true, "x", 1), graded(true, "x", 1), graded(true, "y", 1), graded(false, "z", 0.25),
		graded(false, "u", 0.25), graded(false, "", 0), graded(false, "v", 0.25), {Reason: "timeout"},
	}
	return problems, samples, verdicts
}

func TestItems(t *testing.T) {
	problems, samples, verdicts := twoProblems()
	got, err := Items(problems, samples, verdicts)
	if err != nil {
		t.Fatal(err)
	}
	want := []Item{
		{
			ProblemID: "a", Samples: 4, Graded: 4, Correct: 3, Formatted: 4, DistinctCorrect: 2, DistinctAnswers: 3,
			AnswerEntropy: 1.5 * math.Ln2, // ½ ln 2 + 2·¼ ln 4
			Reward:        3.25,
			Majority:      &stat.Vote{Value: 1},
			// Tokens are all 0: one n-gram of 10, 6, 2 and 1. Of 0 0 0 0 against
			// 0 0: p = 2/4, (1+1)/(3+1), (0+1)/(2+1), (0+1)/(1+1).
			Texts: &Texts{Distinct: [4]float64{1.0 / 10, 1.0 / 6, 1.0 / 2, 1}, SelfBLEU: (3 + math.Pow(1.0/24, 0.25)) / 4,
				Clusters: 1, CorrectClusters: 1},
			Truncated: 1, Tokens: 10, TokenEntropy: 3*0.75 + 4,
		},
		{
			ProblemID: "b", Samples: 4, Graded: 3, Formatted: 2, DistinctAnswers: 2,
			AnswerEntropy: math.Ln2,
			Reward:        0.5,
			Majority:      &stat.Vote{Tied: 1}, // u and v
			Texts: &Texts{Distinct: [4]float64{1.0 / 8, 1.0 / 5, 1.0 / 2, 1}, SelfBLEU: (2 + math.Pow(1.0/24, 0.25)) / 3,
				Clusters: 1},
			Truncated: 2, Tokens: 12, TokenEntropy: 2*0.75 + 8,
		},
	}
	if diff := cmp.Diff(want, got, floatsTo(1e-15)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func floatsTo(tol float64) cmp.Option {
	return cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= tol })
}

func TestItemsRefuse(t *testing.T) {
	problems, samples, verdicts := twoProblems()
	samples[1].K = 0
	if _, err := Items(problems, samples, verdicts); err == nil ||
		!strings.Contains(err.Error(), "sample 0 of problem a occurs twice") {
		t.Errorf("a sample twice: error %v", err)
	}
	samples[1].ProblemID = "c"
	if _, err := Items(problems, samples, verdicts); err == nil ||
		!strings.Contains(err.Error(), "unknown problem c") {
		t.Errorf("sample of an unknown problem: error %v", err)
	}
}

func TestSummarizeValues(t *testing.T) {
	items, err := Items(twoProblems())
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := Summarize(items, []int{1, 2, 4}, 1)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Name  string
		Value float64
		N     int
	}
	want := []row{
		{"pass@1", 0.375, 2},                     // (3/4 + 0/3) / 2
		{"pass@2", 0.5, 2},                       // (1 - C(1,2)/C(4,2) + 0) / 2
		{"pass@4", 1, 1},                         // b has only three verdicts
		{"pass_gap@4", 0.25, 1},                  // 1 - 3/4, of a alone
		{"majority", 0.5, 2},                     // x is right, u is not
		{"majority_tied", 0.5, 2},                // u against v
		{"distinct_correct", 1, 2},               // (2 + 0) / 2
		{"distinct_correct_solved", 2, 1},        // of a alone
		{"solved_two_ways", 0.5, 2},              // a is, b is not
		{"distinct_answers", 2.5, 2},             // (3 + 2) / 2
		{"answer_entropy", 1.25 * math.Ln2, 2},   // (1.5 + 1) / 2 · ln 2
		{"answer_entropy_norm", 0.69046488, 2},   // (1.5 ln 2 / ln 4 + ln 2 / ln 3) / 2
		{"format_rate", (1 + 2.0/3) / 2, 2},      //
		{"reward_mean", (3.25/4 + 0.5/3) / 2, 2}, //
		{"truncation_rate", 0.375, 2},            // (1/4 + 2/4) / 2
		{"length_mean", 2.75, 2},                 // (10/4 + 12/4) / 2
		{"token_entropy", (6.25/10 + 9.5/12) / 2, 2},
		{"not_graded", 0.125, 2}, // (0 + 1/4) / 2
		// As in TestItems.
		{"distinct_1", (1.0/10 + 1.0/8) / 2, 2},
		{"distinct_2", (1.0/6 + 1.0/5) / 2, 2},
		{"distinct_3", 0.5, 2},
		{"distinct_4", 1, 2},
		{"self_bleu", (0.86295025 + 0.81726700) / 2, 2},
		{"solution_clusters", 1, 2},
		{"correct_clusters", 0.5, 2},
		{"two_correct_clusters", 0, 2},
	}
	var got []row
	for _, m := range metrics {
		got = append(got, row{m.Name, m.Value, m.N})
	}
	if diff := cmp.Diff(want, got, floatsTo(1e-8)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// counted are items with c of n correct.
func counted(n int, cs ...int) []Item {
	var items []Item
	for i, c := range cs {
		items = append(items, Item{ProblemID: fmt.Sprint(i), Samples: n, Graded: n, Correct: c})
	}
	return items
}

func metric(t *testing.T, items []Item, passK []int, seed uint64, name string) Metric {
	t.Helper()
	metrics, err := Summarize(items, passK, seed)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range metrics {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("no metric %s", name)
	return Metric{}
}

func TestSummarizeIntervals(t *testing.T) {
	clustered := counted(4, 2, 2, 3, 1)
	clustered[0].Cluster, clustered[1].Cluster = "c", "c"
	tests := []struct {
		name   string
		items  []Item
		metric string
		method string
		lo, hi float64
	}{
		{"one sample each", counted(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0), "pass@1", "wilson", 0.490162, 0.943318},
		// values ¼ ½ ½ ¾: SE = sqrt(2/16/3)/2 = 0.102062; t_3 = 3.182446
		{"several samples", counted(4, 1, 2, 2, 3), "pass@1", "t", 0.5 - 3.1824463*0.10206207, 0.5 + 3.1824463*0.10206207},
		// values 0 and 1: 0.5 ± 12.7062·(√2·½)/√2, and a share is from 0 to 1
		{"a share is cut", counted(4, 0, 4), "pass@1", "t", 0, 1},
		{"all alike", counted(4, 2, 2, 2), "pass@1", "t", 0.5, 0.5},
		// cluster sums of deviations 0, ¼, -¼: SE = sqrt(3/2·⅛)/4 = 0.108253; t_2 = 4.302653
		{"clusters", clustered, "pass@1", "t", 0.5 - 4.3026527*0.10825318, 0.5 + 4.3026527*0.10825318},
		{"pass@2", counted(4, 0, 4), "pass@2", "bootstrap", 0, 1},
		// Nothing of n: Wilson's from 0 to z²/(n+z²), whatever the samples.
		{"none right", counted(4, 0, 0), "pass@1", "wilson", 0, 3.841459 / 5.841459},
		{"all right at two", counted(4, 4, 4, 4), "pass@2", "wilson", 3 / 6.841459, 1},
		{"other than pass@1", counted(1, 1, 1), "not_graded", "wilson", 0, 3.841459 / 5.841459},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var passK []int
			if tt.metric == "pass@2" {
				passK = []int{2}
			}
			iv := metric(t, tt.items, passK, 1, tt.metric).Interval
			if iv == nil || iv.Method != tt.method || math.Abs(iv.Lo-tt.lo) > 1e-6 || math.Abs(iv.Hi-tt.hi) > 1e-6 {
				t.Errorf("got %+v, want %s [%.6f, %.6f]", iv, tt.method, tt.lo, tt.hi)
			}
		})
	}
	if iv := metric(t, counted(4, 2), nil, 1, "pass@1").Interval; iv != nil {
		t.Errorf("one problem: interval %+v, want none", iv)
	}
}

func TestSummarizeIsAFunctionOfItsArguments(t *testing.T) {
	items := counted(8, 0, 1, 2, 3, 4, 5, 6, 7, 8)
	a, b := metric(t, items, []int{4}, 1, "pass@4"), metric(t, items, []int{4}, 1, "pass@4")
	if !reflect.DeepEqual(a, b) {
		t.Errorf("seed 1 gave %+v and %+v", a.Interval, b.Interval)
	}
	if c := metric(t, items, []int{4}, 2, "pass@4"); reflect.DeepEqual(a, c) {
		t.Errorf("seeds 1 and 2 gave %+v", a.Interval)
	}
}

func TestSummarizeTooFewSamples(t *testing.T) {
	if _, err := Summarize(counted(4, 1, 2), []int{1, 5}, 1); err == nil || !strings.Contains(err.Error(), "pass@5") {
		t.Errorf("error %v, want one about pass@5", err)
	}
	if got, err := Summarize(nil, nil, 1); err != nil || len(got) != 0 {
		t.Errorf("no items: %+v, %v, want no metrics", got, err)
	}
}

// The table of metrics, as a reader sees it. Names in it are kept.
func TestDefinitionsGolden(t *testing.T) {
	var b strings.Builder
	fmt.Fprintln(&b, "| metric | unit | better | value per problem |")
	fmt.Fprintln(&b, "|---|---|---|---|")
	for _, d := range Definitions([]int{1, 4}) {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", d.Name, d.Unit, d.Direction, d.Definition)
	}
	path := filepath.Join("testdata", "metrics.golden")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
