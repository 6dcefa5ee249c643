package eval

import (
	"fmt"
	"slices"

	"exp/eval/grade"
	"exp/eval/stat"
	"exp/train/rollout"
)

// Panel is the same samples under several graders. A published score is one grader's;
// side by side they show what of it is mathematics and what is spelling.
type Panel struct {
	Problems []rollout.Problem
	Samples  []Sample
	Columns  []Column
}

// Column is one grader's verdicts.
type Column struct {
	Grader   string
	Verdicts []rollout.Verdict // of Panel.Samples, in order
	// Classes merges answers of equal value, "1/2" and "0.5", before they are counted
	// and voted on. Without it equal answers are equal texts, as other programs have it.
	Classes bool
}

// UnionName is the grader that accepts what any of the others does.
const UnionName = "union"

// Union accepts what any column accepts; the answer is that of the first that does, or
// of the first column. A sample is graded if any column graded it.
func Union(columns []Column) Column {
	u := Column{Grader: UnionName, Verdicts: slices.Clone(columns[0].Verdicts), Classes: true}
	for _, c := range columns[1:] {
		for i, v := range c.Verdicts {
			if have := &u.Verdicts[i]; v.Correct && !have.Correct || have.Status != rollout.Graded {
				*have = v
			}
		}
	}
	return u
}

// Disagreements counts the samples of which some columns say right and others wrong.
func (p *Panel) Disagreements() int {
	n := 0
	for i := range p.Samples {
		right := 0
		for _, c := range p.Columns {
			if c.Verdicts[i].Correct {
				right++
			}
		}
		if right > 0 && right < len(p.Columns) {
			n++
		}
	}
	return n
}

// Vote is maj@k: the most frequent of k answers counts.
type Vote struct {
	K      int
	Metric Metric  // "maj@k", with its interval over problems
	Ties   float64 // share of votes in which several answers were the most frequent
}

// ColumnScore is what one column comes to.
type ColumnScore struct {
	Grader  string
	Metrics []Metric // pass@1, which is avg@n, and pass@k for each k
	Votes   []Vote
}

// Measure computes pass@1, pass@k and maj@k of a column, with the intervals of Summarize.
//
// maj@k of a problem is the mean over its ⌊n/k⌋ blocks of k consecutive samples, which
// are independent of each other: the share of blocks whose most frequent answer is
// right. Of equally frequent answers the one seen first counts; samples without an
// answer have no vote, and a block without votes is wrong. Problems with fewer than k
// graded samples take no part.
func (p *Panel) Measure(c Column, ks []int, seed uint64) (ColumnScore, error) {
	verdicts := c.Verdicts
	if c.Classes {
		verdicts = p.classes(verdicts)
	}
	items, err := Items(p.Problems, p.Samples, verdicts)
	if err != nil {
		return ColumnScore{}, err
	}
	out := ColumnScore{Grader: c.Grader}
	metrics, err := Summarize(items, ks, seed)
	if err != nil {
		return ColumnScore{}, err
	}
	for _, m := range metrics {
		if m.Name == "pass@1" ||
			slices.ContainsFunc(ks, func(k int) bool { return m.Name == fmt.Sprintf("pass@%d", k) }) {
			out.Metrics = append(out.Metrics, m)
		}
	}
	groups := p.groups(verdicts)
	for _, k := range ks {
		if k < 2 {
			continue
		}
		if v, ok := p.vote(groups, k); ok {
			out.Votes = append(out.Votes, v)
		}
	}
	return out, nil
}

// classes gives answers of equal value of the same problem the text of the first.
func (p *Panel) classes(verdicts []rollout.Verdict) []rollout.Verdict {
	out := slices.Clone(verdicts)
	firsts := map[string][]string{} // by problem: the first answer of each class
	same := map[[2]string]string{}  // by problem and answer: its class
	for i, s := range p.Samples {
		a := out[i].Answer
		if a == "" {
			continue
		}
		key := [2]string{s.ProblemID, a}
		class, ok := same[key]
		if !ok {
			class = a
			for _, first := range firsts[s.ProblemID] {
				if v := grade.Answer(first, a); v.Correct && v.Sure {
					class = first
					break
				}
			}
			if class == a {
				firsts[s.ProblemID] = append(firsts[s.ProblemID], a)
			}
			same[key] = class
		}
		out[i].Answer = class
	}
	return out
}

