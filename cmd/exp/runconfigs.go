package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/harness/plan"
	"exp/harness/sweep"
)

// loadConfigs loads each CONFIG with the overlays, the --set expressions and the flags
// that set keys, once for each arm of the grid.
func (a *app) loadConfigs(c *cli.Context) ([]*config.Resolved, error) {
	var flags []config.Flagged
	if c.IsSet("device") {
		flags = append(flags, config.Flagged{Flag: "--device", Expression: "compute.device=" + c.String("device")})
	}
	if c.IsSet("threads") {
		flags = append(flags, config.Flagged{Flag: "--threads",
			Expression: "compute.threads=" + strconv.Itoa(c.Int("threads"))})
	} else if v := a.Getenv("EXP_THREADS"); v != "" {
		flags = append(flags, config.Flagged{Flag: "EXP_THREADS", Expression: "compute.threads=" + v})
	}
	flags = append(flags, stopExpressions(c)...)
	arms, from, err := armsOf(c)
	if err != nil {
		return nil, err
	}
	var out []*config.Resolved
	var errs config.Errors
	for _, file := range c.Args().Slice() {
		list, err := sweep.Load(config.Input{File: file, User: a.userConfig(), Overlays: c.StringSlice("overlay"),
			Sets: c.StringSlice("set"), Flagged: flags, Find: a.hubCache().Find}, arms, from)
		var bad config.Errors
		if errors.As(err, &bad) {
			errs = append(errs, bad...)
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			for _, d := range r.Dropped {
				a.Log.Info("inherited setting has no effect", "key", d.Path, "because", d.Because)
			}
		}
		out = append(out, list...)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return out, nil
}

// announce says which runs a grid or a search makes, in order.
func (a *app) announce(c *cli.Context, configs []*config.Resolved, seeds []int64) {
	if !c.IsSet("grid") && !c.IsSet("search") {
		return
	}
	list := plan.WantedOf(configs, seeds)
	each := ""
	if len(seeds) > 1 {
		each = fmt.Sprintf(", %d seeds each", len(seeds))
	}
	a.Note("%s%s: %s, in this order", quantity.Plural(len(configs), "arm"), each, quantity.Plural(len(list), "run"))
	const shown = 24
	for _, r := range configs[:min(len(configs), shown)] {
		a.Note("  %s", r.Run.Name)
	}
	if more := len(configs) - shown; more > 0 {
		a.Note("  and %d more", more)
	}
}

// mostSeeds is more than anyone trains, and still quick to list.
const mostSeeds = 10000

// parseSeeds reads "0-2,5"; nil means the configured seeds.
func parseSeeds(list string) ([]int64, error) {
	if list == "" {
		return nil, nil
	}
	var seeds []int64
	for _, part := range strings.Split(list, ",") {
		lo, hi, ranged := strings.Cut(strings.TrimSpace(part), "-")
		first, err := strconv.ParseInt(lo, 10, 63)
		last := first
		if err == nil && ranged {
			last, err = strconv.ParseInt(hi, 10, 63)
		}
		switch {
		case err != nil:
			return nil, cli.Usagef("--seeds %q: %q is not a seed or a range such as 0-2", list, part)
		case last < first:
			return nil, cli.Usagef("--seeds %q: the range %s ends before it begins", list, part)
		case last-first >= mostSeeds-int64(len(seeds)):
			return nil, cli.Usagef("--seeds %q: at most %d seeds at once", list, mostSeeds)
		}
		for s := first; s <= last; s++ {
			if slices.Contains(seeds, s) {
				return nil, cli.Usagef("--seeds %q: seed %d is named twice", list, s)
			}
			seeds = append(seeds, s)
		}
	}
	return seeds, nil
}
