package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/eval/layout"
	"exp/eval/rows"
)

// The rows that exp config explain data.train.source shows are read as it says.
func TestExplainedRows(t *testing.T) {
	about, _ := Describe("data.train.source")
	about, _, _ = strings.Cut(about, "The problem is in")
	n, text := 0, ""
	for line := range strings.SplitSeq(about, "\n") {
		if text += strings.TrimSpace(line); !strings.HasPrefix(text, "{") {
			text = ""
		}
		if !json.Valid([]byte(text)) || text == "" {
			continue
		}
		file := filepath.Join(t.TempDir(), "row.jsonl")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		list, err := rows.All(file)
		if err != nil {
			t.Fatal(err)
		}
		r := list[0]
		l, err := layout.Detect(r)
		if err != nil {
			t.Fatal(err)
		}
		p, err := l.Parse(r)
		if err != nil || p.Prompt != "6*7?" || p.Answer != "42" {
			t.Errorf("%s: %+v, %v", text, p, err)
		}
		if strings.Contains(text, "target") && p.Target != `6*7 = \boxed{42}` {
			t.Errorf("%s: target %q", text, p.Target)
		}
		n, text = n+1, ""
	}
	if n != 4 {
		t.Errorf("%d rows", n)
	}
}
