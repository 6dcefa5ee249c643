package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/aside"
	"exp/experiments/store"
	"exp/reports"
	"exp/reports/figure"
)

func figureCommand(a *app) *cli.Command {
	var kinds strings.Builder
	for _, k := range reports.Kinds() {
		fmt.Fprintf(&kinds, "\n  %-18s %s", k.Name, k.About)
	}
	return &cli.Command{
		Name:      "figure",
		Category:  "Results",
		Usage:     "draw one figure of a report, for a paper or a talk",
		ArgsUsage: "KIND SEL...",
		Description: "Draws the figure that exp report would draw of the same arms, in the format of the file's " +
			"name: PDF (vector, fonts embedded), SVG or PNG. The caption is printed; it names seeds and kinds " +
			"of intervals. A PDF is in the style paper unless --style says otherwise: 3.25 inches wide, 6.75 with " +
			"--columns 2, text of 8 points, no title.\n" +
			"KIND is one of these, the name of a figure in a report (pass-at-k-countdown-test), or any metric:" +
			kinds.String(),
		UsageText: strings.Join([]string{
			"exp figure pass-at-k flowrl --vs ppo -o passk.pdf # \\includegraphics{passk}",
			"exp figure accuracy 'task = countdown' --columns 2 -o accuracy.pdf # as wide as a page",
			"exp figure entropy flowrl ppo --style slides -o entropy.png",
			"exp figure actor/grad_norm @last -o norm.svg # a metric's curve",
		}, "\n"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "file", Aliases: []string{"o", "out"}, Usage: "write to `FILE`, which ends in ." +
				strings.Join(figure.Formats(), ", .")},
			&cli.BoolFlag{Name: "force", Usage: "replace FILE if it exists"},
		}, slices.Concat(armFlags(), []cli.Flag{contestsFlag()}, styleFlags())...),
		BashComplete: a.completesRuns(1, false, a.compareCandidates),
		Action:       a.reads(1, -1, a.drawFigure),
	}
}

// styleFlags are the flags for the size of figures.
func styleFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "style", Usage: "size and look of figure files: `STYLE` of " +
			strings.Join(figure.Styles(), ", "), DefaultText: "paper for PDF, report for others"},
		&cli.IntFlag{Name: "columns", Usage: "make them as wide as `N` columns of a paper or slide of two",
			Value: 1},
	}
}

// figureSettings reads styleFlags: the setting of a format.
func figureSettings(c *cli.Context) (func(format string) figure.Setting, error) {
	style := c.String("style")
	if style != "" {
		var err error
		if style, err = cli.OneOf("--style", style, figure.Styles()); err != nil {
			return nil, err
		}
	}
	columns := c.Int("columns")
	if columns != 1 && columns != 2 {
		return nil, cli.Usagef("--columns %d: a figure is 1 or 2 columns wide", columns)
	}
	return func(format string) figure.Setting {
		of := style
		switch {
		case of == "" && format == "pdf":
			of = "paper"
		case of == "":
			of = "report"
		}
		s, _ := figure.Styled(of, columns) // both are checked
		return s
	}, nil
}

// drawnFigure is the schema exp.figure/1.
type drawnFigure struct {
	File    string `json:"file"`
	Name    string `json:"name"`
	Title   string `json:"title"`
	Caption string `json:"caption"`
	Bytes   int    `json:"bytes"`
}

func (a *app) drawFigure(c *cli.Context, db *store.DB, args []string) error {
	path := c.String("file")
	format := strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	switch {
	case len(args) < 2:
		return a.Usagef("no runs given: exp figure KIND SEL...")
	case path == "":
		return a.Usagef("--file FILE is missing: where should the figure go?")
	}
	if !slices.Contains(figure.Formats(), format) {
		return cli.Usagef("--file %s: its name ends in .%s", path, strings.Join(figure.Formats(), ", ."))
	}
	setting, err := figureSettings(c)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil && !c.Bool("force") {
		return cli.Usagef("%s already exists", path).Advise("name a new file, or --force to replace it")
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := checkOutputFolder(path); err != nil {
		return err
	}
	in, err := a.reportInput(c, db, args[1:])
	if err != nil {
		return err
	}
	f, err := reports.One(c.Context, in, args[0])
	if err != nil {
		return err
	}
	content, err := f.Render(format, setting(format))
	if err != nil {
		return err
	}
	if err := writeWhole(path, content); err != nil {
		return err
	}
	out := drawnFigure{File: path, Name: f.Name, Title: f.Title, Caption: f.Caption.String(), Bytes: len(content)}
	return a.Out.PrintDocument(cli.Document{Schema: "exp.figure/1", Data: out, Human: func(w io.Writer) error {
		p := a.Out.NewPage(w)
		p.Text("", path)
		p.Paragraph(out.Caption)
		return p.Close()
	}})
}

// writeWhole writes a file next to path and renames it, so that a failure leaves what was
// there.
func writeWhole(path string, content []byte) error {
	if file, err := filepath.EvalSymlinks(path); err == nil {
		path = file
	}
	tmp, err := aside.File(path)
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // no effect after the rename
	_, err = tmp.Write(content)
	if err := errors.Join(err, tmp.Chmod(0o644), tmp.Close()); err != nil { // CreateTemp makes it private
		return err
	}
	return os.Rename(tmp.Name(), path)
}
