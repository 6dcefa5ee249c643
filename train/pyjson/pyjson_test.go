package pyjson

import "testing"

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 1}`:                                    `{"a": 1}`,
		`{"a": [0.0, Infinity, -Infinity]}`:           `{"a": [0.0, 1e999, -1e999]}`,
		`{"Infinity": "Infinity", "b\\\"": Infinity}`: `{"Infinity": "Infinity", "b\\\"": 1e999}`,
	} {
		if got := string(Plain([]byte(text))); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}
