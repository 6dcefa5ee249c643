package term

import (
	"encoding/json"
	"io"
	"math"
	"sync"
	"time"

	"exp/experiments/quantity"
)

// jsonLines shows progress as one JSON object per line, for programs: every event and
// every step. Times are RFC 3339 UTC with
// milliseconds, durations are seconds, NaN and infinities are strings.
type jsonLines struct {
	mu     sync.Mutex
	w      io.Writer
	clock  Clock
	closed bool
	run    string
	stage  *Stage // nil between stages
}

// newJSONLines returns a JSON display on w.
func newJSONLines(w io.Writer, c Clock) *jsonLines {
	return &jsonLines{w: w, clock: c}
}

// record is the union of all lines; "event" tells them apart.
type record struct {
	Time    string   `json:"t"`
	Event   string   `json:"event"`
	Run     string   `json:"run,omitempty"`
	Stage   string   `json:"stage,omitempty"`
	Label   string   `json:"label,omitempty"`
	Seed    *int64   `json:"seed,omitempty"`
	Index   int      `json:"index,omitempty"`
	Runs    int      `json:"runs,omitempty"`
	Status  Status   `json:"status,omitempty"`
	Source  string   `json:"from_run,omitempty"`
	Step    *int     `json:"step,omitempty"`
	Of      int      `json:"of,omitempty"`
	Unit    string   `json:"unit,omitempty"`
	Metrics metrics  `json:"metrics,omitempty"`
	Facts   facts    `json:"facts,omitempty"`
	WallS   *float64 `json:"wall_s,omitempty"`
	Text    string   `json:"text,omitempty"`
}

// RunStart writes a run_start line.
func (j *jsonLines) RunStart(r Run) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.run = r.ID
	j.print(record{Event: "run_start", Seed: &r.Seed, Index: r.Index, Runs: r.Of})
}

// StageStart writes a stage_start line; step is where it starts from.
func (j *jsonLines) StageStart(st Stage) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stage = &st
	j.print(record{Event: "stage_start", Step: &st.From, Of: st.Total, Unit: st.unit()})
}

// StageProgress writes a step line.
func (j *jsonLines) StageProgress(st Step) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := record{Event: "step", Step: &st.Step, Metrics: headline(st.Metrics)}
	if j.stage != nil {
		j.stage.learn(st)
		r.Of = j.stage.Total
	}
	j.print(r)
}

// StagePhase writes nothing: a line is a finished step.
func (j *jsonLines) StagePhase(Phase) {}

// StageDone writes a stage_end line.
func (j *jsonLines) StageDone(res Result) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.print(record{Event: "stage_end", Status: res.Status, Source: res.From, Facts: res.Facts,
		WallS: seconds(res.Wall)})
	j.stage = nil
}

// StageCached writes a stage_end line.
func (j *jsonLines) StageCached(st Stage, from string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stage = &st
	j.print(record{Event: "stage_end", Status: Cached, Source: from, WallS: seconds(0)})
	j.stage = nil
}

// RunDone writes a run_end line.
func (j *jsonLines) RunDone(o Outcome) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stage = nil
	j.print(record{Event: "run_end", Status: o.Status, Facts: o.Facts, WallS: seconds(o.Wall)})
	j.run = ""
}

// Note writes a note line.
func (j *jsonLines) Note(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.print(record{Event: "note", Text: text})
}

// Warn writes a warning line.
func (j *jsonLines) Warn(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.print(record{Event: "warning", Text: text})
}

// Close ends the output.
func (j *jsonLines) Close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
}

func (j *jsonLines) print(r record) {
	if j.closed {
		return
	}
	r.Time = j.clock.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00")
	r.Run = j.run
	if j.stage != nil {
		r.Stage, r.Label = j.stage.Kind, j.stage.Label
	}
	enc := json.NewEncoder(j.w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(r) // the reader may be gone; the run continues
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}

// metrics is an object whose keys keep the algorithm's order of headline metrics.
type metrics []Metric

// MarshalJSON writes {"reward":0.62,"entropy":"NaN"}.
func (m metrics) MarshalJSON() ([]byte, error) {
	return object(len(m), func(i int) (string, any) {
		if v := m[i].Value; math.IsNaN(v) || math.IsInf(v, 0) {
			return m[i].Name, quantity.Fixed(v, 0)
		}
		return m[i].Name, m[i].Value
	})
}

// facts is an object of texts.
type facts []Fact

// MarshalJSON writes {"steps":"100","chain":"0f9e44aa"}.
func (f facts) MarshalJSON() ([]byte, error) {
	return object(len(f), func(i int) (string, any) { return f[i].Name, f[i].Text })
}

// object encodes n members in order.
func object(n int, member func(i int) (string, any)) ([]byte, error) {
	out := []byte{'{'}
	for i := range n {
		name, value := member(i)
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, key...), ':'), text...)
	}
	return append(out, '}'), nil
}
