package main

import (
	"strconv"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/store"
	"exp/harness/cluster"
	"exp/harness/config"
)

// The engines of --on.
const (
	onLocal = "local"
	onSlurm = "slurm"
	onKube  = "kubernetes"
)

func engines() []string { return []string{onLocal, onSlurm, onKube} }

// onFlags are the flags of exp run that say where it computes.
func onFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "on", Usage: "execute the runs on `ENGINE`: local, as processes of this machine; " +
			"slurm, as jobs of a cluster (of N processes with --ranks N); kubernetes, which prints " +
			"manifests; ssh:HOST,…"},
		&cli.IntFlag{Name: "jobs", Aliases: []string{"j"}, Usage: "with --on local: `N` processes at once, which " +
			"divide the processors", DefaultText: "2"},
		&cli.BoolFlag{Name: "wait", Usage: "with --on slurm: wait for the jobs, and collect their results"},
	}
}

// checkOn checks the flags of onFlags; on reports whether an engine was named.
func (a *app) checkOn(c *cli.Context) (on bool, err error) {
	if !c.IsSet("on") {
		if c.IsSet("jobs") {
			return false, a.Usagef("-j needs --on local")
		}
		if c.IsSet("wait") {
			return false, a.Usagef("--wait needs --on slurm")
		}
		return false, nil
	}
	engine := c.String("on")
	hosts := hostsOf(engine)
	if hosts == nil {
		if _, err := cli.OneOf("--on", engine, append(engines(), "ssh:HOST")); err != nil {
			return true, err
		}
	}
	for _, host := range hosts {
		if host == "" {
			return true, a.Usagef("--on %s: name the hosts, as in ssh:gpu1,gpu2", engine)
		}
		if strings.HasPrefix(host, "-") {
			return true, a.Usagef("--on %s: %s is an option of ssh, not a host; options belong in ~/.ssh/config",
				engine, host)
		}
	}
	for _, flag := range refusedOn(engine) {
		if c.IsSet(flag) {
			return true, a.Usagef("--%s does not work with --on %s", flag, engine)
		}
	}
	switch {
	case c.IsSet("jobs") && c.Int("jobs") < 1:
		return true, a.Usagef("-j %d: it must be at least 1", c.Int("jobs"))
	case c.IsSet("wait") && engine != onSlurm:
		return true, a.Usagef("--wait needs --on slurm")
	case c.IsSet("wait") && c.Bool("dry-run"):
		return true, a.Usagef("--wait waits for jobs, and --dry-run submits none: choose one")
	}
	return true, nil
}

// refusedOn returns the flags of exp run that an engine does not know.
func refusedOn(engine string) []string {
	if engine == onLocal {
		return []string{"ranks"}
	}
	list := []string{"no-cache", "verify-cache", "keep-going", "threads", "until", "search", "jobs"}
	if engine != onSlurm {
		list = append(list, "ranks")
	}
	return list
}

// runOn executes the runs on the engine of --on.
func (a *app) runOn(c *cli.Context, configs []*config.Resolved, seeds []int64, goal *objective) error {
	hosts := hostsOf(c.String("on"))
	switch {
	case c.String("on") == onSlurm:
		return a.runSlurm(c, configs, seeds)
	case c.String("on") == onKube:
		return a.runKubernetes(c, configs, seeds)
	case c.Bool("dry-run"):
		return a.dryRun(c.Context, configs, seeds, c.Int("ranks"))
	case hosts != nil:
		return a.runSSH(c, configs, seeds, hosts)
	}
	return a.runLocal(c, configs, seeds, goal)
}

// processArgs returns the arguments of exp that execute one job in a separate process.
// They repeat the user's, so the process makes the same run; sets are
// the settings of its arm.
func processArgs(c *cli.Context, db *store.DB, j *cluster.Job, file string, sets []string) []string {
	args := []string{"run", file, "--seeds", strconv.FormatInt(j.Run.Seed, 10), "--store", db.Dir(),
		"--progress", "json"}
	for _, flag := range []string{"overlay", "set", "tag", stopIfFlag} {
		for _, v := range c.StringSlice(flag) {
			args = append(args, "--"+flag, v)
		}
	}
	for _, v := range sets {
		args = append(args, "--set", v)
	}
	for _, flag := range []string{"device", "store-journal"} {
		if c.IsSet(flag) {
			args = append(args, "--"+flag, c.String(flag))
		}
	}
	for _, flag := range []string{"no-cache", "verify-cache"} {
		if c.Bool(flag) {
			args = append(args, "--"+flag)
		}
	}
	until := c.String("until")
	if j.Until != "" {
		until = string(j.Until)
	}
	if until != "" {
		args = append(args, "--until", until)
	}
	return args
}
