package generate

import (
	"slices"

	"exp/train/model"
	"exp/train/rollout"
)

// commonPages returns how many of each prompt's first pages another of the prompts has too, and how many such pages
// there are in all. A prompt shares all of its tokens but the last.
func commonPages(prompts [][]int32, size int) (each []int, all int) {
	order := make([]int, len(prompts))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return slices.Compare(prompts[i], prompts[j]) })
	each = make([]int, len(prompts))
	before := 0
	for k := 1; k < len(order); k++ { // no two prompts have more in common than some neighbours
		i, j := order[k-1], order[k]
		n := samePages(prompts[i], prompts[j], size)
		each[i], each[j] = max(each[i], n), n
		all, before = all+max(0, n-before), n
	}
	return each, all
}

// samePages returns how many of their first pages two prompts share.
func samePages(a, b []int32, size int) int {
	most := max(0, min(len(a), len(b))-1)
	n := 0
	for n < most && a[n] == b[n] {
		n++
	}
	return n / size
}

// know notes what the prompts of a schedule have in common, which gets no others.
func (s *schedule) know(reqs []rollout.Request) {
	prompts := make([][]int32, len(reqs))
	for i, r := range reqs {
		prompts[i] = r.Prompt
	}
	s.common, _ = commonPages(prompts, s.e.opt.PageTokens)
}

// scoredSteps is how many steps' questions Score has room for: their prompts wait, are computed, or have options that
// are.
const scoredSteps = 8

// ScoreRoom returns the room of a cache, in tokens, that Score needs to be no slower than with more: for what prompts
// have in common, and for the questions that some steps compute. It is no more than FullCache.
func (o Options) ScoreRoom(c model.Config, list []rollout.Question) int {
	prompts := make([][]int32, len(list))
	for i, q := range list {
		prompts[i] = q.Prompt
	}
	each, all := make([]int, len(list)), 0
	if !c.Recurrent() { // else nothing is found
		each, all = commonPages(prompts, o.PageTokens)
	}
	rows, pages := make([]int, len(list)), make([]int, len(list))
	for i, q := range list {
		shared := len(q.Prompt) - 1
		pages[i], rows[i] = o.pagesOf(shared)-each[i], shared-each[i]*o.PageTokens
		for _, option := range q.Options {
			pages[i] += o.pagesOf(shared%o.PageTokens + len(option))
			rows[i] += len(option)
		}
	}
	return o.room(all + mostWithin(pages, rows, scoredSteps*o.Rows()))
}

// SampleRoom returns the room of a cache, in tokens, that completions of at most fresh tokens take, n each of prompts
// of such lengths. It is no more than FullCache.
func (o Options) SampleRoom(prompts []int, n, fresh int) int {
	shared, own, slots := make([]int, len(prompts)), make([]int, len(prompts)), make([]int, len(prompts))
	for i, length := range prompts {
		tokens := max(0, length-1)
		slots[i] = min(n, o.MaxSequences)
		shared[i], own[i] = o.pagesOf(tokens), slots[i]*o.pagesOf(tokens%o.PageTokens+fresh)
	}
	// The slots may begin and end amid a prompt's completions, and the next prompt waits.
	return o.room(mostWithin(shared, slots, o.MaxSequences+n) + mostWithin(own, slots, o.MaxSequences))
}

// room returns the tokens of so many pages, and of one that a completion finds free when it starts.
func (o Options) room(pages int) int {
	return min(o.FullCache(), max(pages+1, o.leastPages())*o.PageTokens)
}

// mostWithin returns the largest sum of neighbours whose weights, without the first one's, sum to less than limit.
func mostWithin(list, weights []int, limit int) (most int) {
	first, sum, weight := 0, 0, 0
	for i := range list {
		sum, weight = sum+list[i], weight+weights[i]
		for ; weight-weights[first] >= limit; first++ {
			sum, weight = sum-list[first], weight-weights[first]
		}
		most = max(most, sum)
	}
	return most
}
