package lineage

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"exp/experiments/ident"
)

// Edge leads from a stage to a digest it wrote, or from a digest to a stage that read it.
type Edge struct {
	From ident.Digest `json:"from"`
	To   ident.Digest `json:"to"`
	Role string       `json:"role"`
}

// StageList returns the stages sorted by sid (stage id).
func (g *Graph) StageList() []*Stage {
	return slices.SortedFunc(maps.Values(g.Stages), func(a, b *Stage) int { return bytes.Compare(a.SID[:], b.SID[:]) })
}

// BlobList returns the blobs sorted by digest.
func (g *Graph) BlobList() []*Blob {
	return slices.SortedFunc(maps.Values(g.Blobs), func(a, b *Blob) int {
		return bytes.Compare(a.Digest[:],
			b.Digest[:])
	})
}

// Edges returns the edges between the graph's stages and blobs, stage by stage.
func (g *Graph) Edges() (list []Edge) {
	for _, s := range g.StageList() {
		for _, io := range s.Inputs {
			if g.Blobs[io.Digest] != nil {
				list = append(list, Edge{io.Digest, s.SID, io.Role})
			}
		}
		for _, io := range s.Outputs {
			if g.Blobs[io.Digest] != nil {
				list = append(list, Edge{s.SID, io.Digest, io.Role})
			}
		}
	}
	return list
}

// RunNames returns the names of the runs that executed or reused a stage of the graph,
// by id: "smoke#0".
func (w *Walker) RunNames(ctx context.Context, g *Graph) (map[ident.Digest]string, error) {
	names := map[ident.Digest]string{}
	for _, s := range g.Stages {
		for _, rid := range s.Runs {
			if names[rid] != "" {
				continue
			}
			r, err := w.DB.Run(ctx, rid)
			if err != nil {
				return nil, err
			}
			names[rid] = fmt.Sprintf("%s#%d", r.Name, r.Seed)
		}
	}
	return names, nil
}
