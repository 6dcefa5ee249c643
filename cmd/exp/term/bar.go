package term

import (
	"math"
	"strings"
)

// Bar draws the done share of total in width columns: "████░░". It is full only when all
// is done, and empty unless total is positive.
func Bar(done, total, width int, unicode bool) string {
	full, empty := "█", "░"
	if !unicode {
		full, empty = "#", "-"
	}
	filled := 0
	if total > 0 {
		filled = max(0, min(done, total)) * width / total
	}
	return strings.Repeat(full, filled) + strings.Repeat(empty, width-filled)
}

var (
	sparkUnicode = []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}
	sparkASCII   = []string{"_", ".", "-", "=", "*", "#"}
)

// Spark draws values as a line of at most width columns, the least at the
// bottom and the greatest at the top; more values than columns are averaged in
// groups. Values that are not finite leave a blank. Equal values are drawn at
// the bottom.
func Spark(values []float64, width int, unicode bool) string {
	levels := sparkUnicode
	if !unicode {
		levels = sparkASCII
	}
	points := resample(values, width)
	lo, hi := bounds(points)

	var out strings.Builder
	for _, v := range points {
		switch {
		case math.IsNaN(v):
			out.WriteByte(' ')
		case hi > lo:
			share := (v/2 - lo/2) / (hi/2 - lo/2) // halved first: hi-lo may overflow
			out.WriteString(levels[int(share*float64(len(levels)-1)+0.5)])
		default:
			out.WriteString(levels[0])
		}
	}
	return out.String()
}

// resample averages the finite values of width groups of equal size; a group
// without any is NaN. Fewer values than width stay as they are.
func resample(values []float64, width int) []float64 {
	n := max(min(width, len(values)), 0)
	points := make([]float64, n)
	for i := range points {
		points[i] = finiteMean(values[i*len(values)/n : (i+1)*len(values)/n])
	}
	return points
}

// finiteMean is the mean of the finite values, or NaN.
func finiteMean(values []float64) float64 {
	sum, count := 0.0, 0
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			sum += v
			count++
		}
	}
	return sum / float64(count) // 0/0 is NaN
}

// bounds returns the smallest and the largest point, ignoring NaN.
func bounds(points []float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, v := range points {
		if !math.IsNaN(v) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	return lo, hi
}
