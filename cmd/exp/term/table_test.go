package term

import (
	"strings"
	"testing"
)

func runsTable() Table {
	return Table{
		Columns: []Column{
			{Title: "id"}, {Title: "name", Rank: 1, Min: 8}, {Title: "reward", Right: true},
			{Title: "note", Rank: 2, Min: 10, Wrap: true},
		},
		Rows: [][]Cell{
			{{"5e8d10b4", Accent}, {"countdown-flowrl-wide", Plain}, {"0.620", Plain}, {"first try with the new sampler", Plain}},
			{{"c01f9a77", Accent}, {"模型-ppo", Plain}, {"0.1", Plain}},
			{{"77b0c2d9", Accent}, {"line\nbreak", Plain}, {"", Plain}, {"", Plain}},
		},
	}
}

func TestTable(t *testing.T) {
	tests := []struct {
		name   string
		layout Layout
	}{
		{"pipe", Layout{Unicode: true}},
		{"wide", Layout{Width: 200, Unicode: true}},
		{"wraps_first", Layout{Width: 60, Unicode: true}},
		{"then_cuts", Layout{Width: 42, Unicode: true}},
		{"ascii_too_narrow", Layout{Width: 20}},
		{"color", Layout{Color: true, Unicode: true}},
	}
	var out strings.Builder
	for _, tt := range tests {
		table := runsTable()
		out.WriteString("-- " + tt.name + "\n")
		if err := table.Write(&out, tt.layout); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "table", out.String())
}

// TestTableFits checks the law of fitting: no line is wider than the layout
// unless every column with a rank is at its minimum.
func TestTableFits(t *testing.T) {
	for width := 1; width < 120; width++ {
		table := runsTable()
		var out strings.Builder
		if err := table.Write(&out, Layout{Width: width, Unicode: true}); err != nil {
			t.Fatal(err)
		}
		const least = 8 + 2 + 8 + 2 + 6 + 2 + 10 // id, name at 8, reward, note at 10, gaps
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if Width(line) > max(width, least) {
				t.Errorf("width %d: line of %d columns: %q", width, Width(line), line)
			}
			if strings.HasSuffix(line, " ") {
				t.Errorf("width %d: trailing space: %q", width, line)
			}
		}
	}
}

// TestTableDrops: columns that may be dropped go, the highest first, before any
// other gives way, and Narrowed names them in the order of the table.
func TestTableDrops(t *testing.T) {
	table := Table{
		Columns: []Column{{Title: "name", Rank: 1, Min: 4}, {Title: "age", Drop: 1}, {Title: "took", Drop: 2}},
		Rows:    [][]Cell{{{"countdown", Plain}, {"58m", Plain}, {"2m14s", Plain}}, {{"words", Plain}}},
	}
	for width, want := range map[int]string{
		0:  "name       age  took\ncountdown  58m  2m14s\nwords\n",
		21: "name       age  took\ncountdown  58m  2m14s\nwords\n",
		20: "name       age\ncountdown  58m\nwords\n",
		13: "name\ncountdown\nwords\n",
		6:  "name\ncount…\nwords\n",
	} {
		var out strings.Builder
		if err := table.Write(&out, Layout{Width: width, Unicode: true}); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("width %d: got\n%swant\n%s", width, out.String(), want)
		}
		_, leftOut := table.Narrowed(Layout{Width: width, Unicode: true})
		if want := map[int]string{20: "took", 13: "age, took", 6: "age, took"}[width]; strings.Join(leftOut, ", ") != want {
			t.Errorf("width %d leaves out %q, want %q", width, leftOut, want)
		}
	}
}

func TestTableNoHeader(t *testing.T) {
	table := Table{Columns: []Column{{Title: "a long title"}}, Rows: [][]Cell{{{"x", Plain}}}, NoHeader: true}
	var out strings.Builder
	if err := table.Write(&out, Layout{}); err != nil {
		t.Fatal(err)
	}
	if out.String() != "x\n" {
		t.Errorf("got %q, want %q", out.String(), "x\n")
	}
}

func TestWidest(t *testing.T) {
	if got := Widest("ab", "模型", "abc"); got != 4 {
		t.Errorf("Widest = %d, want 4", got)
	}
	if Widest() != 0 {
		t.Error("Widest of nothing is not 0")
	}
}
