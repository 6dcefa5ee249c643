package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/keep"
	"exp/experiments/quantity"
	"exp/experiments/recorded"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/endpoint"
	"exp/harness/evaluate"
	"exp/harness/hub"
	"exp/harness/inspect"
	"exp/harness/replan"
	harness "exp/harness/run"
	"exp/harness/stage"
)

// aboutModels says which models the commands that ask one take.
const aboutModels = "RUN stands for its final weights, RUN@STEP for those after that step of training, if the run " +
	"kept the checkpoint (checkpoint.keep, exp pin); it may still be running. The run's stop texts and tokens and " +
	"its template variables hold here too. FOLDER is as exp eval takes it, also hub:ORG/NAME@REV."

// modelFlags are the flags of the commands that ask a model.
func modelFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "context", Usage: "a prompt and its answer have at most `N` tokens",
			DefaultText: "4096, or the model's positions"},
		&cli.StringFlag{Name: "template", Usage: "render chats with the template in `FILE`, auto for the model's " +
			"own, none for plain text", DefaultText: "the run's or the model's"},
		&cli.StringFlag{Name: "adapter", Usage: "add the LoRA adapters in folder `DIR`, in PEFT's layout",
			DefaultText: "none"},
		&cli.StringFlag{Name: "part", Usage: partUsage, DefaultText: "the whole"},
		generationFlag(""),
		&cli.StringSliceFlag{Name: "set", Usage: "set a key of the configuration, `KEY=VALUE` (exp config schema " +
			"lists them)"},
		&cli.StringFlag{Name: "device", Usage: "compute on `DEVICE`: cpu, cuda, cuda:N, auto", DefaultText: "cpu"},
	}
}

func modelCandidates(_ context.Context, _ *store.DB, w cli.Word) []cli.Candidate {
	if w.Flag == "device" {
		return deviceCandidates()
	}
	return nil
}

// defaultContext is the most tokens of a prompt and its answer unless --context says so.
const defaultContext = 4096

// askedModel is a model that a command asks.
type askedModel struct {
	*endpoint.Model
	modelSource
	config *config.Resolved
}

// modelSource is where a model comes from.
type modelSource struct {
	dir  string
	name string         // empty: the folder's
	run  *store.Run     // that made it; nil: a folder
	own  []config.Value // of the run
	drop func()         // removes dir if it was made for this command; nil: it was not
}

// openModel loads the model that an argument names, with some settings, and says before what memory it takes.
func (a *app) openModel(c *cli.Context, ref string, more ...config.Value) (x askedModel, closed func(), err error) {
	if x.modelSource, err = a.findModel(c.Context, ref); err != nil {
		return x, nil, err
	}
	if x.drop != nil {
		defer x.drop() // nothing is read later
	}
	be, err := a.loadModel(c, &x, more)
	if err != nil {
		return x, nil, err
	}
	return x, func() { x.Close(); be.Close() }, nil
}

// loadModel loads the model of x.
func (a *app) loadModel(c *cli.Context, x *askedModel, more []config.Value) (be device.Device, err error) {
	if x.config, err = a.modelConfig(c, &x.modelSource, more); err != nil {
		return nil, err
	}
	if err := harness.Require(x.config, harness.Alone()); err != nil {
		return nil, err
	}
	parts, total, err := endpoint.Needs(x.config)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, p := range parts {
		list = append(list, p.Name+" "+quantity.Bytes(p.Bytes))
	}
	a.Note("%s takes up to %s of memory: %s", x.name, quantity.Bytes(total), strings.Join(list, ", "))
	if m := device.Memory(&x.config.Run); m > 0 && total > m {
		help := "lower --context"
		if x.config.Run.Rollout.MaxSequences > 1 {
			help += " or --sequences"
		}
		return nil, cli.Failf(cli.ExitResource, "%s needs up to %s of memory, there are %s", x.name,
			quantity.Bytes(total), quantity.Bytes(m)).Advise(help)
	}
	if be, err = device.ForRun(&x.config.Run, a.Getenv); err != nil {
		return nil, err
	}
	if x.Model, err = endpoint.Open(x.config, be, x.name); err != nil {
		be.Close()
		return nil, err
	}
	return be, nil
}

