package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"exp/kernels"
	"exp/train/checkpoint"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/rollout"
)

// FolderOptions select the measurements of a model in Hugging Face's layout.
type FolderOptions struct {
	Path      string
	Sequences []int         // numbers of completions to sample together
	Prompt    int           // tokens of each prompt; completions share none
	New       int           // new tokens of each completion
	Repeat    int           // repeats of every measurement, at least 1
	Time      time.Duration // of one measurement of the machine
}

// DefaultFolderOptions returns options for one user, a few, and a batch.
func DefaultFolderOptions(path string) FolderOptions {
	return FolderOptions{Path: path, Sequences: []int{1, 8, 64}, Prompt: 128, New: 64, Repeat: 3,
		Time: 20 * time.Millisecond}
}

// Validate returns an error for the first setting that cannot be measured.
func (o FolderOptions) Validate() error {
	for _, n := range o.Sequences {
		if err := atLeast("sequences", n, 1); err != nil {
			return err
		}
	}
	for name, n := range map[string]int{"prompt": o.Prompt, "new": o.New, "repeat": o.Repeat} {
		if err := atLeast(name, n, 1); err != nil {
			return err
		}
	}
	return nil
}

// FolderReport says how fast a folder's model samples.
type FolderReport struct {
	Path       string `json:"path"`
	Parameters int    `json:"parameters"`
	Weights    int64  `json:"weights_bytes"` // in memory
	Stored     string `json:"weights_dtype"` // in memory
	// from opening the files; tells of the disk where they were not in memory
	Load   float64      `json:"load_seconds"`
	Speeds []FolderRate `json:"speeds"`
}

// FolderRate is the speed with a number of completions at once.
type FolderRate struct {
	Sequences int    `json:"sequences"`
	Prefill   Passes `json:"prefill"` // prompts, and the first token of each completion
	Decode    Passes `json:"decode"`  // the tokens after the first
	// Weights read per decoding step, in 10⁹ bytes per second; counts all experts as
	// used.
	Read Spread `json:"weights_gb_per_s"`
}

// RunFolder measures a folder's model on be, sampling as evaluation and LoRA do: frozen
// weights, in BF16 if the folder has BF16. The decoding time is the time of whole
// completions minus the time of one-token completions. It returns ctx's error, or an error
// about the folder.
func RunFolder(ctx context.Context, be Device, single Meter, o FolderOptions, w Watcher) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	c, err := checkpoint.ReadConfig(o.Path)
	if err != nil {
		return nil, err
	}
	if n := o.Prompt + o.New + 1; n > c.MaxPositions {
		return nil, fmt.Errorf("bench: a prompt of %d tokens and %d new ones need more than the model's %d positions",
			o.Prompt, o.New, c.MaxPositions)
	}
	if !c.Learned {
		c.MaxPositions = o.Prompt + o.New + 1 // the tables need no more
	}
	s := newSuite(ctx, be, single, w)
	s.o.Repeat, s.o.Time = o.Repeat, o.Time
	s.report.Settings = Settings{Prompt: o.Prompt, New: o.New, Repeat: o.Repeat}
	if err := s.machine(); err != nil {
		return nil, err
	}
	f := &folder{suite: s, o: o, c: c}
	defer f.close()
	if err := f.load(); err != nil {
		return nil, err
	}
	for _, n := range o.Sequences {
		if err := f.measure(n); err != nil {
			return nil, err
		}
	}
	s.report.Folder = &f.report
	s.share()
	return &s.report, nil
}

// folder is one measurement of a folder.
type folder struct {
	*suite
	o        FolderOptions
	c        model.Config
	backbone *model.Backbone
	m        *model.Model
	report   FolderReport
}

func (f *folder) load() error {
	start := time.Now()
	t, err := checkpoint.OpenFolder(f.o.Path)
	if err != nil {
		return err
	}
	defer t.Close()
	stored := kernels.F32
	if d, ok := t.Uniform(); ok && d == checkpoint.BF16 {
		stored = kernels.BF16
	}
	before := f.be.Allocated()
	if f.backbone, err = checkpoint.LoadBackbone(f.be, f.c, true, stored, t); err != nil {
		return err
	}
	n, _ := model.Parameters(f.c, model.Heads{LM: true})
	f.report = FolderReport{Path: f.o.Path, Parameters: n, Weights: f.be.Allocated() - before,
		Stored: stored.String(),
		Load:   time.Since(start).Seconds()}
	f.m, err = model.NewOn(f.backbone, model.Heads{LM: true}, false)
	return err
}

func (f *folder) close() {
	if f.m != nil {
		f.m.Close()
	}
	if f.backbone != nil {
		f.backbone.Close()
	}
}

// measure samples n completions together.
func (f *folder) measure(n int) error {
	engine, err := generate.New(f.be, f.m, endless{}, generate.Options{
		MaxSequences: n, PageTokens: 16, MaxTokens: f.o.Prompt + f.o.New + 1, StepRows: n + prefillRows})
	if err != nil {
		return err
	}
	defer engine.Close()
	reqs := make([]rollout.Request, n)
	var r stream
	for i := range reqs {
		reqs[i] = rollout.Request{Prompt: r.ids(f.o.Prompt, f.c.Vocab), Seeds: []uint64{uint64(i)}}
	}
	draw := func(tokens int) error {
		_, err := engine.Sample(f.ctx, reqs, rollout.Params{Temperature: 1, TopP: 1, MaxNewTokens: tokens}, nil)
		return err
	}
	f.w.PartStart(PartSample, fmt.Sprintf("%s %d×", filepath.Base(f.o.Path), n), f.o.Repeat)
	if err := draw(2); err != nil {
		return err
	}
	var first, rest []float64
	var t clock
	err = f.repeats(func() error {
		f.read()
		t.start()
		if err := draw(1); err != nil {
			return err
		}
		t.phase("first")
		if err := draw(f.o.New + 1); err != nil {
			return err
		}
		t.phase("all")
		i := len(first)
		first = append(first, t.seconds[0][i])
		rest = append(rest, max(t.seconds[1][i]-t.seconds[0][i], 1e-9))
		return nil
	})
	if err != nil {
		return err
	}
	per := func(tokens, scored int) float64 { return float64(n) * f.c.ForwardFLOPs(tokens, scored) }
	prefill, memory := per(f.o.Prompt, 1), f.be.Allocated()
	rate := FolderRate{Sequences: n,
		Prefill: passesOf(n*f.o.Prompt, prefill, first, memory),
		Decode:  passesOf(n*f.o.New, per(f.o.Prompt+f.o.New, f.o.New+1)-prefill, rest, memory)}
	rate.Read = rate.Decode.TokensPer.times(float64(f.report.Weights) / float64(n) / 1e9)
	f.report.Speeds = append(f.report.Speeds, rate)
	f.w.PartDone(rate.Decode.TokensPer.Median, "tok/s")
	return nil
}
