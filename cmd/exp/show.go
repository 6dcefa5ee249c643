package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/stage"
)

func showCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "show",
		Category:  "Results",
		Usage:     "show a run: identity, stages, results, files",
		ArgsUsage: "RUN",
		Description: "RUN is @last, an id or its beginning, NAME where it has one seed, or NAME#SEED. Without a flag the page shows " +
			"everything but the configuration, the environment and the lineage; each flag shows one part alone.",
		UsageText: strings.Join([]string{
			"exp show @last # the newest run",
			"exp show countdown-flowrl#0 --config # its configuration, with everything resolved",
			"exp show @last --source old-code # the very sources that produced it",
			"exp show @last --json # the same for programs",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "stages", Usage: "only the stages, with what each read and wrote"},
			&cli.BoolFlag{Name: "config", Usage: "only the resolved configuration"},
			&cli.BoolFlag{Name: "env", Usage: "only the attempts and the machines they ran on"},
			&cli.BoolFlag{Name: "lineage", Usage: "only what the run was made from, and what was made from it"},
			&cli.StringFlag{Name: "source", Usage: "write the sources that produced the run to the new folder `DIR`"},
		},
		BashComplete: a.completesRuns(1, true, func(_ context.Context, _ *store.DB, w word) []candidate {
			return pathCandidates(w.Text, os.DirEntry.IsDir)
		}),
		Action: func(c *cli.Context) error {
			args, err := positionals(c, 1, 1)
			if err != nil {
				return err
			}
			return a.withStore(func(db *store.DB) error { return a.show(c, db, args[0]) })
		},
	}
}

func (a *app) show(c *cli.Context, db *store.DB, ref string) error {
	run, err := a.oneRun(c.Context, db, ref)
	if err != nil {
		return err
	}
	if dir := c.String("source"); dir != "" {
		return a.writeSources(c.Context, db, run, dir)
	}
	parts := showParts{stages: c.Bool("stages"), config: c.Bool("config"), env: c.Bool("env"), lineage: c.Bool("lineage")}
	s, err := readRun(c.Context, db, run, parts)
	if err != nil {
		return err
	}
	return a.out.printDocument(document{Schema: "exp.show/1", Data: s, Human: func(w io.Writer) error {
		p := &showPage{page: a.out.newPage(w), s: s, now: a.clock.Now(), here: workingDir()}
		return errors.Join(p.write(), p.close())
	}})
}

// showParts are the parts that were asked for alone; none of them is the summary.
type showParts struct{ stages, config, env, lineage bool }

func (p showParts) summary() bool { return p == showParts{} }

// shownRun is the schema exp.show/1. Parts that were not asked for are absent.
type shownRun struct {
	Run        ident.Digest `json:"run"`
	XID        ident.Digest `json:"xid"`
	Name       string       `json:"name"`
	Task       string       `json:"task"`
	Algo       string       `json:"algo"`
	Model      string       `json:"model"`
	Seed       int64        `json:"seed"`
	Numerics   string       `json:"numerics"`
	Foreign    string       `json:"foreign,omitempty"` // the framework that made it
	Device     string       `json:"device"`
	Status     store.Status `json:"status"`
	Steps      int64        `json:"steps"`
	StepsTotal int64        `json:"steps_total"`
	Tokens     int64        `json:"tokens"`
	Created    time.Time    `json:"created"`
	Started    time.Time    `json:"started"`
	Ended      time.Time    `json:"ended"`
	WallS      float64      `json:"wall_s"`
	Config     ident.Digest `json:"config"`
	Code       ident.Digest `json:"code"`
	Chain      ident.Digest `json:"chain"`
	Parent     ident.Digest `json:"parent,omitempty"`
	Deleted    time.Time    `json:"deleted,omitempty"`
	Tags       []string     `json:"tags"`
	Notes      []shownNote  `json:"notes"`
	// Damage lists stored results whose files are not there any more.
	Damage      []string          `json:"damage"`
	Divergences []shownDivergence `json:"divergences"`
	// Verifications are what proving the record came to, oldest first.
	Verifications []shownVerification `json:"verifications"`

	Stages        []shownStage      `json:"stages,omitempty"`
	Results       []shownResult     `json:"results,omitempty"`
	Metrics       []shownSeries     `json:"metrics,omitempty"`
	Checkpoints   []shownCheckpoint `json:"checkpoints,omitempty"`
	ModelDir      string            `json:"model_dir,omitempty"`
	Artifacts     []shownArtifact   `json:"artifacts,omitempty"`
	Events        []shownEvent      `json:"events,omitempty"`
	Configuration map[string]any    `json:"configuration,omitempty"`
	Attempts      []shownAttempt    `json:"attempts,omitempty"`
	Lineage       []shownEdge       `json:"lineage,omitempty"`

	run    store.Run
	parts  showParts
	source string // of the configuration, for people
}

