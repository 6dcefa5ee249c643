package chat

import (
	"encoding/json"
	"os"
	"testing"
)

// testdata/features.jsonl holds small templates of our own, one feature each, with
// what Jinja2 3.1.6 makes of them in the environment that transformers sets up:
// text, or the class of the exception. All see testdata/features.vars.json.
func TestGoldenFeatures(t *testing.T) {
	data, err := os.ReadFile("testdata/features.vars.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vars json.RawMessage }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	n := 0
	eachLine(t, "testdata/features.jsonl", func(c featureCase) {
		n++
		c.check(t, variables(t, file.Vars))
	})
	if n < 1450 {
		t.Errorf("%d cases, want at least 1450", n)
	}
}
