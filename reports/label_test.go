package reports

import (
	"strings"
	"testing"

	"exp/experiments/store"
)

func TestNameArms(t *testing.T) {
	long := "countdown-" + strings.Repeat("x", 30) + "-beta="
	for _, c := range []struct{ names, want, note string }{
		{"alone-a", "alone-a", ""},
		{"countdown-flowrl countdown-ppo", "flowrl ppo", `leave out "countdown-"`},
		{"flow ppo", "flow ppo", ""},
		{"a-" + long + "1 b-" + long + "15", "a-countdown-xx…xxxxxx-beta=1 b-countdown-xx…xxxxx-beta=15", "cut long names"},
		// Cut, the two would be one.
		{"a" + strings.Repeat("y", 40) + " a" + strings.Repeat("y", 41), "a" + strings.Repeat("y", 40) + " a" + strings.Repeat("y", 41), ""},
	} {
		var arms []*arm
		for _, name := range strings.Fields(c.names) {
			arms = append(arms, &arm{Name: name})
		}
		note := nameArms(arms)
		if got := strings.Join(labels(arms), " "); got != c.want || !strings.Contains(note, c.note) || (note == "") != (c.note == "") {
			t.Errorf("%s: %s (%s); want %s (%s)", c.names, got, note, c.want, c.note)
		}
	}
}

func withCurve(name string, values ...float64) *arm {
	r := &run{curves: map[string]store.Curve{"m": {Values: values}}}
	return &arm{Name: name, Runs: []*run{r}}
}

func TestManyTens(t *testing.T) {
	small, large := withCurve("a", 1, 2, 3), withCurve("b", 20, 30, 40)
	for _, c := range []struct {
		arms []*arm
		unit string
		want bool
	}{
		{[]*arm{small, large}, "", true},
		{[]*arm{small, large}, "share", false},
		{[]*arm{small, withCurve("c", 3, 4, 5)}, "", false},
		{[]*arm{small, large, withCurve("d", 0, 1)}, "", false},                           // zero has no place on a log axis
		{[]*arm{small, large, withCurve("d", 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)}, "", true}, // but one of many does no harm
		{[]*arm{small, large, withCurve("d", -1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)}, "", false},
		{[]*arm{withCurve("e", 1, 100, 10000)}, "", false}, // one arm's outliers
	} {
		if got := manyTens(c.arms, "m", c.unit); got != c.want {
			t.Errorf("%d arms, %q: %v, want %v", len(c.arms), c.unit, got, c.want)
		}
	}
}
