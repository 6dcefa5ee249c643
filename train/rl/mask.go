package rl

import (
	"errors"
	"math"
)

// ErrTooFew reports a sample variance over fewer than two unmasked elements.
var ErrTooFew = errors.New("variance needs at least two unmasked tokens")

// meanEps keeps the mean of nothing at 0. It is verl's, and part of the definition of a
// masked mean: the mean of n equal x is x·n/(n+1e-8).
const meanEps = 1e-8

// varEps is added to a variance before its root is divided by, as in verl.
const varEps = 1e-8

// MaskedSum returns the sum of x [N] where mask [N] is true, in index order.
func MaskedSum[T Float](x []T, mask []bool) float64 {
	sum, _ := sumCount(x, mask)
	return sum
}

// MaskedMean returns MaskedSum(x, mask) / (n + 1e-8), n the number of unmasked elements; 0
// if there are none. For the mean of row i pass the slices [Rows[i]:Rows[i+1]].
func MaskedMean[T Float](x []T, mask []bool) float64 {
	sum, n := sumCount(x, mask)
	return sum / (n + meanEps)
}

func sumCount[T Float](x []T, mask []bool) (sum, n float64) {
	sameLen(len(mask), len(x))
	for i, on := range mask {
		if on {
			sum += float64(x[i])
			n++
		}
	}
	return sum, n
}

// MaskedVar returns the masked mean of (x - MaskedMean(x, mask))². With unbiased
// it is multiplied by n/(n-1), and ErrTooFew is returned if n < 2.
func MaskedVar[T Float](x []T, mask []bool, unbiased bool) (float64, error) {
	sum, n := sumCount(x, mask)
	if unbiased && n < 2 {
		return 0, ErrTooFew
	}
	mean := sum / (n + meanEps)
	var ss float64
	for i, on := range mask {
		if on {
			ss += square(float64(x[i]) - mean)
		}
	}
	v := ss / (n + meanEps)
	if unbiased {
		v = float64(v * (n / (n - 1)))
	}
	return v, nil
}

// Whiten replaces x [N] by (x - mean) / sqrt(var + 1e-8), with the masked mean and the
// unbiased masked variance over all N. Without shiftMean it adds the mean back. It changes
// masked-out elements too, so their values stay meaningless; they have no influence. It
// returns ErrTooFew, and leaves x alone, if fewer than two elements are unmasked.
func Whiten[T Float](x []T, mask []bool, shiftMean bool) error {
	v, err := MaskedVar(x, mask, true)
	if err != nil {
		return err
	}
	mean := MaskedMean(x, mask)
	back := mean
	if shiftMean {
		back = 0
	}
	inv := 1 / math.Sqrt(v+varEps)
	for i := range x {
		x[i] = T(float64((float64(x[i])-mean)*inv) + back)
	}
	return nil
}

// RowSums sets dst[i] to the sum of row i of x, masked or not: a reward belongs to its row
// wherever it sits. dst is [B], x is [N].
func RowSums[T Float](dst, x []T, rows Rows) {
	rows.check(len(x))
	sameLen(rows.Len(), len(dst))
	for i := range dst {
		var sum float64
		for _, v := range x[rows[i]:rows[i+1]] {
			sum += float64(v)
		}
		dst[i] = T(sum)
	}
}

// Spread sets dst[t] to perRow[i] at the unmasked tokens t of row i, and to 0
// elsewhere. dst and mask are [N], perRow is [B].
func Spread[T Float](dst, perRow []T, mask []bool, rows Rows) {
	rows.check(len(mask))
	sameLen(len(mask), len(dst))
	sameLen(rows.Len(), len(perRow))
	for i, v := range perRow {
		for t := rows[i]; t < rows[i+1]; t++ {
			dst[t] = 0
			if mask[t] {
				dst[t] = v
			}
		}
	}
}