type shownNote struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

type shownDivergence struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
	Host string    `json:"host"`
}

type shownStage struct {
	Kind    string       `json:"kind"`
	Label   string       `json:"label"`
	Status  store.Status `json:"status"`
	From    ident.Digest `json:"from,omitempty"` // of a cached stage: the run that produced the result
	SID     ident.Digest `json:"sid"`
	Code    ident.Digest `json:"code"`
	Started time.Time    `json:"started"`
	WallS   float64      `json:"wall_s"`
	CPUS    float64      `json:"cpu_s"`
	PeakMem int64        `json:"peak_mem"` // bytes
	Inputs  []shownIO    `json:"inputs"`
	Outputs []shownIO    `json:"outputs"`
	Result  any          `json:"result"`
	Error   string       `json:"error,omitempty"`
}

type shownIO struct {
	Role   string       `json:"role"`
	Digest ident.Digest `json:"digest"`
	Size   int64        `json:"size"`
}

type shownCheckpoint struct {
	Step  int64        `json:"step"`
	Time  time.Time    `json:"time"`
	Chain ident.Digest `json:"chain"`
	Bytes int64        `json:"bytes"`
	Path  string       `json:"path"` // empty: its files were removed since
}

type shownArtifact struct {
	Name  string `json:"name"`
	Media string `json:"media"`
	Size  int64  `json:"size"`
	Path  string `json:"path"`
}

type shownEvent struct {
	Time  time.Time   `json:"time"`
	Level store.Level `json:"level"`
	Kind  string      `json:"kind"`
	Data  any         `json:"data"`
}

type shownAttempt struct {
	N        int64             `json:"n"`
	Kind     store.AttemptKind `json:"kind"`
	Status   store.Status      `json:"status"`
	ExitCode int               `json:"exit_code"`
	Host     string            `json:"host"`
	PID      int               `json:"pid"`
	Device   string            `json:"device"`
	Build    string            `json:"build"`
	Started  time.Time         `json:"started"`
	Ended    time.Time         `json:"ended"`
	Env      any               `json:"env"`
}

