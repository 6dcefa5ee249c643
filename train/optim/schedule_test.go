package optim

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMultiplier(t *testing.T) {
	half := Schedule{Kind: Cosine, Warmup: 2, Total: 10, Cycles: 0.5}
	floor := half
	floor.MinRatio = 0.2
	started := half
	started.InitRatio = 0.4
	one := half
	one.OneIndexed = true
	wsd := Schedule{Kind: WSD, Warmup: 2, Total: 12, Cycles: 0.5, Stable: 0.6, MinRatio: 0.1}
	linear := Schedule{Kind: Linear, Warmup: 2, Total: 10, MinRatio: 0.2}
	tests := []struct {
		name string
		s    Schedule
		k    int
		want float64
	}{
		{"constant starts at once", Schedule{Kind: Constant}, 0, 1},
		{"warm-up starts at 0", Schedule{Kind: Constant, Warmup: 4}, 0, 0},
		{"warm-up is linear", Schedule{Kind: Constant, Warmup: 4}, 3, 0.75},
		{"warm-up ends", Schedule{Kind: Constant, Warmup: 4}, 4, 1},
		{"cosine top", half, 2, 1},
		{"cosine quarter", half, 4, 0.5 + math.Sqrt2/4},             // p = 2/8, ½cos(π/4)+½
		{"cosine middle", half, 6, 0.5},                             // p = 4/8, cos(π/2) = 0
		{"cosine bottom", half, 10, 0},                              // p = 1, ½cos(π)+½
		{"cosine floor", floor, 6, 0.6},                             // 0.8·½·0 + ½·1.2
		{"cosine beyond the end rises", half, 18, 1},                // p = 2, cos(2π) = 1
		{"warm-up from a ratio", started, 1, 0.7},                   // 0.4 + 0.6·½
		{"one-indexed warm-up", one, 0, 0.5},                        // step 1 of 2
		{"one-indexed cosine", one, 3, 0.5 + math.Sqrt2/4},          // step 4
		{"wsd warm-up", wsd, 1, 0.5},                                // 1/2
		{"wsd holds", wsd, 7, 1},                                    // stable = 6: steps 2 to 7
		{"wsd decays", wsd, 9, 0.1 + 0.9*(0.5+0.25*math.Sqrt2)},     // p = 1/4
		{"wsd half-way", wsd, 10, 0.1 + 0.9*0.5},                    // p = 1/2
		{"wsd stays down", wsd, 40, 0.1},                            //
		{"linear warm-up", linear, 1, 0.5},                          // 1/2
		{"linear top", linear, 2, 1},                                // p = 0
		{"linear falls", linear, 4, 0.8},                            // p = 2/8, 0.2 + 0.8·¾
		{"linear bottom", linear, 10, 0.2},                          //
		{"linear stays down", linear, 40, 0.2},                      //
		{"no decay left", Schedule{Kind: Cosine, Cycles: .5}, 0, 1}, // p = 0/max(1,0)
	}
	for _, tt := range tests {
		if got := tt.s.Multiplier(tt.k); math.Abs(got-tt.want) > 1e-15 {
			t.Errorf("%s: Multiplier(%d) = %.17g, want %.17g", tt.name, tt.k, got, tt.want)
		}
	}
}

func TestCosTurns(t *testing.T) {
	for i := range 4096 {
		x := float64(i) / 1000
		if got, want := cosTurns(x), math.Cos(2*math.Pi*x); math.Abs(got-want) > 4e-15 {
			// want itself is off by the rounding of 2πx, up to 25·2⁻⁵³.
			t.Errorf("cosTurns(%g) = %.17g, want %.17g", x, got, want)
		}
	}
	for i, want := range []float64{1, 0, -1, 0, 1, 0, -1, 0} {
		if got := cosTurns(float64(i) / 4); got != want {
			t.Errorf("cosTurns(%d/4) = %g, want exactly %g", i, got, want)
		}
	}
	// The same bits on every machine; each within 1 ulp of the true value.
	for turns, want := range map[float64]uint64{
		0.1: 0x3fe9e3779b97f4a8, 0.2: 0x3fd3c6ef372fe94e, 0.15: 0x3fe2cf2304755a5e, 0.45: 0xbfee6f0e13445500,
	} {
		if got := math.Float64bits(cosTurns(turns)); got != want {
			t.Errorf("cosTurns(%g) has bits %#x, want %#x", turns, got, want)
		}
	}
}

