package run

import (
	"encoding/json"

	"exp/harness/config"
	"exp/harness/forecast"
	"exp/kernels"
	"exp/kernels/heap"
	"exp/train/checkpoint"
)

// forecast returns what forecasts this run's needs.
func (x *execution) forecast() forecast.Run {
	r := forecast.Run{Config: x.p.Config, Vocab: x.p.External.Prompter.Tokenizer.VocabSize()}
	if x.Ranks != nil {
		r.Ranks = x.Ranks.Size()
	}
	return r
}

// forget gives back the memory that earlier stages left, and forgets the device's peak. Stages that need little do
// with the memory as it is. A stage that ranks share, which needs most, also gets the pages of the program's file that
// only the start needed.
func forget(be kernels.Backend, kind config.Stage) {
	takePeak(be)
	if kind == config.Prepare || kind == config.Select || kind == config.EvalScore {
		return
	}
	if kind.Facts().Shared() {
		checkpoint.DropProgramPages()
	}
	heap.Release()
	heap.Trim()
}

// takePeak returns the peak of bytes allocated on a device since the last call; 0 if
// the backend does not count.
func takePeak(be kernels.Backend) int64 {
	if b, ok := be.(interface{ TakePeak() int64 }); ok {
		return b.TakePeak()
	}
	return 0
}

// memoryUse is recorded under "memory" in the result of a stage that ranks share.
type memoryUse struct {
	Peak    int64 `json:"peak_bytes"`    // on the device, measured
	Planned int64 `json:"planned_bytes"` // as planned
}

// withMemory adds a stage's device memory to its summary, a JSON object.
func (x *execution) withMemory(kind config.Stage, summary json.RawMessage, peak int64) (json.RawMessage, error) {
	if peak == 0 || !kind.Facts().Shared() {
		return summary, nil
	}
	e, err := x.forecast().Estimate()
	if err != nil {
		return nil, err
	}
	e.Show(&x.p.Config.Run, x.p.External.Prompter.Plan())
	var fields map[string]any
	if err := json.Unmarshal(summary, &fields); err != nil {
		return nil, err
	}
	fields["memory"] = memoryUse{Peak: peak, Planned: e.Planned(kind)}
	return json.Marshal(fields)
}
