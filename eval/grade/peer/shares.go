package peer

import (
	"fmt"
	"strings"

	"exp/eval/grade"
)

// halfRight is the smallest share of the full score that counts as right: any share that ANLS gives, and the answer of
// two of ten people.
const halfRight = 0.5

// shared returns a grader that scores an answer by a share of the full score, from 0 to 1. Its sources score whole
// responses, which are to be short; here the answer that our own grader finds in a longer one counts if it scores
// higher.
func shared(name, about string, score func(golds []string, said string) float64) Grader {
	g := posed(name, about, func(q Question, response string) grade.Verdict {
		said := strings.TrimFunc(response, isPythonSpace)
		share := score(q.Golds, response)
		if share < 1 {
			found := grade.Response(q.Golds[0], response).Extracted
			if s := score(q.Golds, found); found != "" && (s > share || s == share && len(found) < len(said)) {
				said, share = found, s
			}
		}
		v := verdict(share >= halfRight, said, fmt.Sprintf("scores %.3f", share))
		v.Shared, v.Share = true, share
		return v
	}, "", "")
	g.Shares = true
	return g
}

// GivesShares reports whether the grader of a name scores by shares.
func GivesShares(name string) bool {
	g, err := ByName(name)
	return err == nil && g.Shares
}