func TestParseScheduleKind(t *testing.T) {
	for k := Constant; k <= WSD; k++ {
		if got, err := ParseScheduleKind(k.String()); got != k || err != nil {
			t.Errorf("ParseScheduleKind(%q) = %v, %v", k.String(), got, err)
		}
	}
	if _, err := ParseScheduleKind("square"); err == nil {
		t.Error("ParseScheduleKind accepts an unknown name")
	}
	if got := ScheduleKind(0).String(); got != "unknown" {
		t.Errorf("ScheduleKind(0).String() = %q", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("Multiplier of an unknown kind does not panic")
		}
	}()
	Schedule{}.Multiplier(0)
}

// TestGoldenLRSchedules compares the first 50 multipliers with recorded ones of
// verl's schedules and of its engine.
func TestGoldenLRSchedules(t *testing.T) {
	dir := os.Getenv("EXP_GOLDEN")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data", "golden")
	}
	data, err := os.ReadFile(filepath.Join(dir, "lr_schedules.json"))
	if err != nil {
		t.Skipf("no golden vectors: %v", err)
	}
	var file struct {
		Cases []struct {
			Name, Function string
			Params         scheduleParams
			Outputs        struct{ Multipliers []float64 }
			RTol, ATol     float64
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			s := c.Params.schedule(c.Function)
			for k, want := range c.Outputs.Multipliers {
				if got := s.Multiplier(k); !(math.Abs(got-want) <= c.ATol+c.RTol*math.Abs(want)) {
					t.Errorf("step %d: got %.17g, want %.17g", k, got, want)
				}
			}
		})
	}
	t.Logf("lr_schedules: %d of %d cases checked", len(file.Cases), len(file.Cases))
}

// scheduleParams are the options of verl's functions; nil is not set.
type scheduleParams struct {
	Warmup      *int     `json:"num_warmup_steps"`
	Total       *int     `json:"num_training_steps"`
	MinRatio    *float64 `json:"min_lr_ratio"`
	InitRatio   *float64 `json:"init_lr_ratio"`
	Cycles      *float64 `json:"num_cycles"`
	Stable      *float64 `json:"stable_ratio"`
	ZeroIndexed *bool    `json:"zero_indexed_step"`

	EngineKind   string  `json:"lr_scheduler_type"`
	EngineWarmup int     `json:"lr_warmup_steps"`
	EngineRatio  float64 `json:"lr_warmup_steps_ratio"`
	EngineTotal  int     `json:"total_training_steps"`
}

func (p scheduleParams) schedule(function string) Schedule {
	s := Schedule{
		Warmup: or(p.Warmup, 0), Total: or(p.Total, 0),
		MinRatio: or(p.MinRatio, 0), InitRatio: or(p.InitRatio, 0),
		Cycles: or(p.Cycles, 0.5), Stable: or(p.Stable, 0.9), OneIndexed: !or(p.ZeroIndexed, true),
	}
	kind, _, _ := strings.Cut(strings.TrimPrefix(function, "get_"), "_")
	if p.EngineKind != "" {
		kind = p.EngineKind
		s.Total, s.Warmup = p.EngineTotal, p.EngineWarmup
		if s.Warmup <= 0 { // the engine then takes the ratio
			s.Warmup = int(p.EngineRatio * float64(p.EngineTotal))
		}
	}
	var err error
	if s.Kind, err = ParseScheduleKind(kind); err != nil {
		panic(err)
	}
	return s
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
