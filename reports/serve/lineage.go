package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"exp/experiments/ident"
	"exp/experiments/lineage"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/reports"
)

// lineageBody is the data of lineage.tmpl.
type lineageBody struct {
	Name   string
	Sel    string
	Nodes  []node
	Edges  []edge
	Width  int
	Height int
	Rows   []lineageRow
	Note   string
}

// node is a stage or a digest in the picture.
type node struct {
	Class, Title, Sub, About, Link string
	X, Y, W, H                     int
	TextX, TextY, SubY             int
}

// edge is a line from the right side of a node to the left side of another.
type edge struct{ D string }

// lineageRow is a stage in the table, which says the same as the picture.
type lineageRow struct {
	Stage, Link string
	Runs        string
	In, Out     []string
}

// Sizes in the picture, in pixels.
const (
	nodeWidth, nodeHeight = 156, 40
	gapX, gapY            = 34, 12
	// mostNodes is how large a picture is drawn; beyond, the table says it better.
	mostNodes = 400
)

// lineagePage shows what a run was made from and what it was used for; a digest in place
// of a run works too.
func (s *Server) lineagePage(ctx context.Context, r *http.Request) (page, error) {
	ref := r.PathValue("run")
	w := &lineage.Walker{DB: s.db}
	const both = lineage.Up | lineage.Down
	var g *lineage.Graph
	var here []*lineage.Stage
	body, command := lineageBody{Name: ref, Sel: ref}, "exp graph "+quoted(ref)
	run, err := s.oneRun(ctx, ref)
	switch {
	case err == nil:
		body.Name, body.Sel = fmt.Sprintf("%s#%d", run.Name, run.Seed), run.RID.String()[:selDigits]
		command = "exp graph " + run.RID.Short()
		g, here, err = w.OfRun(ctx, run.ID, both)
	case errors.Is(err, store.ErrNotFound):
		g, err = s.digestGraph(ctx, w, ref, err)
	}
	if err != nil {
		return page{}, err
	}
	names, err := w.RunNames(ctx, g)
	if err != nil {
		return page{}, err
	}
	body.draw(g, here, names)
	return page{Title: "Lineage of " + body.Name, Section: "runs", Use: "lineage", Body: body,
		Command: command}, nil
}

// digestGraph walks from the digest in the store that ref begins. Unlike exp graph it
// reads no file that ref may name.
func (s *Server) digestGraph(
	ctx context.Context, w *lineage.Walker, ref string, none error,
) (*lineage.Graph, error) {
	if len(ref) < 4 || len(ref) > 64 || strings.Trim(ref, "0123456789abcdef") != "" {
		return nil, none
	}
	list, err := s.db.DigestsWith(ctx, ref, 2)
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, none
	case len(list) > 1:
		return nil, &lineage.AmbiguousError{Ref: ref, Digests: list}
	}
	g, _, err := w.OfDigest(ctx, list[0], lineage.Up|lineage.Down)
	return g, err
}

// draw lays the graph out in columns: each node right of all that it was made from.
func (b *lineageBody) draw(g *lineage.Graph, here []*lineage.Stage, names map[ident.Digest]string) {
	own := map[ident.Digest]bool{}
	for _, s := range here {
		own[s.SID] = true
	}
	for _, s := range g.StageList() {
		b.Rows = append(b.Rows, rowOfStage(s, g, names))
	}
	slices.SortStableFunc(b.Rows, func(x, y lineageRow) int { return strings.Compare(x.Stage, y.Stage) })
	if n := len(g.Stages) + len(g.Blobs); n > mostNodes {
		b.Note = fmt.Sprintf("%d nodes are too many for a picture.", n)
		return
	}
	edges := g.Edges()
	columns := layers(g, edges)
	at := map[ident.Digest]*node{}
	tallest := 0
	for x, column := range columns {
		for y, d := range column {
			n := nodeOf(d, g, own, names)
			n.X, n.Y = x*(nodeWidth+gapX)+4, y*(nodeHeight+gapY)+4
			n.TextX, n.TextY, n.SubY = n.X+10, n.Y+17, n.Y+32
			at[d] = &n
		}
		tallest = max(tallest, len(column))
	}
	b.Width = len(columns)*(nodeWidth+gapX) - gapX + 8
	b.Height = tallest*(nodeHeight+gapY) - gapY + 8
	for _, e := range edges {
		from, to := at[e.From], at[e.To]
		x1, y1, x2, y2 := from.X+from.W, from.Y+from.H/2, to.X, to.Y+to.H/2
		middle := (x1 + x2) / 2
		b.Edges = append(b.Edges,
			edge{fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, middle, y1, middle, y2, x2, y2)})
	}
	for _, column := range columns {
		for _, d := range column {
			b.Nodes = append(b.Nodes, *at[d])
		}
	}
}

