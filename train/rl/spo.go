package rl

import "math"

// SPOConfig holds the settings of single-stream policy optimization (arXiv:2509.13232); those of verl's recipe
// spo are in brackets.
type SPOConfig struct {
	First          int     // completions of a problem before training, for its first value [8]
	RhoMin, RhoMax float64 // bounds of what a visit leaves of the earlier weight [0.875, 0.96]
	HalfLife       float64 // nats: the distance of two policies that leaves half of it [0.06]
	Explore        float64 // added to every problem's weight [0.05]
}

func (c SPOConfig) check() {
	if !(c.RhoMin >= 0 && c.RhoMin < 1 && c.RhoMin <= c.RhoMax && c.RhoMax <= 1 && c.HalfLife > 0 && c.Explore > 0) {
		panic("rl: SPO needs 0 ≤ RhoMin ≤ RhoMax ≤ 1, RhoMin < 1, and a positive HalfLife and Explore")
	}
}

// Constant reports whether a visit forgets as much however far the policy has moved.
func (c SPOConfig) Constant() bool { return c.RhoMin == c.RhoMax }

// BetaValue is the distribution of a problem's expected reward, which is from 0 to 1.
type BetaValue struct {
	Alpha float64 `json:"alpha"` // of 1, in completions
	Beta  float64 `json:"beta"`  // of 0
}

// Value returns the mean Alpha/(Alpha + Beta).
func (b BetaValue) Value() float64 { return b.Alpha / (b.Alpha + b.Beta) }

// Start returns the distribution after n first completions with rewards of that sum: of 1/(1 - RhoMin) completions,
// which is what visits that forget the most sum up to, with Jeffreys' prior of half a completion on both sides.
// Without completions it is the prior.
func (c SPOConfig) Start(sum float64, n int) BetaValue {
	c.check()
	if n == 0 {
		return BetaValue{0.5, 0.5}
	}
	weight := 1 / (1 - c.RhoMin) / float64(n+1)
	return BetaValue{float64(weight * (sum + 0.5)), float64(weight * (float64(n) - sum + 0.5))}
}

// Rho returns what remains of the weight of earlier completions: 2^(-distance/HalfLife), within the bounds.
func (c SPOConfig) Rho(distance float64) float64 {
	c.check()
	return clamp(exp(-float64(math.Ln2*distance)/c.HalfLife), c.RhoMin, c.RhoMax)
}

// Update returns the distribution after a completion of the given reward:
//
//	Alpha' = rho·Alpha + reward,  Beta' = rho·Beta + 1 - reward
func (b BetaValue) Update(rho, reward float64) BetaValue {
	return BetaValue{float64(rho*b.Alpha) + reward, float64(rho*b.Beta) + (1 - reward)}
}

// Weight returns the weight of a problem of that value in the draw of a step's problems: sqrt(v·(1-v)) + Explore.
func (c SPOConfig) Weight(value float64) float64 {
	return math.Sqrt(max(0, float64(value*(1-value)))) + c.Explore
}

// Distance returns the mean of |now - then| over unmasked tokens, the recipe's distance of the policies that two
// visits of a problem have; 0 without one. then are the log-probs [T] of a completion when it was sampled, now those
// of the present policy.
func Distance[T Float](now, then []T, mask []bool) float64 {
	sameLen(len(mask), len(now), len(then))
	var sum, n float64
	for i, on := range mask {
		if on {
			sum += math.Abs(float64(now[i]) - float64(then[i]))
			n++
		}
	}
	return sum / max(1, n)
}

// DrawWithout sets index[k] to the problem that the k-th uniform number draws, without replacement: the first whose
// cumulative share of the weights of problems that are left exceeds uniform[k]. weight [P] is positive and not
// normalised; there are no more draws than problems.
func DrawWithout(index []int, weight, uniform []float64) {
	sameLen(len(uniform), len(index))
	left := make([]float64, len(weight))
	copy(left, weight)
	for k, u := range uniform {
		var total, upTo float64
		for _, w := range left {
			total += w
		}
		at := float64(u * total)
		index[k] = -1
		for i, w := range left {
			if w == 0 {
				continue
			}
			index[k] = i // the last one covers a product rounded up to total
			if upTo += w; upTo > at {
				break
			}
		}
		if index[k] < 0 {
			panic("rl: more draws than problems with a weight")
		}
		left[index[k]] = 0
	}
}

// TrackedAdvantage sets dst[i] to (score[i] - value[i] - mean)/(std + 1e-8), mean and standard deviation (of the
// sample, with B - 1) of the differences of all rows; 0 for a single row. dst and score may be the same slice.
func TrackedAdvantage[T Float](dst, score, value []T) {
	sameLen(len(dst), len(score), len(value))
	n := float64(len(dst))
	diff := make([]float64, len(dst))
	var mean, squares float64
	for i, s := range score {
		diff[i] = float64(s) - float64(value[i])
		mean += diff[i]
	}
	mean /= n
	for _, d := range diff {
		squares += square(d - mean)
	}
	std := math.Sqrt(squares / max(1, n-1))
	for i, d := range diff {
		dst[i] = T((d - mean) / (std + 1e-8))
	}
}

// Settings of SPO. Its recipe fixes spo.half_life, spo.rho_max and spo.explore.
var (
	spoFirst = Setting{Key: "spo.first", Default: 8, Range: "[0, inf)", Unit: "completions", Late: true,
		Verl: []string{"offline_N"},
		Help: "completions of every problem before training, for the first value of its tracker; 0: all start at 1/2"}
	spoRhoMin = Setting{Key: "spo.rho_min", Default: 0.875, Range: "[0, 1)", UpTo: "spo.rho_max", Late: true,
		Verl: []string{"clip_lower"},
		Help: "least share of a tracker's weight that a visit leaves; first values weigh 1/(1 - rho_min) completions"}
	spoRhoMax = Setting{Key: "spo.rho_max", Default: 0.96, Range: "(0, 1]", Late: true,
		Help: "greatest share; with rho_min = rho_max it does not depend on how far the policy has moved"}
	spoHalfLife = Setting{Key: "spo.half_life", Default: 0.06, Range: "(0, inf)", Unit: "nats", Late: true,
		Help: "a visit leaves half of the weight where the mean |change of logprob| since the last one is this"}
	spoExplore = Setting{Key: "spo.explore", Default: 0.05, Range: "(0, inf)", Late: true,
		Help: "problems are drawn with weight sqrt(v(1 - v)) + explore, v the value of their trackers"}
)

// SPOSettings returns the settings of the estimator "spo".
func SPOSettings(c Settings) SPOConfig {
	return SPOConfig{First: c.Int(spoFirst), RhoMin: c.Float(spoRhoMin), RhoMax: c.Float(spoRhoMax),
		HalfLife: c.Float(spoHalfLife), Explore: c.Float(spoExplore)}
}

// trackedEstimator is the estimator "spo".
func trackedEstimator() Estimator {
	estimate := ofRows(func(s *Graded, _ Settings) error {
		TrackedAdvantage(s.Score, s.Score, s.Baseline)
		return nil
	})
	return Estimator{Name: "spo", Tracks: true, Estimate: estimate,
		Settings: []Setting{spoFirst, spoRhoMin, spoRhoMax, spoHalfLife, spoExplore}}
}
