package vision

import (
	"math"
	"slices"
	"testing"
)

// Patches of an image of 2×2 tokens of 2×2 patches, as the processor orders them.
func TestPlaces(t *testing.T) {
	c := Config{Merge: 2}
	want := [][2]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 0}, {2, 1}, {3, 0}, {3, 1},
		{2, 2}, {2, 3}, {3, 2}, {3, 3}}
	for i, w := range want {
		if row, column := c.place(i, 4); row != w[0] || column != w[1] {
			t.Errorf("patch %d is at %d, %d, not %v", i, row, column, w)
		}
	}
}

// 2×3 tokens in windows of 2×2 tokens: the second window has one column of tokens.
func TestWindows(t *testing.T) {
	c := Config{Merge: 2, Window: 2}
	got := c.windows(4, 6)
	span := func(tokens ...int32) (list []int32) {
		for _, token := range tokens {
			for i := range int32(4) {
				list = append(list, 4*token+i)
			}
		}
		return list
	}
	want := [][]int32{span(0, 1, 3, 4), span(2, 5)}
	if !slices.EqualFunc(got, want, slices.Equal[[]int32]) {
		t.Errorf("windows %v, want %v", got, want)
	}
	if c.Window = 0; len(c.windows(4, 6)) != 1 {
		t.Error("without windows the image is not one segment")
	}
}

// A head of 8 channels has frequencies 1 and 1/100 for rows and the same for columns.
func TestRotary(t *testing.T) {
	c := Config{Merge: 1, Width: 16, Heads: 2}
	cos, sin := c.rotary(3, 4)
	for i := range 12 {
		for pair, angle := range []float64{float64(i / 4), float64(i/4) / 100, float64(i % 4), float64(i%4) / 100} {
			if at := 4*i + pair; math.Abs(cos[at]-math.Cos(angle)) > 1e-15 || math.Abs(sin[at]-math.Sin(angle)) > 1e-15 {
				t.Errorf("patch %d, pair %d: %g, %g", i, pair, cos[at], sin[at])
			}
		}
	}
}

// In Pixtral columns have the frequencies 1/10 and 1/1000 between the rows' frequencies.
func TestRotaryBetween(t *testing.T) {
	cos, _ := Config{Kind: Pixtral, Merge: 1, Width: 16, Heads: 2}.rotary(3, 4)
	for pair, angle := range []float64{2, 2.0 / 100, 3.0 / 10, 3.0 / 1000} {
		if got := cos[4*11+pair]; math.Abs(got-math.Cos(angle)) > 1e-15 {
			t.Errorf("pair %d of row 2, column 3: %g, want %g", pair, got, math.Cos(angle))
		}
	}
}

// 3 learned positions a side and 5 patches lie at 0, 0.5, 1, 1.5 and 2.
func TestLearnedPositions(t *testing.T) {
	c := Config{Merge: 1, Width: 1, Side: 3}
	table := []float64{0, 1, 2, 10, 11, 12, 20, 21, 22} // 10·row + column
	out := make([]float64, 5)
	c.positions(out, table, 5, 5, 5, 10) // the second row of patches
	if want := []float64{5, 5.5, 6, 6.5, 7}; !slices.Equal(out, want) {
		t.Errorf("positions %v, want %v", out, want)
	}
	out = make([]float64, 4)
	if c.positions(out, table, 2, 2, 0, 4); !slices.Equal(out, []float64{0, 2, 20, 22}) {
		t.Errorf("2×2 patches are at %v, not in the corners", out)
	}
	out = make([]float64, 1)
	if c.positions(out, table, 1, 1, 0, 1); out[0] != 0 {
		t.Errorf("a single patch is at %g, not at the first position", out[0])
	}
}

// Two learned positions a side over one, two and four patches. A quarter before the first position the second one has
// the weight W(5/4) = -27/256 of Keys' kernel with a = -3/4; half-way both have the same.
func TestLearnedPositionsOfAreas(t *testing.T) {
	c := Config{Kind: GLM4V, Merge: 1, Width: 1, Side: 2}
	const w = -27.0 / 256
	for n, want := range map[int][]float64{1: {0.5}, 2: {0, 1}, 4: {w, 1 - 0.7734375, 0.7734375, 1 - w}} {
		out := make([]float64, n)
		c.positions(out, []float64{0, 1, 0, 1}, 1, n, 0, n)
		if !slices.Equal(out, want) {
			t.Errorf("%d patches: positions %v, want %v", n, out, want)
		}
	}
	tiles := Config{Kind: InternVL, Merge: 1, Width: 1, Side: 2}
	out := make([]float64, 3)
	if tiles.positions(out, []float64{3, 4, 5, 6}, 4, 2, 3, 6); !slices.Equal(out, []float64{6, 3, 4}) {
		t.Errorf("the end of a tile and the beginning of the next are at %v", out)
	}
}

// Two tiles of 2×2 patches: each has a row behind all patches, which comes first in its segment.
func TestTiles(t *testing.T) {
	c := Config{Kind: InternVL, Merge: 2, Side: 2}
	want := [][]int32{{8, 0, 1, 2, 3}, {9, 4, 5, 6, 7}}
	if got := c.whole(4, 2); !slices.EqualFunc(got, want, slices.Equal[[]int32]) {
		t.Errorf("segments %v, want %v", got, want)
	}
	c.Kind = Idefics3 // without such rows
	want = [][]int32{{0, 1, 2, 3}, {4, 5, 6, 7}}
	if got := c.whole(4, 2); !slices.EqualFunc(got, want, slices.Equal[[]int32]) || c.extra(4) != 0 {
		t.Errorf("segments %v, want %v, and %d rows more", got, want, c.extra(4))
	}
	c.Kind = GLM4V
	if got := c.whole(1, 2); len(got) != 1 || !slices.Equal(got[0], []int32{0, 1}) {
		t.Errorf("segments %v of an image without tiles", got)
	}
}

// Columns of a token's patches: channels 0 and 1 of patches a, b become patch after patch.
func TestPatchwiseRows(t *testing.T) {
	rows := []string{"0a", "0b", "1a", "1b", "0a'", "0b'", "1a'", "1b'"}
	want := []string{"0a", "1a", "0b", "1b", "0a'", "1a'", "0b'", "1b'"}
	if got := patchwiseRows(rows, 4, 2); !slices.Equal(got, want) {
		t.Errorf("rows %v, want %v", got, want)
	}
}

// Segments follow one another, each with its rows in order, and every row comes back to its place.
func TestOrder(t *testing.T) {
	c := Config{Merge: 2, Window: 4}
	for _, size := range [][2]int{{2, 2}, {10, 14}, {32, 4}, {16, 16}} {
		n := size[0] * size[1]
		for _, lists := range [][][]int32{c.windows(size[0], size[1]), {count(n)}} {
			x := newOrder(lists)
			if got := x.rows.host; !slices.Equal(got, slices.Concat(lists...)) {
				t.Fatalf("rows %v of segments %v", got, lists)
			}
			if x.own != slices.Equal(x.rows.host, count(n)) {
				t.Errorf("%v patches: rows are in order anyway: %v", size, x.own)
			}
			for row := range n {
				if x.rows.host[x.back.host[row]] != int32(row) {
					t.Fatalf("row %d comes back to %d", row, x.rows.host[x.back.host[row]])
				}
			}
			for i, list := range lists {
				if o := x.offsets.host; len(o) != len(lists)+1 || int(o[i+1]-o[i]) != len(list) {
					t.Fatalf("offsets %v of segments %v", o, lists)
				}
			}
		}
	}
}
