package stat

import (
	"fmt"
	"math"
	"slices"
)

// A rating says where a solver of a contest's problems would rank among its participants. It is CodeElo's
// (Quan et al., arXiv:2501.01257 §4), as computed by the programs of the FlowRL release. Its meaning
// depends on the tests: with only the public samples of the problems it is not a Codeforces rating.

// Contest is one contest with its rated participants.
type Contest struct {
	ID string `json:"id"` // "1971"
	// points per problem index ("A"); 0: the problem counts 1, with penalties
	Problems map[string]float64   `json:"problems"`
	Rows     []ContestParticipant `json:"rows"` // by rank, best first
}

// ContestParticipant is a row of a contest's final standings.
type ContestParticipant struct {
	Points    float64 `json:"points"`
	Penalty   float64 `json:"penalty"`
	OldRating int     `json:"old_rating"` // before the contest
}

// MinParticipants: a contest counts only with more participants than this.
const MinParticipants = 200

// Score returns the score of a solver who solves problem p at attempt first[p], counted from 0; problems
// not in first are unsolved. A problem with points is worth max(0, points - 50·attempt), any other 1 with a
// penalty of 10·attempt. A problem that the contest lacks is an error.
func (c *Contest) Score(first map[string]int) (points, penalty float64, err error) {
	for p, attempt := range first {
		worth, ok := c.Problems[p]
		switch {
		case !ok:
			return 0, 0, fmt.Errorf("contest %s has no problem %s", c.ID, p)
		case attempt < 0:
			return 0, 0, fmt.Errorf("contest %s: problem %s solved at attempt %d", c.ID, p, attempt)
		case worth > 0:
			points += max(0, worth-50*float64(attempt))
		default:
			points++
			penalty += 10 * float64(attempt)
		}
	}
	return points, penalty, nil
}

// Rank returns the place of a score among the rows: the index of the first row with fewer points, or equal
// points and a larger penalty; len(rows) if none. It counts from 0, as the public program does: rank 0
// beats everyone.
func (c *Contest) Rank(points, penalty float64) int {
	for i, r := range c.Rows {
		if r.Points < points || r.Points == points && r.Penalty > penalty {
			return i
		}
	}
	return len(c.Rows)
}

// Rating returns the rating of a participant whose expected rank is this one among the old
// ratings, by bisection over integers up to their maximum + 100:
//
//	seed(R) = 1 + Σ_i 1/(1 + 10^((R - old_i)/400)),   the largest R with seed(R) ≥ rank
//
// It panics if old is empty.
func Rating(rank int, old []int) int {
	if len(old) == 0 {
		panic("stat: rating among nobody")
	}
	lo, hi := 0, slices.Max(old)+100
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		seed := 1.0
		for _, o := range old {
			seed += 1 / (1 + math.Pow(10, float64(mid-o)/400))
		}
		if seed < float64(rank) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return lo
}

// Rating returns the rating of a solver in the contest; first is as in Score. It is an error if the contest
// has too few participants.
func (c *Contest) Rating(first map[string]int) (int, error) {
	if len(c.Rows) <= MinParticipants {
		return 0, fmt.Errorf("contest %s has %d rated participants; it needs more than %d", c.ID, len(c.Rows),
			MinParticipants)
	}
	points, penalty, err := c.Score(first)
	if err != nil {
		return 0, err
	}
	old := make([]int, len(c.Rows))
	for i, r := range c.Rows {
		old[i] = r.OldRating
	}
	return Rating(c.Rank(points, penalty), old), nil
}

// Population maps each rating to its number of users.
type Population map[int]int

// Percentile returns the share of users rated below rating, in percent with one decimal. It panics
// without users.
func (p Population) Percentile(rating float64) float64 {
	below, all := 0, 0
	for r, n := range p {
		all += n
		if float64(r) < rating {
			below += n
		}
	}
	if all == 0 {
		panic("stat: percentile among nobody")
	}
	return math.RoundToEven(1000*float64(below)/float64(all)) / 10
}
