package grade

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// hardCase is a line of testdata/hardcases.txt.
type hardCase struct {
	line             int
	kind             string
	gold, prediction string
	right            bool
}

func readHardCases(t testing.TB) []hardCase {
	t.Helper()
	data, err := os.ReadFile("testdata/hardcases.txt")
	if err != nil {
		t.Fatal(err)
	}
	var list []hardCase
	kind := ""
	for i, line := range strings.Split(string(data), "\n") {
		c := hardCase{line: i + 1, kind: kind}
		var ok bool
		switch {
		case strings.HasPrefix(line, "## "):
			kind = line[3:]
			continue
		case line == "" || strings.HasPrefix(line, "# "):
			continue
		case strings.Contains(line, " ~~ "):
			c.gold, c.prediction, ok = strings.Cut(line, " ~~ ")
			c.right = ok
		default:
			c.gold, c.prediction, ok = strings.Cut(line, " !~ ")
		}
		if !ok || kind == "" {
			t.Fatalf("hardcases.txt:%d: %q", i+1, line)
		}
		list = append(list, c)
	}
	return list
}

// TestHardCases: every pair gets its label, alone and at the end of a response.
func TestHardCases(t *testing.T) {
	kinds := map[string][2]int{}
	for _, c := range readHardCases(t) {
		n := kinds[c.kind]
		n[1]++
		if v := Answer(c.gold, c.prediction); v.Correct != c.right {
			t.Errorf("hardcases.txt:%d (%s): gold %q, answer %q: want %v, got %+v", c.line, c.kind, c.gold,
				c.prediction, c.right, v)
		} else {
			n[0]++
		}
		kinds[c.kind] = n
	}
	for kind, n := range kinds {
		t.Logf("%s: %d of %d", kind, n[0], n[1])
	}
}

// TestHardResponses: whole outputs whose answer is easy to take from the wrong place, labelled like the
// pairs.
func TestHardResponses(t *testing.T) {
	f, err := os.Open("testdata/hardresponses.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for d := json.NewDecoder(f); d.More(); {
		var c struct {
			Gold, Response string
			Expected       bool
		}
		if err := d.Decode(&c); err != nil {
			t.Fatal(err)
		}
		if v := Response(c.Gold, c.Response); v.Correct != c.Expected {
			t.Errorf("gold %q, response %q: want %v, got %+v", c.Gold, c.Response, c.Expected, v)
		}
	}
}
