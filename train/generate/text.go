package generate

import "math"

// text holds the last tokens of prompts and completions, and finds where the last tokens of one were before. The
// number of all tokens so far that came before one is its place.
type text struct {
	tokens []textToken // by the last bits of their places
	heads  []int32     // by a hash of two tokens: the place of the second, where they were last; a power of two
	count  int32       // of all tokens so far
	most   int         // tokens that it holds, a power of two
}

// textToken is a token. The others are places: of the tokens before and after it, and of the same two tokens, or two
// with their hash, earlier.
type textToken struct{ token, before, after, same int32 }

const (
	// nowhere stands for a place that does not exist.
	nowhere = -1
	// mostTries bounds the places that find looks at.
	mostTries = 16
)

// newText returns a text of at least n tokens.
func newText(n int) *text {
	most := 1
	for most < n {
		most *= 2
	}
	return &text{most: most}
}

// holds reports whether the token at a place is still there.
func (x *text) holds(place int32) bool {
	return place >= 0 && place < x.count && int(x.count-place) <= x.most
}

func (x *text) at(place int32) *textToken { return &x.tokens[int(place)&(x.most-1)] }

// add puts a token behind the one at a place, and returns its own. A token keeps the first of those that follow it.
func (x *text) add(before, token int32) int32 {
	if x.count == math.MaxInt32 {
		*x = text{most: x.most}
	}
	place := x.count
	x.count++
	t := textToken{token, before, nowhere, nowhere}
	if len(x.tokens) < x.most {
		x.tokens = append(x.tokens, t)
	} else {
		*x.at(place) = t
	}
	if x.holds(before) && !x.holds(x.at(before).after) {
		x.at(before).after = place
	}
	if len(x.heads) < len(x.tokens) {
		x.widen()
	} else {
		x.enter(place)
	}
	return place
}

// widen doubles the heads, while all tokens are there.
func (x *text) widen() {
	x.heads = make([]int32, max(64, 2*len(x.heads)))
	for i := range x.heads {
		x.heads[i] = nowhere
	}
	for place := range x.count {
		x.enter(place)
	}
}

// enter makes a place one that find looks at.
func (x *text) enter(place int32) {
	if head := x.head(place); head != nil {
		x.at(place).same, *head = *head, place
	}
}

// head returns the head of the tokens at a place and before it; nil at a beginning.
func (x *text) head(place int32) *int32 {
	t := x.at(place)
	if !x.holds(t.before) {
		return nil
	}
	h := (uint64(uint32(t.token))<<32 | uint64(uint32(x.at(t.before).token))) * 0x9E3779B97F4A7C15
	return &x.heads[h>>32&uint64(len(x.heads)-1)]
}

// agree counts the tokens up to two places that are the same, to longestMatch.
func (x *text) agree(a, b int32) (n int) {
	for n < longestMatch && x.holds(a) && x.holds(b) && x.at(a).token == x.at(b).token {
		n, a, b = n+1, x.at(a).before, x.at(b).before
	}
	return n
}

// find returns a place whose tokens agree with those up to tip, and in how many. It takes the latest of those that
// agree in most; nowhere if none agrees in leastMatch.
func (x *text) find(tip int32) (place int32, match int) {
	if !x.holds(tip) {
		return nowhere, 0
	}
	head := x.head(tip)
	if head == nil {
		return nowhere, 0
	}
	place, match = nowhere, leastMatch-1
	for at, tries := *head, 0; x.holds(at) && tries < mostTries; tries++ {
		if x.holds(x.at(at).after) {
			if n := x.agree(at, tip); n > match {
				place, match = at, n
			}
		}
		at = x.at(at).same
	}
	return place, match
}

// draft appends tokens that may follow tip to list, which has at most n then, and returns how many tokens agree before
// them. Behind the last token of tip's own completion the draft itself goes on, so a repetition goes on too.
func (x *text) draft(list []int32, tip int32, n int) (_ []int32, match int) {
	at, match := x.find(tip)
	for len(list) < n && at != nowhere {
		next := x.at(at).after
		switch {
		case x.holds(next):
			list, at = append(list, x.at(next).token), next
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