// groups are the graded verdicts of each problem, in the order of its samples.
func (p *Panel) groups(verdicts []rollout.Verdict) [][]rollout.Verdict {
	index := make(map[string]int, len(p.Problems))
	for i, q := range p.Problems {
		index[q.ID] = i
	}
	groups := make([][]rollout.Verdict, len(p.Problems))
	for i, s := range p.Samples {
		if verdicts[i].Status == rollout.Graded {
			k := index[s.ProblemID]
			groups[k] = append(groups[k], verdicts[i])
		}
	}
	return groups
}

func (p *Panel) vote(groups [][]rollout.Verdict, k int) (Vote, bool) {
	var values []float64
	var clusters []string
	votes, ties := 0, 0
	for i, g := range groups {
		if len(g) < k {
			continue
		}
		blocks, right := len(g)/k, 0
		for b := range blocks {
			correct, tied := majority(g[b*k : (b+1)*k])
			votes++
			if correct {
				right++
			}
			if tied {
				ties++
			}
		}
		values = append(values, float64(right)/float64(blocks))
		clusters = append(clusters, p.Problems[i].Cluster)
	}
	m, ok := shareMetric(fmt.Sprintf("maj@%d", k), values, clusters)
	if !ok {
		return Vote{}, false
	}
	return Vote{K: k, Metric: m, Ties: float64(ties) / float64(votes)}, true
}

// shareMetric is the mean of a share of each problem with its interval, cut to [0,1]; ok is
// false without values. clusters are as in stat.ClusterMean.
func shareMetric(name string, values []float64, clusters []string) (m Metric, ok bool) {
	if len(values) == 0 {
		return m, false
	}
	mean := stat.ClusterMean(values, clusters)
	m = Metric{Name: name, N: len(values), Value: mean.Value, Clusters: mean.G}
	if mean.G > 1 {
		m.SE = &mean.SE
	}
	if iv, ok := stat.TInterval(mean, Level); ok {
		iv.Lo, iv.Hi = max(iv.Lo, 0), min(iv.Hi, 1)
		m.Interval = &iv
	}
	return m, true
}

// TestsPassed is the mean over problems of the mean reward of their graded samples, the
// share of tests that pass, with its interval; ok is false without a verdict.
func (p *Panel) TestsPassed(c Column) (m Metric, ok bool) {
	var values []float64
	var clusters []string
	for i, g := range p.groups(c.Verdicts) {
		if len(g) == 0 {
			continue
		}
		sum := 0.0
		for _, v := range g {
			sum += v.Reward
		}
		values, clusters = append(values, sum/float64(len(g))), append(clusters, p.Problems[i].Cluster)
	}
	return shareMetric("tests_passed", values, clusters)
}

// majority says whether the most frequent answer is right, and whether another is as
// frequent.
func majority(block []rollout.Verdict) (correct, tied bool) {
	count := map[string]int{}
	for _, v := range block {
		if v.Answer != "" {
			count[v.Answer]++
		}
	}
	most, winner := 0, rollout.Verdict{}
	for _, v := range block { // in order: of equally frequent answers the first wins
		if v.Answer != "" && count[v.Answer] > most {
			most, winner = count[v.Answer], v
		}
	}
	for answer, n := range count {
		tied = tied || n == most && answer != winner.Answer
	}
	return winner.Correct, tied
}

// FormCount is one line of the histogram of answer forms.
type FormCount struct {
	Form    grade.Form
	Samples int
	// Correct of the samples of this form, by column.
	Correct []int
}

// Forms is the histogram of how the samples write their answers, with what each column
// accepts of each form: where columns differ in a score, this says why. Forms that do
// not occur are left out.
func (p *Panel) Forms() (counts []FormCount, of []grade.Form) {
	for _, s := range p.Samples {
		of = append(of, grade.FormOf(s.Completion.Text, s.Completion.Finish == rollout.FinishLength))
	}
	for _, form := range grade.Forms() {
		n := FormCount{Form: form, Correct: make([]int, len(p.Columns))}
		for i := range p.Samples {
			if of[i] != form {
				continue
			}
			n.Samples++
			for k, c := range p.Columns {
				if c.Verdicts[i].Correct {
					n.Correct[k]++
				}
			}
		}
		if n.Samples > 0 {
			counts = append(counts, n)
		}
	}
	return counts, of
}
