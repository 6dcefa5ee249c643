package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/harness/bench"
	"exp/harness/config"
	"exp/harness/device"
	harness "exp/harness/run"
)

func benchCommand(a *app) *cli.Command {
	o, f := bench.DefaultOptions(), bench.DefaultFolderOptions("")
	together := strings.ReplaceAll(strings.Trim(fmt.Sprint(f.Sequences), "[]"), " ", ",")
	return &cli.Command{
		Name:      "bench",
		ArgsUsage: "[FOLDER]",
		Category:  "set up",
		Usage:     "measure how fast the engine is on this machine",
		Description: "Measures peak FLOP/s and memory bandwidth of the machine, the matmuls of a model's layers, a " +
			"training step, log-probs, and sampling. On a GPU (--device) it measures no peaks. Each figure is " +
			"the median of several repeats, with the smallest and the largest. The peak is measured again " +
			"before each repeat, and shares are relative to the median peak, because machines are shared and " +
			"clocks vary. Operations are counted as the mathematics needs them: two per weight of a linear map " +
			"and token, four per head channel and pair of tokens that attend; a training step counts as three " +
			"forward passes. Sampling time includes the prefill. With FOLDER, a model in Hugging Face's layout, " +
			"it measures how fast prompts are read (prefill) and completions sampled (decode), for each batch " +
			"size in --sequences, with frozen weights as in evaluation and LoRA. Nothing is recorded, and " +
			"results are not checked: exp doctor does that.",
		UsageText: strings.Join([]string{
			"exp bench # 10 million parameters; a few minutes",
			"exp bench --model 1M --model 50M --only train,sample # two models, two parts",
			"exp bench --layers 4 --width 64 --heads 2 --kv-heads 1 --ffn 256 --vocab 99 # a custom model",
			"EXP_CPU=avx2 exp bench --only machine,matmul # slower kernels",
			"exp bench models/Qwen2.5-0.5B --dtype bf16 # prefill and decode of a model, 1, 8 and 64 " +
				"completions at a time",
			"exp bench --device cuda --numerics matrix/16x25 --only train,sample # the tensor cores of a GPU",
			"exp bench --ranks 4 # four processes sum a gradient, and so does the MPI library, in turns",
			"exp bench --json > bench.json # for programs: exp.bench/1",
		}, "\n"),
		Flags: append(append(append([]cli.Flag{
			&cli.StringSliceFlag{Name: "model", Usage: "measure this `MODEL`: " + strings.Join(benchModelNames(),
				", "), DefaultText: "10M"},
		}, archFlags()...), benchRanksFlags()...),
			&cli.StringFlag{Name: "dtype", Usage: "`TYPE` of the matmul operands: f32 or bf16", DefaultText: "f32"},
			&cli.StringFlag{Name: "numerics", Usage: "`CLASS` of numerics, as compute.numerics: " +
				config.OwnNumerics + ", or " + config.MatrixNumerics + " for the tensor cores of a GPU (a CPU " +
				"emulates them), in bf16", DefaultText: config.OwnNumerics},
			&cli.StringFlag{Name: "only", Usage: "measure these parts: `LIST` of " +
				strings.Join(cli.Words(bench.Parts()), ", ")},
			&cli.IntFlag{Name: "batch", Value: o.Batch, Usage: "train on `N` sequences at once"},
			&cli.IntFlag{Name: "length", Value: o.Length, Usage: "training sequences have `N` tokens"},
			&cli.StringFlag{Name: "sequences", Usage: "sample `N` completions at a time, each from its own prompt; " +
				"with FOLDER, a list of N",
				DefaultText: benchDefault(o.Sequences, together)},
			&cli.IntFlag{Name: "prompt", Usage: "prompts have `N` tokens",
				DefaultText: benchDefault(o.Prompt, f.Prompt)},
			&cli.IntFlag{Name: "new", Usage: "completions have `N` new tokens",
				DefaultText: benchDefault(o.New, f.New)},
			&cli.IntFlag{Name: "repeat", Usage: "measure each figure `N` times",
				DefaultText: benchDefault(o.Repeat, f.Repeat)},
			&cli.StringFlag{Name: "device", Usage: "measure `DEVICE`: cpu, cuda, cuda:N, auto",
				DefaultText: device.CPU},
			&cli.IntFlag{Name: "threads", Usage: "use `N` threads, 0 for all", DefaultText: "EXP_THREADS, else all"},
			&cli.StringFlag{Name: "level", Usage: "use the kernels for `LEVEL`: amx, avx512bf16, avx512, " +
				"avx2, portable", DefaultText: "EXP_CPU, else the best"},
		),
		BashComplete: a.Completes(func(_ *cli.Context, w cli.Word) []cli.Candidate { return benchCandidates(w) }),
		Action: cli.WithArgs(0, 1, func(c *cli.Context, folder []string) error {
			switch {
			case c.IsSet("ranks"):
				return a.benchRanks(c, folder)
			case c.IsSet("floats"):
				return a.Usagef("--floats needs --ranks")
			case len(folder) > 0:
				return a.benchFolder(c, folder[0])
			}
			return a.bench(c)
		}),
	}
}

