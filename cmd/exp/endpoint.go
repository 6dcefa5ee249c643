package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"exp/cmd/exp/cli"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/endpoint"
	"exp/harness/evaluate"
	"exp/harness/hub"
	"exp/harness/inspect"
	harness "exp/harness/run"
	"exp/harness/stage"
	"exp/reports/serve"
)

func endpointCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "endpoint",
		Category:  "Results",
		Usage:     "answer OpenAI's API with a model, for any client of it",
		ArgsUsage: "RUN | FOLDER",
		Description: "Loads a run's final weights, or a folder's as exp eval takes them (also hub:ORG/NAME@REV), " +
			"and answers GET /v1/models, POST /v1/chat/completions and POST /v1/completions until Ctrl-C. Give " +
			"clients the address that it prints as base URL, and any text as API key. Requests that " +
			"come while others are " +
			"answered are sampled together with them; a client that goes away frees its place.\n" +
			"With a seed, or temperature 0, a request has the same answer every time, whatever else is asked: as " +
			"a judge (reward.judge.url, exp diversity --url) it is reproducible.\n" +
			"Understood: messages, in the model's chat template (with chat_template_kwargs); prompt, as a text, " +
			"texts or token ids; max_tokens, temperature, top_p, top_k, min_p, n, seed, stop, stop_token_ids, " +
			"ignore_eos, stream, logprobs, top_logprobs, echo. Log-probs are the model's own, at temperature 1. " +
			"Anything else that would change an answer, such as tools or penalties, is an error that names it.\n" +
			"Only this machine can reach the address. From another one, forward the port: ssh -L " +
			"8000:127.0.0.1:8000 HOST. --public lets other machines reach it, without encryption; then let " +
			"--api-key-env name the variable with a key that clients must send.",
		UsageText: strings.Join([]string{
			"exp endpoint @last --addr 8000 # the newest run, on a fixed port",
			"exp endpoint weights/qwen2.5-0.5b --context 8192 # a folder, with longer prompts and answers",
			"exp endpoint @last --addr 0.0.0.0:8000 --public --api-key-env KEY # for other machines too",
		}, "\n"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "addr", Usage: "listen on `PORT` or HOST:PORT",
				DefaultText: "127.0.0.1, any free port"},
			&cli.BoolFlag{Name: "public", Usage: "allow a HOST that other machines can reach"},
			&cli.StringFlag{Name: "api-key-env", Usage: "clients must send the key in the environment `VARIABLE`",
				DefaultText: "any key"},
			&cli.StringFlag{Name: "name", Usage: "call the model `NAME`", DefaultText: "the run's or the folder's"},
			&cli.BoolFlag{Name: "requests", Usage: "print a line for each request on stderr"},
		}, modelFlags()...),
		BashComplete: a.completesRuns(1, true, modelCandidates),
		Action:       cli.WithArgs(1, 1, a.endpoint),
	}
}

// modelFlags are the flags of the commands that ask a model.
func modelFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "context", Usage: "a prompt and its answer have at most `N` tokens",
			DefaultText: "4096, or the model's positions"},
		&cli.IntFlag{Name: "sequences", Usage: "sample `N` answers at once; others wait",
			DefaultText: "as many as fit in memory, at most 64"},
		&cli.StringFlag{Name: "template", Usage: "render chats with the template in `FILE`",
			DefaultText: "the model's own"},
		&cli.StringFlag{Name: "adapter", Usage: "add the LoRA adapters in folder `DIR`, in PEFT's layout",
			DefaultText: "none"},
		&cli.StringFlag{Name: "part", Usage: "`PART` text selects the language model of a vision-language model",
			DefaultText: "the whole"},
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

// openModel loads the model that an argument names, and says before what memory it takes. Its context must end before
// closed is called.
func (a *app) openModel(ctx context.Context, c *cli.Context, ref string) (x *endpoint.Model, closed func(),
	err error) {
	r, name, err := a.modelConfig(c, ref)
	if err != nil {
		return nil, nil, err
	}
	if err := harness.Require(r, harness.Alone()); err != nil {
		return nil, nil, err
	}
	parts, total, err := endpoint.Needs(r)
	if err != nil {
		return nil, nil, err
	}
	var list []string
	for _, p := range parts {
		list = append(list, p.Name+" "+quantity.Bytes(p.Bytes))
	}
	a.Note("%s takes up to %s of memory: %s", name, quantity.Bytes(total), strings.Join(list, ", "))
	if m := device.Memory(&r.Run); m > 0 && total > m {
		return nil, nil, cli.Failf(cli.ExitResource, "%s needs up to %s of memory, there are %s", name,
			quantity.Bytes(total), quantity.Bytes(m)).Advise("lower --context or --sequences")
	}
	be, err := device.ForRun(&r.Run, a.Getenv)
	if err != nil {
		return nil, nil, err
	}
	if x, err = endpoint.Open(ctx, r, be, name); err != nil {
		be.Close()
		return nil, nil, err
	}
	return x, func() { x.Close(); be.Close() }, nil
}

