package lineage

import (
	"context"
	"slices"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// Trace is an input or output of a run's stage, with the stage that made it and the other
// runs that read it.
type Trace struct {
	Stage  string       `json:"stage"` // as store.StageName
	Way    Way          `json:"dir"`
	Role   string       `json:"role"`
	Digest ident.Digest `json:"digest"`
	MadeBy Maker        `json:"made_by"`
	UsedBy []ShortID    `json:"used_by"`
}

// Way tells inputs from outputs.
type Way string

const (
	In  Way = "in"
	Out Way = "out"
)

// Maker is a stage's kind and run. The zero Maker is outside the store.
type Maker struct {
	Kind string
	Run  ident.Digest
}

// String returns "sft of 68a0d6ca", or "" for the zero Maker.
func (m Maker) String() string {
	if m == (Maker{}) {
		return ""
	}
	return m.Kind + " of " + m.Run.Short()
}

// MarshalText returns String.
func (m Maker) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// ShortID is a run id with the short form as its text.
type ShortID ident.Digest

// String returns the first 8 digits of the id.
func (s ShortID) String() string { return ident.Digest(s).Short() }

// MarshalText returns String.
func (s ShortID) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Traces returns the inputs and outputs of each stage of a run, in stage order.
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

// trace finds the first maker of a digest and the runs other than run that read it.
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