// findModel finds the folder, the run or the checkpoint that ref names.
func (a *app) findModel(ctx context.Context, ref string) (x modelSource, err error) {
	if inspect.IsModel(ref) || hub.IsRef(ref) {
		return modelSource{dir: ref}, nil
	}
	err = cli.With(a.OpenStore, func(db *store.DB) error {
		run, step, err := a.runAtStep(ctx, db, ref)
		if err != nil {
			return noFolder(ref, err)
		}
		x.run, x.name, x.own = &run, run.Name, ownValues(ctx, db, run)
		x.dir = filepath.Join(db.RunDir(run.RID), stage.MergedDir)
		final, id := inspect.IsModel(x.dir), run.RID.Short()
		switch {
		case step > 0 && !(final && step == run.StepsTotal):
			return a.checkpointModel(ctx, db, &x, step)
		case !final && onlyRates(db, run):
			return writesNothing(run)
		case !final && run.Status == store.Done && run.StepsTotal == 0 && step == 0:
			return onlyEvaluates(run, recorded.ConfigValue(ctx, db, run, "model.base"))
		case !final:
			return cli.Failf(cli.ExitNotFound, "run %s has no folder %s with its final weights", id, x.dir).
				Advise(fmt.Sprintf("exp resume %s finishes the run, or writes the folder again; %[1]s@STEP takes a "+
					"checkpoint", id))
		}
		return nil
	})
	return x, err
}

// onlyRates reports whether a run has trained a reward model, and no policy after it.
func onlyRates(db *store.DB, run store.Run) bool {
	return run.Status == store.Done && run.StepsTotal == 0 &&
		inspect.IsModel(filepath.Join(db.RunDir(run.RID), stage.RewardModelDir))
}

// writesNothing is the error for such a run where a model is to write.
func writesNothing(run store.Run) error {
	return cli.Failf(cli.ExitUsage, "run %s trained a reward model only, which rates texts and writes none",
		run.RID.Short()).Advise("other runs are rewarded with its folder " + stage.RewardModelDir +
		": reward={kind: model, weights: FOLDER}")
}

// onlyEvaluates is the error for a run that has evaluated a model, and has no weights of its own.
func onlyEvaluates(run store.Run, base any) error {
	err := cli.Failf(cli.ExitUsage, "run %s evaluated a model and trained none", run.RID.Short())
	if dir, ok := base.(string); ok {
		return err.Advise("name the model: " + dir)
	}
	return err
}

// runAtStep finds the run that RUN or RUN@STEP names; step is 0 for the former.
func (a *app) runAtStep(ctx context.Context, db *store.DB, ref string) (run store.Run, step int64, err error) {
	run, err = a.oneRun(ctx, db, ref)
	at := strings.LastIndexByte(ref, '@')
	if at <= 0 || !errors.Is(err, store.ErrNotFound) {
		return run, 0, err
	}
	if step, e := strconv.ParseInt(ref[at+1:], 10, 64); e == nil && step > 0 {
		run, err = a.oneRun(ctx, db, ref[:at])
		return run, step, err
	}
	return run, 0, err
}

// checkpointModel writes the weights of a checkpoint of x's run as a folder, until x.drop is called.
func (a *app) checkpointModel(ctx context.Context, db *store.DB, x *modelSource, step int64) error {
	r, err := replan.Config(ctx, db, *x.run, nil, a.Getenv)
	if err != nil {
		return err
	}
	be, err := device.Open(device.Options{Name: device.CPU}, a.Getenv)
	if err != nil {
		return err
	}
	defer be.Close()
	made, err := os.MkdirTemp("", "exp-checkpoint-")
	if err != nil {
		return err
	}
	x.dir, x.name = filepath.Join(made, stage.MergedDir), fmt.Sprintf("%s@%d", x.run.Name, step)
	x.drop = func() { _ = os.RemoveAll(made) } // of the system's temporary files
	if err := evaluate.Checkpoint(ctx, db, *x.run, r, be, step, x.dir); err != nil {
		x.drop()
		var none *keep.NoCheckpointError
		if errors.As(err, &none) {
			return pinFailure(err, "")
		}
		return err
	}
	return nil
}

