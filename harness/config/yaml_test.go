package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outline writes a node with the places of its parts: 1:4+2 is line 1, column 4,
// two runes.
func outline(n *node) string {
	at := func(p pos) string { return fmt.Sprintf("@%d:%d+%d", p.line, p.col, p.width) }
	switch n.kind {
	case nullNode:
		return "null"
	case badNode:
		return "bad"
	case scalarNode:
		if n.quoted {
			return fmt.Sprintf("%q%s", n.text, at(n.pos))
		}
		return n.text + at(n.pos)
	case listNode:
		var parts []string
		for _, item := range n.items {
			parts = append(parts, outline(item))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	var parts []string
	for _, f := range n.fields {
		parts = append(parts, f.name+at(f.pos)+"="+outline(f.value))
	}
	return "{" + strings.Join(parts, " ") + "}"
}

func TestPlaces(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"block", "a: 1\nbc:\n  d: xy z # remark\n", "{a@1:1+1=1@1:4+1 bc@2:1+2={d@3:3+1=xy z@3:6+4}}"},
		{"flow", "a: {b: 1, c: [2, 33]}\n", "{a@1:1+1={b@1:5+1=1@1:8+1 c@1:11+1=[2@1:15+1 33@1:18+2]}}"},
		{"list", "a:\n  - 1\n  -   22\n", "{a@1:1+1=[1@2:5+1 22@3:7+2]}"},
		{"quotes", "a: \"x\\ty\"\nb: 'it''s'\n", "{a@1:1+1=\"x\\ty\"@1:4+6 b@2:1+1=\"it's\"@2:4+7}"},
		{"null", "a:\nb: null\nc: ~\n", "{a@1:1+1=null b@2:1+1=null c@3:1+1=null}"},
		{"literal block", "a: |\n  one\n  two\nb: 3\n", "{a@1:1+1=\"one\\ntwo\\n\"@1:4+1 b@4:1+1=3@4:4+1}"},
		{"runes, not bytes", "é: {ü: 日本}\n", "{é@1:1+1={ü@1:5+1=日本@1:8+2}}"},
		{"words that YAML 1.1 reads otherwise", "a: yes\nb: 1e-6\nc: 0x10\nd: 1:30\ne: 2001-01-01\n",
			"{a@1:1+1=yes@1:4+3 b@2:1+1=1e-6@2:4+4 c@3:1+1=0x10@3:4+4 d@4:1+1=1:30@4:4+4 e@5:1+1=2001-01-01@5:4+10}"},
		{"document start", "---\na: 1\n", "{a@2:1+1=1@2:4+1}"},
		{"dos line ends", "a: 1\r\nb:\r\n  c: 2\r\n", "{a@1:1+1=1@1:4+1 b@2:1+1={c@3:3+1=2@3:6+1}}"},
		{"byte order mark", "\xef\xbb\xbfa: 1\n", "{a@1:1+1=1@1:4+1}"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			src, text, fault := newSource("x", []byte(c.text))
			if fault != nil {
				t.Fatal(fault)
			}
			root, errs := parseYAML(src, text, 0)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if diff := cmp.Diff(c.want, outline(root)); diff != "" {
				t.Errorf("%q (-want +got):\n%s", c.text, diff)
			}
		})
	}
}

func TestClip(t *testing.T) {
	long := strings.Repeat("abcdefghij", 30) // 300 runes
	cases := []struct {
		name       string
		line       string
		col, width int
		want       string // the line and the caret line
	}{
		{"short", "  lr: 1e6", 7, 3, "  lr: 1e6\n      ^~~"},
		{"tab", "\tlr: 1", 6, 1, " lr: 1\n     ^"},
		{"beyond the end", "a:", 9, 1, "a:\n  ^"},
		{"start of a long line", long, 3, 2, long[:120] + "…\n  ^~"},
		// col 200: start = 199 - 40 = 159, end = 279; the caret stands 40 after the
		// start, and one more for the mark of the cut.
		{"middle of a long line", long, 200, 1, "…" + long[159:279] + "…\n" + strings.Repeat(" ", 41) + "^"},
		{"escape", "a: \x1b[31m", 4, 5, "a: \uFFFD[31m\n   ^~~~~"},
		{"right to left", "a: \u202eb", 4, 2, "a: \uFFFDb\n   ^~"},
	}
	for _, c := range cases {
		line, col, width := clip(c.line, c.col, c.width)
		if got := line + "\n" + strings.Repeat(" ", col-1) + caret(width); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestErrorsFollowTheLayers: lowest layer first, by place within a layer, --set
// last.
func TestErrorsFollowTheLayers(t *testing.T) {
	dir := folder(t, map[string]string{
		"user.yaml":   "compute: {threads: x}\n",
		"parent.yaml": "extends: " + base(t) + "\nrollout: {n: x, top_k: y}\n",
		"child.yaml":  "rollout: {n: x}\nextends: parent.yaml\n",
		"over.yaml":   "extends: nothing.yaml\nrollout: {n: x}\n",
	})
	errs := failure(t, Input{
		File: dir + "/child.yaml", User: dir + "/user.yaml", Overlays: []string{dir + "/over.yaml"},
		Sets: []string{"seed=x", "train={steps: x, prompts_per_step: y}"},
	})
	var got []string
	for _, e := range errs {
		got = append(got, strings.TrimPrefix(e.Place(), dir+"/")+" "+e.Code)
	}
	want := []string{
		"user.yaml:1:20 E111",
		"parent.yaml:2:14 E111", "parent.yaml:2:24 E111",
		"child.yaml:1:14 E111",
		"over.yaml:1:10 E105", "over.yaml:2:14 E111",
		"--set #1:6 E111", "--set #2:15 E111", "--set #2:36 E111",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
