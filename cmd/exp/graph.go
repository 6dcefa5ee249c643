package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/ident"
	"exp/experiments/lineage"
	"exp/experiments/quantity"
	"exp/experiments/store"
)

func graphCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "graph",
		Category:  "Results",
		Usage:     "show what something was made from and used for",
		ArgsUsage: "RUN|BLOB|PATH",
		Description: "Walks the lineage of a run, of a stored digest (its first digits are enough), or of a " +
			"file, which is hashed and looked up: it finds a copy of a model or a data set anywhere, if a stage " +
			"in this store wrote or read those bytes. Stages that several runs share are shown once. Files that " +
			"no stage of the store wrote are marked as of unknown origin.",
		UsageText: strings.Join([]string{
			"exp graph @last # both ways",
			"exp graph @last --up # what made it: data, weights, code, seed",
			"exp graph model.safetensors # which run made this file?",
			"exp graph @last -o dot | dot -Tsvg > lineage.svg # a picture, with Graphviz",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "up", Usage: "only what it was made from"},
			&cli.BoolFlag{Name: "down", Usage: "only what it was used for"},
		},
		BashComplete: a.Completes(func(c *cli.Context, w cli.Word) (list []cli.Candidate) {
			if w.Flag != "" || len(w.Args) > 0 {
				return nil
			}
			if db, err := a.OpenStore(); err == nil {
				defer db.Close()
				list = runCandidates(c.Context, db, w.Text, true, a.Clock.Now())
			}
			return append(list, cli.PathCandidates(w.Text, func(os.DirEntry) bool { return true })...)
		}),
		Action: a.reads(1, 1, func(c *cli.Context, db *store.DB, args []string) error {
			dir := lineage.Up | lineage.Down
			switch up, down := c.Bool("up"), c.Bool("down"); {
			case up && !down:
				dir = lineage.Up
			case down && !up:
				dir = lineage.Down
			}
			return a.graph(c.Context, db, args[0], dir)
		}),
	}
}

// graphView is a graph and the query that it answers.
type graphView struct {
	g     *lineage.Graph
	dir   lineage.Direction
	run   *store.Run // nil: a digest was asked for
	start []*lineage.Stage
	blob  *lineage.Blob
	names map[ident.Digest]string // of runs: "smoke#0"
}

func (a *app) graph(ctx context.Context, db *store.DB, ref string, dir lineage.Direction) error {
	v, err := a.walk(ctx, db, ref, dir)
	if err != nil {
		return err
	}
	switch a.Out.Format {
	case cli.FormatDot:
		return v.writeDot(a.Stdout)
	case cli.FormatTable, cli.FormatWide, cli.FormatJSON, cli.FormatYAML:
		return a.Out.PrintDocument(cli.Document{Schema: "exp.graph/1", Data: v.data(), Human: func(w io.Writer) error {
			p := a.Out.NewPage(w)
			v.writeTree(p)
			return p.Close()
		}})
	}
	t := cli.Table{Schema: "exp.graph/1", Columns: []cli.Column{{Key: "from", ID: true}, {Key: "to"}, {Key: "role"}}}
	for _, e := range v.g.Edges() {
		t.Rows = append(t.Rows, []any{cli.HexID(e.From.String()), cli.HexID(e.To.String()), e.Role})
	}
	return a.Out.PrintTable(t)
}

// walk walks from the run that ref names, else the digest, else the file.
func (a *app) walk(ctx context.Context, db *store.DB, ref string, dir lineage.Direction) (*graphView, error) {
	v := &graphView{dir: dir}
	w := &lineage.Walker{DB: db}
	run, err := a.oneRun(ctx, db, ref)
	switch {
	case err == nil:
		v.run = &run
		v.g, v.start, err = w.OfRun(ctx, run.ID, dir)
	case errors.Is(err, store.ErrNotFound):
		err = v.walkDigest(ctx, w, ref)
	}
	if err != nil {
		return nil, err
	}
	v.names, err = w.RunNames(ctx, v.g)
	return v, err
}

// walkDigest walks from the digest that ref means.
func (v *graphView) walkDigest(ctx context.Context, w *lineage.Walker, ref string) error {
	d, file, err := lineage.Find(ctx, w.DB, ref)
	var several *lineage.AmbiguousError
	switch {
	case errors.As(err, &several):
		return cli.Failf(cli.ExitNotFound, "%w", several)
	case errors.Is(err, lineage.ErrFolder):
		return cli.Usagef("%s is a folder", ref).Advise("name one file in it, such as model.safetensors")
	case errors.Is(err, store.ErrNotFound):
		return cli.Failf(cli.ExitNotFound, "%q is not a run, a digest in the store, or a file", ref).
			Advise("exp ls lists runs; exp show RUN --stages shows digests")
	case err != nil:
		return err
	}
	v.g, v.blob, err = w.OfDigest(ctx, d, v.dir)
	if errors.Is(err, store.ErrNotFound) {
		what := d.Short()
		if file {
			what = ref + " (" + what + ")"
		}
		return cli.Failf(cli.ExitNotFound, "no stage of this store wrote or read %s", what)
	}
	return err
}

