package main

import "testing"

func TestScore(t *testing.T) {
	for _, tt := range []struct {
		response       string
		distance, want float64
	}{
		{"(3+4)*2", 1, 0.9 + 0.1/1.7},         // 14 is the target; 7 characters
		{"7/2", 1 / 11.5, 0.9/11.5 + 0.1/1.3}, // 3.5 is 10.5 away
		{"1/0", 0, 0.1 / 1.3},
		{"print", 0, 0.1 / 1.5},
		{"", 0, 0.1},
	} {
		a, err := score([]byte(`{"id": "5", "response": "` + tt.response + `", "extra": {"target": 14}}`))
		if d := a.Score - tt.want; err != nil || a.ID != "5" || a.Components["distance"] != tt.distance || d > 1e-15 || d < -1e-15 {
			t.Errorf("%s: got %+v, %v, want %v", tt.response, a, err, tt.want)
		}
	}
	if _, err := score([]byte("no row")); err == nil {
		t.Error("no error for a line that holds no row")
	}
}