func benchModelNames() []string {
	var names []string
	for _, m := range bench.Models() {
		names = append(names, m.Name)
	}
	return names
}

// archFlags are the flags of a custom architecture.
func archFlags() []cli.Flag {
	var list []cli.Flag
	for _, s := range archSizes(&bench.Model{}) {
		list = append(list, &cli.IntFlag{Name: s.flag, Usage: s.usage, DefaultText: "MODEL's"})
	}
	return list
}

// archSize is one size of a custom architecture and its flag.
type archSize struct {
	flag, usage string
	to          *int
}

func archSizes(m *bench.Model) []archSize {
	return []archSize{
		{"layers", "a custom model instead of MODEL: `N` layers", &m.Layers},
		{"width", "`N` channels", &m.Width},
		{"heads", fmt.Sprintf("`N` query heads of %d channels", bench.HeadSize), &m.Heads},
		{"kv-heads", "`N` key and value heads", &m.KVHeads},
		{"ffn", "a feed-forward width of `N`", &m.FFN},
		{"vocab", "a vocabulary of `N` tokens; give all six sizes or none", &m.Vocab},
	}
}

func benchCandidates(w cli.Word) []cli.Candidate {
	switch w.Flag {
	case "model":
		return cli.Candidates(benchModelNames())
	case "dtype":
		return cli.Candidates(bench.DTypeNames())
	case "numerics":
		return cli.Candidates([]string{config.OwnNumerics, config.MatrixNumerics})
	case "device":
		return deviceCandidates()
	case "level":
		return cli.Candidates(device.AllLevels())
	case "only":
		before := w.Text[:strings.LastIndexByte(w.Text, ',')+1]
		var list []cli.Candidate
		for _, p := range bench.Parts() {
			list = append(list, cli.Candidate{Text: before + string(p)})
		}
		return list
	}
	return nil
}

// benchmark is the schema exp.bench/1.
type benchmark struct {
	CPU    string    `json:"cpu"`
	Cores  int       `json:"cores"`
	Memory int64     `json:"memory_bytes"`
	System string    `json:"system"`
	Level  string    `json:"level,omitempty"` // of the CPU kernels
	Where  string    `json:"-"`
	Build  cli.Build `json:"build"`
	bench.Report
}

// bench measures and prints.
func (a *app) bench(c *cli.Context) error {
	o, err := benchOptions(c)
	if err != nil {
		return err
	}
	err = a.measure(c, func(be bench.Device, single bench.Meter, w bench.Watcher) (*bench.Report, error) {
		return bench.Run(c.Context, be, single, o, w)
	})
	if errors.Is(err, bench.ErrNoLimits) {
		return cli.Usagef("%w", err)
	}
	return err
}

