package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"exp/cmd/exp/term"
	"exp/harness/inspect"
	harness "exp/harness/run"
	"exp/kernels/cpu"
	"exp/train/checkpoint"
)

func inspectCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Category:  "Results",
		Usage:     "say what a model's files hold, what it needs, and what stops it",
		ArgsUsage: "PATH",
		Description: "PATH is a folder in the layout of Hugging Face (config.json, *.safetensors), one safetensors file, or a folder of LoRA adapters in PEFT's layout, with the model that it names if that is here. Only headers are read, so that 15 GB take no longer than a toy: " +
			"the architecture, the tensors and their types, the memory to evaluate and to train it, and every reason why it cannot be computed here, at once; that is an answer and no failure.\n" +
			"--digest reads the files and adds their sha256. --logits loads the model and writes the float32 logits of given token ids, so that anyone can compare them with another framework's: " +
			`the file is {"sequences": [[ids], …]}, and --out gets tensors logits.0, logits.1, … [T,V], row t after token t.`,
		UsageText: strings.Join([]string{
			"exp inspect weights/qwen2.5-0.5b # can it be used, and what does it need?",
			"exp inspect weights/qwen2.5-0.5b --tensors # every tensor with its shape",
			"exp inspect model.safetensors --digest # one file, and its sha256",
			"exp inspect weights/qwen2.5-0.5b --json # for programs: exp.inspect/1",
			"exp inspect weights/qwen2.5-0.5b --logits ids.json --out logits.safetensors # what it computes",
			"exp inspect weights/qwen2.5-0.5b --adapter my-lora # do the adapters fit the model?",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "tensors", Usage: "list the tensors"},
			&cli.BoolFlag{Name: "digest", Usage: "read the files and show their sha256"},
			&cli.StringFlag{Name: "adapter", Usage: "with the LoRA adapters in folder `DIR`, in PEFT's layout"},
			&cli.StringFlag{Name: "part", Usage: "`PART` text: the language model inside a model of text and images", DefaultText: "the whole"},
			&cli.StringFlag{Name: "logits", Usage: "compute the logits of the token ids in `FILE`"},
			&cli.StringFlag{Name: "out", Usage: "write the logits to `FILE`, a safetensors file"},
			&cli.IntFlag{Name: "threads", Usage: "use `N` threads, 0 for all (--logits)", DefaultText: "all"},
		},
		BashComplete: a.completes(func(_ *cli.Context, w word) []candidate {
			switch w.Flag {
			case "logits":
				return pathCandidates(w.Text, hasExt(".json"))
			case "", "out":
				return pathCandidates(w.Text, hasExt(".safetensors"))
			}
			return nil
		}),
		Action: a.inspectModel,
	}
}

func (a *app) inspectModel(c *cli.Context) error {
	args, err := positionals(c, 1, 1)
	if err != nil {
		return err
	}
	if c.IsSet("logits") != c.IsSet("out") {
		return usagef("--logits FILE and --out FILE go together").see(a.line.command())
	}
	f, err := a.modelAndAdapter(c, args[0])
	if err != nil {
		return err
	}
	if c.IsSet("logits") {
		return a.writeLogits(c, f)
	}
	if f.Dir == "" {
		return a.inspectAdapter(c, f.Adapter)
	}
	describe := checkpoint.Describe
	if f.Text {
		describe = checkpoint.DescribeText
	}
	d, err := describe(f.Dir)
	if err != nil {
		return modelMissing(err)
	}
	if c.Bool("digest") {
		if err := d.Digest(); err != nil {
			return err
		}
	}
	d.Notes = append(d.Notes, tokenizerNotes(d)...)
	i := newInspection(d, c.Bool("tensors"))
	if f.Adapter != "" {
		if err := i.addAdapter(d, f.Adapter); err != nil {
			return modelMissing(err)
		}
	}
	return a.out.printDocument(document{Schema: "exp.inspect/1", Data: i, Human: func(w io.Writer) error { return i.write(a.out.newPage(w)) }})
}

