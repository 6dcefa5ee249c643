package main

import (
	"errors"
	"path/filepath"
	"strings"

	"exp/cmd/exp/cli"
	"exp/harness/convert"
)

func convertCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "convert",
		Category:  "Results",
		Usage:     "cut a model over the ranks of Megatron or FSDP, put it together, or write GGUF",
		ArgsUsage: "SRC DST",
		Description: "Trainers want a model cut over their ranks (the processes that train together). convert " +
			"takes SRC in any format that merge reads, and writes it as the new folder DST:\n" +
			"  --to megatron: iter_0000001/mp_rank_…/model_optim_rng.pt, Megatron-LM's --ckpt-format torch, for " +
			"--tp tensor-parallel ranks, --pp pipeline stages, --vp virtual stages (chunks of layers) per stage " +
			"and --ep expert-parallel ranks; names as with Transformer Engine, experts one by one\n" +
			"  --to fsdp: model_world_size_W_rank_R.pt of --ranks W ranks, as verl resumes from\n" +
			"  --to hf: a Hugging Face folder, the same as merge\n" +
			"  --to gguf: model.gguf with tokenizer and chat template, for llama.cpp, Ollama and LM Studio; " +
			"matrices keep their type, or have --type (q8_0: 8 bits). For Llama, Mistral, Qwen2, Qwen2.5 and Qwen3, " +
			"also with experts, whose tokenizer cuts texts as GPT-2's, Llama 3's, Qwen2's or SmolLM's does, not " +
			"SentencePiece's\n" +
			"Every element keeps its bits, but for --type: converting back gives the same tensors (not from GGUF, " +
			"which exp does not read). config.json and the tokenizer go to DST/huggingface, where convert, merge, " +
			"eval and model.base find them again. TP must divide the heads and the feed-forward width, PP × VP the " +
			"layers, EP the experts; otherwise nothing is written. The vocabulary is padded to a multiple of " +
			"128 × TP with copies of its last row. " +
			"Optimizer states are not converted.",
		UsageText: strings.Join([]string{
			"exp convert weights/qwen2.5-0.5b mcore --to megatron --tp 2 --pp 2 # for a training with Megatron-LM",
			"exp convert weights/qwen3-30b-a3b mcore --to megatron --pp 4 --ep 8 # a mixture of experts",
			"exp convert mcore resharded --to megatron --tp 4 # the same model over other ranks",
			"exp convert weights/qwen2.5-0.5b actor --to fsdp --ranks 8 # for verl on 8 GPUs",
			"exp convert mcore merged --to hf # back; the same as exp merge mcore --out merged",
			"exp convert merged phone --to gguf --type q8_0 # then llama-server -m phone/model.gguf",
			"exp convert old/iter_0001000 merged --to hf --vocab-size 151936 # arguments without a vocabulary",
		}, "\n"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "to", Aliases: []string{"format"},
				Usage: "write `FORMAT`: " + strings.Join(convert.Formats(), ", ")},
			&cli.IntFlag{Name: "tp", Usage: "Megatron: `N` tensor-parallel ranks", Value: 1},
			&cli.IntFlag{Name: "pp", Usage: "Megatron: `N` pipeline stages", Value: 1},
			&cli.IntFlag{Name: "vp", Usage: "Megatron: `N` virtual stages per pipeline stage", Value: 1},
			&cli.IntFlag{Name: "ep", Usage: "Megatron: `N` expert-parallel ranks", Value: 1},
			&cli.IntFlag{Name: "ranks", Usage: "FSDP: `W` ranks", Value: 1},
			&cli.StringFlag{Name: "type", Value: convert.GGUFTypes()[0],
				Usage: "GGUF: matrices have `TYPE`: " + strings.Join(convert.GGUFTypes(), ", ")},
		}, containerFlags("DST")...),
		BashComplete: a.Completes(func(_ *cli.Context, w cli.Word) []cli.Candidate {
			switch w.Flag {
			case "to":
				return cli.Candidates(convert.Formats())
			case "type":
				return cli.Candidates(convert.GGUFTypes())
			}
			return containerCandidates(w)
		}),
		Action: cli.WithArgs(2, 2, a.convert),
	}
}

func (a *app) convert(c *cli.Context, args []string) error {
	if c.String("to") == "" {
		return a.Usagef("convert needs --to FORMAT: %s", strings.Join(convert.Formats(), ", "))
	}
	to, err := cli.OneOf("--to", c.String("to"), convert.Formats())
	if err != nil {
		return err
	}
	for _, of := range []struct{ flag, format string }{
		{"tp", "megatron"}, {"pp", "megatron"}, {"vp", "megatron"}, {"ep", "megatron"}, {"ranks", "fsdp"},
		{"type", "gguf"},
	} {
		if c.IsSet(of.flag) && of.format != to {
			return a.Usagef("--%s is for --to %s, not --to %s", of.flag, of.format, to)
		}
	}
	as, err := cli.OneOf("--type", c.String("type"), convert.GGUFTypes())
	if err != nil {
		return err
	}
	o := convert.SpreadOptions{To: to, Type: as, Config: c.String("hf-config"), Vocab: c.Int("vocab-size"),
		Replace: c.Bool("force"), TP: c.Int("tp"), PP: c.Int("pp"), VP: c.Int("vp"), EP: c.Int("ep"),
		Ranks: c.Int("ranks"), Progress: a.byteProgress("convert", filepath.Base(args[1]))}
	m, err := convert.Spread(c.Context, args[0], args[1], o)
	a.CloseProgress()
	var grid *convert.GridError
	if errors.As(err, &grid) {
		return cli.Usagef("%w", err)
	}
	return a.printMerged(m, err)
}
