package extent

import (
	"encoding/binary"
	"sync"

	"exp/train/checkpoint/fault"
)

// groupList is which group each column belongs to, as a file has it.
type groupList struct {
	of           Extent
	cols, groups int
	even         int // columns of each group where the file has none; 0 if it must have them

	once sync.Once
	list []int32 // nil if groups are even
	err  error
}

// read returns the list, nil if groups are the columns in order, so many each.
func (g *groupList) read() (list []int32, size int, err error) {
	g.once.Do(func() {
		raw := make([]byte, 4*g.cols)
		if _, g.err = g.of.ReadAt(raw, 0); g.err != nil {
			return
		}
		list := make([]int32, g.cols)
		for c := range list {
			list[c] = int32(binary.LittleEndian.Uint32(raw[4*c:]))
			if list[c] < 0 && g.even > 0 {
				return
			}
			if list[c] < 0 || int(list[c]) >= g.groups {
				f, _ := g.of.First()
				g.err = fault.Corrupt(f.Name(), "", "column %d is in group %d, but there are %d groups", c, list[c],
					g.groups)
				return
			}
		}
		size := (g.cols + g.groups - 1) / g.groups
		for c, group := range list {
			if int(group) != c/size {
				g.list = list
				return
			}
		}
		g.even = size
	})
	return g.list, g.even, g.err
}
