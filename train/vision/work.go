package vision

import "math"

// This file counts the work of passes over images.

// work is floating-point operations of the forward pass: of maps whose results no backward pass needs again, of the
// other maps, of the map from pixels, and of attention's products.
type work struct{ last, maps, pixels, attention float64 }

// workOf returns the work of an image of some rows and columns of patches: two for each weight that a row meets, and
// 4·C for each pair of rows that attend to each other.
func (c Config) workOf(rows, columns int) (x work) {
	N := rows * columns
	times := map[scope]int{patchwise: N, rowwise: N + c.extra(rows), tokenwise: N / c.unit()}
	of := func(list ...linearSpec) (n float64) {
		for _, m := range list {
			n += 2 * float64(times[m.scope]) * float64(m.out()) * float64(m.in)
		}
		return n
	}
	squares := func(segments [][]int32) (sum float64) {
		for _, w := range segments {
			sum += float64(len(w)) * float64(len(w))
		}
		return sum
	}
	x.pixels = of(c.patches())
	whole, windows := squares(c.whole(rows, columns)), squares(c.windows(rows, columns))
	for l := range c.Layers {
		y := c.block(l)
		x.maps += of(y.qkv, y.proj, y.up)
		if y.scale2 == "" {
			x.last += of(y.down)
		} else {
			x.maps += of(y.down)
		}
		seen := whole
		if c.windowed(l) {
			seen = windows
		}
		x.attention += 4 * seen * float64(c.Width)
	}
	return x
}

// mergerWork is workOf for the mergers, which a backward pass computes once, not twice.
func (c Config) mergerWork(rows, columns int) (x work) {
	tokens := float64(rows * columns / c.unit())
	for _, m := range c.mergers() {
		for _, y := range []linearSpec{m.join, m.proj, m.fc1} {
			x.maps += 2 * tokens * float64(y.out()) * float64(y.in)
		}
		x.last += 2 * tokens * float64(m.fc2.out()) * float64(m.fc2.in)
	}
	return x
}

// FLOPs returns twice the multiply-adds that the features of an image of some rows and columns of patches take.
func (c Config) FLOPs(rows, columns int) float64 {
	x, m := c.workOf(rows, columns), c.mergerWork(rows, columns)
	return x.last + x.maps + x.pixels + x.attention + m.last + m.maps
}

// attentionBackward is the products of attention's backward pass, for one of its forward pass: five for two.
const attentionBackward = 2.5

// BackwardFLOPs is FLOPs for Backward, of all weights or of adapters on frozen ones, whose own products are few. It
// computes the forward pass, then each block again, and two products for each map, of the gradients of its input and
// of its weights, or the first alone.
func (c Config) BackwardFLOPs(rows, columns int, adapters bool) float64 {
	x, m := c.workOf(rows, columns), c.mergerWork(rows, columns)
	products, pixels := 2.0, 2.0
	switch {
	case adapters:
		products, pixels = 1, 1
	case c.first().width > 0: // which needs the pixels' map again
		pixels = 3
	}
	return (1+products)*x.last + (2+products)*x.maps + pixels*x.pixels + (2+attentionBackward)*x.attention +
		products*m.last + (1+products)*m.maps
}

// ImageFLOPs returns FLOPs and BackwardFLOPs of an image near a square of so many tokens.
func (c Config) ImageFLOPs(tokens int, adapters bool) (forward, backward float64) {
	rows, columns := c.Side, c.Side
	if !c.has().tiled {
		side := max(1, int(math.Sqrt(float64(tokens))))
		rows, columns = side*c.Merge, (tokens+side-1)/side*c.Merge
	}
	share := float64(tokens*c.unit()) / float64(rows*columns)
	return share * c.FLOPs(rows, columns), share * c.BackwardFLOPs(rows, columns, adapters)
}
