// Package lineage walks from a run, a blob or any digest up to its sources and down to
// everything derived from it.
//
// Nodes are stages, by sid (stage id), and digests. Stages of several runs with one sid
// are one node: they are the same work. An input that no stage in the store wrote is
// marked as having an unknown origin.
package lineage

import (
	"context"
	"slices"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// Direction of a walk.
type Direction int

const (
	Up   Direction = 1 << iota // to the sources
	Down                       // to derived work
)

// Stage is a unit of work.
type Stage struct {
	SID      ident.Digest   `json:"sid"`
	Kind     string         `json:"kind"`
	Label    string         `json:"label"`
	Status   store.Status   `json:"status"` // of the original, or of the last execution if none is done
	Code     ident.Digest   `json:"code"`
	Seed     string         `json:"seed"`
	Numerics string         `json:"numerics"`
	Runs     []ident.Digest `json:"runs"` // that executed or reused it, oldest first

	Inputs  []store.IO `json:"-"` // in the order of roles
	Outputs []store.IO `json:"-"`
}

// Blob is a digest that a stage read or wrote.
type Blob struct {
	Digest  ident.Digest   `json:"digest"`
	Role    string         `json:"role"`    // the first one found
	Size    int64          `json:"size"`    // bytes; 0: not a blob in the store
	MadeBy  []ident.Digest `json:"made_by"` // sids; none: unknown origin
	ReadBy  []ident.Digest `json:"read_by"`
	Unknown bool           `json:"unknown_origin"`
}

// Graph is the result of a walk.
type Graph struct {
	Stages map[ident.Digest]*Stage
	Blobs  map[ident.Digest]*Blob
}

// Walker walks a store.
type Walker struct {
	DB *store.DB

	rids map[int64]ident.Digest
}

// OfRun walks up from all stages of a run, and down from the stages that it executed first:
// work that other runs derived from shared stages is not part of its lineage. It also
// returns the run's stages.
func (w *Walker) OfRun(ctx context.Context, run int64, dir Direction) (*Graph, []*Stage, error) {
	g := newGraph()
	rows, err := w.DB.Stages(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	var start []*Stage
	for _, s := range rows {
		if g.Stages[s.SID] != nil {
			continue
		}
		if err := w.stage(ctx, g, s.SID); err != nil {
			return nil, nil, err
		}
		start = append(start, g.Stages[s.SID])
	}
	rid, err := w.rid(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range start {
		way := dir
		if !s.IsOf(rid) {
			way &^= Down
		}
		if err := w.fromStage(ctx, g, s, way); err != nil {
			return nil, nil, err
		}
	}
	return g, start, nil
}

// OfDigest walks from a digest. The error wraps store.ErrNotFound if no stage read or
// wrote it.
func (w *Walker) OfDigest(ctx context.Context, d ident.Digest, dir Direction) (*Graph, *Blob, error) {
	g := newGraph()
	b, err := w.blob(ctx, g, store.IO{Digest: d})
	if err != nil {
		return nil, nil, err
	}
	if len(b.MadeBy)+len(b.ReadBy) == 0 {
		return nil, nil, store.ErrNotFound
	}
	return g, b, w.fromBlob(ctx, g, b, dir)
}

func newGraph() *Graph {
	return &Graph{Stages: map[ident.Digest]*Stage{}, Blobs: map[ident.Digest]*Blob{}}
}

func (w *Walker) fromStage(ctx context.Context, g *Graph, s *Stage, dir Direction) error {
	for _, side := range []struct {
		dir  Direction
		list []store.IO
	}{{Up, s.Inputs}, {Down, s.Outputs}} {
		if dir&side.dir == 0 {
			continue
		}
		for _, io := range side.list {
			had := g.Blobs[io.Digest] != nil
			b, err := w.blob(ctx, g, io)
			if err != nil {
				return err
			}
			if !had {
				if err := w.fromBlob(ctx, g, b, side.dir); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (w *Walker) fromBlob(ctx context.Context, g *Graph, b *Blob, dir Direction) error {
	for _, side := range []struct {
		dir  Direction
		list []ident.Digest
	}{{Up, b.MadeBy}, {Down, b.ReadBy}} {
		if dir&side.dir == 0 {
			continue
		}
		for _, sid := range side.list {
			if g.Stages[sid] != nil {
				continue
			}
			if err := w.stage(ctx, g, sid); err != nil {
				return err
			}
			if err := w.fromStage(ctx, g, g.Stages[sid], side.dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// stage adds a unit of work to g.
func (w *Walker) stage(ctx context.Context, g *Graph, sid ident.Digest) error {
	rows, err := w.DB.StagesBySID(ctx, sid)
	if err != nil {
		return err
	}
	s := &Stage{SID: sid, Runs: []ident.Digest{}}
	for _, r := range rows {
		rid, err := w.rid(ctx, r.Run)
		if err != nil {
			return err
		}
		if !slices.Contains(s.Runs, rid) {
			s.Runs = append(s.Runs, rid)
		}
		if s.Status == store.Done {
			continue
		}
		s.Kind, s.Label, s.Status, s.Code, s.Seed, s.Numerics = r.Kind, r.Label, r.Status, r.Code, r.Seed, r.Numerics
		s.Inputs, s.Outputs = r.Inputs, r.Outputs
	}
	g.Stages[sid] = s
	return nil
}

// blob returns the digest's node in g, adding it if missing.
func (w *Walker) blob(ctx context.Context, g *Graph, io store.IO) (*Blob, error) {
	if b := g.Blobs[io.Digest]; b != nil {
		b.Size = max(b.Size, io.Size)
		return b, nil
	}
	b := &Blob{Digest: io.Digest, Role: io.Role, Size: io.Size, MadeBy: []ident.Digest{}, ReadBy: []ident.Digest{}}
	edges, err := w.DB.Edges(ctx, io.Digest)
	if err != nil {
		return nil, err
	}
	for _, e := range edges {
		row, err := w.DB.StageByID(ctx, e.Stage)
		if err != nil {
			return nil, err
		}
		if b.Role == "" {
			b.Role = e.Role
		}
		list := &b.ReadBy
		if e.Out {
			list = &b.MadeBy
			for _, o := range row.Outputs {
				if o.Digest == io.Digest {
					b.Size = max(b.Size, o.Size)
				}
			}
		}
		if !slices.Contains(*list, row.SID) {
			*list = append(*list, row.SID)
		}
	}
	b.Unknown = len(b.MadeBy) == 0
	g.Blobs[io.Digest] = b
	return b, nil
}

func (w *Walker) rid(ctx context.Context, run int64) (ident.Digest, error) {
	if d, ok := w.rids[run]; ok {
		return d, nil
	}
	r, err := w.DB.RunByID(ctx, run)
	if w.rids == nil {
		w.rids = map[int64]ident.Digest{}
	}
	w.rids[run] = r.RID
	return r.RID, err
}

// IsOf reports whether the run was the first to execute the stage.
func (s *Stage) IsOf(run ident.Digest) bool { return len(s.Runs) > 0 && s.Runs[0] == run }

// Name returns the stage's kind and label.
func (s *Stage) Name() string { return store.StageName(s.Kind, s.Label) }
