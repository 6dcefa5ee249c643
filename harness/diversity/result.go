package diversity

import (
	"math"

	"exp/eval/stat"
	"exp/experiments/recorded"
)

// minSeeds is the number of runs of an arm from which intervals cover the variation between runs, as in exp compare.
const minSeeds = 3

const level = 0.95

// The judge's scores.
const (
	least = 1.0
	most  = 5.0
)

// Arm is an arm's scores.
type Arm struct {
	Label  string      `json:"label"`
	Runs   []string    `json:"runs"`
	Score  float64     `json:"score"` // mean over problems and runs
	Lo     *float64    `json:"lo"`    // 95 % interval; null if the scores have no spread
	Hi     *float64    `json:"hi"`
	Of     [6]int      `json:"-"` // judgements with each score
	values [][]float64 // [runs][problems], means over passes
}

// Pair is the difference of two arms, paired by problem.
type Pair struct {
	A     string   `json:"a"`
	B     string   `json:"b"`
	Delta float64  `json:"delta"`
	Lo    *float64 `json:"lo"`
	Hi    *float64 `json:"hi"`
	P     *float64 `json:"p"` // null if no problem differs
	PHolm *float64 `json:"p_holm"`
}

// Result compares arms.
type Result struct {
	Arms     []Arm    `json:"arms"`
	Pairs    []Pair   `json:"pairs"`
	Problems []string `json:"problems"` // that count: judged in every run
	Failed   int      `json:"failed"`   // judgements
	LeftOut  int      `json:"left_out"` // problems without a judgement in some run
	// Of problems that were judged twice or more: the shares of neighbouring passes with the same score, and with
	// scores at most 1 apart. Null with one pass.
	Same      *float64 `json:"same"`
	WithinOne *float64 `json:"within_one"`
}

// Compare returns the result of judged arms. rated is [arms][runs][problems]; ids names the problems, which count as
// independent of each other. With vs only pairs with the last arm are tested.
func Compare(labels []string, runs [][]string, rated [][][][]Pass, ids []string, vs bool) Result {
	r := Result{Arms: make([]Arm, len(labels)), Pairs: []Pair{}, Problems: []string{}}
	var at []int
	for i, id := range ids {
		if judgedByAll(rated, i) {
			at, r.Problems = append(at, i), append(r.Problems, id)
		}
	}
	r.LeftOut = len(ids) - len(at)
	var same, near, twice float64
	for k, arm := range rated {
		x := &r.Arms[k]
		x.Label, x.Runs = labels[k], runs[k]
		for _, problems := range arm {
			for _, passes := range problems {
				last := 0.0
				for _, p := range passes {
					switch {
					case p.Score == 0:
						r.Failed++
					case last > 0:
						twice++
						same += stat.Indicator(p.Score == last)
						near += stat.Indicator(math.Abs(p.Score-last) <= 1)
					}
					x.Of[int(p.Score)]++
					last = p.Score
				}
			}
			var values []float64
			for _, i := range at {
				values = append(values, meanOf(problems[i]))
			}
			x.values = append(x.values, values)
		}
		if len(at) > 0 {
			m := x.mean()
			x.Score = m.Value
			x.Lo, x.Hi = interval(m, least, most)
		}
	}
	if twice > 0 {
		same, near = same/twice, near/twice
		r.Same, r.WithinOne = &same, &near
	}
	r.pairs(vs)
	return r
}

// judgedByAll reports whether every run has a judgement of problem i.
func judgedByAll(rated [][][][]Pass, i int) bool {
	for _, arm := range rated {
		for _, problems := range arm {
			if meanOf(problems[i]) == 0 {
				return false
			}
		}
	}
	return true
}

// meanOf returns the mean score of the passes that did not fail; 0 if all did.
func meanOf(passes []Pass) float64 {
	mean, _ := recorded.JudgedProblem{Scores: scoresOf(passes)}.Mean()
	return mean
}

func scoresOf(passes []Pass) []float64 {
	list := make([]float64, len(passes))
	for i, p := range passes {
		list[i] = p.Score
	}
	return list
}

// items returns the mean over runs of each problem.
func (a *Arm) items() []float64 {
	list := make([]float64, len(a.values[0]))
	for i := range list {
		for _, run := range a.values {
			list[i] += run[i] / float64(len(a.values))
		}
	}
	return list
}

func (a *Arm) mean() stat.Mean {
	if len(a.values) >= minSeeds {
		return stat.CrossedMean(a.values, nil)
	}
	return stat.ClusterMean(a.items(), nil)
}

// pairs compares the arms problem by problem, as exp compare does.
func (r *Result) pairs(vs bool) {
	if len(r.Problems) == 0 {
		return
	}
	var tested []float64
	for a := range r.Arms {
		for b := a + 1; b < len(r.Arms); b++ {
			if vs && b != len(r.Arms)-1 {
				continue
			}
			p := pairOf(&r.Arms[a], &r.Arms[b])
			if p.P != nil {
				tested = append(tested, *p.P)
			}
			r.Pairs = append(r.Pairs, p)
		}
	}
	holm := stat.Holm(tested)
	for i := range r.Pairs {
		if r.Pairs[i].P != nil {
			r.Pairs[i].PHolm, holm = &holm[0], holm[1:]
		}
	}
}

func pairOf(a, b *Arm) Pair {
	d, other := a.items(), b.items()
	differ := false
	for i := range d {
		d[i] -= other[i]
		differ = differ || d[i] != 0
	}
	m := stat.ClusterMean(d, nil)
	crossed := len(a.values) >= minSeeds && len(b.values) >= minSeeds
	if crossed {
		m = stat.CrossedDifference(a.values, b.values, nil)
	}
	p := Pair{A: a.Label, B: b.Label, Delta: m.Value}
	p.Lo, p.Hi = interval(m, least-most, most-least)
	switch {
	case crossed && m.SE > 0:
		if v, ok := stat.TTest(m); ok {
			p.P = &v
		}
	case !crossed && differ:
		v, _ := stat.SignFlip(d, nil, 0)
		p.P = &v
	}
	return p
}

// interval returns the t interval of a mean between low and high; nil without spread.
func interval(m stat.Mean, low, high float64) (lo, hi *float64) {
	iv, ok := stat.TInterval(m, level)
	if !ok || !(iv.Hi > iv.Lo) || math.IsInf(iv.Hi-iv.Lo, 0) {
		return nil, nil
	}
	iv = iv.Within(low, high)
	return &iv.Lo, &iv.Hi
}
