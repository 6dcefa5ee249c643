package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"exp/cmd/exp/cli"
	"exp/experiments/quantity"
	"exp/harness/config"
	harness "exp/harness/run"
)

const (
	stopIfFlag = "stop-if"
	stopIfKey  = "run.stop_if"
)

// stopConditions returns the conditions given by --stop-if. replace reports whether they replace the
// configured ones.
func stopConditions(c *cli.Context) (conditions []string, replace bool) {
	for _, text := range c.StringSlice(stopIfFlag) {
		if text == config.None {
			conditions = nil
			continue
		}
		conditions = append(conditions, text)
	}
	return conditions, slices.Contains(c.StringSlice(stopIfFlag), config.None)
}

// stopExpressions returns --stop-if as expressions: conditions join the configured ones.
func stopExpressions(c *cli.Context) (list []config.Flagged) {
	conditions, replace := stopConditions(c)
	add := func(expression string) {
		list = append(list, config.Flagged{Flag: "--" + stopIfFlag, Expression: expression})
	}
	if replace {
		add("run.stop_if=[]")
	}
	for _, text := range conditions {
		add("run.stop_if+=" + strconv.Quote(text))
	}
	return list
}

// stopValues returns --stop-if as the setting of a recorded run, whose conditions it replaces.
func stopValues(c *cli.Context) []config.Value {
	if !c.IsSet(stopIfFlag) {
		return nil
	}
	conditions, _ := stopConditions(c)
	if conditions == nil {
		conditions = []string{}
	}
	return []config.Value{{Path: stopIfKey, Value: conditions, From: "--" + stopIfFlag}}
}

// onlyCondition returns the error of a run that its condition stopped, nil if anything else went
// wrong too.
func onlyCondition(err error) *harness.StoppedError {
	var held *harness.StoppedError
	if !errors.As(err, &held) {
		return nil
	}
	for {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			if len(joined.Unwrap()) != 1 {
				return nil
			}
			err = joined.Unwrap()[0]
			continue
		}
		if err == error(held) {
			return held
		}
		if err = errors.Unwrap(err); err == nil {
			return nil
		}
	}
}

// endError says which runs failed and which their conditions stopped, and how these go on; nil for
// none. A failure decides the exit code.
func endError(failed []error, stopped []*harness.StoppedError) error {
	if len(stopped) == 0 {
		return errors.Join(failed...)
	}
	text := stopped[0].Error()
	if len(stopped) > 1 {
		text = quantity.Plural(len(stopped), "run") + " stopped by their conditions:"
		for _, e := range stopped {
			text += "\n  " + e.Error()
		}
	}
	advice, between := "saved; to continue without the condition:", " "
	if len(stopped) > 1 {
		between = "\n  "
	}
	for _, e := range stopped {
		advice += between + fmt.Sprintf("exp resume %s --stop-if none", e.RID.Short())
	}
	if len(failed) > 0 {
		return errors.Join(append(slices.Clone(failed), errors.New(text+"\n"+advice))...)
	}
	return cli.Failf(cli.ExitCondition, "%s", text).Advise(advice)
}