// readRun gathers what is shown of a run.
func readRun(ctx context.Context, db *store.DB, run store.Run, parts showParts) (*shownRun, error) {
	s := &shownRun{
		Run: run.RID, XID: run.XID, Name: run.Name, Task: run.Task, Algo: run.Algo, Model: run.Model, Seed: run.Seed,
		Numerics: run.Numerics, Foreign: run.Foreign(), Device: run.Device, Status: run.Status, Steps: run.Steps, StepsTotal: run.StepsTotal, Tokens: run.Tokens,
		Created: run.Created, Started: run.Started, Ended: run.Ended, WallS: run.WallS, Config: run.Config, Code: run.Code,
		Chain: run.Chain, Deleted: run.Deleted, Tags: []string{}, Notes: []shownNote{}, Damage: []string{}, Divergences: []shownDivergence{}, Verifications: []shownVerification{},
		run: run, parts: parts,
	}
	r := runReader{ctx, db, run, s}
	wanted := []func() error{r.remarks, r.divergences, r.verifications}
	add := func(on bool, f ...func() error) {
		if on {
			wanted = append(wanted, f...)
		}
	}
	add(parts.stages || parts.summary(), r.stages)
	add(parts.stages || parts.summary(), r.damage)
	add(parts.summary(), r.results, r.metrics, r.checkpoints, r.files, r.events)
	add(parts.config, r.config)
	add(parts.env || parts.summary(), r.attempts)
	add(parts.lineage, r.lineage)
	for _, f := range wanted {
		if err := f(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// runReader reads the parts of a run into s.
type runReader struct {
	ctx context.Context
	db  *store.DB
	run store.Run
	s   *shownRun
}

func (r runReader) remarks() error {
	tags, err := r.db.Tags(r.ctx, r.run.ID)
	if err != nil {
		return err
	}
	r.s.Tags = append(r.s.Tags, tags...)
	notes, err := r.db.Notes(r.ctx, r.run.ID)
	if err != nil {
		return err
	}
	for _, n := range notes {
		r.s.Notes = append(r.s.Notes, shownNote{n.Time, n.Text})
	}
	if r.run.Parent != 0 {
		parent, err := r.db.RunByID(r.ctx, r.run.Parent)
		if err != nil {
			return err
		}
		r.s.Parent = parent.RID
	}
	return nil
}

func (r runReader) divergences() error {
	list, err := r.db.Divergences(r.ctx, r.run.ID)
	for _, d := range list {
		r.s.Divergences = append(r.s.Divergences, shownDivergence{d.Time, strings.TrimPrefix(d.What.Error(), "divergence: "), d.Host})
	}
	return err
}

func (r runReader) stages() error {
	list, err := r.db.Stages(r.ctx, r.run.ID)
	if err != nil {
		return err
	}
	r.s.Stages = []shownStage{}
	for _, st := range list {
		shown := shownStage{Kind: st.Kind, Label: st.Label, Status: st.Status, From: st.ReusedRun, SID: st.SID, Code: st.Code,
			Started: st.Started, WallS: st.WallS, CPUS: st.CPUS, PeakMem: st.PeakMem, Inputs: edges(st.Inputs), Outputs: edges(st.Outputs),
			Result: jsonTree(st.Result), Error: st.Error}
		if st.Status == store.Running && r.run.Status != store.Running {
			shown.Status = store.Interrupted // its process is gone
		}
		if st.WallS == 0 && st.Ended.After(st.Started) { // it was stopped
			shown.WallS = st.Ended.Sub(st.Started).Seconds()
		}
		for _, o := range st.Outputs {
			if o.Size > 0 && !r.db.Blobs.Has(o.Digest, o.Size) { // without a size it was left out of a bundle
				r.s.Damage = append(r.s.Damage, fmt.Sprintf("%s: output %s (%s) is missing or has another size", stageName(st.Kind, st.Label), o.Role, o.Digest.Short()))
			}
		}
		r.s.Stages = append(r.s.Stages, shown)
	}
	return nil
}

// damage adds what the run needs beside its stages' outputs and is not there: the texts
// of its samples, its artifacts, inputs that other runs made.
func (r runReader) damage() error {
	lost, err := lostBlobs(r.ctx, r.db, r.run)
	for _, digest := range lost {
		if !slices.ContainsFunc(r.s.Damage, func(d string) bool { return strings.Contains(d, "("+digest+")") }) {
			r.s.Damage = append(r.s.Damage, "blob "+digest+" is missing or has another size")
		}
	}
	return err
}

func edges(list []store.IO) []shownIO {
	out := []shownIO{}
	for _, io := range list {
		out = append(out, shownIO{io.Role, io.Digest, io.Size})
	}
	return out
}

func stageName(kind, label string) string {
	return strings.TrimSuffix(kind+" "+label, " ")
}

func (r runReader) checkpoints() error {
	list, err := r.db.Checkpoints(r.ctx, r.run.ID)
	r.s.Checkpoints = []shownCheckpoint{}
	for _, c := range list {
		shown := shownCheckpoint{Step: c.Step, Time: c.Time, Chain: c.Chain, Bytes: c.Bytes}
		found, _ := filepath.Glob(filepath.Join(r.db.RunDir(r.run.RID), "ckpt", "train-*", fmt.Sprintf("step-%08d", c.Step)))
		if len(found) > 0 {
			shown.Path = found[0]
		}
		r.s.Checkpoints = append(r.s.Checkpoints, shown)
	}
	return err
}

func (r runReader) files() error {
	dir := filepath.Join(r.db.RunDir(r.run.RID), stage.MergedDir)
	if _, err := os.Stat(dir); err == nil {
		r.s.ModelDir = dir
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	list, err := r.db.Artifacts(r.ctx, r.run.ID)
	r.s.Artifacts = []shownArtifact{}
	for _, f := range list {
		r.s.Artifacts = append(r.s.Artifacts, shownArtifact{f.Name, f.Media, f.Size, r.db.Blobs.Path(f.Digest)})
	}
	return err
}

func (r runReader) events() error {
	list, err := r.db.Events(r.ctx, r.run.ID, 0)
	r.s.Events = []shownEvent{}
	for _, e := range list {
		r.s.Events = append(r.s.Events, shownEvent{e.Time, e.Level, e.Kind, jsonTree(e.Data)})
	}
	return err
}

func (r runReader) config() error {
	c, err := r.db.Config(r.ctx, r.run.Config)
	if err != nil {
		return err
	}
	r.s.source = c.Source
	return json.Unmarshal([]byte(c.JSON), &r.s.Configuration)
}

func (r runReader) attempts() error {
	list, err := r.db.Attempts(r.ctx, r.run.ID)
	r.s.Attempts = []shownAttempt{}
	for _, a := range list {
		shown := shownAttempt{N: a.N, Kind: a.Kind, Status: a.Status, ExitCode: a.ExitCode, Host: a.Host, PID: a.PID, Device: a.Device,
			Build: a.Build, Started: a.Started, Ended: a.Ended, Env: jsonTree(a.Env)}
		if a.Status == store.Running && r.run.Status != store.Running {
			shown.Status = store.Interrupted
		}
		r.s.Attempts = append(r.s.Attempts, shown)
	}
	return err
}

// jsonTree decodes JSON of the store, which checks it when it is written.
func jsonTree(text []byte) any {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return nil
	}
	return v
}

// workingDir is the directory that paths are shown from; empty if unknown.
func workingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}
