package eval

import (
	"exp/eval/grade/instruct"
	"exp/eval/layout"
)

// followedMetrics returns Followed of each grader; nil if the problems have no instructions.
func (p *Panel) followedMetrics() (list []Metric) {
	for _, c := range p.Columns {
		if m, ok := p.Followed(c); ok && c.Grader != UnionName {
			m.Name = FollowedPrefix + c.Grader
			list = append(list, m)
		}
	}
	return list
}

// Followed returns the share of instructions that samples follow, as the answers of a column name them: IFEval's
// accuracy per instruction. A prompt counts as often as it has instructions. The interval is of a ratio of means,
// linearized at its value. ok is false if the problems have no instructions.
func (p *Panel) Followed(c Column) (m Metric, ok bool) {
	var shares, weights []float64
	var clusters []string
	followed, total := 0.0, 0.0
	for i, g := range p.groups(c.Verdicts) {
		facts, err := layout.FactsOf(&p.Problems[i])
		if err != nil || len(facts.Instructions) == 0 {
			return m, false
		}
		if len(g) == 0 {
			continue
		}
		named := 0
		for _, v := range g {
			named += instruct.Named(v.Answer)
		}
		weight := float64(len(facts.Instructions))
		share := float64(named) / float64(len(facts.Instructions)*len(g))
		followed, total = followed+float64(weight*share), total+weight
		shares, weights = append(shares, share), append(weights, weight)
		clusters = append(clusters, p.Problems[i].Cluster)
	}
	if total == 0 {
		return m, false
	}
	ratio, mean := followed/total, total/float64(len(weights))
	for i, share := range shares {
		shares[i] = ratio + float64(weights[i]/mean*(share-ratio))
	}
	return shareMetric("instructions_followed", shares, clusters)
}
