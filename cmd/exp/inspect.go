package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/fault"
	"exp/harness/hub"
	"exp/harness/inspect"
)

// partUsage explains --part.
const partUsage = "`PART` text selects the language model of a vision-language model, images the whole of Qwen3.5, " +
	"whose language model alone is read otherwise"

func inspectCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Category:  "Results",
		Usage:     "show what a model's files hold, what it needs, and which parts are unsupported",
		ArgsUsage: "PATH | hub:ORG/NAME@REV",
		Description: "PATH is a folder in Hugging Face's layout (config.json, *.safetensors or " +
			"pytorch_model.bin), one file of safetensors or of torch.save, a checkpoint of verl (global_step_N, or " +
			"the folder with its ranks' files) or Megatron, or a folder of LoRA adapters in PEFT's layout, with " +
			"the model it names if that is here. Pickles are decoded, never executed. It reads only headers, so " +
			"15 GB take no longer than a toy. It prints the architecture, the tensors and their types, the memory " +
			"to evaluate and to train the model, and every reason why it cannot be computed here; such a model is " +
			"an answer, not an error.\n" +
			"--digest reads the files and adds their sha256. --logits loads the model and writes the float32 " +
			"logits of given token ids, to compare with another framework's: the file is {\"sequences\": " +
			"[[ids], …]}, and --out gets tensors logits.0, logits.1, … [T,V], row t after token t.",
		UsageText: strings.Join([]string{
			"exp inspect weights/qwen2.5-0.5b # can it be used, and what does it need?",
			"exp inspect weights/qwen2.5-0.5b --tensors # every tensor with its shape",
			"exp inspect model.safetensors --digest # one file, and its sha256",
			"exp inspect checkpoints/global_step_200 # what a verl training left; exp merge makes it a folder",
			"exp inspect weights/qwen2.5-0.5b --json # for programs: exp.inspect/1",
			"exp inspect weights/qwen2.5-0.5b --logits ids.json --out logits.safetensors # what it computes",
			"exp inspect weights/qwen2.5-0.5b --adapter my-lora # do the adapters fit the model?",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "tensors", Usage: "list the tensors"},
			&cli.BoolFlag{Name: "digest", Usage: "read the files and show their sha256"},
			&cli.StringFlag{Name: "adapter", Usage: "add the LoRA adapters in folder `DIR`, in PEFT's layout"},
			&cli.StringFlag{Name: "part", Usage: partUsage, DefaultText: "the whole"},
			&cli.StringFlag{Name: "logits", Usage: "compute the logits of the token ids in `FILE`"},
			&cli.StringFlag{Name: "out", Usage: "write the logits to `FILE`, a safetensors file"},
			&cli.StringFlag{Name: "device", Usage: "compute on `DEVICE`: cpu, cuda, cuda:N, auto (--logits)",
				DefaultText: device.CPU},
			&cli.IntFlag{Name: "threads", Usage: "use `N` threads, 0 for all (--logits)", DefaultText: "all"},
		},
		BashComplete: a.Completes(func(_ *cli.Context, w cli.Word) []cli.Candidate {
			switch w.Flag {
			case "logits":
				return cli.PathCandidates(w.Text, cli.HasExt(".json"))
			case "device":
				return deviceCandidates()
			case "", "out":
				return cli.PathCandidates(w.Text, cli.HasExt(inspect.WeightExtensions()...))
			}
			return nil
		}),
		Action: cli.WithArgs(1, 1, a.inspectModel),
	}
}

// headerGC lets the heap grow by a quarter between garbage collections, not by the whole.
const headerGC = 25

func (a *app) inspectModel(c *cli.Context, args []string) error {
	if c.IsSet("logits") != c.IsSet("out") {
		return a.Usagef("--logits FILE and --out FILE go together")
	}
	f, err := a.modelAndAdapter(c, args[0])
	if err != nil {
		return err
	}
	if c.IsSet("logits") {
		return a.writeLogits(c, f)
	}
	// Reading headers makes little garbage; what a hostile file makes stays in use.
	defer debug.SetGCPercent(debug.SetGCPercent(headerGC))
	r, err := f.Describe(inspect.Options{Tensors: c.Bool("tensors"), Digest: c.Bool("digest")})
	if err != nil {
		return modelMissing(err)
	}
	for n, note := range r.Notes { // some quote tokens
		r.Notes[n] = term.CleanLines(note)
	}
	return a.Out.PrintDocument(cli.Document{Schema: "exp.inspect/1", Data: r, Human: func(w io.Writer) error {
		return writeInspection(a.Out.NewPage(w), r)
	}})
}

