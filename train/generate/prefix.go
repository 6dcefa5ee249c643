package generate

// prefixes finds full prompt pages in the cache, so a prompt with the same beginning as
// another takes its first pages over instead of computing them. A page is found by its
// tokens and by the page before it, which stands for all tokens before. A page is forgotten
// when its last holder leaves it: every holder of a page also holds the page before it, so
// no page is found after a missing one.
type prefixes struct {
	pages map[prefixKey]int32
	keys  []prefixKey // by page; without tokens: not findable
}

type prefixKey struct {
	before int32  // page; firstPage if none
	tokens string // little-endian, four bytes each
}

// firstPage stands before the first page of a prompt.
const firstPage = -1

func newPrefixKey(before int32, tokens []int32) prefixKey {
	b := make([]byte, 0, 4*len(tokens))
	for _, id := range tokens {
		b = append(b, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
	}
	return prefixKey{before, string(b)}
}

func (x *prefixes) reset(pages int) {
	x.keys = make([]prefixKey, pages)
	x.pages = map[prefixKey]int32{}
}

// add makes a page findable, unless another page with the same tokens is.
func (x *prefixes) add(k prefixKey, page int32) (added bool) {
	if _, ok := x.pages[k]; ok {
		return false
	}
	x.pages[k], x.keys[page] = page, k
	return true
}

func (x *prefixes) forget(page int32) {
	if k := x.keys[page]; k.tokens != "" {
		delete(x.pages, k)
		x.keys[page] = prefixKey{}
	}
}

// before returns the page that precedes page i of a prompt.
func before(pages []int32, i int) int32 {
	if i == 0 {
		return firstPage
	}
	return pages[i-1]
}

// adopt replaces the next, uncomputed pages of a prompt by pages that hold the same tokens
// after the same prefix.
func (s *schedule) adopt(pr *prompt) {
	size, tokens := s.e.opt.PageTokens, pr.tokens
	if s.e.state.exist() {
		return // the state at the end of those pages is gone
	}
	for pr.done%size == 0 && pr.done+size <= pr.shared() {
		i := pr.done / size
		page, ok := s.e.pages.prefixes.pages[newPrefixKey(before(pr.pages, i), tokens[pr.done:pr.done+size])]
		if !ok {
			return
		}
		s.e.pages.share(page)
		s.e.pages.drop(pr.pages[i])
		pr.pages[i] = page
		pr.done += size
		pr.found = pr.done / size
	}
}

// publish makes a prompt's pages findable that are filled by the steps up to and including
// the current one. Rows of that step may already use them.
func (s *schedule) publish(pr *prompt) {
	size := s.e.opt.PageTokens
	for ; pr.found < pr.done/size; pr.found++ {
		i := pr.found
		k := newPrefixKey(before(pr.pages, i), pr.tokens[i*size:(i+1)*size])
		if !s.e.pages.prefixes.add(k, pr.pages[i]) {
			pr.found = len(pr.pages) // nor those after it: nobody would look for them
			return
		}
	}
}
