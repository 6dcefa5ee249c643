package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"exp/cmd/exp/term"
)

// sampleTable has every type of cell, and texts that hurt each format.
func sampleTable() table {
	created := time.Date(2026, 1, 2, 12, 4, 11, 250_000_000, time.FixedZone("", 3600))
	status := func(v any) term.Style {
		if v == "failed" {
			return term.Bad
		}
		return term.Good
	}
	return table{
		Schema: "exp.ls/1",
		Columns: []column{
			{Key: "id", ID: true}, {Key: "name", Rank: 1, Min: 8}, {Key: "status", Style: status},
			{Key: "steps"}, {Key: "reward", Digits: 3}, {Key: "kl"}, {Key: "wall_s", Title: "wall"},
			{Key: "created"}, {Key: "tags"}, {Key: "pinned"}, {Key: "chain", Wide: true}, {Key: "note", Rank: 2, Wrap: true},
		},
		Rows: [][]any{
			{hexID("5e8d10b4a1b2c3d4"), "flowrl", "done", 100, 0.62, 1e-7, 16300 * time.Millisecond,
				created, []string{"a", "b"}, true, []byte{0x0f, 0x9e}, nil},
			{hexID("c01f9a7700000000"), "a|b, \"c\"\t*d*", "failed", nil, math.NaN(), math.Inf(-1), time.Duration(0),
				time.Time{}, []string{}, false, nil, "two\nlines: #1 <x>"},
		},
	}
}

func printed(t *testing.T, f format, change func(o *output), tab table) string {
	t.Helper()
	var buf bytes.Buffer
	o := output{w: &buf, format: f, header: true, zone: time.UTC, stream: term.Stream{Unicode: true}}
	if change != nil {
		change(&o)
	}
	if err := o.printTable(tab); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func TestOutputFormats(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			golden(t, "output_"+string(f), printed(t, f, func(o *output) {
				o.store = "/data/.exp"
				o.warnings = []string{"only 1 seed"}
			}, sampleTable()))
		})
	}
}

func TestOutputOnATerminal(t *testing.T) {
	s := term.Inspect(io.Discard, term.ColorAlways, func(key string) string {
		return map[string]string{"EXP_FORCE_TTY": "106"}[key]
	})
	golden(t, "output_terminal", printed(t, formatTable, func(o *output) { o.stream = s }, sampleTable()))
}

func TestOutputFieldsAndHeader(t *testing.T) {
	pick := func(o *output) { o.fields, o.header = []string{"chain", " steps"}, false }
	tests := map[format]string{
		formatTable: "0f9e  100\n",
		formatMD:    "| 0f9e | 100 |\n|  |  |\n",
		formatCSV:   "0f9e,100\n,\n",
		formatTSV:   "0f9e\t100\n\t\n",
		formatJSONL: "{\"chain\":\"0f9e\",\"steps\":100}\n{\"chain\":null,\"steps\":null}\n",
		formatName:  "5e8d10b4a1b2c3d4\nc01f9a7700000000\n",
	}
	for f, want := range tests {
		got := printed(t, f, pick, sampleTable())
		if f == formatTable {
			got = strings.TrimRight(got, "\n") + "\n" // the second row is empty
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", f, got, want)
		}
	}
	o := output{w: io.Discard, format: formatCSV, fields: []string{"stats"}}
	err := o.printTable(sampleTable())
	if e := describe(err, nil); e.Code != exitUsage || e.Help != "did you mean status?" {
		t.Errorf("unknown field: %+v", e)
	}
}

