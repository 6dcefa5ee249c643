package eval

import (
	"fmt"
	"slices"

	"exp/eval/grade"
	"exp/eval/grade/extract"
	"exp/eval/grade/peer"
	"exp/eval/stat"
	"exp/train/rollout"
)

// Panel holds the same samples under several graders. A published score comes from one grader; side by side
// they show how much of a difference is mathematics and how much is spelling.
type Panel struct {
	Problems []rollout.Problem
	Samples  []Sample
	Columns  []Column
}

// Column holds the verdicts of one grader.
type Column struct {
	Grader   string
	Verdicts []rollout.Verdict // [len(Panel.Samples)]
	// Classes merges answers of equal value, such as "1/2" and "0.5", before counting and voting. Without
	// it answers are equal if their texts are, as in other programs.
	Classes bool
	// Scaled: rewards are a run's, which are not from 0 to 1.
	Scaled bool
}

// UnionName names the grader that accepts whatever any other accepts.
const UnionName = "union"

// Union accepts what any column accepts. The answer comes from the first column that accepts it, else from
// the first column. A sample is graded if any column graded it.
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

// Disagreements counts the samples that some columns call right and others wrong.
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

// Vote is maj@k: the majority answer of k samples.
type Vote struct {
	K      int
	Metric Metric  // "maj@k", with its interval over problems
	Ties   float64 // share of votes with a tie for the most frequent answer
}

// ColumnScore is the score of one column.
type ColumnScore struct {
	Grader  string
	Metrics []Metric // pass@1 (= avg@n), and pass@k for each k
	Votes   []Vote
}

// Measure computes pass@1, pass@k and maj@k of a column, with the intervals of Summarize.
//
// maj@k of a problem is the share of its ⌊n/k⌋ disjoint blocks of k consecutive samples whose most frequent
// answer is right. On a tie the answer seen first wins. Samples without an answer do not vote; a block
// without votes is wrong. Problems with fewer than k graded samples are left out.
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

// classes replaces each answer by the first of the same problem with equal value.
func (p *Panel) classes(verdicts []rollout.Verdict) []rollout.Verdict {
	out := slices.Clone(verdicts)
	firsts := map[string][]string{} // problem -> first answer of each class
	same := map[[2]string]string{}  // problem, answer -> class
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

// groups returns the graded verdicts of each problem in sample order.
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
	var votes, ties float64
	for i, g := range groups {
		if len(g) < k {
			continue
		}
		blocks, right := len(g)/k, 0.0
		for b := range blocks {
			v := voteOf(g[b*k : (b+1)*k])
			votes++
			right += v.Value
			ties += v.Tied
		}
		values = append(values, right/float64(blocks))
		clusters = append(clusters, p.Problems[i].Cluster)
	}
	m, ok := shareMetric(fmt.Sprintf("maj@%d", k), values, clusters)
	if !ok {
		return Vote{}, false
	}
	return Vote{K: k, Metric: m, Ties: ties / votes}, true
}

// voteOf returns the majority vote of a block of verdicts.
func voteOf(block []rollout.Verdict) stat.Vote {
	answers, correct := make([]string, len(block)), make([]bool, len(block))
	for i, v := range block {
		answers[i], correct[i] = v.Answer, v.Correct
	}
	return stat.MajorityVote(answers, correct)
}

// shareMetric returns the mean of a share over problems with its interval, cut to [0,1]. ok is false
// without values. clusters is as in stat.ClusterMean.
func shareMetric(name string, values []float64, clusters []string) (m Metric, ok bool) {
	if len(values) == 0 {
		return m, false
	}
	mean := stat.ClusterMean(values, clusters)
	m = Metric{Name: name, N: len(values), Value: mean.Value, Clusters: mean.G}
	if mean.G > 1 {
		m.SE = &mean.SE
	}
	if iv, ok := stat.Unanimous(values, clusters, Level); ok {
		m.Interval = &iv
	} else if iv, ok := stat.TInterval(mean, Level); ok {
		iv = iv.Within(0, 1)
		m.Interval = &iv
	}
	return m, true
}

// TestsPassed returns the mean share of tests passed, with its interval: the mean over problems of the mean
// reward of their graded samples. ok is false without a verdict.
func (p *Panel) TestsPassed(c Column) (m Metric, ok bool) {
	values, clusters := p.rewards(c)
	return shareMetric("tests_passed", values, clusters)
}

// Score returns the same mean for a grader of shares (peer.Grader), such as ANLS. ok is false for others, and if the
// rewards are no shares.
func (p *Panel) Score(c Column) (m Metric, ok bool) {
	if c.Scaled || !peer.GivesShares(c.Grader) {
		return m, false
	}
	values, clusters := p.rewards(c)
	return shareMetric("score", values, clusters)
}

// rewards returns the mean reward of the graded samples of each problem that has some, and the problems' clusters.
func (p *Panel) rewards(c Column) (values []float64, clusters []string) {
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
	return values, clusters
}

// FormCount is one line of the histogram of answer forms.
type FormCount struct {
	Form    extract.Form
	Samples int
	// Correct counts the correct samples of this form, by column.
	Correct []int
}

// Forms counts how the samples write their answers and how many each column accepts; it explains why
// columns score differently. Forms that do not occur are left out.
func (p *Panel) Forms() (counts []FormCount, of []extract.Form) {
	for _, s := range p.Samples {
		of = append(of, extract.FormOf(s.Completion.Text, s.Completion.Finish == rollout.FinishLength))
	}
	for _, form := range extract.Forms() {
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