// modelMissing gives the error about a missing path its exit code.
func modelMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		help := cmp.Or(fault.Hint(err), "name a folder with config.json and *.safetensors, a checkpoint of verl, "+
			"or one file of weights")
		return &cli.Failure{Code: cli.ExitNotFound, Err: err, Help: help}
	}
	return err
}

// writeInspection prints the contents of a model's files for people.
func writeInspection(p *cli.Page, r *inspect.Report) error {
	p.Heading(r.Path)
	var kinds []string
	for _, d := range r.DTypes {
		kinds = append(kinds, fmt.Sprintf("%d × %s (%s)", d.Tensors, d.DType, quantity.Bytes(d.Bytes)))
	}
	facts := []cli.Fact{{Name: "container", Text: r.Container}, {Name: "class", Text: r.Class}}
	for n, text := range r.Architecture {
		name := ""
		if n == 0 {
			name = "architecture"
		}
		facts = append(facts, cli.Fact{Name: name, Text: text})
	}
	facts = append(facts, cli.Fact{Name: "parameters", Text: quantity.Count(r.Parameters)},
		cli.Fact{Name: "tensors", Text: strings.Join(kinds, ", ")})
	if r.Positions > 0 {
		facts = append(facts, cli.Fact{Name: "longest", Text: fmt.Sprintf("%d tokens", r.Positions)})
	}
	p.Facts(facts...)
	if n := r.Needs; n != nil {
		p.Heading("memory on a CPU, without activations")
		state := ""
		if n.State > 0 {
			state = fmt.Sprintf(", %s a sequence", quantity.Bytes(n.State))
		}
		p.Facts(cli.Fact{Name: "evaluate", Text: fmt.Sprintf("%s in float32, %s frozen in bf16; and %s a token "+
			"of context%s", quantity.Bytes(n.Evaluate), quantity.Bytes(n.Frozen), quantity.Bytes(n.Cache), state)},
			cli.Fact{Name: "train", Text: quantity.Bytes(n.Train) + " with gradients and moments"})
	}
	if r.Adapter != nil {
		writeAdapter(p, r.Adapter)
	}
	for _, part := range []struct {
		title string
		list  []string
	}{{"unsupported", r.Reasons}, {"notes", r.Notes}} {
		if len(part.list) == 0 {
			continue
		}
		p.Heading(part.title)
		for _, text := range part.list {
			p.Text("  ", strings.Join(term.Wrap(term.CleanLines(text), p.ProseWidth()), "\n"))
		}
	}
	if err := writeModelFiles(p, r); err != nil {
		return err
	}
	return p.Close()
}

// writeModelFiles prints the tables of files and tensors.
func writeModelFiles(p *cli.Page, r *inspect.Report) error {
	p.Heading("files")
	digest := cli.Column{Key: "sha256", Wide: true}
	var rows [][]any
	for _, f := range r.Files {
		digest.Wide = digest.Wide && f.SHA256 == ""
		rows = append(rows, []any{f.Name, f.Bytes, f.SHA256})
	}
	columns := []cli.Column{{Key: "file", Rank: 1, Min: 12}, {Key: "bytes", Text: bytesText}, digest}
	if digest.Wide {
		columns = columns[:2]
		for n := range rows {
			rows[n] = rows[n][:2]
		}
	}
	if err := p.Table(columns, rows); err != nil || len(r.Tensors) == 0 {
		return err
	}
	p.Heading("tensors")
	rows = nil
	for _, t := range r.Tensors {
		rows = append(rows, []any{t.Name, t.DType, strings.Join(strings.Fields(fmt.Sprint(t.Shape)), ","), t.Bytes})
	}
	return p.Table([]cli.Column{{Key: "tensor", Rank: 1, Min: 12}, {Key: "dtype"}, {Key: "shape"},
		{Key: "bytes", Text: bytesText}}, rows)
}

