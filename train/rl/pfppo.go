package rl

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// Reweighting says how often PF-PPO draws a row (arXiv:2409.06957).
type Reweighting uint8

const (
	WeighPower     Reweighting = 1 + iota // |score|^power
	WeighMaxMin                           // 1 for the batch's best and worst rows, 0 for the others
	WeighMaxRandom                        // 0.4 for the best rows, 0.1 for the others
)

// ParseReweighting returns the method with verl's name: pow, max_min or max_random.
func ParseReweighting(name string) (Reweighting, error) {
	switch name {
	case "pow":
		return WeighPower, nil
	case "max_min":
		return WeighMaxMin, nil
	case "max_random":
		return WeighMaxRandom, nil
	}
	return 0, fmt.Errorf("unknown reweighting %q", name)
}

// weightEps is added to every row's weight, so that a batch of all-zero weights is drawn
// evenly; it is verl's.
const weightEps = 1e-8

// ResamplingWeights sets weight[i] to the sampling weight of row i, plus 1e-8. weight and
// score are [B]. Only WeighPower reads power (verl's is 2); it panics if that is negative.
func ResamplingWeights[T Float](weight []float64, score []T, by Reweighting, power float64) {
	sameLen(len(score), len(weight))
	if len(score) == 0 {
		return
	}
	best, worst := slices.Max(score), slices.Min(score)
	for i, s := range score {
		weight[i] = weightEps
		switch by {
		case WeighPower:
			weight[i] += pow(math.Abs(float64(s)), power)
		case WeighMaxMin:
			if s == best || s == worst {
				weight[i]++
			}
		case WeighMaxRandom:
			if s == best {
				weight[i] += 0.4
			} else {
				weight[i] += 0.1
			}
		default:
			panic("rl: unknown reweighting")
		}
	}
}

// pow returns x to the power p by products and square roots, which round the same on every
// machine; math.Pow guarantees no bits. With p = n + Σ b_k·2^-k:
//
//	x^p = x^n · Π_{b_k = 1} x^(1/2^k)
func pow(x, p float64) float64 {
	if !(p >= 0 && p <= 1<<20) {
		panic("rl: power out of range")
	}
	whole, frac := math.Modf(p)
	y := 1.0
	for n, twice := int(whole), x; n > 0; n /= 2 {
		if n%2 == 1 {
			y = float64(y * twice)
		}
		twice = square(twice)
	}
	for root := x; frac > 0; {
		root = math.Sqrt(root)
		frac += frac
		if frac >= 1 {
			y = float64(y * root)
			frac--
		}
	}
	return y
}

// Resample sets rows[k] to the row that the k-th uniform number draws, with replacement:
// the first whose cumulative share of the weights exceeds uniform[k]. weight is [B], not
// normalised; rows and uniform have one length, in PF-PPO B. Equal arguments give equal
// rows on every machine; the caller draws the numbers, in [0,1), from a stream of their
// own. It panics unless the sum of weights is positive and finite.
//
// verl draws with torch.multinomial from the trainer's global generator.
func Resample(rows []int, weight, uniform []float64) {
	sameLen(len(uniform), len(rows))
	upTo := make([]float64, len(weight))
	var total float64
	for i, w := range weight {
		if !(w >= 0) {
			panic("rl: a weight is negative")
		}
		total += w
		upTo[i] = total
	}
	if !(total > 0 && total <= math.MaxFloat64) {
		panic("rl: the sum of weights is not positive and finite")
	}
	for k, u := range uniform {
		if !(u >= 0 && u < 1) {
			panic("rl: uniform number outside [0,1)")
		}
		// The second condition covers a product rounded up to total.
		at := float64(u * total)
		rows[k] = sort.Search(len(upTo), func(i int) bool { return upTo[i] > at || upTo[i] == total })
	}
}

// Pick returns the offsets of the rows index[0], index[1], … laid end to end.
func (r Rows) Pick(index []int) Rows {
	out := make(Rows, 1, len(index)+1)
	for k, i := range index {
		out = append(out, out[k]+r[i+1]-r[i])
	}
	return out
}

// PickRows returns the rows index[0], index[1], … of x [N] in the order of Rows.Pick.
func PickRows[E any](x []E, rows Rows, index []int) []E {
	var out []E
	for _, i := range index {
		out = append(out, x[rows[i]:rows[i+1]]...)
	}
	return out
}

// Settings of PF-PPO, which is PPO on resampled rows.
var (
	pfPPOMethod = Setting{Key: "pf_ppo.method", Default: "none",
		Words: []string{"none", "pow", "max_min", "max_random"},
		Verl:  []string{"reweight_method"},
		Help: "PF-PPO, arXiv:2409.06957: resample the step's completions by their scores: none, |S|^power, " +
			"the best and the worst, or mostly the best; metrics of the batch are of the resampled completions"}
	pfPPOPower = Setting{Key: "pf_ppo.power", Default: 2.0, Range: "[0, 64]", Verl: []string{"weight_pow"},
		While: []Condition{{"pf_ppo.method", []string{"pow"}}}, Help: "power of the score"}
)

// redrawPFPPO is the Redraw of the estimator "gae".
func redrawPFPPO(weight []float64, score []float32, c Settings) bool {
	by, err := ParseReweighting(c.Word(pfPPOMethod))
	if err != nil { // none
		return false
	}
	power := 0.0
	if by == WeighPower {
		power = c.Float(pfPPOPower)
	}
	ResamplingWeights(weight, score, by, power)
	return true
}
