package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"exp/cmd/exp/term"
	"exp/harness/inspect"
)

// modelAndAdapter is what PATH and the flags of a command name: a model, adapters on a
// model, or adapters alone, whose model is the folder that they name if that is here. Dir
// is empty where it is not.
func (a *app) modelAndAdapter(c *cli.Context, path string) (inspect.Folder, error) {
	text := false
	switch part := c.String("part"); part {
	case "", "whole":
	case "text":
		text = true
	default:
		return inspect.Folder{}, usagef("--part %s: want text, or whole", part).see(a.line.command())
	}
	f, err := inspect.Find(path, c.String("adapter"), text)
	if errors.Is(err, inspect.ErrTwoAdapters) {
		return f, usagef("%s is a folder of adapters itself; name the model's folder, and the adapters with --adapter", path).see(a.line.command())
	}
	return f, err
}

// adapterWithoutModel is the error of adapters whose model is not here.
func adapterWithoutModel(path, command string) error {
	err := inspect.NoModel(path)
	var none *inspect.NoModelError
	if !errors.As(err, &none) {
		return err
	}
	f := failf(exitNotFound, "%w", err)
	f.Help = fmt.Sprintf("name the model's folder: %s %s", command, path)
	return f
}

// writeAdapter prints what adapters are.
func writeAdapter(p *page, x *inspect.Adapter) {
	p.heading("adapters " + x.Path)
	for _, text := range x.Facts {
		p.text("  ", strings.Join(term.Wrap(term.CleanLines(text), p.proseWidth()), "\n"))
	}
}
