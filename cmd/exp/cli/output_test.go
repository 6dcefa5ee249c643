package cli

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
func sampleTable() Table {
	created := time.Date(2026, 1, 2, 12, 4, 11, 250_000_000, time.FixedZone("", 3600))
	status := func(v any) term.Style {
		if v == "failed" {
			return term.Bad
		}
		return term.Good
	}
	return Table{
		Schema: "exp.ls/1",
		Columns: []Column{
			{Key: "id", ID: true}, {Key: "name", Rank: 1, Min: 8}, {Key: "status", Style: status},
			{Key: "steps"}, {Key: "reward", Digits: 3}, {Key: "kl"}, {Key: "wall_s", Title: "wall"},
			{Key: "created"}, {Key: "tags"}, {Key: "pinned"}, {Key: "chain", Wide: true}, {Key: "note", Rank: 2, Wrap: true},
		},
		Rows: [][]any{
			{HexID("5e8d10b4a1b2c3d4"), "flowrl", "done", 100, 0.62, 1e-7, 16300 * time.Millisecond,
				created, []string{"a", "b"}, true, []byte{0x0f, 0x9e}, nil},
			{HexID("c01f9a7700000000"), "a|b, \"c\"\t*d*", "failed", nil, math.NaN(), math.Inf(-1), time.Duration(0),
				time.Time{}, []string{}, false, nil, "two\nlines: #1 <x>"},
		},
	}
}

