package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"exp/cmd/exp/cli"
	"exp/experiments/quantity"
	"exp/harness/endpoint"
	"exp/reports/serve"
)

func endpointCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "endpoint",
		Category:  "Results",
		Usage:     "answer OpenAI's API with a model, for any client of it",
		ArgsUsage: "RUN | FOLDER",
		Description: "Loads the weights and answers GET /v1/models, POST /v1/chat/completions and POST " +
			"/v1/completions until Ctrl-C. Give " +
			"clients the address that it prints as base URL, and any text as API key. Requests that " +
			"come while others are " +
			"answered are sampled together with them; a client that goes away frees its place. After Ctrl-C new " +
			"requests are refused and running ones may end; a second one ends at once.\n" + aboutModels + "\n" +
			"With a seed, or temperature 0, a request has the same answer every time, whatever else is asked: as " +
			"a judge (reward.judge.url, exp diversity --url) it is reproducible.\n" +
			"Understood: messages, in the model's chat template (with chat_template_kwargs), with images and videos " +
			"as data: URLs if the model reads them; tools and the calls " +
			"that answers make of them; prompt, as a text, " +
			"texts or token ids; max_tokens, temperature, top_p, top_k, min_p, repetition_penalty, " +
			"presence_penalty, frequency_penalty, logit_bias, min_tokens, n, seed, stop, stop_token_ids, " +
			"ignore_eos, stream, logprobs, top_logprobs, echo; response_format, structured_outputs and tool_choice, " +
			"which hold answers to a form. Log-probs are the model's own, at temperature 1. " +
			"Anything else that would change an answer, such as suffix, is an error that names it.\n" +
			"Only this machine can reach the address. From another one, forward the port: ssh -L " +
			"8000:127.0.0.1:8000 HOST. --public lets other machines reach it, without encryption; then let " +
			"--api-key-env name the variable with a key that clients must send.",
		UsageText: strings.Join([]string{
			"exp endpoint @last --addr 8000 # the newest run, on a fixed port",
			"exp endpoint weights/qwen2.5-0.5b --context 8192 # a folder, with longer prompts and answers",
			"exp endpoint @last@50 # the newest run as it was after step 50, if it kept that checkpoint",
			"exp endpoint @last --addr 0.0.0.0:8000 --public --api-key-env KEY # for other machines too",
		}, "\n"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "addr", Usage: "listen on `PORT` or HOST:PORT",
				DefaultText: "127.0.0.1, any free port"},
			&cli.BoolFlag{Name: "public", Usage: "allow a HOST that other machines can reach"},
			&cli.StringFlag{Name: "api-key-env", Aliases: []string{"key-env"},
				Usage:       "clients must send the key in the environment `VARIABLE`",
				DefaultText: "any key"},
			&cli.StringFlag{Name: "name", Usage: "call the model `NAME`", DefaultText: "the run's or the folder's"},
			&cli.StringFlag{Name: "grace", Value: "10s", Usage: "after Ctrl-C, running requests may take `T`"},
			&cli.StringFlag{Name: "tool-format", Value: autoFormat, Usage: "answers write calls of tools as `NAME`: " +
				strings.Join(endpoint.ToolFormats(), ", ") + "; auto finds it in the chat template"},
			&cli.BoolFlag{Name: "requests", Usage: "print a line for each request on stderr"},
			&cli.IntFlag{Name: "sequences", Usage: "sample `N` answers at once; others wait",
				DefaultText: "as many as fit in memory, at most 64"},
		}, modelFlags()...),
		BashComplete: a.completesRuns(1, true, modelCandidates),
		Action:       cli.WithArgs(1, 1, a.endpoint),
	}
}

// autoFormat lets the chat template say how calls are written.
const autoFormat = "auto"

// endpoint answers clients until the command is stopped, which is its normal end.
func (a *app) endpoint(c *cli.Context, args []string) error {
	o := endpoint.Options{Public: c.Bool("public"), Clock: a.Clock.Now}
	if name := c.String("tool-format"); slices.Contains(endpoint.ToolFormats(), name) {
		o.ToolFormat = name
	} else if name != autoFormat {
		return a.Usagef("--tool-format %s: want %s, or %s", name, autoFormat,
			strings.Join(endpoint.ToolFormats(), ", "))
	}
	if name := c.String("api-key-env"); name != "" {
		if o.Key = a.Getenv(name); o.Key == "" {
			return a.Usagef("--api-key-env %s: the environment has no such variable, or it is empty", name)
		}
	}
	var err error
	if o.Grace, err = time.ParseDuration(c.String("grace")); err != nil || o.Grace < 0 {
		return a.Usagef("--grace %s: want a time such as 10s, or 0s", c.String("grace"))
	}
	var alone sync.Mutex // requests end side by side
	if c.Bool("requests") {
		o.Log = func(line string) {
			alone.Lock()
			defer alone.Unlock()
			fmt.Fprintln(a.Stderr, line)
		}
	}
	o.Waits = func(open int) {
		alone.Lock()
		defer alone.Unlock()
		a.Note("stopping: %s may end within %s; Ctrl-C again ends at once", quantity.Plural(open, "request"), o.Grace)
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
	x, closed, err := a.openModel(c, args[0])
	if err != nil {
		l.Close()
		return err
	}
	defer closed()
	if o.Public && o.Key == "" {
		a.Warn("whoever reaches this address can use the model: --api-key-env asks for a key")
	}
	a.noteTools(x.Model, o.ToolFormat)
	if x.ReadsImages() && x.Chats() {
		a.Note("images: messages may show them, as parts image_url with a data: URL")
	}
	if x.ReadsVideos() && x.Chats() {
		a.Note("videos: messages may show them, as parts video with a list of frames, or video_url with an " +
			"animation, all data: URLs")
	}
	a.Note("%d tokens of prompt and answer; Ctrl-C ends it", x.Context())
	if _, err := fmt.Fprintf(a.Out.W, "http://%s/v1\n", l.Addr()); err != nil {
		l.Close()
		return err
	}
	return endpoint.NewServer(x.Model, o).Serve(c.Context, l)
}

// noteTools says how the calls of tools are read, in which format the user says (empty: as the chat template writes
// them).
func (a *app) noteTools(x *endpoint.Model, format string) {
	switch found := x.ToolFormat(); {
	case !x.Chats():
	case format != "":
		a.Note("tools: answers write calls as %s, as --tool-format says", format)
	case found != "" && !x.ShowsTools():
		a.Note("tools: requests with tools are refused, as the chat template does not show them to the model; with "+
			"--tool-format %s messages may describe them", found)
	case found != "":
		a.Note("tools: answers write calls as %s, which the chat template shows", found)
	default:
		a.Note("tools: requests with tools are refused, as the chat template writes no calls in a format that is " +
			"known; --tool-format names one")
	}
}