// benchFolder measures the model in a folder and prints.
func (a *app) benchFolder(c *cli.Context, path string) error {
	for _, f := range []string{"model", "only", "batch", "length"} {
		if c.IsSet(f) {
			return a.Usagef("--%s is not for a FOLDER", f)
		}
	}
	for _, f := range archSizes(&bench.Model{}) {
		if c.IsSet(f.flag) {
			return a.Usagef("--%s does not apply to a FOLDER: its config.json says it", f.flag)
		}
	}
	o := bench.DefaultFolderOptions(path)
	if c.IsSet("sequences") {
		var err error
		if o.Sequences, err = numbers("--sequences", c.String("sequences")); err != nil {
			return err
		}
	}
	setInts(c, map[string]*int{"prompt": &o.Prompt, "new": &o.New, "repeat": &o.Repeat})
	if err := o.Validate(); err != nil {
		return cli.Usagef("bench: %w", err)
	}
	return a.measure(c, func(be bench.Device, single bench.Meter, w bench.Watcher) (*bench.Report, error) {
		return bench.RunFolder(c.Context, be, single, o, w)
	})
}

// numbers reads a list such as 1,8,64.
func numbers(flag, text string) (list []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, cli.Usagef("%s is %q, but must be a number, or several separated by commas", flag, text)
		}
		list = append(list, n)
	}
	return list, nil
}

// setInts sets the numbers whose flags are given.
func setInts(c *cli.Context, to map[string]*int) {
	for name, v := range to {
		if c.IsSet(name) {
			*v = c.Int(name)
		}
	}
}

// benchDefault says the defaults for models and for folders.
func benchDefault(models int, folder any) string {
	return fmt.Sprintf("%d; with FOLDER %v", models, folder)
}

// measure opens the devices that the flags name, measures and prints.
func (a *app) measure(c *cli.Context, run func(be bench.Device, single bench.Meter, w bench.Watcher) (*bench.Report,
	error)) error {
	o, err := a.benchDevice(c)
	if err != nil {
		return err
	}
	be, err := device.Open(o, a.Getenv)
	if err != nil {
		return err
	}
	defer be.Close()
	var single bench.Meter
	level := ""
	if p, ok := be.(device.OnCPU); ok {
		o.Threads, level = 1, p.Level()
		one, err := device.OpenCPU(o, a.Getenv)
		if err != nil {
			return err
		}
		defer one.Close()
		single = one
	}
	r, err := run(be, single, &benchWatcher{p: a.Progress(), now: a.Clock.Now})
	a.CloseProgress()
	if err != nil {
		return err
	}
	m := harness.ThisMachine()
	b := &benchmark{CPU: m.CPU, Cores: m.Cores, Memory: m.Memory, System: runtime.GOOS + "/" + runtime.GOARCH,
		Level: level, Where: be.Where(), Build: cli.ReadBuild(), Report: *r}
	return a.Out.PrintDocument(cli.Document{Schema: "exp.bench/1", Data: b, Human: func(w io.Writer) error {
		return writeBench(a.Out.NewPage(w), b)
	}})
}

// benchDevice reads the flags that choose the device.
func (a *app) benchDevice(c *cli.Context) (device.Options, error) {
	o := device.Options{Name: c.String("device"), Threads: c.Int("threads")}
	dtype := c.String("dtype")
	switch o.Numerics = c.String("numerics"); o.Numerics {
	case "", config.OwnNumerics:
		o.Numerics = ""
	case config.MatrixNumerics:
		if dtype != "" && dtype != "bf16" {
			return o, cli.Usagef("--numerics %s computes in bf16, not in %s", o.Numerics, dtype)
		}
		dtype = "bf16"
	default:
		return o, cli.Usagef("--numerics is %q, but must be %s or %s; --dtype chooses the class of a CPU", o.Numerics,
			config.OwnNumerics, config.MatrixNumerics)
	}
	if dtype != "" {
		t, err := bench.ParseDType(dtype)
		if err != nil {
			return o, cli.Usagef("--dtype: %w", err)
		}
		o.Operand = t
	}
	if v := a.Getenv("EXP_THREADS"); v != "" && !c.IsSet("threads") {
		n, err := strconv.Atoi(v)
		if err != nil {
			return o, cli.Usagef("EXP_THREADS is %q, but must be a number", v)
		}
		o.Threads = n
	}
	if o.Threads < 0 {
		return o, cli.Usagef("%d threads: want 0 (all) or more", o.Threads)
	}
	if name := c.String("level"); name != "" {
		if err := device.CheckLevel(name); err != nil {
			return o, cli.Usagef("--level: %w", err)
		}
		o.Level = name
	}
	return o, nil
}

