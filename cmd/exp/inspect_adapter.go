package main

import (
	"errors"
	"fmt"
	"strings"

	"exp/cmd/exp/cli"
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
		return inspect.Folder{}, a.Usagef("--part %s: want text, or whole", part)
	}
	f, err := inspect.Find(path, c.String("adapter"), text)
	if errors.Is(err, inspect.ErrTwoAdapters) {
		return f, a.Usagef("%s is a folder of adapters itself; name the model's folder, and the adapters with "+
			"--adapter", path)
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
	f := cli.Failf(cli.ExitNotFound, "%w", err)
	f.Help = fmt.Sprintf("name the model's folder: %s %s", command, path)
	return f
}

// writeAdapter prints what adapters are.
func writeAdapter(p *cli.Page, x *inspect.Adapter) {
	p.Heading("adapters " + x.Path)
	for _, text := range x.Facts {
		p.Text("  ", strings.Join(term.Wrap(term.CleanLines(text), p.ProseWidth()), "\n"))
	}
}