// ownValues returns what the prompts and the answers of a run depend on besides its folder.
func ownValues(ctx context.Context, db *store.DB, run store.Run) (list []config.Value) {
	for _, key := range []string{"rollout.stop", "rollout.stop_ids", "data.system", "data.template_vars",
		"data.template_date", "data.escape_special", "data.image_min_pixels", "data.image_max_pixels",
		"data.video_fps", "data.video_max_frames", "data.video_max_pixels"} {
		v := config.Value{Path: key}
		switch value := recorded.ConfigValue(ctx, db, run, key).(type) {
		case []any:
			texts := make([]string, len(value))
			for i, x := range value {
				texts[i] = fmt.Sprint(x)
			}
			v.Value = texts
		case string, map[string]any:
			v.Value = value
		case bool:
			v.Value = strconv.FormatBool(value)
		case float64:
			v.Value = strconv.FormatFloat(value, 'f', -1, 64)
		case int64:
			v.Value = strconv.FormatInt(value, 10)
		default: // it has no effect on the run, or the program that made the run did not know it
			continue
		}
		list = append(list, v)
	}
	// The model's folder may have a template all the same.
	if recorded.ConfigValue(ctx, db, run, "data.chat") == config.None {
		list = append(list, config.Value{Path: "data.chat", Value: config.None})
	}
	return list
}

// modelConfig returns the configuration of the model in x with some settings, and sets its name.
func (a *app) modelConfig(c *cli.Context, x *modelSource, more []config.Value) (*config.Resolved, error) {
	f, err := a.modelAndAdapter(c, x.dir)
	if err != nil {
		return nil, err
	}
	if f.Dir == "" {
		return nil, adapterWithoutModel(f.Adapter, "exp "+c.Command.Name+" MODEL --adapter")
	}
	switch {
	case c.String("name") != "":
		x.name = c.String("name")
	case x.name == "":
		x.name = strings.TrimPrefix(strings.Split(filepath.Base(filepath.Clean(x.dir)), "@")[0], "hub:")
	}
	generation := false
	if x.run == nil || c.IsSet(generationConfig) {
		if generation, err = a.generation(c, f.Dir); err != nil {
			return nil, err
		}
	}
	values := append(a.modelValues(c), more...)
	load := func(context int) (*config.Resolved, error) {
		return evaluate.Folder{Folder: f, Ref: hubRef(c, f, x.dir), Find: a.hubCache().Find, User: a.userConfig(),
			Own: x.own, Values: append(values, endpoint.Values(context)...), Generation: generation,
			Sets: c.StringSlice("set")}.Config()
	}
	context := c.Int("context")
	switch {
	case !c.IsSet("context"):
		context = defaultContext
	case context < 2:
		return nil, a.Usagef("--context %d: it must be at least 2", context)
	}
	r, err := load(context)
	if err != nil {
		return nil, err
	}
	most, err := endpoint.Positions(r)
	switch {
	case err != nil:
		return nil, err
	case context > most && c.IsSet("context"):
		return nil, a.Usagef("--context %d: %s has %d positions", context, x.name, most)
	case context > most:
		r, err = load(most)
	}
	return r, err
}

// modelValues returns the settings of modelFlags.
func (a *app) modelValues(c *cli.Context) (values []config.Value) {
	for _, s := range []evalSetting{{"template", "data.chat"}, {"sequences", "rollout.max_sequences"},
		{"device", "compute.device"}} {
		values = s.appendTo(values, c)
	}
	if v := a.Getenv("EXP_THREADS"); v != "" {
		values = append(values, config.Value{Path: "compute.threads", Value: v, From: "EXP_THREADS"})
	}
	return values
}
