package recorded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// RoleCurve is the role of the output that holds a stage's curve.
const RoleCurve = "curve"

// StageCurve is the record that a stage before training, such as fine-tuning, keeps of its steps.
type StageCurve struct {
	Kind string
	// Key is the record's digest, or the stage's while it is Live. Curves with equal keys are equal unless they are
	// Live.
	Key  ident.Digest
	Live bool // the stage has not ended; it had taken some steps

	rid ident.Digest
}

// StageCurves finds the curves of the stages of a run, in the order of kinds. With live, stages that have not ended
// count too.
func StageCurves(db *store.DB, run store.Run, stages []store.Stage, kinds []string, live bool) []StageCurve {
	var list []StageCurve
	for _, kind := range kinds {
		if c, ok := newestCurve(db, run, stages, kind, live); ok {
			list = append(list, c)
		}
	}
	return list
}

// newestCurve finds the curve of the newest stage of a kind that has one.
func newestCurve(db *store.DB, run store.Run, stages []store.Stage, kind string, live bool) (StageCurve, bool) {
	for _, s := range slices.Backward(stages) {
		if s.Kind != kind {
			continue
		}
		if d := store.DigestOf(s.Outputs, RoleCurve); !d.IsZero() {
			return StageCurve{Kind: kind, Key: d}, true
		}
		if live && db.LiveStepsSize(run.RID, s.SID) > 0 {
			return StageCurve{Kind: kind, Key: s.SID, Live: true, rid: run.RID}, true
		}
	}
	return StageCurve{}, false
}

// Read returns the curves by name. A value that was not finite is NaN.
func (c StageCurve) Read(db *store.DB) ([]store.Curve, error) {
	read := func() ([]byte, error) { return db.Blobs.Bytes(c.Key) }
	if c.Live {
		read = func() ([]byte, error) { return db.LiveSteps(c.rid, c.Key) }
	}
	lines, err := read()
	if err == nil {
		var list []store.Curve
		if list, err = parseStageCurve(lines); err == nil {
			return list, nil
		}
	}
	return nil, fmt.Errorf("the curve of stage %s: %w", c.Kind, err)
}

// parseStageCurve reads JSON lines, each an object of a step's metrics. They cannot hold a value that is not finite:
// it is absent. A metric that more than half of the steps have is one of every step, and NaN where it is absent;
// others are rare by design.
func parseStageCurve(lines []byte) ([]store.Curve, error) {
	var steps []int64
	var rows []map[string]float64
	counts := map[string]int{}
	for line := range bytes.Lines(lines) {
		var row map[string]float64
		if err := json.Unmarshal(line, &row); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(rows)+1, err)
		}
		step, ok := row["step"]
		if !ok {
			return nil, fmt.Errorf("line %d has no step", len(rows)+1)
		}
		delete(row, "step")
		for name := range row {
			counts[name]++
		}
		steps, rows = append(steps, int64(step)), append(rows, row)
	}
	var list []store.Curve
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		c := store.Curve{Series: store.Series{Name: name, Min: math.NaN(), Max: math.NaN()}}
		for i, row := range rows {
			v, ok := row[name]
			switch {
			case !ok && 2*counts[name] <= len(rows):
				continue
			case !ok:
				v = math.NaN()
			}
			c.Steps, c.Values = append(c.Steps, steps[i]), append(c.Values, v)
			c.N, c.Last, c.LastStep = c.N+1, v, steps[i]
			if ok && !(c.Min <= v) {
				c.Min, c.ArgMin = v, steps[i]
			}
			if ok && !(c.Max >= v) {
				c.Max, c.ArgMax = v, steps[i]
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// KeyedCurve is a metric's curve of a run, with the key of the StageCurve that has it.
type KeyedCurve struct {
	Key ident.Digest
	store.Curve
}

// SharedCurve is the different curves of an arm, or of several arms that have the same ones.
type SharedCurve struct {
	Arms   []int // ascending
	Curves []KeyedCurve
}

// ShareCurves takes the curves of arms' runs and keeps each once: runs share stages, and arms do. An arm without
// curves is in no group.
func ShareCurves(arms [][]KeyedCurve) []SharedCurve {
	byKey := func(a, b KeyedCurve) int { return bytes.Compare(a.Key[:], b.Key[:]) }
	same := func(a, b KeyedCurve) bool { return a.Key == b.Key }
	var list []SharedCurve
	for i, curves := range arms {
		if len(curves) == 0 {
			continue
		}
		curves = slices.CompactFunc(slices.SortedStableFunc(slices.Values(curves), byKey), same)
		k := slices.IndexFunc(list, func(s SharedCurve) bool { return slices.EqualFunc(s.Curves, curves, same) })
		if k < 0 {
			list = append(list, SharedCurve{[]int{i}, curves})
			continue
		}
		list[k].Arms = append(list[k].Arms, i)
	}
	return list
}
