package rl

import "exp/train/rl/exact"

// exp and log have the same bits on every machine.
func exp(x float64) float64 { return exact.Exp(x) }
func log(x float64) float64 { return exact.Log(x) }

// maxLogRatio bounds a token's log-ratio before exp, in both directions, as in
// verl: e^20 is 5e8, far above any clipping, and its products stay finite.
const maxLogRatio = 20

// logRatio returns logProb - old bounded to ±maxLogRatio. inside is false if the bound
// acted; the result does not depend on logProb then.
func logRatio(logProb, old float64) (d float64, inside bool) {
	return bound(logProb-old, -maxLogRatio, maxLogRatio)
}

// bound returns x bounded to [lo, hi], and whether the bounds left it alone.
func bound(x, lo, hi float64) (bounded float64, inside bool) {
	bounded = clamp(x, lo, hi)
	return bounded, !(bounded < x || bounded > x)
}
