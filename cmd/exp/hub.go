package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/harness/hub"
)

func hubCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "hub",
		Category: "Experiments",
		Usage:    "fetch models and data sets, and list the fetched ones",
		Description: "Models and data sets of the Hugging Face hub, or of a mirror, are kept in the cache that " +
			"Python's libraries share: HF_HUB_CACHE, or hub in HF_HOME, by default ~/.cache/huggingface/hub. " +
			"Recipes and commands name them hub:ORG/NAME@REVISION and read the cache only: nothing but exp hub " +
			"get and exp run --get downloads.\n" +
			"Without a network: run exp hub get on another machine, copy the folder of the repository (models--ORG--" +
			"NAME) from its cache to the one here with tar, which keeps its links, or name the copied cache in " +
			"HF_HUB_CACHE.\n" +
			"HF_ENDPOINT names a mirror; HF_TOKEN, or the file in HF_TOKEN_PATH, is the token for gated and " +
			"private repositories; HF_HUB_OFFLINE=1 forbids the network.",
		UsageText: "exp hub get Qwen/Qwen2.5-0.5B # a model, at the branch main\n" +
			"exp hub ls # what the cache has",
		Subcommands: []*cli.Command{
			{
				Name: "get", ArgsUsage: "REPO", Usage: "fetch a model or a data set into the cache",
				Description: "REPO is ORG/NAME, or ORG/NAME@REVISION with a branch, a tag or a commit. Takes " +
					"what a run reads: of a model its configuration, tokenizer and *.safetensors (or else *.bin), " +
					"of a data set its .parquet, .json, .jsonl and .csv files. Everything is checked " +
					"by size and digest. Files that are here are not fetched again, and after an interruption " +
					"the same command continues where it stopped.",
				UsageText: "exp hub get Qwen/Qwen2.5-0.5B@main # then: exp eval hub:Qwen/Qwen2.5-0.5B@main " +
					"--suite gsm8k\n" +
					"exp hub get openai/gsm8k --dataset --include 'main/*.parquet' # some files of a data set\n" +
					"HF_ENDPOINT=https://hf-mirror.example exp hub get Qwen/Qwen2.5-0.5B # from a mirror",
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "dataset", Usage: "REPO is a data set"},
					&cli.StringSliceFlag{Name: "include", Usage: "fetch the files that match `GLOB`, where * stands " +
						"for any text, / too; may be given again", DefaultText: "what a run reads"},
				},
				Action: cli.WithArgs(1, 1, a.hubGet),
			},
			{
				Name: "ls", Usage: "list the models and data sets in the cache",
				UsageText: "exp hub ls -o wide # with their folders",
				Action:    cli.WithArgs(0, 0, a.hubList),
			},
		},
	}
}

func (a *app) hubGet(c *cli.Context, args []string) error {
	kind := hub.Model
	if c.Bool("dataset") {
		kind = hub.DataSet
	}
	ref, err := hub.ParseRepo(args[0], kind)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	res, err := a.fetch(c.Context, hub.Request{Ref: ref, Include: c.StringSlice("include")})
	if err != nil {
		return err
	}
	return a.Out.PrintDocument(cli.Document{Schema: "exp.hub.get/1", Data: res, Human: func(w io.Writer) error {
		p := a.Out.NewPage(w)
		p.Facts(cli.Fact{Name: "commit", Text: res.Commit}, cli.Fact{Name: "path", Text: res.Path},
			cli.Fact{Name: "files", Text: fmt.Sprintf("%d, %s; %s fetched now", len(res.Files),
				quantity.Bytes(res.Bytes), quantity.Bytes(res.Fetched))},
			cli.Fact{Name: "use", Text: fmt.Sprintf("%s%s@%s; @%s pins these files", hub.Prefix, res.Repo,
				res.Revision, res.Commit)})
		return p.Close()
	}})
}

// fetch brings a repository into the cache and shows how far it is.
func (a *app) fetch(ctx context.Context, r hub.Request) (*hub.Result, error) {
	client, err := hub.NewClient(hub.FromEnv(a.Getenv))
	if err != nil {
		return nil, err
	}
	display := a.Progress()
	client.Note = display.Note
	var once sync.Once
	start := time.Now()
	client.Watch = func(p hub.Progress) {
		once.Do(func() {
			display.StageStart(term.Stage{Kind: "get", Label: r.Ref.Name, Total: int(p.Total >> 20), Unit: "MiB"})
		})
		display.StageProgress(term.Step{Step: int(p.Done >> 20)})
	}
	res, err := client.Get(ctx, r)
	switch {
	case err != nil && ctx.Err() != nil:
		a.CloseProgress()
		return nil, cli.Stoppedf(ctx, "stopped; what was fetched is kept\n  to continue: %s", r.Command())
	case err != nil:
		a.CloseProgress()
		return nil, err
	}
	wall := time.Since(start)
	facts := []term.Fact{{Name: "files", Text: fmt.Sprint(len(res.Files)), Counts: true},
		{Name: "fetched", Text: quantity.Bytes(res.Fetched)}}
	if s := wall.Seconds(); res.Fetched > 0 && s > 0 {
		facts = append(facts, term.Fact{Name: "speed", Text: quantity.Bytes(int64(float64(res.Fetched)/s)) + "/s"})
	}
	display.StageDone(term.Result{Status: term.Done, Facts: facts, Wall: wall})
	a.CloseProgress()
	return res, nil
}

// fetchMissing fetches what configurations name on a hub and the cache lacks; it reports
// whether that was anything.
func (a *app) fetchMissing(ctx context.Context, configs []*config.Resolved) (bool, error) {
	var refs []hub.Ref
	for _, r := range configs {
		refs = append(refs, r.MissingRefs()...)
	}
	for _, request := range hub.Requests(refs) {
		if _, err := a.fetch(ctx, request); err != nil {
			return false, err
		}
	}
	return len(refs) > 0, nil
}

// hubCache is the cache that references are looked up in.
func (a *app) hubCache() hub.Cache { return hub.FromEnv(a.Getenv).Cache }

func (a *app) hubList(c *cli.Context, _ []string) error {
	list, err := a.hubCache().List()
	if err != nil {
		return err
	}
	t := cli.Table{Schema: "exp.hub.ls/1", Columns: []cli.Column{{Key: "repo", ID: true}, {Key: "kind"},
		{Key: "revisions"}, {Key: "commit"}, {Key: "files"}, {Key: "bytes", Text: bytesText},
		{Key: "path", Wide: true}}}
	for _, k := range list {
		for _, s := range k.Snapshots {
			t.Rows = append(t.Rows, []any{k.Repo.Name, string(k.Repo.Kind), strings.Join(s.Revisions, ", "),
				cli.HexID(s.Commit), s.Files, k.Bytes, s.Path})
		}
	}
	return a.Out.PrintTable(t)
}
