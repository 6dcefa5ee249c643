package kerneltest

import "fmt"

// gradientCase is an operation that adds to parameter gradients. setup makes the
// buffers of M rows and returns the operation on rows lo to hi, with the block
// boundaries counted from lo.
type gradientCase struct {
	name   string
	op     string
	blocks []int32
	setup  func(c *call) func(lo, hi int, blocks []int32)
}

// checkGradient compares the gradient with the reference, and the gradient in
// one call with that in several, cut where blocks end.
func (s *subject) checkGradient(gc gradientCase) error {
	B := len(gc.blocks) - 1
	one := func(c *call) { gc.setup(c)(0, int(gc.blocks[B]), gc.blocks) }
	if err := s.compare(gc.op, one); err != nil {
		return fmt.Errorf("%s: %w", gc.name, err)
	}
	r := newStream("cuts of " + gc.name)
	several := func(c *call) {
		add := gc.setup(c)
		for _, cut := range pairs(r.cuts(B, 2)) {
			lo, hi := gc.blocks[cut[0]], gc.blocks[cut[1]]
			var rebased []int32
			for _, b := range gc.blocks[cut[0] : cut[1]+1] {
				rebased = append(rebased, b-lo)
			}
			add(int(lo), int(hi), rebased)
		}
	}
	if err := s.identical(several, one); err != nil {
		return fmt.Errorf("%s in several calls is not what it is in one: %w", gc.name, err)
	}
	return nil
}

// pairs returns the neighbours in offsets.
func pairs(offsets []int32) [][2]int32 {
	var p [][2]int32
	for i := 1; i < len(offsets); i++ {
		p = append(p, [2]int32{offsets[i-1], offsets[i]})
	}
	return p
}
