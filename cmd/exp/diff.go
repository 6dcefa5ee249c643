package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"exp/experiments/ident"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/stage"
)

func diffCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Category:  "Results",
		Usage:     "say what differs between two runs",
		ArgsUsage: "A B",
		Description: "Compares two runs: configuration keys, sources, data and initial weights, environment, and the first step at which " +
			"their trajectories part. It finds causes; exp compare compares results with statistics. Without a flag all parts are " +
			"shown. The exit code is 0 whether they differ or not.",
		UsageText: strings.Join([]string{
			"exp diff @last~1 @last # what changed since the run before",
			"exp diff flowrl#0 ppo#0 --config # the treatment, and what else is not equal",
			"exp diff 5e8d c01f --traj --json # where two trajectories part, for programs",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "config", Usage: "only configuration keys"},
			&cli.BoolFlag{Name: "code", Usage: "only sources, with the lines that differ"},
			&cli.BoolFlag{Name: "env", Usage: "only the environment"},
			&cli.BoolFlag{Name: "traj", Usage: "only the trajectories"},
		},
		BashComplete: a.completesRuns(2, true, nil),
		Action: func(c *cli.Context) error {
			args, err := positionals(c, 2, 2)
			if err != nil {
				return err
			}
			return a.withStore(func(db *store.DB) error { return a.diff(c, db, args) })
		},
	}
}

// runDiff is the schema exp.diff/1. Parts that were not asked for are absent.
type runDiff struct {
	A diffedRun `json:"a"`
	B diffedRun `json:"b"`
	// Identical: nothing of what was compared differs.
	Identical  bool            `json:"identical"`
	Config     []configChange  `json:"config,omitempty"`
	Code       []codeChange    `json:"code,omitempty"`
	Inputs     []valueChange   `json:"inputs,omitempty"`
	Env        []valueChange   `json:"env,omitempty"`
	Trajectory *trajectoryDiff `json:"trajectory,omitempty"`

	parts diffParts
	seeds bool // they differ
}

type diffedRun struct {
	Run      ident.Digest `json:"run"`
	XID      ident.Digest `json:"xid"`
	Name     string       `json:"name"`
	Algo     string       `json:"algo"`
	Seed     int64        `json:"seed"`
	Numerics string       `json:"numerics"`
	Status   store.Status `json:"status"`
	Chain    ident.Digest `json:"chain"`
}

// valueChange is something that is one thing in run A and another in B; empty where
// a run has none.
type valueChange struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// diffParts are the parts that are wanted.
type diffParts struct {
	config, code, inputs, env, traj bool
	lines                           bool // of the files of code that differ
}

var allDiffParts = diffParts{config: true, code: true, inputs: true, env: true, traj: true}

func diffPartsOf(c *cli.Context) diffParts {
	p := diffParts{config: c.Bool("config"), code: c.Bool("code"), lines: c.Bool("code"), env: c.Bool("env"), traj: c.Bool("traj")}
	if p == (diffParts{}) {
		return allDiffParts
	}
	return p
}

func (a *app) diff(c *cli.Context, db *store.DB, refs []string) error {
	var runs [2]store.Run
	for i, ref := range refs {
		var err error
		if runs[i], err = a.oneRun(c.Context, db, ref); err != nil {
			return err
		}
	}
	d, err := diffRuns(c.Context, db, runs, diffPartsOf(c))
	if err != nil {
		return err
	}
	return a.out.printDocument(document{Schema: "exp.diff/1", Data: d, Human: func(w io.Writer) error {
		p := &diffPage{page: a.out.newPage(w), d: d}
		return errors.Join(p.write(), p.close())
	}})
}

func diffedRunOf(r store.Run) diffedRun {
	return diffedRun{Run: r.RID, XID: r.XID, Name: r.Name, Algo: r.Algo, Seed: r.Seed, Numerics: r.Numerics, Status: r.Status, Chain: r.Chain}
}

