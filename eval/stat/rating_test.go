package stat

import (
	"math"
	"strings"
	"testing"
)

// The values are what the program of the FlowRL release gives.
func TestRating(t *testing.T) {
	old := []int{1200, 1400, 1500, 1600, 2000}
	for rank, want := range []int{2099, 2099, 1884, 1621, 1421, 1202} {
		if got := Rating(rank, old); got != want {
			t.Errorf("rank %d: %d, want %d", rank, got, want)
		}
	}
}

// Alone with one other of rating 1500 the seed is 1 + 1/(1 + 10^((R-1500)/400)), 1.5
// at 1500: never below rank 1, always below rank 2 except at the very bottom.
func TestRatingAgainstOne(t *testing.T) {
	if got := Rating(1, []int{1500}); got != 1599 {
		t.Errorf("rank 1: %d, want 1599", got)
	}
	if got := Rating(2, []int{1500}); got != 0 {
		t.Errorf("rank 2: %d, want 0", got)
	}
}

func contest() *Contest {
	c := &Contest{ID: "1971", Problems: map[string]float64{"A": 500, "B": 0}}
	for i := range 201 {
		c.Rows = append(c.Rows, ContestParticipant{Points: float64(1000 - i), Penalty: float64(i % 3), OldRating: 2000 - 5*i})
	}
	return c
}

func TestContestScore(t *testing.T) {
	tests := []struct {
		first           map[string]int
		points, penalty float64
	}{
		{nil, 0, 0},
		{map[string]int{"A": 0}, 500, 0},
		{map[string]int{"A": 3, "B": 2}, 351, 20}, // 500 - 150 + 1
		{map[string]int{"A": 15}, 0, 0},           // 500 - 750
	}
	for _, tt := range tests {
		points, penalty, err := contest().Score(tt.first)
		if err != nil || points != tt.points || penalty != tt.penalty {
			t.Errorf("%v: %v points, penalty %v, %v, want %v and %v", tt.first, points, penalty, err, tt.points, tt.penalty)
		}
	}
	if _, _, err := contest().Score(map[string]int{"C": 0}); err == nil || !strings.Contains(err.Error(), "1971 has no problem C") {
		t.Errorf("a problem of another contest: %v", err)
	}
}

func TestContestRank(t *testing.T) {
	c := contest()
	tests := []struct {
		points, penalty float64
		want            int
	}{
		{2000, 0, 0},  // beats everyone
		{1000, 0, 1},  // the first row has as many points and no larger penalty
		{1000, -1, 0}, //
		{999, 0, 1},   // the second has penalty 1
		{0, 0, 201},   // nobody is below
		{997.5, 9, 3}, // between two rows
	}
	for _, tt := range tests {
		if got := c.Rank(tt.points, tt.penalty); got != tt.want {
			t.Errorf("%v points, penalty %v: rank %d, want %d", tt.points, tt.penalty, got, tt.want)
		}
	}
}

func TestContestRating(t *testing.T) {
	c := contest()
	// 500 points are the last place: seed(R) = 201 where the shares that 1 + 201 falls
	// short add up to 1, Σ 1/(1 + 10^((old_i-R)/400)) for old_i = 1000, 1005, …
	got, err := c.Rating(map[string]int{"A": 0})
	short := func(R int) (sum float64) {
		for _, r := range c.Rows {
			sum += 1 / (1 + math.Pow(10, float64(r.OldRating-R)/400))
		}
		return sum
	}
	if err != nil || short(got) > 1 || short(got+1) <= 1 {
		t.Errorf("last of all: %d, %v: falls short by %v, and by %v one further", got, err, short(got), short(got+1))
	}
	c.Problems["A"] = 2000
	if got, err := c.Rating(map[string]int{"A": 0}); err != nil || got != 2099 {
		t.Errorf("first of all: %d, %v, want 2099", got, err)
	}
	c.Rows = c.Rows[:200]
	if got, err := c.Rating(nil); err == nil || !strings.Contains(err.Error(), "200 rated participants") {
		t.Errorf("200 participants: %d, %v, want an error", got, err)
	}
}

func TestPercentile(t *testing.T) {
	p := Population{1000: 1, 1200: 4, 1500: 3}
	for rating, want := range map[float64]float64{900: 0, 1000: 0, 1000.5: 12.5, 1200: 12.5, 1300: 62.5, 1600: 100} {
		if got := p.Percentile(rating); got != want {
			t.Errorf("%v: %v, want %v", rating, got, want)
		}
	}
}
