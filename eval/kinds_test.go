package eval

import (
	"fmt"
	"strings"
	"testing"

	"exp/train/rollout"
)

// Sources have the accuracy of their own problems, if there are several and not too many.
func TestSourceMetrics(t *testing.T) {
	problem := func(id, source string) rollout.Problem {
		p := rollout.Problem{ID: id}
		if source != "" {
			p.Data = []byte(`{"source":"` + source + `"}`)
		}
		return p
	}
	item := func(id string, right int) Item {
		return Item{ProblemID: id, Cluster: id, Samples: 2, Graded: 2, Correct: right}
	}
	problems := []rollout.Problem{problem("a", "math"), problem("b", "law"), problem("c", "math"), problem("d", ""),
		problem("e", "none scored")}
	items := []Item{item("a", 2), item("b", 1), item("c", 1), item("d", 0)}
	got := func(problems []rollout.Problem) string {
		list, err := SourceMetrics(items, problems, 1)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, m := range list {
			texts = append(texts, fmt.Sprintf("%s %v of %d", m.Name, m.Value, m.N))
		}
		return strings.Join(texts, ", ")
	}
	if s := got(problems); s != "source/law 0.5 of 1, source/math 0.75 of 2" {
		t.Error(s)
	}
	if s := got([]rollout.Problem{problems[0], problems[2], problems[3]}); s != "" {
		t.Errorf("one source: %s", s)
	}
	for i := range MostSources {
		problems = append(problems, problem(fmt.Sprint("p", i), fmt.Sprint("s", i)))
	}
	if s := got(problems); s != "" {
		t.Errorf("too many: %s", s)
	}
}