// TestOutputReadsBack parses what programs parse.
func TestOutputReadsBack(t *testing.T) {
	var e struct {
		Schema   string
		Store    *string
		Data     []map[string]any
		Warnings []string
	}
	if err := json.Unmarshal([]byte(printed(t, formatJSON, nil, sampleTable())), &e); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"id": "5e8d10b4a1b2c3d4", "name": "flowrl", "status": "done", "steps": 100.0, "reward": 0.62, "kl": 1e-7,
		"wall_s": 16.3, "created": "2026-01-02T11:04:11.25Z", "tags": []any{"a", "b"}, "pinned": true, "chain": "0f9e", "note": nil,
	}
	if diff := cmp.Diff(want, e.Data[0]); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
	if e.Data[1]["reward"] != "NaN" || e.Data[1]["kl"] != "-Inf" || e.Data[1]["created"] != nil {
		t.Errorf("JSON of odd values: %v", e.Data[1])
	}
	if e.Store != nil || e.Warnings == nil {
		t.Errorf("without store and warnings: %v, %v, want null and []", e.Store, e.Warnings)
	}

	rows, err := csv.NewReader(strings.NewReader(printed(t, formatCSV, nil, sampleTable()))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if got := rows[2][11]; got != "two\nlines: #1 <x>" {
		t.Errorf("CSV note %q", got)
	}
	tsv := strings.Split(printed(t, formatTSV, nil, sampleTable()), "\n")
	if len(tsv) != 4 || strings.Count(tsv[2], "\t") != 11 {
		t.Errorf("TSV is torn by its values: %q", tsv)
	}
}

func TestOutputEmpty(t *testing.T) {
	empty := table{Schema: "exp.ls/1", Columns: []column{{Key: "id", ID: true}}}
	tests := map[format]string{
		formatTable: "id\n", formatCSV: "id\n", formatName: "", formatJSONL: "",
		formatJSON: "{\n  \"schema\": \"exp.ls/1\",\n  \"store\": null,\n  \"data\": [],\n  \"warnings\": []\n}\n",
		formatYAML: "schema: exp.ls/1\nstore: null\ndata: []\nwarnings: []\n",
	}
	for f, want := range tests {
		if got := printed(t, f, nil, empty); got != want {
			t.Errorf("%s: got %q, want %q", f, got, want)
		}
	}
}

func TestOutputPanicsOnRaggedRows(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	printed(t, formatCSV, nil, table{Columns: []column{{Key: "a"}}, Rows: [][]any{{1, 2}}})
}

// TestFloatsReadBack: every float is the shortest text of itself.
func TestFloatsReadBack(t *testing.T) {
	for _, f := range []float64{0, 0.1, 1.0 / 3, 1e21, 1e-7, 5e-324, math.MaxFloat64, 123456789} {
		for _, form := range []format{formatCSV, formatYAML} {
			got := printed(t, form, func(o *output) { o.header = false }, table{Columns: []column{{Key: "v"}}, Rows: [][]any{{f}}})
			fields := strings.Fields(got)
			text := fields[len(fields)-1]
			if form == formatYAML {
				text = fields[slices.Index(fields, "v:")+1]
				if strings.Contains(text, "e") && !strings.Contains(text, ".") {
					t.Errorf("%s is a string in YAML 1.1", text)
				}
			}
			if back, err := strconv.ParseFloat(text, 64); err != nil || back != f {
				t.Errorf("%s: %v is printed as %s", form, f, text)
			}
		}
	}
	if got := treeOf(float32(0.1)); got != number("0.1") {
		t.Errorf("float32 0.1 is printed as %v", got)
	}
}

