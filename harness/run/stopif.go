package run

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/metric"
	"exp/harness/stage"
	"exp/train/rl"
)

// StoppedError is returned if a condition of run.stop_if held at the end of a step. The step is
// recorded and a checkpoint saved.
type StoppedError struct {
	RID       ident.Digest
	Step, Of  int64
	Condition string
	Values    []Metric // of the condition's metrics at the step
}

func (e *StoppedError) Error() string {
	return fmt.Sprintf("run %s: stopped by its condition: %s", e.RID.Short(), e.reason())
}

// reason names the condition that held, with the values.
func (e *StoppedError) reason() string {
	values := make([]string, len(e.Values))
	for i, m := range e.Values {
		values[i] = m.Name + " = " + strconv.FormatFloat(m.Value, 'g', 4, 64)
	}
	return fmt.Sprintf("%s at step %d of %d (%s)", e.Condition, e.Step, e.Of, strings.Join(values, ", "))
}

// stopConditions are the conditions of run.stop_if while a run trains.
type stopConditions struct {
	list []*config.StopCondition
	// warned of metrics that a step, or one with a validation, does not measure
	warned, warnedOfValidation bool
}

// startConditions sets the conditions of training whose steps are recorded up to last. A run that
// stopped there stays stopped: if the checkpoint of the step exists, nothing is executed, else the
// recorded steps are. Training that is recorded as done has no conditions: repeating it cannot make
// the run a stopped one.
func (x *execution) startConditions(e *stage.Env, last int64) error {
	if x.Options.NoCache {
		if done, err := x.DB.Hit(context.Background(), e.SID); err != nil || done != nil {
			return err
		}
	}
	x.stops.list = x.p.Config.Run.StopConditions()
	if x.Options.NoCache || x.Options.UpTo > 0 && int64(x.Options.UpTo) < last {
		return nil // recorded steps will be executed again
	}
	dir := filepath.Join(stage.CheckpointsDir(e.Dir), "train-"+e.SID.Short(), fmt.Sprintf("step-%08d", last))
	if CheckCheckpoint(dir) != nil {
		return nil
	}
	return x.checkRecorded(last)
}

// checkStop sets x.stopped if a condition holds for the values of a step. The last step ends the
// training anyway.
func (x *execution) checkStop(step int64, measured map[string]float64) {
	of := int64(x.p.Config.Run.Train.Steps)
	if step >= of {
		return
	}
	for _, c := range x.stops.list {
		if !c.Holds(measured) {
			continue
		}
		x.stopped = &StoppedError{RID: x.p.RID, Step: step, Of: of, Condition: c.String()}
		for _, name := range c.Metrics() {
			if v, ok := config.StopValue(name, measured); ok {
				x.stopped.Values = append(x.stopped.Values, Metric{Name: name, Value: v})
			}
		}
		return
	}
}

// checkStep is checkStop for a step that was just taken. Steps of the critic's warm-up measure less, so it warns of
// what later ones lack.
func (x *execution) checkStep(s stage.Step) {
	if len(x.stops.list) == 0 {
		return
	}
	measured := make(map[string]float64, len(s.Det.Metrics)+len(s.Measured))
	for _, list := range []map[string]float64{s.Measured, s.Det.Metrics} {
		for name, v := range list {
			measured[name] = v
		}
	}
	if s.Det.Step > x.criticWarmup() {
		x.warnUnmeasured(s.Det.Step, measured)
	}
	x.checkStop(s.Det.Step, measured)
}

// warnUnmeasured warns once about metrics of conditions that a step does not measure. Metrics of the validation are
// looked for at the first step that has one.
func (x *execution) warnUnmeasured(step int64, measured map[string]float64) {
	ofValidation := func(name string) bool { return strings.HasPrefix(name, "val") || name == "timing_s/testing" }
	train, validation := !x.stops.warned, false
	for name := range measured {
		validation = validation || ofValidation(name) && !x.stops.warnedOfValidation
	}
	x.stops.warned, x.stops.warnedOfValidation = true, x.stops.warnedOfValidation || validation
	for _, c := range x.stops.list {
		for _, name := range c.Metrics() {
			look := train
			if ofValidation(name) {
				look = validation
			}
			if _, ok := config.StopValue(name, measured); ok || !look {
				continue
			}
			text := fmt.Sprintf("run.stop_if: %s was not measured at step %d; %s holds only at steps that measure it",
				name, step, c)
			if m, _ := metric.Find(name); ofValidation(name) {
				text += " (exp metrics RUN --list names what a validation measures)"
			} else if m.Absent != "" {
				text += " (" + m.Absent + ")"
			}
			x.Watch.Warn(text)
		}
	}
}

// criticWarmup is the number of steps that train the critic alone.
func (x *execution) criticWarmup() int64 {
	n, _ := x.p.Config.Run.Algo.Settings[rl.CriticWarmup.Key].(int)
	return int64(n)
}

// checkRecorded is checkStop for the last recorded step, so that a stopped run that is executed
// again stays where it stopped.
func (x *execution) checkRecorded(last int64) error {
	if last == 0 || len(x.stops.list) == 0 {
		return nil
	}
	curves, err := x.DB.Metrics(context.Background(), x.run.ID, "*", last, last)
	if err != nil {
		return err
	}
	measured := map[string]float64{}
	for _, c := range curves {
		for _, v := range c.Values { // there is one, unless the step did not measure it
			measured[c.Name] = v
		}
	}
	x.checkStop(last, measured)
	return nil
}

// recordStop keeps the reason in the record.
func (x *execution) recordStop(ctx context.Context) error {
	data, err := json.Marshal(map[string]any{"step": x.stopped.Step, "condition": x.stopped.Condition,
		"text": x.stopped.reason()})
	if err != nil {
		return err
	}
	return x.DB.AddEvent(ctx, store.Event{Run: x.run.ID, Attempt: x.attempt.ID, Level: store.LevelWarn,
		Kind: store.StopEvent, Data: data})
}