// modelMissing gives an error about a path that is not there its exit code.
func modelMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return &failure{Code: exitNotFound, Err: err, Help: "a folder with config.json and *.safetensors is needed, or one safetensors file"}
	}
	return err
}

// inspection is the schema exp.inspect/1.
type inspection struct {
	Path         string              `json:"path"`
	Container    string              `json:"container"`
	Class        string              `json:"class,omitempty"`
	Architecture []string            `json:"architecture,omitempty"` // in words
	Computable   bool                `json:"computable"`
	Reasons      []string            `json:"reasons"` // why not
	Notes        []string            `json:"notes"`
	Parameters   int64               `json:"parameters"` // elements of all tensors
	Positions    int                 `json:"max_positions,omitempty"`
	Needs        *harness.ModelNeeds `json:"needs,omitempty"`
	DTypes       []dtypeCount        `json:"dtypes"`
	TensorCount  int                 `json:"tensor_count"`
	Tensors      []tensorRow         `json:"tensors,omitempty"`
	Files        []fileRow           `json:"files"`
	Adapter      *adapterFacts       `json:"adapter,omitempty"`
}

type dtypeCount struct {
	DType    string `json:"dtype"`
	Tensors  int    `json:"tensors"`
	Elements int64  `json:"elements"`
	Bytes    int64  `json:"bytes"`
}

type tensorRow struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
	Bytes int64  `json:"bytes"`
	File  string `json:"file"`
}

type fileRow struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

func newInspection(d *checkpoint.Description, tensors bool) *inspection {
	i := &inspection{Path: d.Path, Container: d.Container, Class: d.Class, Computable: d.Known, Reasons: orEmpty(d.Reason), Notes: orEmpty(d.Notes),
		TensorCount: len(d.Tensors), Files: []fileRow{}, DTypes: []dtypeCount{}}
	for _, f := range d.Files {
		i.Files = append(i.Files, fileRow{f.Name, f.Bytes, f.SHA256})
	}
	at := map[checkpoint.DType]int{}
	for _, t := range d.Tensors {
		if _, ok := at[t.DType]; !ok {
			at[t.DType] = len(i.DTypes)
			i.DTypes = append(i.DTypes, dtypeCount{DType: string(t.DType)})
		}
		n := &i.DTypes[at[t.DType]]
		n.Tensors++
		n.Elements += int64(t.Len())
		n.Bytes += t.Bytes()
		i.Parameters += int64(t.Len())
		if tensors {
			i.Tensors = append(i.Tensors, tensorRow{t.Name, string(t.DType), t.Shape, t.Bytes(), t.File})
		}
	}
	if d.Config.Layers > 0 {
		needs := harness.NeedsOf(d.Config)
		i.Architecture, i.Positions, i.Needs = checkpoint.Words(d.Config, d.Class), d.Config.MaxPositions, &needs
	}
	return i
}

// orEmpty is a list that programs see as one.
func orEmpty(list []string) []string { return append([]string{}, list...) }

// write prints the inspection for people.
func (i *inspection) write(p *page) error {
	p.heading(i.Path)
	var kinds []string
	for _, d := range i.DTypes {
		kinds = append(kinds, fmt.Sprintf("%d × %s (%s)", d.Tensors, d.DType, term.Bytes(d.Bytes)))
	}
	facts := []fact{{"container", i.Container}, {"class", i.Class}}
	for n, text := range i.Architecture {
		name := ""
		if n == 0 {
			name = "architecture"
		}
		facts = append(facts, fact{name, text})
	}
	facts = append(facts, fact{"parameters", term.Count(i.Parameters)}, fact{"tensors", strings.Join(kinds, ", ")})
	if i.Positions > 0 {
		facts = append(facts, fact{"longest", fmt.Sprintf("%d tokens", i.Positions)})
	}
	p.facts(facts...)
	if n := i.Needs; n != nil {
		p.heading("memory on a CPU, without activations")
		p.facts(fact{"evaluate", fmt.Sprintf("%s in float32, %s frozen in bf16; and %s a token of context", term.Bytes(n.Evaluate), term.Bytes(n.Frozen), term.Bytes(n.Cache))},
			fact{"train", term.Bytes(n.Train) + " with gradients and moments"})
	}
	if i.Adapter != nil {
		i.Adapter.write(p)
	}
	for _, part := range []struct {
		title string
		list  []string
	}{{"what stops it", i.Reasons}, {"notes", i.Notes}} {
		if len(part.list) == 0 {
			continue
		}
		p.heading(part.title)
		for _, text := range part.list {
			p.text("  ", strings.Join(term.Wrap(term.CleanLines(text), p.proseWidth()), "\n"))
		}
	}
	if err := i.writeFiles(p); err != nil {
		return err
	}
	return p.close()
}