// data is the schema exp.graph/1.
func (v *graphView) data() any {
	out := struct {
		Run    ident.Digest      `json:"run,omitempty"`
		Digest ident.Digest      `json:"digest,omitempty"`
		Stages []*lineage.Stage  `json:"stages"`
		Blobs  []*lineage.Blob   `json:"blobs"`
		Edges  []lineage.Edge    `json:"edges"`
		Names  map[string]string `json:"run_names"` // by id
	}{Stages: v.g.StageList(), Blobs: v.g.BlobList(), Edges: v.g.Edges(), Names: map[string]string{}}
	if v.run != nil {
		out.Run = v.run.RID
	} else {
		out.Digest = v.blob.Digest
	}
	for rid, name := range v.names {
		out.Names[rid.String()] = name
	}
	return out
}

// writeTree writes the graph for people: one tree per direction, each node once.
func (v *graphView) writeTree(p *cli.Page) {
	for _, way := range []struct {
		dir   lineage.Direction
		title string
	}{{lineage.Up, "made from"}, {lineage.Down, "used for"}} {
		if v.dir&way.dir == 0 {
			continue
		}
		t := treeWriter{v: v, p: p, dir: way.dir, seen: map[ident.Digest]bool{}}
		switch {
		case v.run != nil:
			p.Heading(fmt.Sprintf("run %s#%d (%s), %s", v.run.Name, v.run.Seed, v.run.RID.Short(), way.title))
			for _, s := range v.start {
				if way.dir == lineage.Up || s.IsOf(v.run.RID) {
					t.stage(s, 1)
				}
			}
		default:
			p.Heading(fmt.Sprintf("%s %s, %s", v.blob.Role, v.blob.Digest.Short(), way.title))
			t.blobEdges(v.blob, 1)
		}
	}
}

type treeWriter struct {
	v    *graphView
	p    *cli.Page
	dir  lineage.Direction
	seen map[ident.Digest]bool
}

func (t *treeWriter) line(depth int, text string, more bool) {
	if more {
		text += " (see above)"
	}
	fmt.Fprintf(t.p, "%s%s\n", strings.Repeat("  ", depth), term.Clean(text))
}

func (t *treeWriter) stage(s *lineage.Stage, depth int) {
	text := s.Name()
	if s.Status != store.Done {
		text += " (" + string(s.Status) + ")"
	}
	var runs []string
	for _, rid := range s.Runs {
		runs = append(runs, t.v.names[rid]+" ("+rid.Short()+")")
	}
	text += " of " + usedByText(runs)
	for _, f := range []cli.Fact{{Name: "code", Text: s.Code.Short()}, {Name: "seed", Text: s.Seed}} {
		if f.Text != "" {
			text += "  " + f.Name + " " + f.Text
		}
	}
	again := t.seen[s.SID]
	t.line(depth, text, again)
	if again {
		return
	}
	t.seen[s.SID] = true
	list := s.Inputs
	if t.dir == lineage.Down {
		list = s.Outputs
	}
	for _, io := range list {
		b := t.v.g.Blobs[io.Digest]
		if b == nil {
			continue
		}
		text := io.Role + " " + io.Digest.Short()
		if b.Size > 0 {
			text += "  " + quantity.Bytes(b.Size)
		}
		if t.dir == lineage.Up && b.Unknown {
			text += "  (unknown origin)"
		}
		edges := b.ReadBy
		if t.dir == lineage.Up {
			edges = b.MadeBy
		}
		again := t.seen[io.Digest] && len(edges) > 0
		t.line(depth+1, text, again)
		if !again {
			t.blobEdges(b, depth+2)
		}
	}
}

// blobEdges writes the stages on the far side of a digest.
func (t *treeWriter) blobEdges(b *lineage.Blob, depth int) {
	t.seen[b.Digest] = true
	list := b.MadeBy
	if t.dir == lineage.Down {
		list = b.ReadBy
	}
	for _, sid := range list {
		if s := t.v.g.Stages[sid]; s != nil {
			t.stage(s, depth)
		}
	}
	if depth == 1 && len(list) == 0 {
		text := "nothing"
		if t.dir == lineage.Up {
			text = "nothing: its origin is unknown"
		}
		t.line(depth, text, false)
	}
}

// writeDot writes the graph for Graphviz.
func (v *graphView) writeDot(w io.Writer) error {
	var b strings.Builder
	b.WriteString("digraph lineage {\n  rankdir=LR;\n  node [fontname=\"sans-serif\"];\n")
	for _, s := range v.g.StageList() {
		var runs []string
		for _, rid := range s.Runs {
			runs = append(runs, v.names[rid])
		}
		fmt.Fprintf(&b, "  %s [shape=box, label=%s];\n", dotText(s.SID.String()),
			dotText(s.Name()+"\n"+usedByText(runs)))
	}
	for _, x := range v.g.BlobList() {
		label := x.Role + "\n" + x.Digest.Short()
		if x.Unknown {
			label += "\nunknown origin"
		}
		fmt.Fprintf(&b, "  %s [shape=ellipse, label=%s];\n", dotText(x.Digest.String()), dotText(label))
	}
	for _, e := range v.g.Edges() {
		fmt.Fprintf(&b, "  %s -> %s;\n", dotText(e.From.String()), dotText(e.To.String()))
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// dotText quotes a text for DOT.
func dotText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(term.CleanLines(text)) + `"`
}
