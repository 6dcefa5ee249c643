package term

import (
	"time"

	"exp/experiments/quantity"
)

// The formats of package quantity, as commands call them.

func Fixed(v float64, digits int) string           { return quantity.Fixed(v, digits) }
func Short(v float64) string                       { return quantity.Short(v) }
func PlusMinus(v, half float64, digits int) string { return quantity.PlusMinus(v, half, digits) }
func Percent(share float64, digits int) string     { return quantity.Percent(share, digits) }
func Count(n int64) string                         { return quantity.Count(n) }
func Bytes(n int64) string                         { return quantity.Bytes(n) }
func Duration(d time.Duration) string              { return quantity.Duration(d) }
func Remaining(d time.Duration) string             { return quantity.Remaining(d) }