func rowOfStage(s *lineage.Stage, g *lineage.Graph, names map[ident.Digest]string) lineageRow {
	row := lineageRow{Stage: s.Name(), Runs: runNames(s, names)}
	if len(s.Runs) > 0 {
		row.Link = "/run/" + s.Runs[0].String()[:selDigits]
	}
	for _, io := range s.Inputs {
		text := io.Role + " " + io.Digest.Short()
		if b := g.Blobs[io.Digest]; b != nil && b.Unknown {
			text += " (from outside)"
		}
		row.In = append(row.In, text)
	}
	for _, io := range s.Outputs {
		text := io.Role + " " + io.Digest.Short()
		if io.Size > 0 {
			text += ", " + quantity.Bytes(io.Size)
		}
		row.Out = append(row.Out, text)
	}
	return row
}

// runNames names up to two runs of a stage and counts the others.
func runNames(s *lineage.Stage, names map[ident.Digest]string) string {
	const most = 2
	var list []string
	for _, rid := range s.Runs[:min(len(s.Runs), most)] {
		list = append(list, names[rid])
	}
	text := strings.Join(list, ", ")
	if more := len(s.Runs) - most; more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return text
}

func nodeOf(d ident.Digest, g *lineage.Graph, own map[ident.Digest]bool, names map[ident.Digest]string) node {
	n := node{W: nodeWidth, H: nodeHeight}
	if s := g.Stages[d]; s != nil {
		n.Class, n.Title, n.Sub = "stage", s.Name(), reports.CutMiddle(runNames(s, names), 22)
		n.About = fmt.Sprintf("%s of %s, stage %s, %s", s.Name(), runNames(s, names), s.SID.Short(), s.Status)
		if own[d] {
			n.Class += " own"
		}
		if len(s.Runs) > 0 {
			n.Link = "/run/" + s.Runs[0].String()[:selDigits]
		}
		return n
	}
	b := g.Blobs[d]
	n.Class, n.Title, n.Sub = "blob", reports.CutMiddle(b.Role, 20), b.Digest.Short()
	if b.Size > 0 {
		n.Sub += ", " + quantity.Bytes(b.Size)
	}
	n.About = b.Role + " " + b.Digest.String()
	if b.Unknown {
		n.Class += " outside"
		n.About += ", from outside the store"
	}
	n.Link = "/run/" + b.Digest.String()[:16] + "/lineage"
	return n
}

// layers puts each node one column after the last of its sources, and orders a column by
// the positions of its nodes' sources.
func layers(g *lineage.Graph, edges []lineage.Edge) [][]ident.Digest {
	into := map[ident.Digest][]ident.Digest{}
	for _, e := range edges {
		into[e.To] = append(into[e.To], e.From)
	}
	depth := map[ident.Digest]int{}
	var deep func(d ident.Digest, seen int) int
	deep = func(d ident.Digest, seen int) int {
		if n, ok := depth[d]; ok || seen > mostNodes { // a graph has no circles, but a damaged one may
			return n
		}
		n := 0
		for _, from := range into[d] {
			n = max(n, 1+deep(from, seen+1))
		}
		depth[d] = n
		return n
	}
	var all []ident.Digest
	for _, s := range g.StageList() {
		all = append(all, s.SID)
	}
	for _, b := range g.BlobList() {
		all = append(all, b.Digest)
	}
	var columns [][]ident.Digest
	for _, d := range all {
		n := deep(d, 0)
		for len(columns) <= n {
			columns = append(columns, nil)
		}
		columns[n] = append(columns[n], d)
	}
	row := map[ident.Digest]float64{}
	for _, column := range columns {
		middle := map[ident.Digest]float64{}
		for _, d := range column {
			for _, from := range into[d] {
				middle[d] += row[from] / float64(len(into[d]))
			}
		}
		slices.SortStableFunc(column, func(a, b ident.Digest) int { return cmp.Compare(middle[a], middle[b]) })
		for y, d := range column {
			row[d] = float64(y)
		}
	}
	return columns
}
