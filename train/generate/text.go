package generate

// text holds the prompt of a request and its completions as far as they are drawn, and finds where the last tokens
// of one were before.
type text struct {
	tokens []textToken
	heads  []int32 // by a hash of two tokens: the place of the second, where they were last; a power of two
	prompt int32   // place of the prompt's last token
	open   int     // completions that have not ended
}

// textToken is a token at its place in text.tokens. The others are places: of the tokens before and after it, and of
// the same two tokens, or of two with their hash, earlier.
type textToken struct{ token, before, after, same int32 }

// nowhere stands for a place that does not exist.
const nowhere = -1

// mostTries bounds the places that find looks at.
const mostTries = 16

// newText returns the text of a prompt with open completions to come.
func newText(prompt []int32, open int) *text {
	x := &text{prompt: nowhere, open: open}
	for _, token := range prompt {
		x.prompt = x.add(x.prompt, token)
	}
	return x
}

// add puts a token behind the one at a place, and returns its own. The prompt's last token keeps the first one that
// follows it, as all tokens do.
func (x *text) add(before, token int32) int32 {
	at := int32(len(x.tokens))
	x.tokens = append(x.tokens, textToken{token, before, nowhere, nowhere})
	if before != nowhere && x.tokens[before].after == nowhere {
		x.tokens[before].after = at
	}
	if len(x.tokens) > len(x.heads) {
		x.widen()
	} else {
		x.enter(at)
	}
	return at
}

// widen doubles the heads.
func (x *text) widen() {
	x.heads = make([]int32, max(64, 2*len(x.heads)))
	for i := range x.heads {
		x.heads[i] = nowhere
	}
	for at := range x.tokens {
		x.enter(int32(at))
	}
}

// enter makes a place one that find looks at.
func (x *text) enter(at int32) {
	if head := x.head(at); head != nil {
		x.tokens[at].same, *head = *head, at
	}
}

// head returns the head of the tokens at a place and before it; nil at the beginning.
func (x *text) head(at int32) *int32 {
	t := x.tokens[at]
	if t.before == nowhere {
		return nil
	}
	h := (uint64(uint32(t.token))<<32 | uint64(uint32(x.tokens[t.before].token))) * 0x9E3779B97F4A7C15
	return &x.heads[h>>32&uint64(len(x.heads)-1)]
}

// agree counts the tokens up to two places that are the same, to longestMatch.
func (x *text) agree(a, b int32) (n int) {
	for n < longestMatch && a != nowhere && b != nowhere && x.tokens[a].token == x.tokens[b].token {
		n, a, b = n+1, x.tokens[a].before, x.tokens[b].before
	}
	return n
}

// find returns a place whose tokens agree with those up to tip, and in how many. It takes the latest of those that
// agree in most; nowhere if none agrees in leastMatch.
func (x *text) find(tip int32) (at int32, match int) {
	at, match = nowhere, leastMatch-1
	head := x.head(tip)
	if head == nil {
		return nowhere, 0
	}
	place := *head
	for range mostTries {
		if place == nowhere {
			break
		}
		if x.tokens[place].after != nowhere {
			if n := x.agree(place, tip); n > match {
				at, match = place, n
			}
		}
		place = x.tokens[place].same
	}
	return at, match
}

// draft appends tokens that may follow tip to list, which has at most n then, and returns how many tokens agree before
// them. Behind the last token of tip's own completion the draft itself goes on, so a repetition goes on too.
func (x *text) draft(list []int32, tip int32, n int) (_ []int32, match int) {
	at, match := x.find(tip)
	for len(list) < n && at != nowhere {
		next := x.tokens[at].after
		switch {
		case next != nowhere:
			list, at = append(list, x.tokens[next].token), next
		case at == tip && len(list) > 0:
			for i := 0; len(list) < n; i++ {
				list = append(list, list[i])
			}
		default:
			at = nowhere
		}
	}
	return list, match
}
