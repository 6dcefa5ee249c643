package lineage

import (
	"context"
	"slices"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// Trace is something that a stage of a run read or wrote, with the stage that made it
// and the other runs that read it.
type Trace struct {
	Stage  string       `json:"stage"` // as store.StageName
	Way    Way          `json:"dir"`
	Role   string       `json:"role"`
	Digest ident.Digest `json:"digest"`
	MadeBy Maker        `json:"made_by"`
	UsedBy []ShortID    `json:"used_by"`
}

// Way is whether a stage read or wrote something.
type Way string

const (
	In  Way = "in"
	Out Way = "out"
)

// Maker is a kind of stage of a run. The zero Maker is someone outside the store.
type Maker struct {
	Kind string
	Run  ident.Digest
}

// String is "sft of 68a0d6ca", or empty for the zero Maker.
func (m Maker) String() string {
	if m == (Maker{}) {
		return ""
	}
	return m.Kind + " of " + m.Run.Short()
}

// MarshalText implements encoding.TextMarshaler, as String.
func (m Maker) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// ShortID is a run's id whose text is the short form.
type ShortID ident.Digest

// String is the first 8 digits of the id.
func (s ShortID) String() string { return ident.Digest(s).Short() }

// MarshalText implements encoding.TextMarshaler, as String.
func (s ShortID) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Traces returns what each stage of a run read and wrote, in the order of the stages.
func (w *Walker) Traces(ctx context.Context, run int64) ([]Trace, error) {
	stages, err := w.DB.Stages(ctx, run)
	if err != nil {
		return nil, err
	}
	list := []Trace{}
	for i := range stages {
		st := &stages[i]
		for _, side := range []struct {
			way Way
			ios []store.IO
		}{{In, st.Inputs}, {Out, st.Outputs}} {
			for _, io := range side.ios {
				t := Trace{Stage: st.Name(), Way: side.way, Role: io.Role, Digest: io.Digest, UsedBy: []ShortID{}}
				if err := w.trace(ctx, run, &t); err != nil {
					return nil, err
				}
				list = append(list, t)
			}
		}
	}
	return list, nil
}

// trace finds who made a digest first and which runs other than run read it.
func (w *Walker) trace(ctx context.Context, run int64, t *Trace) error {
	uses, err := w.DB.Edges(ctx, t.Digest)
	if err != nil {
		return err
	}
	for _, u := range uses {
		rid, err := w.rid(ctx, u.Run)
		if err != nil {
			return err
		}
		switch {
		case u.Out && t.MadeBy == (Maker{}):
			t.MadeBy = Maker{u.Kind, rid}
		case !u.Out && u.Run != run && !slices.Contains(t.UsedBy, ShortID(rid)):
			t.UsedBy = append(t.UsedBy, ShortID(rid))
		}
	}
	return nil
}