func diffRuns(ctx context.Context, db *store.DB, runs [2]store.Run, parts diffParts) (*runDiff, error) {
	d := &runDiff{A: diffedRunOf(runs[0]), B: diffedRunOf(runs[1]), parts: parts, seeds: runs[0].Seed != runs[1].Seed}
	differ := runDiffer{ctx: ctx, db: db, runs: runs, d: d}
	for i, r := range runs {
		var err error
		if differ.stages[i], err = db.Stages(ctx, r.ID); err != nil {
			return nil, err
		}
	}
	for _, part := range []struct {
		on   bool
		read func() error
	}{
		{parts.config, differ.config}, {parts.code, differ.code}, {parts.inputs, differ.inputs}, {parts.env, differ.env}, {parts.traj, differ.trajectory},
	} {
		if !part.on {
			continue
		}
		if err := part.read(); err != nil {
			return nil, err
		}
	}
	equal := d.Trajectory == nil || d.Trajectory.Step == 0 && d.Trajectory.StepsA == d.Trajectory.StepsB
	d.Identical = equal && len(d.Config) == 0 && len(d.Code) == 0 && len(d.Inputs) == 0 && len(d.Env) == 0 &&
		(parts != allDiffParts || !d.seeds && runs[0].Numerics == runs[1].Numerics)
	return d, nil
}

// runDiffer compares the parts of two runs into d.
type runDiffer struct {
	ctx    context.Context
	db     *store.DB
	runs   [2]store.Run
	stages [2][]store.Stage
	d      *runDiff
	// sources are the files of archives that were read, by path.
	sources map[ident.Digest]map[string][]byte
}

// inputs compares problems and the weights that training began with.
func (r *runDiffer) inputs() error {
	r.d.Inputs = []valueChange{}
	var digests [2]map[string]string
	var names []string
	for i := range digests {
		digests[i] = map[string]string{}
		for _, st := range r.stages[i] {
			name, list := "", st.Inputs
			switch st.Kind {
			case "prepare":
				list = st.Outputs
			case "init":
			case "train":
				name = "initial "
			default:
				continue
			}
			for _, io := range list {
				key := name + io.Role
				switch {
				case st.Kind == "init" && io.Role != stage.RoleAdapter:
					continue
				case st.Kind == "init":
					key = io.Role
				case st.Kind == "train" && (io.Role == stage.RoleTemplate || io.Role == stage.RoleTools || io.Role == stage.RoleStops):
					key = io.Role
				case st.Kind == "train" && io.Role != "weights" && io.Role != "tokenizer":
					continue
				}
				if digests[0][key] == "" && digests[i][key] == "" {
					names = append(names, key)
				}
				digests[i][key] = io.Digest.String()
			}
		}
	}
	for _, n := range names {
		if a, b := digests[0][n], digests[1][n]; a != b {
			r.d.Inputs = append(r.d.Inputs, valueChange{n, a, b})
		}
	}
	return nil
}

// env compares the machines and programs of the newest attempts.
func (r *runDiffer) env() error {
	r.d.Env = []valueChange{}
	var values [2]map[string]string
	var names []string
	for i, run := range r.runs {
		list, err := r.db.Attempts(r.ctx, run.ID)
		if err != nil {
			return err
		}
		values[i] = map[string]string{}
		if len(list) == 0 {
			continue
		}
		last := list[len(list)-1]
		all := object{{"host", last.Host}, {"device", last.Device}, {"build", last.Build}}
		if env, ok := treeOf(recorded.Decode(last.Env)).(object); ok {
			all = append(all, env...)
		}
		for _, m := range all {
			if m.key == "args" { // how it was called is no property of the machine
				continue
			}
			if values[0][m.key] == "" && values[i][m.key] == "" {
				names = append(names, m.key)
			}
			values[i][m.key] = envText(m.key, m.value)
		}
	}
	for _, n := range names {
		if a, b := values[0][n], values[1][n]; a != b {
			r.d.Env = append(r.d.Env, valueChange{n, a, b})
		}
	}
	return nil
}