// writeFiles prints the tables of files and tensors.
func (i *inspection) writeFiles(p *page) error {
	p.heading("files")
	digest := column{Key: "sha256", Wide: true}
	var rows [][]any
	for _, f := range i.Files {
		digest.Wide = digest.Wide && f.SHA256 == ""
		rows = append(rows, []any{f.Name, f.Bytes, f.SHA256})
	}
	columns := []column{{Key: "file", Rank: 1, Min: 12}, {Key: "bytes", Text: bytesText}, digest}
	if digest.Wide {
		columns = columns[:2]
		for n := range rows {
			rows[n] = rows[n][:2]
		}
	}
	if err := p.table(columns, rows); err != nil || len(i.Tensors) == 0 {
		return err
	}
	p.heading("tensors")
	rows = nil
	for _, t := range i.Tensors {
		rows = append(rows, []any{t.Name, t.DType, strings.Join(strings.Fields(fmt.Sprint(t.Shape)), ","), t.Bytes})
	}
	return p.table([]column{{Key: "tensor", Rank: 1, Min: 12}, {Key: "dtype"}, {Key: "shape"}, {Key: "bytes", Text: bytesText}}, rows)
}

// writeLogits computes logits and writes them where the name appears only when the file
// is whole.
func (a *app) writeLogits(c *cli.Context, f inspect.Folder) error {
	if f.Dir == "" {
		return adapterWithoutModel(f.Adapter, "exp inspect MODEL --adapter")
	}
	if info, err := os.Stat(f.Dir); err != nil {
		return modelMissing(err)
	} else if !info.IsDir() {
		return usagef("%s is a file; --logits needs a folder with config.json", f.Dir)
	}
	in, err := os.Open(c.String("logits"))
	if err != nil {
		return &failure{Code: exitNotFound, Err: err, Help: `--logits wants a file of token ids: {"sequences": [[1, 2, 3]]}`}
	}
	sequences, err := inspect.ReadSequences(in)
	if err := errors.Join(err, in.Close()); err != nil {
		return usagef("%s: %w", c.String("logits"), err)
	}
	if c.Int("threads") < 0 {
		return usagef("--threads %d: want 0 (all) or more", c.Int("threads"))
	}
	be, err := a.openCPU(cpu.Options{Threads: c.Int("threads")})
	if err != nil {
		return err
	}
	defer be.Close()
	out := c.String("out")
	if err := replaceFile(out, func(w io.Writer) error { return inspect.Logits(be, f, sequences, w) }); err != nil {
		return badSequences(err, c.String("logits"))
	}
	return a.out.printDocument(document{Schema: "exp.inspect.logits/1", Data: map[string]any{"sequences": len(sequences), "file": out},
		Human: func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%d sequences: logits.0 to logits.%d in %s\n", len(sequences), len(sequences)-1, out)
			return err
		}})
}

// badSequences gives errors about what was asked for the exit code of bad usage.
func badSequences(err error, path string) error {
	var bad *inspect.SequenceError
	if errors.As(err, &bad) {
		return usagef("%s: %w", path, err)
	}
	return err
}