// benchOptions reads the flags that choose what to measure.
func benchOptions(c *cli.Context) (bench.Options, error) {
	o := bench.DefaultOptions()
	o.Batch, o.Length = c.Int("batch"), c.Int("length")
	setInts(c, map[string]*int{"prompt": &o.Prompt, "new": &o.New, "repeat": &o.Repeat})
	if c.IsSet("sequences") {
		list, err := numbers("--sequences", c.String("sequences"))
		if err != nil {
			return o, err
		}
		if len(list) > 1 {
			return o, cli.Usagef("--sequences takes several numbers only with a FOLDER")
		}
		o.Sequences = list[0]
	}
	if list := c.String("only"); list != "" {
		for name := range strings.SplitSeq(list, ",") {
			if name == "" {
				return o, cli.Usagef("--only %q has an empty part", list)
			}
			p, err := cli.OneOf("--only", name, bench.Parts())
			if err != nil {
				return o, err
			}
			o.Parts = append(o.Parts, p)
		}
	}
	var err error
	if o.Models, err = benchModels(c); err != nil {
		return o, err
	}
	if err := o.Validate(); err != nil {
		return o, cli.Usagef("%w", err)
	}
	return o, nil
}

// benchModels returns the named models, or the custom one.
func benchModels(c *cli.Context) ([]bench.Model, error) {
	own := bench.Model{Name: "own"}
	var missing []string
	sizes := archSizes(&own)
	for _, s := range sizes {
		*s.to = c.Int(s.flag)
		if !c.IsSet(s.flag) {
			missing = append(missing, "--"+s.flag)
		}
	}
	switch {
	case len(missing) == 0 && c.IsSet("model"):
		return nil, cli.Usagef("--model does not go with --layers and the other sizes")
	case len(missing) == 0:
		return []bench.Model{own}, nil
	case len(missing) < len(sizes):
		return nil, cli.Usagef("a custom model needs %s too", strings.Join(missing, ", "))
	}
	names := c.StringSlice("model")
	if len(names) == 0 {
		names = []string{"10M"}
	}
	var list []bench.Model
	for _, name := range names {
		if _, err := cli.OneOf("--model", name, benchModelNames()); err != nil {
			return nil, err
		}
		i := slices.Index(benchModelNames(), name)
		list = append(list, bench.Models()[i])
	}
	return list, nil
}

// benchWatcher shows progress on stderr.
type benchWatcher struct {
	p     term.Progress
	now   func() time.Time
	start time.Time
}

// PartStart shows the part that starts.
func (w *benchWatcher) PartStart(p bench.Part, model string, repeats int) {
	w.start = w.now()
	w.p.StageStart(term.Stage{Kind: string(p), Label: model, Total: repeats, Unit: "repeat"})
}

// PartRepeat counts a repeat.
func (w *benchWatcher) PartRepeat(done int) { w.p.StageProgress(term.Step{Step: done}) }

// PartDone shows the figure of the part.
func (w *benchWatcher) PartDone(headline float64, unit string) {
	w.p.StageDone(term.Result{Status: term.Done, Wall: w.now().Sub(w.start),
		Facts: []term.Fact{{Name: unit, Text: quantity.Short(headline), Counts: true}}})
}