func printed(t *testing.T, f Format, change func(o *Output), tab Table) string {
	t.Helper()
	var buf bytes.Buffer
	o := Output{W: &buf, Format: f, Header: true, zone: time.UTC, Stream: term.Stream{Unicode: true}}
	if change != nil {
		change(&o)
	}
	if err := o.PrintTable(tab); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func TestOutputFormats(t *testing.T) {
	for _, f := range Formats {
		t.Run(string(f), func(t *testing.T) {
			golden(t, "output_"+string(f), printed(t, f, func(o *Output) {
				o.Store = "/data/.exp"
				o.warnings = []string{"only 1 seed"}
			}, sampleTable()))
		})
	}
}

func TestOutputOnATerminal(t *testing.T) {
	s := term.Inspect(io.Discard, term.ColorAlways, func(key string) string {
		return map[string]string{"EXP_FORCE_TTY": "106"}[key]
	})
	golden(t, "output_terminal", printed(t, FormatTable, func(o *Output) { o.Stream = s }, sampleTable()))
}

func TestOutputFieldsAndHeader(t *testing.T) {
	pick := func(o *Output) { o.Fields, o.Header = []string{"chain", " steps"}, false }
	tests := map[Format]string{
		FormatTable: "0f9e  100\n",
		FormatMD:    "| 0f9e | 100 |\n|  |  |\n",
		FormatCSV:   "0f9e,100\n,\n",
		FormatTSV:   "0f9e\t100\n\t\n",
		FormatJSONL: "{\"chain\":\"0f9e\",\"steps\":100}\n{\"chain\":null,\"steps\":null}\n",
		FormatName:  "5e8d10b4a1b2c3d4\nc01f9a7700000000\n",
	}
	for f, want := range tests {
		got := printed(t, f, pick, sampleTable())
		if f == FormatTable {
			got = strings.TrimRight(got, "\n") + "\n" // the second row is empty
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", f, got, want)
		}
	}
	o := Output{W: io.Discard, Format: FormatCSV, Fields: []string{"stats"}}
	err := o.PrintTable(sampleTable())
	if e := Describe(err, nil, sampleKnown); e.Code != ExitUsage || e.Help != "did you mean status?" {
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
	if err := json.Unmarshal([]byte(printed(t, FormatJSON, nil, sampleTable())), &e); err != nil {
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

	rows, err := csv.NewReader(strings.NewReader(printed(t, FormatCSV, nil, sampleTable()))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if got := rows[2][11]; got != "two\nlines: #1 <x>" {
		t.Errorf("CSV note %q", got)
	}
	tsv := strings.Split(printed(t, FormatTSV, nil, sampleTable()), "\n")
	if len(tsv) != 4 || strings.Count(tsv[2], "\t") != 11 {
		t.Errorf("TSV is torn by its values: %q", tsv)
	}
}

func TestOutputEmpty(t *testing.T) {
	empty := Table{Schema: "exp.ls/1", Columns: []Column{{Key: "id", ID: true}}}
	tests := map[Format]string{
		FormatTable: "id\n", FormatCSV: "id\n", FormatName: "", FormatJSONL: "",
		FormatJSON: "{\n  \"schema\": \"exp.ls/1\",\n  \"store\": null,\n  \"data\": [],\n  \"warnings\": []\n}\n",
		FormatYAML: "schema: exp.ls/1\nstore: null\ndata: []\nwarnings: []\n",
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
	printed(t, FormatCSV, nil, Table{Columns: []Column{{Key: "a"}}, Rows: [][]any{{1, 2}}})
}

// TestFloatsReadBack: every float is the shortest text of itself.
func TestFloatsReadBack(t *testing.T) {
	for _, f := range []float64{0, 0.1, 1.0 / 3, 1e21, 1e-7, 5e-324, math.MaxFloat64, 123456789} {
		for _, form := range []Format{FormatCSV, FormatYAML} {
			got := printed(t, form, func(o *Output) { o.Header = false }, Table{Columns: []Column{{Key: "v"}}, Rows: [][]any{{f}}})
			fields := strings.Fields(got)
			text := fields[len(fields)-1]
			if form == FormatYAML {
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
	if got := TreeOf(float32(0.1)); got != Number("0.1") {
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
	got := jsonText(TreeOf(whole{
		part: part{"x", time.Second}, Digest: [2]byte{0xab, 1}, Parts: []part{{"a", 1500 * time.Millisecond}},
		Scores: map[string]float64{"b": math.Inf(1), "a": 2}, When: &when, Any: []any{nil, uint8(3), HexID("ff")}, hidden: 1,
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
			TreeOf(bad)
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
	tree := Object{
		{"a", Object{{"b", []any{Object{{"c", int64(1)}, {"d", []any{int64(2), Object{{"e", true}}}}}, nil}}}},
		{"empty", Object{}},
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
	d := Document{
		Schema: "exp.show/1",
		Data: struct {
			ID     HexID    `json:"id"`
			Reward float64  `json:"reward"`
			Files  []string `json:"files"`
		}{"5e8d10b4a1b2c3d4", 0.5, []string{"a", "b"}},
		Human: func(w io.Writer) error { _, err := io.WriteString(w, "run 5e8d10b4\n"); return err },
	}
	tests := []struct {
		format Format
		fields []string
		want   string
	}{
		{FormatTable, nil, "run 5e8d10b4\n"},
		{FormatWide, nil, "run 5e8d10b4\n"},
		{FormatTable, []string{"reward"}, "reward\n   0.5\n"},
		{FormatJSONL, nil, `{"id":"5e8d10b4a1b2c3d4","reward":0.5,"files":["a","b"]}` + "\n"},
		{FormatJSONL, []string{"files"}, `{"files":["a","b"]}` + "\n"},
		{FormatCSV, nil, "id,reward,files\n5e8d10b4a1b2c3d4,0.5,\"[\"\"a\"\",\"\"b\"\"]\"\n"},
		{FormatYAML, nil, "schema: exp.show/1\nstore: null\ndata:\n  id: \"5e8d10b4a1b2c3d4\"\n  reward: 0.5\n  files:\n    - a\n    - b\nwarnings: []\n"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.format, tt.fields), func(t *testing.T) {
			var buf bytes.Buffer
			o := Output{W: &buf, Format: tt.format, Fields: tt.fields, Header: true}
			if err := o.PrintDocument(d); err != nil {
				t.Fatal(err)
			}
			if buf.String() != tt.want {
				t.Errorf("got  %q\nwant %q", buf.String(), tt.want)
			}
		})
	}
	o := Output{W: io.Discard, Format: FormatName}
	if err := o.PrintDocument(d); Describe(err, nil, sampleKnown).Code != ExitUsage {
		t.Errorf("-o name: %v, want a usage error", err)
	}
}

type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestOutputErrors: a full disk behind stdout is not success.
func TestOutputErrors(t *testing.T) {
	for _, f := range Formats {
		o := Output{W: closedWriter{}, Format: f, Header: true}
		if err := o.PrintTable(sampleTable()); err == nil {
			t.Errorf("%s: no error", f)
		}
	}
}
