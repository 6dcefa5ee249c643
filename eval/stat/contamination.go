package stat

import "strings"

const (
	sharedRun   = 13 // words of a run that two texts share (Brown et al., arXiv:2005.14165 appendix C)
	commonplace = 10 // a run in more training texts than this is a phrase, as there
)

// Contamination finds the texts of an evaluation that training texts hold too. White space separates
// words. A run of words that several texts of the evaluation share, such as a prompt template's, does not
// count.
type Contamination struct {
	whole   map[string][]int // texts, their words joined
	runs    map[uint64]*run
	found   []bool // texts that training holds word for word
	trained int    // training texts
}

// run is a run of words of the evaluation's texts.
type run struct {
	text    int  // that has it
	several bool // others have it too
	trained int  // training texts with it
	newest  int  // of them, counted from 1
}

// NewContamination indexes the texts of an evaluation.
func NewContamination(texts []string) *Contamination {
	c := &Contamination{whole: map[string][]int{}, runs: map[uint64]*run{}, found: make([]bool, len(texts))}
	for i, text := range texts {
		words := strings.Fields(text)
		whole := strings.Join(words, " ")
		c.whole[whole] = append(c.whole[whole], i)
		for _, h := range runsOf(words) {
			switch r := c.runs[h]; {
			case r == nil:
				c.runs[h] = &run{text: i}
			case r.text != i:
				r.several = true
			}
		}
	}
	return c
}

// runsOf returns the runs of words, hashed; none of a shorter text. The hash rolls: training sets hold
// 10^8 words.
func runsOf(words []string) []uint64 {
	if len(words) < sharedRun {
		return nil
	}
	const base = 0x9e3779b97f4a7c15 // odd
	oldest := uint64(1)             // base^sharedRun
	for range sharedRun {
		oldest *= base
	}
	hashes := make([]uint64, len(words))
	list := make([]uint64, 0, len(words)-sharedRun+1)
	sum := uint64(0)
	for i, w := range words {
		h := uint64(14695981039346656037) // FNV-1a
		for _, c := range []byte(w) {
			h = (h ^ uint64(c)) * 1099511628211
		}
		hashes[i] = h
		sum = sum*base + h
		if i >= sharedRun {
			sum -= hashes[i-sharedRun] * oldest
		}
		if i >= sharedRun-1 {
			list = append(list, sum)
		}
	}
	return list
}

// Train adds a training text.
func (c *Contamination) Train(text string) {
	c.trained++
	words := strings.Fields(text)
	for _, i := range c.whole[strings.Join(words, " ")] {
		c.found[i] = true
	}
	for _, h := range runsOf(words) {
		if r := c.runs[h]; r != nil && r.newest != c.trained {
			r.newest = c.trained
			r.trained++
		}
	}
}

// Found returns the texts that training holds word for word, and the others that share half or more of
// their runs of words with it.
func (c *Contamination) Found() (same, similar []int) {
	all, hits := make([]int, len(c.found)), make([]int, len(c.found))
	for _, r := range c.runs {
		if r.several || r.trained > min(commonplace, max(1, c.trained/2)) {
			continue
		}
		all[r.text]++
		if r.trained > 0 {
			hits[r.text]++
		}
	}
	for i, found := range c.found {
		switch {
		case found:
			same = append(same, i)
		case hits[i] > 0 && 2*hits[i] >= all[i]:
			similar = append(similar, i)
		}
	}
	return same, similar
}
