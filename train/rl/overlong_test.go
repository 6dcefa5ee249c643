package rl

import (
	"encoding/json"
	"testing"
)

func TestOverlong(t *testing.T) {
	o := Overlong{MaxResponse: 20, Buffer: 4, Penalty: 0.5}
	tests := []struct {
		name   string
		o      Overlong
		tokens int
		want   float64
	}{
		{"empty", o, 0, 0},
		{"at the buffer", o, 16, 0},
		{"one over", o, 17, -0.125},
		{"at the limit", o, 20, -0.5},
		{"over the limit", o, 24, -1},
		{"off", Overlong{}, 100, 0},
		{"no buffer", Overlong{MaxResponse: 20, Penalty: 1}, 20, 0},
		{"all buffer", Overlong{MaxResponse: 8, Buffer: 8, Penalty: 1}, 1, -0.125},
	}
	for _, tt := range tests {
		if got := tt.o.Reward(tt.tokens); got != tt.want {
			t.Errorf("%s: %g, want %g", tt.name, got, tt.want)
		}
	}
}

// goldenOverlong rewrites the rows that a case records as lists of numbers:
// reward, punishment and whether there is one.
func goldenOverlong(c *goldenCase) goldenResult {
	var in []struct {
		Tokens int             `json:"valid_response_length"`
		Base   json.RawMessage // a score, or an object with one
	}
	var recorded []struct {
		Reward float64
		Extra  struct {
			Reward   *float64 `json:"overlong_reward"`
			Overlong *bool
		}
	}
	c.decode("rows", c.Inputs["rows"], &in)
	c.decode("rows", c.Outputs["rows"], &recorded)
	var o Overlong
	if c.flag("enable") {
		o = Overlong{MaxResponse: int(c.param("max_resp_len", 0)), Buffer: int(c.param("len", 0)), Penalty: c.param("penalty_factor", 0)}
	}
	var got, want []float64
	for i, row := range in {
		var base struct{ Score float64 }
		if json.Unmarshal(row.Base, &base.Score) != nil {
			c.decode("base", row.Base, &base)
		}
		punishment := o.Reward(row.Tokens)
		got, want = append(got, base.Score+punishment), append(want, recorded[i].Reward)
		if extra := recorded[i].Extra; c.flag("log") {
			got, want = append(got, punishment), append(want, *extra.Reward)
			got, want = append(got, oneIf(punishment < 0)), append(want, oneIf(*extra.Overlong))
		}
	}
	c.Outputs["rows"], _ = json.Marshal(want)
	return goldenResult{outputs: map[string][]float64{"rows": got}}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
