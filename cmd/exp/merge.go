package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/harness/convert"
	"exp/harness/inspect"
)

func mergeCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "merge",
		Category:  "Results",
		Usage:     "turn another trainer's checkpoint into a Hugging Face folder",
		ArgsUsage: "SRC",
		Description: "Trainers cut weights over the files of their ranks (the processes that trained together); " +
			"merge puts them together into one folder that transformers, vLLM and exp read. Nothing of the " +
			"checkpoint is executed, and no Python is needed. SRC is one of:\n" +
			"  verl's global_step_N, its actor or critic, or all steps (takes the latest)\n" +
			"  Megatron's iter_NNNNNNN (torch or torch_dist), or the folder above it\n" +
			"  a folder of torch.distributed.checkpoint (.metadata and .distcp) with Hugging Face's names\n" +
			"  a folder with pytorch_model.bin or its shards; one .bin, .pt or .pth file\n" +
			"  a folder with model.safetensors, to change its type\n" +
			"config.json, the tokenizer, chat templates and generation_config.json are copied from where the " +
			"checkpoint has them (verl: huggingface/), or from --hf-config. Every tensor keeps its bits with " +
			"--dtype keep: verl trains in float32, so the folder has twice the bytes of the bfloat16 model it " +
			"began as; --dtype bf16 rounds to nearest, as verl's own merger does. An output projection that the " +
			"model ties to its embedding is compared with it and left out. FlowRL's head goes to " +
			"proj_z.safetensors. Weights stream from file to file, so any size fits in memory. exp inspect " +
			"shows beforehand what SRC holds; exp eval and model.base also take SRC itself, without a merge.",
		UsageText: strings.Join([]string{
			"exp merge checkpoints/global_step_200 --out merged # a checkpoint of verl",
			"exp merge checkpoints --out merged --dtype bf16 # the latest step, in half the bytes",
			"exp merge pytorch_model.bin --out model --hf-config weights/qwen2.5-0.5b # a file without a config",
			"exp merge checkpoints/global_step_200/critic --out critic # a critic, as a class that scores",
			"exp merge merged --out half --dtype bf16 # a folder in another type",
		}, "\n"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "write to the new folder `DIR`"},
			&cli.StringFlag{Name: "dtype", Usage: "write weights as `TYPE`: " + strings.Join(convert.DTypes(), ", "),
				Value: convert.DTypes()[0]},
		}, containerFlags("DIR")...),
		BashComplete: a.Completes(func(_ *cli.Context, w cli.Word) []cli.Candidate {
			if w.Flag == "dtype" {
				return cli.Candidates(convert.DTypes())
			}
			return containerCandidates(w)
		}),
		Action: cli.WithArgs(1, 1, a.merge),
	}
}

func (a *app) merge(c *cli.Context, args []string) error {
	out := c.String("out")
	if out == "" {
		return a.Usagef("merge needs --out DIR, the folder to write")
	}
	dtype, err := cli.OneOf("--dtype", c.String("dtype"), convert.DTypes())
	if err != nil {
		return err
	}
	m, err := convert.Merge(c.Context, args[0], out, convert.MergeOptions{DType: dtype,
		Config: c.String("hf-config"), Vocab: c.Int("vocab-size"), Replace: c.Bool("force"),
		Progress: a.byteProgress("merge", filepath.Base(out))})
	a.CloseProgress()
	return a.printMerged(m, err)
}

// containerFlags are the flags of the commands that read a model in any format and write
// it as the new folder target.
func containerFlags(target string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "hf-config", Usage: "take config.json and the tokenizer from folder `DIR`",
			DefaultText: "the checkpoint's"},
		&cli.IntFlag{Name: "vocab-size", Usage: "`N` tokens, for a Megatron checkpoint without config.json",
			DefaultText: "its arguments'"},
		&cli.BoolFlag{Name: "force", Usage: "replace " + target + " if it is a model's folder"},
	}
}

// containerCandidates proposes paths for the arguments and flags that take one.
func containerCandidates(w cli.Word) []cli.Candidate {
	switch w.Flag {
	case "", "out", "hf-config":
		return cli.PathCandidates(w.Text, cli.HasExt(inspect.WeightExtensions()...))
	}
	return nil
}

// printMerged prints what was written, or gives the error its exit code.
func (a *app) printMerged(m *convert.Merged, err error) error {
	if f := notReplaced(err); f != nil {
		return f
	}
	if err != nil {
		return modelMissing(err)
	}
	return a.Out.PrintDocument(cli.Document{Schema: "exp.merge/1", Data: m, Human: func(w io.Writer) error {
		return writeMerged(a.Out.NewPage(w), m)
	}})
}

// notReplaced gives the error about a target that is there its exit code; nil for others.
func notReplaced(err error) error {
	var target *convert.TargetError
	if !errors.As(err, &target) {
		return nil
	}
	f := cli.Usagef("%w", err)
	f.Help = "name a new folder"
	if target.Ask {
		f.Help += ", or replace it with --force"
	}
	return f
}

// writeMerged describes a merged folder for people.
func writeMerged(p *cli.Page, m *convert.Merged) error {
	p.Heading(m.Out)
	from := m.Container + " " + m.Source
	if m.Ranks > 0 {
		from = fmt.Sprintf("%s of %d ranks, %s", m.Container, m.Ranks, m.Source)
	}
	p.Facts(cli.Fact{Name: "from", Text: from}, cli.Fact{Name: "class", Text: m.Class},
		cli.Fact{Name: "tensors", Text: fmt.Sprintf("%d, %s", m.Tensors, m.DType)},
		cli.Fact{Name: "bytes", Text: quantity.Bytes(m.Bytes)})
	if len(m.Notes) > 0 {
		p.Heading("notes")
		for _, text := range m.Notes {
			p.Text("  ", strings.Join(term.Wrap(term.CleanLines(text), p.ProseWidth()), "\n"))
		}
	}
	p.Heading("files")
	var rows [][]any
	for _, f := range m.Files {
		rows = append(rows, []any{f.Name, f.Bytes})
	}
	columns := []cli.Column{{Key: "file", Rank: 1, Min: 12}, {Key: "bytes", Text: bytesText}}
	if err := p.Table(columns, rows); err != nil {
		return err
	}
	return p.Close()
}