func TestTreeOf(t *testing.T) {
	type part struct {
		Kind string        `json:"kind"`
		Wall time.Duration `json:"wall_s"`
	}
	type whole struct {
		part
		Digest [2]byte            `json:"digest"`
		Parts  []part             `json:"parts"`
		Scores map[string]float64 `json:"scores"`
		When   *time.Time         `json:"when"`
		Never  *time.Time         `json:"never"`
		Any    any                `json:"any"`
		None   []int              `json:"none,omitempty"`
		Secret string             `json:"-"`
		hidden int
	}
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", -3600))
	got := jsonText(treeOf(whole{
		part: part{"x", time.Second}, Digest: [2]byte{0xab, 1}, Parts: []part{{"a", 1500 * time.Millisecond}},
		Scores: map[string]float64{"b": math.Inf(1), "a": 2}, When: &when, Any: []any{nil, uint8(3), hexID("ff")}, hidden: 1,
	}))
	want := `{"kind":"x","wall_s":1,"digest":"ab01","parts":[{"kind":"a","wall_s":1.5}],` +
		`"scores":{"a":2,"b":"+Inf"},"when":"2026-01-02T04:04:05Z","never":null,"any":[null,3,"ff"]}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for name, bad := range map[string]any{"untagged field": struct{ A int }{1}, "channel": make(chan int)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			treeOf(bad)
		}()
	}
}

func TestYAMLStrings(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain words", "plain words"}, {"", `""`}, {"yes", `"yes"`}, {"No", `"No"`}, {"null", `"null"`},
		{"1.5", `"1.5"`}, {"-", `"-"`}, {"a: b", `"a: b"`}, {"a #b", `"a #b"`}, {" a", `" a"`}, {"a ", `"a "`},
		{"a\nb", `"a\nb"`}, {"é", `"é"`}, {"\u0085\x7f", `"\u0085\x7f"`}, {"~", `"~"`}, {"@last", `"@last"`},
		{"7e3", `"7e3"`}, {"exp.ls/1", "exp.ls/1"}, {`C:\x`, `"C:\\x"`}, {"😀", `"😀"`},
	}
	for _, tt := range tests {
		var b strings.Builder
		if err := writeYAML(&b, tt.in); err != nil || b.String() != tt.want+"\n" {
			t.Errorf("%q is written %s, want %s (%v)", tt.in, b.String(), tt.want, err)
		}
	}
}

func TestYAMLNesting(t *testing.T) {
	tree := object{
		{"a", object{{"b", []any{object{{"c", int64(1)}, {"d", []any{int64(2), object{{"e", true}}}}}, nil}}}},
		{"empty", object{}},
	}
	want := `a:
  b:
    - c: 1
      d:
        - 2
        - e: true
    - null
empty: {}
`
	var b strings.Builder
	if err := writeYAML(&b, tree); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPrintDocument(t *testing.T) {
	d := document{
		Schema: "exp.show/1",
		Data: struct {
			ID     hexID    `json:"id"`
			Reward float64  `json:"reward"`
			Files  []string `json:"files"`
		}{"5e8d10b4a1b2c3d4", 0.5, []string{"a", "b"}},
		Human: func(w io.Writer) error { _, err := io.WriteString(w, "run 5e8d10b4\n"); return err },
	}
	tests := []struct {
		format format
		fields []string
		want   string
	}{
		{formatTable, nil, "run 5e8d10b4\n"},
		{formatWide, nil, "run 5e8d10b4\n"},
		{formatTable, []string{"reward"}, "reward\n   0.5\n"},
		{formatJSONL, nil, `{"id":"5e8d10b4a1b2c3d4","reward":0.5,"files":["a","b"]}` + "\n"},
		{formatJSONL, []string{"files"}, `{"files":["a","b"]}` + "\n"},
		{formatCSV, nil, "id,reward,files\n5e8d10b4a1b2c3d4,0.5,\"[\"\"a\"\",\"\"b\"\"]\"\n"},
		{formatYAML, nil, "schema: exp.show/1\nstore: null\ndata:\n  id: \"5e8d10b4a1b2c3d4\"\n  reward: 0.5\n  files:\n    - a\n    - b\nwarnings: []\n"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.format, tt.fields), func(t *testing.T) {
			var buf bytes.Buffer
			o := output{w: &buf, format: tt.format, fields: tt.fields, header: true}
			if err := o.printDocument(d); err != nil {
				t.Fatal(err)
			}
			if buf.String() != tt.want {
				t.Errorf("got  %q\nwant %q", buf.String(), tt.want)
			}
		})
	}
	o := output{w: io.Discard, format: formatName}
	if err := o.printDocument(d); describe(err, nil).Code != exitUsage {
		t.Errorf("-o name: %v, want a usage error", err)
	}
}

type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestOutputErrors: a full disk behind stdout is not success.
func TestOutputErrors(t *testing.T) {
	for _, f := range formats {
		o := output{w: closedWriter{}, format: f, header: true}
		if err := o.printTable(sampleTable()); err == nil {
			t.Errorf("%s: no error", f)
		}
	}
}
