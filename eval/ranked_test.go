package eval

import (
	"math"
	"testing"

	"exp/train/rollout"
)

// Scores join the samples of their problems: best@k and votes leave out samples without a verdict or a score, and k
// above the number of the others has no value.
func TestRank(t *testing.T) {
	problems := []rollout.Problem{{ID: "p"}, {ID: "q"}}
	var samples []Sample
	var verdicts, scores []rollout.Verdict
	add := func(problem string, k int, answer string, right bool, score float64) {
		samples = append(samples, Sample{ProblemID: problem, K: k})
		verdicts = append(verdicts, rollout.Verdict{Status: rollout.Graded, Correct: right, Answer: answer})
		scores = append(scores, rollout.Verdict{Status: rollout.Graded, Reward: score})
	}
	add("p", 0, "a", true, 2)
	add("p", 1, "b", false, -1)
	add("p", 2, "b", false, -1)
	add("p", 3, "", false, 3)
	add("q", 0, "a", false, 0)
	add("q", 1, "c", true, 0)
	add("q", 2, "c", true, 9)
	scores[6] = rollout.Verdict{Status: rollout.NotGraded}
	items, err := Items(problems, samples, verdicts)
	if err != nil {
		t.Fatal(err)
	}
	value := func(vote, metric string, item int) (float64, bool) {
		t.Helper()
		Rank(items, samples, verdicts, scores, vote)
		for _, d := range Definitions([]int{2, 4}) {
			if d.Name == metric {
				return d.Value(items[item])
			}
		}
		t.Fatalf("no metric %s", metric)
		return 0, false
	}
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	if sigmoid(2) < 2*sigmoid(-1) {
		t.Fatal("a outweighs both b")
	}
	for _, tt := range []struct {
		vote, metric string
		item         int
		want         float64
		ok           bool
	}{
		{VoteSigmoid, "best@2", 0, 2.0 / 6, true}, // a with one b; the unanswered one is best in three of six choices
		{VoteSigmoid, "best@4", 0, 0, true},
		{VoteSigmoid, "best@2", 1, 0.5, true}, // equal scores
		{VoteSigmoid, "best@4", 1, 0, false},  // two have a score
		{VoteSigmoid, "maj@4", 0, 0, true},
		{VoteSigmoid, "maj@2", 0, (2*0.5 + 1) / 6, true}, // a and b tie twice; a alone with the unanswered one
		{VoteSigmoid, "weighted_majority", 0, 1, true},
		{VoteScore, "weighted_majority", 0, 1, true},
		{VoteExp, "weighted_majority", 0, 1, true},
		{VoteExp, "weighted_majority", 1, 0, true}, // a tie: a came first
		{VoteSigmoid, "score_auc", 0, 2.0 / 3, true},
		{VoteSigmoid, "score_auc", 1, 0.5, true},
	} {
		got, ok := value(tt.vote, tt.metric, tt.item)
		if ok != tt.ok || math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%s of item %d by %s: %g, %t, want %g, %t", tt.metric, tt.item, tt.vote, got, ok, tt.want, tt.ok)
		}
	}
	metrics, err := Summarize(items, []int{2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, m := range metrics {
		if m.Name == "best@2" {
			found = true
			if m.N != 2 || math.Abs(m.Value-(1.0/3+0.5)/2) > 1e-12 || m.Interval == nil || m.Interval.Method != "bootstrap" {
				t.Errorf("%+v", m)
			}
		}
	}
	if !found {
		t.Error("no best@2")
	}
	scores[0].Reward = math.NaN()
	if err := CheckScores(samples, scores); err == nil {
		t.Error("a score of NaN is accepted")
	}
}
