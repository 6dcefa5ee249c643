package rollout

// Form restricts the texts of completions: in each draw, tokens that cannot lead to an allowed text are not drawn.
// Like the filters, this changes which tokens are drawn, not the values recorded for them. The restriction comes
// before the temperature and the filters, behind penalties and biases. A completion that the limit of its tokens cuts
// off is the beginning of an allowed text. Safe for concurrent use.
type Form interface {
	// Begin returns the state of a completion without tokens.
	Begin() FormState
}

// FormState is where a completion is in its form. What it says does not change.
type FormState interface {
	// Mask returns the tokens with a text that may come next, as bits: token t is bit t%32 of word t/32. Tokens beyond
	// its end may not. The caller must not change it.
	Mask() []uint32
	// Ends reports whether the text so far is an allowed one, so that an end token may come.
	Ends() bool
	// More reports whether a token with a text may come.
	More() bool
	// Next returns the state after a token with a text; nil if it may not come.
	Next(token int32) FormState
}
