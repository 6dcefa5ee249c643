package generate

// pagePool hands out cache pages and counts how many sequences hold each.
type pagePool struct {
	free     []int32
	refs     []int32
	prefixes prefixes
}

func newPagePool(n int) *pagePool {
	p := &pagePool{free: make([]int32, 0, n), refs: make([]int32, n)}
	p.reset()
	return p
}

// reset takes all pages back. Lower pages are handed out first.
func (p *pagePool) reset() {
	p.free = p.free[:0]
	for i := len(p.refs) - 1; i >= 0; i-- {
		p.free = append(p.free, int32(i))
		p.refs[i] = 0
	}
	p.prefixes.reset(len(p.refs))
}

// available returns the number of pages that nobody holds.
func (p *pagePool) available() int { return len(p.free) }

// take returns a free page, held once.
func (p *pagePool) take() int32 {
	id := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.refs[id] = 1
	return id
}

// share adds a holder to a page.
func (p *pagePool) share(id int32) { p.refs[id]++ }

// drop removes a holder; when the last one leaves the page is free.
func (p *pagePool) drop(id int32) {
	p.refs[id]--
	if p.refs[id] == 0 {
		p.prefixes.forget(id)
		p.free = append(p.free, id)
	}
}
