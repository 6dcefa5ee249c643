package generate

// prefixes finds full pages in the cache, so a prompt with the same beginning as another sequence holds its first
// pages instead of computing them. A page is found by its tokens and by the page before it, which stands for all
// tokens before. The memory that it takes is bounded by the number of pages, whose tokens it holds.
type prefixes struct {
	pages map[prefixKey]int32
	keys  []prefixKey // by page; without tokens: not findable
	bytes []byte      // room of encode
}

type prefixKey struct {
	before int32  // page; firstPage if none
	tokens string // little-endian, four bytes each
}

// firstPage stands before the first page of a sequence.
const firstPage = -1

func (x *prefixes) reset(pages int) {
	x.keys = make([]prefixKey, pages)
	x.pages = map[prefixKey]int32{}
}

// encode returns tokens as keys have them, until it is called again.
func (x *prefixes) encode(tokens []int32) []byte {
	x.bytes = x.bytes[:0]
	for _, id := range tokens {
		x.bytes = append(x.bytes, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
	}
	return x.bytes
}

// find returns the page that holds tokens behind a page, if there is one. It allocates nothing.
func (x *prefixes) find(before int32, tokens []int32) (page int32, ok bool) {
	page, ok = x.pages[prefixKey{before, string(x.encode(tokens))}]
	return page, ok
}

// add makes a page findable that holds tokens which find does not find.
func (x *prefixes) add(before int32, tokens []int32, page int32) {
	k := prefixKey{before, string(x.encode(tokens))}
	x.pages[k], x.keys[page] = page, k
}

// has reports whether a page is findable.
func (x *prefixes) has(page int32) bool { return x.keys[page].tokens != "" }

func (x *prefixes) forget(page int32) {
	delete(x.pages, x.keys[page])
	x.keys[page] = prefixKey{}
}

// seek returns the pages that hold the next tokens of a prompt. A scored one computes all of its tokens.
func (s *schedule) seek(pr *prompt) []int32 {
	size := s.e.opt.PageTokens
	if s.scores(pr) || pr.done%size != 0 {
		return nil
	}
	s.found = s.e.pages.seek(s.found[:0], before(pr.pages, pr.done/size), pr.tokens[pr.done:pr.shared()])
	return s.found
}

// adopt replaces the next, uncomputed pages of a prompt by pages that hold the same tokens after the same prefix.
func (s *schedule) adopt(pr *prompt) {
	found := s.seek(pr)
	for i, page := range found {
		own := &pr.pages[pr.done/s.e.opt.PageTokens+i]
		s.e.pages.share(page)
		s.e.pages.drop(*own)
		*own = page
	}
	s.took(pr, len(found))
}

// took notes that a prompt holds the next pages, which were found.
func (s *schedule) took(pr *prompt, pages int) {
	tokens := pages * s.e.opt.PageTokens
	pr.done += tokens
	s.e.stats.FoundTokens += tokens
	if s.feed != nil && pr.begins() {
		s.feed.asks[pr.req].Found += tokens
	}
}

// begins reports whether none of a request's completions has started with pr.
func (pr *prompt) begins() bool { return pr.again == nil && pr.nextK == 0 }

// wanted returns how many tokens of a prompt, computed by the steps up to and including the current one, others may
// look for: all, unless all prompts are known. The pages of the rest are free when the prompt leaves them, so that a
// call uses no more pages than it holds at once.
func (s *schedule) wanted(pr *prompt) int {
	if s.common == nil || pr.again != nil {
		return pr.done
	}
	return min(pr.done, s.common[pr.req]*s.e.opt.PageTokens)
}

// publish makes the pages of a prompt findable that its first, computed tokens fill. Rows of the current step may
// already use them. In a model with states, the states at the ends of pages are gone.
func (s *schedule) publish(pr *prompt, tokens int) {
	full := tokens / s.e.opt.PageTokens
	if s.e.state.exist() || full <= pr.found {
		return
	}
	s.e.pages.publish(pr.pages, pr.tokens, pr.found, full)
	pr.found = full
}

// keep makes the pages findable that q fills, for prompts that go on where it leaves.
func (s *schedule) keep(q *sequence) {
	if s.e.state.exist() || len(q.pages) == 0 {
		return
	}
	s.known = append(s.known[:0], s.reqs[q.req].Prompt...)
	for _, d := range q.drawn {
		s.known = append(s.known, d.id)
	}
	// The last token has no keys and values yet. The keys and values behind it belong to drafts.
	s.e.pages.publish(q.pages, s.known, 0, (len(s.known)-1)/s.e.opt.PageTokens)
}
