package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"exp/cmd/exp/term"
	"exp/harness/inspect"
	"exp/train/checkpoint"
)

// modelAndAdapter is what PATH and the flags of a command name: a model, adapters on a
// model, or adapters alone, whose model is the folder that they name if that is here. Dir
// is empty where it is not.
func (a *app) modelAndAdapter(c *cli.Context, path string) (inspect.Folder, error) {
	f := inspect.Folder{Dir: path, Adapter: c.String("adapter")}
	switch part := c.String("part"); part {
	case "", "whole":
	case "text":
		f.Text = true
	default:
		return f, usagef("--part %s: want text, or whole", part).see(a.line.command())
	}
	if !checkpoint.IsAdapterFolder(path) {
		return f, nil
	}
	if f.Adapter != "" {
		return f, usagef("%s is a folder of adapters itself; name the model's folder, and the adapters with --adapter", path).see(a.line.command())
	}
	base, here, err := checkpoint.AdapterBaseFolder(path)
	if err != nil {
		return f, err
	}
	if f.Dir, f.Adapter = base, path; !here {
		f.Dir = ""
	}
	return f, nil
}

// adapterWithoutModel is the error of adapters whose model is not here.
func adapterWithoutModel(path, command string) error {
	base, _, err := checkpoint.AdapterBaseFolder(path)
	if err != nil {
		return err
	}
	f := failf(exitNotFound, "%s holds adapters (PEFT) and names no model", path)
	if base != "" {
		f = failf(exitNotFound, "%s holds adapters (PEFT) for the model %s, and no folder of that name here has a config.json", path, base)
	}
	f.Help = fmt.Sprintf("name the model's folder: %s %s", command, path)
	return f
}

// adapterFacts is the part of exp.inspect/1 about adapters.
type adapterFacts struct {
	Path       string   `json:"path"`
	Base       string   `json:"base,omitempty"` // as the folder names it
	Rank       int      `json:"rank"`
	Alpha      float64  `json:"alpha"`
	Targets    []string `json:"targets"`
	Parameters int      `json:"parameters"`
	Trainable  bool     `json:"trainable"` // training can go on with them

	facts []string
}

func newAdapterFacts(d *checkpoint.AdapterDescription) *adapterFacts {
	return &adapterFacts{Path: d.Path, Base: d.Base, Rank: d.Rank, Alpha: d.Alpha, Targets: orEmpty(d.Targets), Parameters: d.Parameters, Trainable: d.Uniform, facts: d.Facts()}
}

func (f *adapterFacts) write(p *page) {
	p.heading("adapters " + f.Path)
	for _, text := range f.facts {
		p.text("  ", strings.Join(term.Wrap(term.CleanLines(text), p.proseWidth()), "\n"))
	}
}

// addAdapter adds what adapters are on a model that was described.
func (i *inspection) addAdapter(d *checkpoint.Description, path string) error {
	config := &d.Config
	if !d.Known {
		config = nil
	}
	x, err := checkpoint.DescribeAdapters(path, config)
	if err != nil {
		return err
	}
	i.Adapter = newAdapterFacts(x)
	for _, reason := range x.Reason {
		i.Reasons, i.Computable = append(i.Reasons, "adapters: "+reason), false
	}
	return nil
}

// inspectAdapter describes adapters whose model is not here.
func (a *app) inspectAdapter(c *cli.Context, path string) error {
	x, err := checkpoint.DescribeAdapters(path, nil)
	if err != nil {
		return modelMissing(err)
	}
	d := &checkpoint.Description{Path: path, Container: "safetensors", Tensors: x.Tensors, Reason: x.Reason}
	d.Reason = append(d.Reason, fmt.Sprintf("%v: exp inspect MODEL --adapter %s says whether they fit", adapterWithoutModel(path, ""), path))
	if err := d.List(); err != nil {
		return err
	}
	if c.Bool("digest") {
		if err := d.Digest(); err != nil {
			return err
		}
	}
	i := newInspection(d, c.Bool("tensors"))
	i.Class, i.Adapter = "LoRA adapters", newAdapterFacts(x)
	return a.out.printDocument(document{Schema: "exp.inspect/1", Data: i, Human: func(w io.Writer) error { return i.write(a.out.newPage(w)) }})
}
