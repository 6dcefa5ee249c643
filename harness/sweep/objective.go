package sweep

import (
	"fmt"
	"slices"
	"strings"

	"exp/eval"
	"exp/experiments/spelling"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/metric"
)

// Objective is the result of a run that ranks the trials of a search.
type Objective struct {
	Field store.Field
	Keys  []string // that are searched
	Lower bool     // the least value is the best
}

// ObjectiveError says why a search cannot rank its trials by a result.
type ObjectiveError struct{ Message, Advice string }

func (e *ObjectiveError) Error() string { return e.Message }

// CutSense splits "min:FIELD" and "max:FIELD"; sense is empty if the text leaves it to the metric.
func CutSense(text string) (sense eval.Direction, field string) {
	field, lower := strings.CutPrefix(text, "min:")
	field, higher := strings.CutPrefix(field, "max:")
	switch {
	case lower:
		return eval.Down, field
	case higher:
		return eval.Up, field
	}
	return "", field
}

// NewObjective checks that runs of the configurations will have a field, and in which sense it is better. text is the
// field as the user wrote it. An error is an *ObjectiveError.
func NewObjective(f store.Field, text string, sense eval.Direction, ranges []Range,
	configs []*config.Resolved) (*Objective, error) {
	o := &Objective{Field: f}
	for _, r := range ranges {
		o.Keys = append(o.Keys, r.Key)
	}
	m, known := metric.Find(f.Name)
	for _, r := range configs {
		suites := r.Run.Eval.Final.Suites
		switch {
		case f.Kind == store.FieldEval && !slices.Contains(suites, f.Suite):
			return nil, &ObjectiveError{fmt.Sprintf("%s is not among the suites that %s is scored on: %s", f.Suite,
				r.Run.Name, strings.Join(suites, ", ")), "eval.final.suites lists them"}
		case f.Kind != store.FieldEval && f.Kind != store.FieldMetric:
			return nil, &ObjectiveError{"it must be a score or a metric", "eval.test.pass@1, metric.val/pass@1.max"}
		case !known:
			err := &ObjectiveError{Message: fmt.Sprintf("no metric %q", f.Name)}
			if near := spelling.Nearest(f.Name, metricNames()); near != "" {
				err.Advice = "did you mean " + near + "?"
			}
			return nil, err
		case m.Direction == "" && sense == "":
			return nil, &ObjectiveError{"neither more nor less of it is better in itself",
				"write max:" + text + " or min:" + text}
		}
	}
	if sense == "" {
		sense = m.Direction
	}
	o.Lower = sense == eval.Down
	return o, nil
}

// metricNames lists the metrics with fixed names, and pass@k as people write it.
func metricNames() []string {
	names := []string{"pass@1", "pass@4", "pass@8", "pass@16"}
	for _, m := range metric.All() {
		names = append(names, m.Name)
	}
	return names
}