// modelConfig returns the configuration of the model that ref names, and the model's name.
func (a *app) modelConfig(c *cli.Context, ref string) (*config.Resolved, string, error) {
	dir, name := ref, ""
	if !inspect.IsModel(ref) && !hub.IsRef(ref) {
		err := cli.With(a.OpenStore, func(db *store.DB) error {
			run, err := a.oneRun(c.Context, db, ref)
			if err != nil {
				return noFolder(ref, err)
			}
			dir, name = filepath.Join(db.RunDir(run.RID), stage.MergedDir), run.Name
			if !inspect.IsModel(dir) {
				return cli.Failf(cli.ExitNotFound, "run %s has no folder %s with its final weights",
					run.RID.Short(), dir).
					Advise("exp resume " + run.RID.Short() + " finishes the run, or writes the folder again")
			}
			return nil
		})
		if err != nil {
			return nil, "", err
		}
	}
	f, err := a.modelAndAdapter(c, dir)
	if err != nil {
		return nil, "", err
	}
	if f.Dir == "" {
		return nil, "", adapterWithoutModel(f.Adapter, "exp "+c.Command.Name+" MODEL --adapter")
	}
	if name == "" {
		name = strings.TrimPrefix(strings.Split(filepath.Base(filepath.Clean(dir)), "@")[0], "hub:")
	}
	values := a.modelValues(c)
	load := func(context int) (*config.Resolved, error) {
		return evaluate.Folder{Folder: f, Ref: hubRef(c, f, dir), Find: a.hubCache().Find, User: a.userConfig(),
			Values: append(values, endpoint.Values(context)...), Sets: c.StringSlice("set")}.Config()
	}
	context := c.Int("context")
	switch {
	case !c.IsSet("context"):
		context = defaultContext
	case context < 2:
		return nil, "", a.Usagef("--context %d: it must be at least 2", context)
	}
	r, err := load(context)
	if err != nil {
		return nil, "", err
	}
	most, err := endpoint.Positions(r)
	switch {
	case err != nil:
		return nil, "", err
	case context > most && c.IsSet("context"):
		return nil, "", a.Usagef("--context %d: %s has %d positions", context, name, most)
	case context > most:
		r, err = load(most)
	}
	return r, name, err
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

// endpoint answers clients until the command is stopped, which is its normal end.
func (a *app) endpoint(c *cli.Context, args []string) error {
	o := endpoint.Options{Public: c.Bool("public"), Clock: a.Clock.Now}
	if name := c.String("api-key-env"); name != "" {
		if o.Key = a.Getenv(name); o.Key == "" {
			return a.Usagef("--api-key-env %s: the environment has no such variable, or it is empty", name)
		}
	}
	if c.Bool("requests") {
		var alone sync.Mutex // requests end side by side
		o.Log = func(line string) {
			alone.Lock()
			defer alone.Unlock()
			fmt.Fprintln(a.Stderr, line)
		}
	}
	addr := c.String("addr")
	l, err := serve.Listen(addr, o.Public)
	var reachable *serve.PublicError
	switch {
	case errors.As(err, &reachable):
		return err
	case errors.Is(err, syscall.EADDRINUSE):
		return cli.Failf(cli.ExitResource, "--addr %s is in use", addr).
			Advise("without --addr, any free port is taken")
	case err != nil:
		return a.Usagef("--addr %s: %w", addr, err)
	}
	ctx, cancel := context.WithCancel(c.Context)
	x, closed, err := a.openModel(ctx, c, args[0])
	if err != nil {
		cancel()
		l.Close()
		return err
	}
	defer closed()
	defer cancel()
	if o.Public && o.Key == "" {
		a.Warn("whoever reaches this address can use the model: --api-key-env asks for a key")
	}
	a.Note("%d tokens of prompt and answer; Ctrl-C ends it", x.Context())
	if _, err := fmt.Fprintf(a.Out.W, "http://%s/v1\n", l.Addr()); err != nil {
		l.Close()
		return err
	}
	return endpoint.NewServer(x, o).Serve(ctx, l)
}
