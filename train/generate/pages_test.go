package generate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// check finds pages that are in two places or in none, and findable ones behind a page that is not.
func (p *pagePool) check() error {
	places := make([]int, len(p.refs)) // in which each page is
	at := make([]int, len(p.refs))     // in the queue
	for id, n := range p.refs {
		if n > 0 {
			places[id]++
		}
	}
	for _, id := range p.free {
		places[id]++
		if p.prefixes.has(id) {
			return fmt.Errorf("page %d is free and findable", id)
		}
	}
	kept := 0
	for id := p.kept.first(); int(id) < len(p.refs); id = p.kept.next[id] {
		places[id]++
		kept++
		at[id] = kept
		if !p.prefixes.has(id) || p.refs[id] > 0 || p.kept.next[p.kept.prev[id]] != id || kept > len(p.refs) {
			return fmt.Errorf("page %d is kept, held %d times, findable: %v", id, p.refs[id], p.prefixes.has(id))
		}
	}
	if i := slices.IndexFunc(places, func(n int) bool { return n != 1 }); i >= 0 || kept != p.kept.len {
		return fmt.Errorf("page %d is in %v places, %d are kept, %d counted", i, places, kept, p.kept.len)
	}
	findable := 0
	for id, k := range p.prefixes.keys {
		if k.tokens == "" {
			continue
		}
		findable++
		if page, ok := p.prefixes.pages[k]; !ok || page != int32(id) || len(k.tokens) != 4*p.size {
			return fmt.Errorf("page %d has the key of page %d", id, page)
		}
		switch b := k.before; {
		case b == firstPage:
		case !p.prefixes.has(b), p.refs[id] > 0 && p.refs[b] == 0, p.refs[b] == 0 && at[b] < at[id]:
			return fmt.Errorf("page %d, held %d times, goes before page %d behind it, held %d times", b, p.refs[b], id,
				p.refs[id])
		}
	}
	if len(p.prefixes.pages) != findable {
		return fmt.Errorf("%d keys of %d pages", len(p.prefixes.pages), findable)
	}
	return nil
}

// plainPool is what pagePool must do, in plain words: a page is known by all tokens up to its last one.
type plainPool struct {
	refs []int32
	text []string         // of the tokens up to each page's last one; pages that hold none: empty
	find map[string]int32 // findable pages
	left []int32          // of them, those that nobody holds, in the order in which they were left
}

func (x *plainPool) available() (n int) {
	for _, r := range x.refs {
		if r == 0 {
			n++
		}
	}
	return n
}

// seek returns the pages of the longest beginning that can be found.
func (x *plainPool) seek(tokens []int32, size int) (list []int32) {
	for n := size; n <= len(tokens); n += size {
		page, ok := x.find[fmt.Sprint(tokens[:n])]
		if !ok {
			break
		}
		list = append(list, page)
	}
	return list
}

// take notes that a page was handed out, or says why it must not be.
func (x *plainPool) take(page int32) error {
	kept := slices.Contains(x.left, page)
	switch {
	case x.refs[page] != 0:
		return fmt.Errorf("page %d is held", page)
	case kept && len(x.left) < x.available():
		return fmt.Errorf("page %d can be found, though others are free", page)
	case kept && x.left[0] != page:
		return fmt.Errorf("page %d is evicted, %v were left in this order", page, x.left)
	case kept:
		x.left = x.left[1:]
		delete(x.find, x.text[page])
	}
	x.refs[page], x.text[page] = 1, ""
	return nil
}

func (x *plainPool) share(page int32) {
	x.refs[page]++
	x.left = slices.DeleteFunc(x.left, func(id int32) bool { return id == page })
}

func (x *plainPool) drop(page int32) {
	x.refs[page]--
	if id, ok := x.find[x.text[page]]; x.refs[page] == 0 && ok && id == page {
		x.left = append(x.left, page)
	}
}

// publish returns the pages that a sequence holds in place of the first n, once those can be found.
func (x *plainPool) publish(pages, tokens []int32, n, size int) []int32 {
	pages = slices.Clone(pages)
	for i, page := range pages[:n] {
		text := fmt.Sprint(tokens[:(i+1)*size])
		other, ok := x.find[text]
		switch {
		case !ok:
			x.find[text] = page
		case other != page:
			x.share(other)
			x.drop(page)
			pages[i] = other
		}
	}
	return pages
}