// writeLogits computes logits and writes them; the file appears only when it is complete.
func (a *app) writeLogits(c *cli.Context, f inspect.Folder) error {
	if f.Dir == "" {
		return adapterWithoutModel(f.Adapter, "exp inspect MODEL --adapter")
	}
	if info, err := os.Stat(f.Dir); err != nil {
		return modelMissing(err)
	} else if !info.IsDir() {
		return cli.Usagef("%s is a file; --logits needs a folder with config.json", f.Dir)
	}
	in, err := os.Open(c.String("logits"))
	if err != nil {
		return &cli.Failure{Code: cli.ExitNotFound, Err: err, Help: `--logits wants a file of token ids: {"sequences": [[1, 2, 3]]}`}
	}
	sequences, err := inspect.ReadSequences(in)
	if err := errors.Join(err, in.Close()); err != nil {
		return cli.Usagef("%s: %w", c.String("logits"), err)
	}
	if c.Int("threads") < 0 {
		return cli.Usagef("--threads %d: want 0 (all) or more", c.Int("threads"))
	}
	be, err := device.Open(device.Options{Name: c.String("device"), Threads: c.Int("threads")}, a.Getenv)
	if err != nil {
		return err
	}
	defer be.Close()
	out := c.String("out")
	if err := replaceFile(out, func(w io.Writer) error { return inspect.Logits(be, f, sequences, w) }); err != nil {
		return badSequences(err, c.String("logits"))
	}
	return a.Out.PrintDocument(cli.Document{Schema: "exp.inspect.logits/1",
		Data: map[string]any{"sequences": len(sequences), "file": out},
		Human: func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%d sequences: logits.0 to logits.%d in %s\n", len(sequences), len(sequences)-1,
				out)
			return err
		}})
}

// badSequences gives errors in the user's input the exit code of bad usage.
func badSequences(err error, path string) error {
	var bad *inspect.SequenceError
	if errors.As(err, &bad) {
		return cli.Usagef("%s: %w", path, err)
	}
	return err
}

// modelAndAdapter resolves PATH and the flags of a command: a model, adapters on a
// model, or adapters alone, whose model is the folder they name. Dir is empty if that
// folder is not here.
func (a *app) modelAndAdapter(c *cli.Context, path string) (inspect.Folder, error) {
	part := c.String("part")
	if part != "" && !slices.Contains([]string{config.PartWhole, config.PartText, config.PartImages}, part) {
		return inspect.Folder{}, a.Usagef("--part %s: want %s, %s or %s", part, config.PartText, config.PartImages,
			config.PartWhole)
	}
	path, err := a.modelPath(path)
	if err != nil {
		return inspect.Folder{}, err
	}
	f, err := inspect.Find(path, c.String("adapter"), part)
	if errors.Is(err, inspect.ErrTwoAdapters) {
		return f, a.Usagef("%s is itself a folder of adapters; name the model's folder, and the adapters with "+
			"--adapter", path)
	}
	return f, err
}

// modelPath returns the folder of a model: the path itself, or where the cache has a
// reference, hub:ORG/NAME@REVISION.
func (a *app) modelPath(path string) (string, error) {
	if !hub.IsRef(path) {
		return path, nil
	}
	ref, err := hub.ParseRef(path, hub.Weights)
	if err != nil {
		return "", cli.Usagef("%w", err)
	}
	found, err := a.hubCache().Find(ref)
	return found.Path, err
}

// adapterWithoutModel returns the error for adapters whose model is not here.
func adapterWithoutModel(path, command string) error {
	err := inspect.NoModel(path)
	var none *inspect.NoModelError
	if !errors.As(err, &none) {
		return err
	}
	return cli.Failf(cli.ExitNotFound, "%w", err).Advise(fmt.Sprintf("name the model's folder: %s %s", command, path))
}

// writeAdapter describes adapters.
func writeAdapter(p *cli.Page, x *inspect.Adapter) {
	p.Heading("adapters " + x.Path)
	for _, text := range x.Facts {
		p.Text("  ", strings.Join(term.Wrap(term.CleanLines(text), p.ProseWidth()), "\n"))
	}
}
