package reports

import (
	"strings"
	"testing"
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