// same compares the pool with x.
func (x *plainPool) same(p *pagePool) error {
	var left []int32
	for id := p.kept.first(); int(id) < len(p.refs); id = p.kept.next[id] {
		left = append(left, id)
	}
	if !slices.Equal(p.refs, x.refs) || !slices.Equal(left, x.left) || p.available() != x.available() {
		return fmt.Errorf("held %v, left %v, %d available; want %v, %v, %d", p.refs, left, p.available(), x.refs, x.left,
			x.available())
	}
	if len(p.prefixes.pages) != len(x.find) {
		return fmt.Errorf("%d pages can be found, want %d", len(p.prefixes.pages), len(x.find))
	}
	for text, page := range x.find {
		var tokens []int32
		for _, f := range strings.Fields(strings.Trim(text, "[]")) {
			var id int32
			fmt.Sscan(f, &id)
			tokens = append(tokens, id)
		}
		if list := p.seek(nil, firstPage, tokens); len(list)*p.size != len(tokens) || list[len(list)-1] != page {
			return fmt.Errorf("%s is found in %v, want page %d at last", text, list, page)
		}
	}
	return p.check()
}

// pagesOfTokens is a sequence of the test below.
type pagesOfTokens struct {
	tokens []int32
	pages  []int32
	filled int // pages
}

// Sequences of all kinds begin, fill pages, share them, publish and leave, in a pool that is too small for them. After
// each operation it holds what the plain one holds.
func TestPool(t *testing.T) {
	const size = 2
	found, evicted, swapped := 0, 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 21))
		n := 1 + r.IntN(24)
		p := newPagePool(n, size)
		x := &plainPool{refs: make([]int32, n), text: make([]string, n), find: map[string]int32{}}
		var list []*pagesOfTokens
		grow := func(q *pagesOfTokens) {
			could := len(x.find)
			page := p.take()
			if err := x.take(page); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			evicted += could - len(x.find)
			q.pages = append(q.pages, page)
		}
		for op := range 1000 {
			kind := []int{0, 0, 1, 1, 2, 2, 3, 4, 5, 5}[r.IntN(10)]
			switch {
			case kind == 0 || len(list) == 0: // a sequence begins, maybe as others have
				q := &pagesOfTokens{tokens: make([]int32, size*r.IntN(7))}
				for i := range q.tokens {
					q.tokens[i] = int32(r.IntN(6) / 4)
				}
				hits, want := p.seek(nil, firstPage, q.tokens), x.seek(q.tokens, size)
				if !slices.Equal(hits, want) {
					t.Fatalf("seed %d, operation %d: found %v, want %v", seed, op, hits, want)
				}
				need := len(q.tokens)/size - len(hits)
				if r.IntN(3) == 0 {
					need, hits = need+len(hits), nil // finds nothing, as if computed at the same time
				}
				if need+p.idle(hits) > p.available() {
					break
				}
				for _, id := range hits {
					p.share(id)
					x.share(id)
				}
				q.pages, q.filled = slices.Clone(hits), len(hits)
				found += len(hits)
				for range need {
					grow(q)
				}
				list = append(list, q)
			case kind == 1: // fills pages
				q := list[r.IntN(len(list))]
				for q.filled < len(q.pages) && r.IntN(4) > 0 {
					q.filled++
					x.text[q.pages[q.filled-1]] = fmt.Sprint(q.tokens[:q.filled*size])
				}
			case kind == 2: // publishes
				q := list[r.IntN(len(list))]
				m := 0
				if q.filled > 0 {
					m = r.IntN(q.filled + 1)
				}
				want := x.publish(q.pages, q.tokens, m, size)
				before := slices.Clone(q.pages)
				p.publish(q.pages, q.tokens, 0, m)
				if !slices.Equal(q.pages, want) {
					t.Fatalf("seed %d, operation %d: %v became %v, want %v", seed, op, before, q.pages, want)
				}
				if !slices.Equal(before, want) {
					swapped++
				}
			case kind == 3: // another one shares its first pages
				q := list[r.IntN(len(list))]
				k := r.IntN(q.filled + 1)
				b := &pagesOfTokens{slices.Clone(q.tokens), slices.Clone(q.pages[:k]), k}
				for _, id := range b.pages {
					p.share(id)
					x.share(id)
				}
				list = append(list, b)
			case kind == 4: // goes on
				q := list[r.IntN(len(list))]
				if p.available() > 0 && len(q.pages)*size < 20 {
					grow(q)
					for len(q.tokens) < len(q.pages)*size {
						q.tokens = append(q.tokens, int32(r.IntN(2)))
					}
				}
			default: // leaves
				i := r.IntN(len(list))
				p.leave(list[i].pages)
				for _, id := range slices.Backward(list[i].pages) {
					x.drop(id)
				}
				list = slices.Delete(list, i, i+1)
			}
			if err := x.same(p); err != nil {
				t.Fatalf("seed %d, operation %d of kind %d: %v", seed, op, kind, err)
			}
		}
	}
	if found < 500 || evicted < 500 || swapped < 50 {
		t.Errorf("%d pages were found, %d evicted, %d replaced: not all cases happen", found, evicted, swapped)
	}
}
