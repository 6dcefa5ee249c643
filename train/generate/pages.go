package generate

import "slices"

// pagePool hands out cache pages and counts how many sequences hold each. A findable page (prefixes) that its last
// holder has left is kept: it can be found, and be held again, until its room is needed.
//
// Kept pages are evicted in the order in which they were left, and a sequence leaves its last page first. So a page
// is evicted before the page that precedes it: whoever holds a page also holds the one before, and leaves that one
// later. No page is therefore found behind one that was evicted.
type pagePool struct {
	size     int     // tokens of a page
	free     []int32 // pages that nobody holds and nobody finds
	kept     pageQueue
	refs     []int32
	prefixes prefixes
}

func newPagePool(n, size int) *pagePool {
	p := &pagePool{size: size, free: make([]int32, 0, n), refs: make([]int32, n)}
	p.reset()
	return p
}

// reset takes all pages back and forgets what they hold. Lower pages are handed out first.
func (p *pagePool) reset() {
	p.free = p.free[:0]
	for i := len(p.refs) - 1; i >= 0; i-- {
		p.free = append(p.free, int32(i))
		p.refs[i] = 0
	}
	p.kept.reset(len(p.refs))
	p.prefixes.reset(len(p.refs))
}

// available returns the number of pages that nobody holds.
func (p *pagePool) available() int { return len(p.free) + p.kept.len }

// take returns a page that nobody held, held once: a free one, or the kept one that was left longest ago, which is
// forgotten.
func (p *pagePool) take() int32 {
	var id int32
	if n := len(p.free); n > 0 {
		id = p.free[n-1]
		p.free = p.free[:n-1]
	} else {
		id = p.kept.first()
		p.kept.remove(id)
		p.prefixes.forget(id)
	}
	p.refs[id] = 1
	return id
}

// share adds a holder to a page that is held or kept.
func (p *pagePool) share(id int32) {
	if p.refs[id] == 0 {
		p.kept.remove(id)
	}
	p.refs[id]++
}

// drop removes a holder; when the last one leaves, the page is kept or free.
func (p *pagePool) drop(id int32) {
	p.refs[id]--
	switch {
	case p.refs[id] > 0:
	case p.prefixes.has(id):
		p.kept.push(id)
	default:
		p.free = append(p.free, id)
	}
}

// leave removes a holder of a sequence's pages, the last one first.
func (p *pagePool) leave(pages []int32) {
	for _, id := range slices.Backward(pages) {
		p.drop(id)
	}
}

// idle counts the pages that nobody holds.
func (p *pagePool) idle(pages []int32) (n int) {
	for _, id := range pages {
		if p.refs[id] == 0 {
			n++
		}
	}
	return n
}

// seek appends to list the findable pages that hold the first tokens, as far as they fill pages. before is the page
// before them; firstPage: none.
func (p *pagePool) seek(list []int32, before int32, tokens []int32) []int32 {
	for len(tokens) >= p.size {
		page, ok := p.prefixes.find(before, tokens[:p.size])
		if !ok {
			break
		}
		list, before, tokens = append(list, page), page, tokens[p.size:]
	}
	return list
}

// publish makes the first n of a sequence's pages findable, which hold its first tokens; the first from of them
// are. If another page is found for the same tokens, the sequence holds that one instead: pages behind it are found
// through it.
func (p *pagePool) publish(pages, tokens []int32, from, n int) {
	for i := from; i < n; i++ {
		if p.prefixes.has(pages[i]) {
			continue
		}
		last, part := before(pages, i), tokens[i*p.size:(i+1)*p.size]
		if page, ok := p.prefixes.find(last, part); ok {
			p.share(page)
			p.drop(pages[i])
			pages[i] = page
			continue
		}
		p.prefixes.add(last, part, pages[i])
	}
}

// before returns the page that precedes page i of a sequence.
func before(pages []int32, i int) int32 {
	if i == 0 {
		return firstPage
	}
	return pages[i-1]
}

// pageQueue lists pages in order, none of them twice.
type pageQueue struct {
	next, prev []int32 // by page; the entry behind all pages holds the ends
	len        int
}

// reset empties the queue, for that many pages.
func (q *pageQueue) reset(pages int) {
	if len(q.next) != pages+1 {
		q.next, q.prev = make([]int32, pages+1), make([]int32, pages+1)
	}
	q.next[pages], q.prev[pages], q.len = int32(pages), int32(pages), 0
}

// first returns the first page of a queue that has some.
func (q *pageQueue) first() int32 { return q.next[len(q.next)-1] }

// push puts a page at the end.
func (q *pageQueue) push(page int32) {
	end := int32(len(q.next) - 1)
	q.join(q.prev[end], page)
	q.join(page, end)
	q.len++
}

// remove takes a page out.
func (q *pageQueue) remove(page int32) {
	q.join(q.prev[page], q.next[page])
	q.len--
}

func (q *pageQueue) join(a, b int32) { q.next[a], q.prev[b] = b, a }
