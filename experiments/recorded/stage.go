package recorded

import (
	"slices"
	"time"

	"exp/experiments/ident"
	"exp/experiments/keep"
	"exp/experiments/store"
)

// Stage is one execution, or reuse, of a unit of work in the run.
type Stage struct {
	Kind    string       `json:"kind"`
	Label   string       `json:"label"`
	Status  store.Status `json:"status"`
	From    ident.Digest `json:"from,omitempty"` // for a cached stage, the run that produced the result
	SID     ident.Digest `json:"sid"`
	Code    ident.Digest `json:"code"`
	Started time.Time    `json:"started"`
	WallS   float64      `json:"wall_s"`
	CPUS    float64      `json:"cpu_s"`
	PeakMem int64        `json:"peak_mem"` // bytes
	Inputs  []store.IO   `json:"inputs"`
	Outputs []store.IO   `json:"outputs"`
	Result  any          `json:"result"`
	Error   string       `json:"error,omitempty"`
}

// Name returns store.StageName.
func (s *Stage) Name() string { return store.StageName(s.Kind, s.Label) }

// Damage is a stored result that is missing or has the wrong size.
type Damage struct {
	Stage, Role string // of an output; empty for other blobs
	Digest      ident.Digest
}

// String describes the damage.
func (d Damage) String() string {
	if d.Stage == "" {
		return "blob " + d.Digest.Short() + " is missing or has the wrong size"
	}
	return d.Stage + ": output " + d.Role + " (" + d.Digest.Short() + ") is missing or has the wrong size"
}

// MarshalText returns String.
func (d Damage) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// stages reads the stages and finds their damaged outputs.
func (r reader) stages() error {
	list, err := r.db.Stages(r.ctx, r.row.ID)
	if err != nil {
		return err
	}
	if s, _, ok := SelectionOf(list); ok {
		r.run.Selection = &s
	}
	if b, ok := BestOf(list); ok {
		r.run.Best = &b
	}
	r.run.Stages = []Stage{}
	for _, st := range list {
		shown := Stage{
			Kind: st.Kind, Label: st.Label, Status: r.statusNow(st.Status), From: st.ReusedRun, SID: st.SID,
			Code:    st.Code,
			Started: st.Started, WallS: st.WallS, CPUS: st.CPUS, PeakMem: st.PeakMem,
			Inputs: append([]store.IO{}, st.Inputs...), Outputs: append([]store.IO{}, st.Outputs...),
			Result: Decode(st.Result), Error: st.Error,
		}
		if st.WallS == 0 && st.Ended.After(st.Started) { // stopped
			shown.WallS = st.Ended.Sub(st.Started).Seconds()
		}
		for _, o := range st.Outputs {
			if o.Size > 0 && !r.db.Blobs.Has(o.Digest, o.Size) { // without a size, the blob was left out of a bundle
				r.run.Damage = append(r.run.Damage, Damage{st.Name(), o.Role, o.Digest})
			}
		}
		r.run.Stages = append(r.run.Stages, shown)
	}
	return nil
}

// damage adds missing blobs that the run needs apart from its stages' outputs: texts of its
// samples, artifacts, inputs made by other runs.
func (r reader) damage() error {
	lost, err := keep.Lost(r.ctx, r.db, r.row)
	for _, digest := range lost {
		if !slices.ContainsFunc(r.run.Damage, func(d Damage) bool { return d.Digest == digest }) {
			r.run.Damage = append(r.run.Damage, Damage{Digest: digest})
		}
	}
	return err
}
