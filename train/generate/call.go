package generate

// Call bounds a call of Sample.
type Call struct {
	Requests int // at most so many
	Samples  int // completions of each, at most
	Prompt   int // tokens of a prompt, at most
	New      int // tokens of a completion, at most
}

// Completions returns the most completions of the call.
func (c Call) Completions() int { return c.Requests * c.Samples }

// pagesIn returns the most pages that a call holds at once. The completions of a request share the full
// pages of its prompt; the page that the prompt ends in and those after it are each completion's own.
func (o Options) pagesIn(c Call) int {
	slots := min(o.MaxSequences, c.Completions())
	request, own := 0, 0 // pages of a request whose completions all run, and of a completion
	for shared := max(0, c.Prompt-o.PageTokens); shared < max(1, c.Prompt); shared++ {
		n := o.pagesOf(shared%o.PageTokens + c.New)
		request, own = max(request, o.pagesOf(shared)+min(slots, c.Samples)*n), max(own, n)
	}
	return min(c.Requests*request, c.Requests*o.pagesOf(max(0, c.Prompt-1))+slots*own)
}
