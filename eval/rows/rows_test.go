package rows

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
)

func write(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func packed(t *testing.T, text string) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return z.EncodeAll([]byte(text), nil)
}

// The content shows the format of a file: all of these hold the same two rows.
func TestRead(t *testing.T) {
	lines := "{\"id\":1,\"s\":\"a\"}\n\n{\"id\":2,\"s\":\"b\"}"
	type row struct {
		ID int64  `parquet:"id"`
		S  string `parquet:"s,optional"`
	}
	var pq bytes.Buffer
	if err := parquet.Write(&pq, []row{{1, "a"}, {2, "b"}}); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{{"id": json.Number("1"), "s": "a"}, {"id": json.Number("2"), "s": "b"}}
	for _, tt := range []struct {
		name   string
		data   []byte
		second string // place of the second row
	}{
		{"lines", []byte(lines), ":3"},
		{"lines with a mark", []byte("\ufeff" + lines + "\n"), ":3"},
		{"array in a line", []byte(`[{"id":1,"s":"a"},{"id":2,"s":"b"}]`), ": item 2"},
		{"array in lines", []byte("[\n {\"id\":1,\n\"s\":\"a\"},\n {\"id\":2,\"s\":\"b\"}\n]\n"), ": item 2"},
		{"gzip", zipped(t, lines), ":3"},
		{"zstd", packed(t, lines), ":3"},
		{"parquet", pq.Bytes(), ": row 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, "x", tt.data)
			all, err := All(path)
			if err != nil {
				t.Fatal(err)
			}
			var got []map[string]any
			for i, r := range all {
				got = append(got, r.Fields)
				if r.Index != i {
					t.Errorf("row %d has index %d", i, r.Index)
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if where := all[1].Where; where != path+tt.second {
				t.Errorf("second row at %q, want …%q", where, tt.second)
			}
		})
	}
}

// Lists of structs and of lists, absent values, several row groups, compression, as in verl's and
// lighteval's files.
func TestNestedParquet(t *testing.T) {
	type message struct {
		Role    string `parquet:"role"`
		Content string `parquet:"content"`
	}
	type row struct {
		Source    *string   `parquet:"data_source,optional,dict"`
		Prompt    []message `parquet:"prompt,list"`
		Responses []string  `parquet:"responses,list,optional"`
		Tokens    [][]int64 `parquet:"tokens,list"`
		Score     float64   `parquet:"score"`
		Done      bool      `parquet:"done"`
	}
	name := "aime"
	in := []row{
		{Source: &name, Prompt: []message{{"system", "s"}, {"user", "u"}}, Responses: []string{"x", "", "z"}, Score: 0.5, Done: true},
		{Prompt: []message{}, Score: 27},
	}
	for _, codec := range []parquet.WriterOption{parquet.Compression(&parquet.Snappy), parquet.Compression(&parquet.Zstd), parquet.Compression(&parquet.Gzip)} {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[row](&b, codec, parquet.MaxRowsPerRowGroup(1))
		if _, err := w.Write(in); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		all, err := All(write(t, "x.parquet", b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		want := []map[string]any{
			{"data_source": "aime", "prompt": []any{map[string]any{"role": "system", "content": "s"}, map[string]any{"role": "user", "content": "u"}},
				"responses": []any{"x", "", "z"}, "tokens": []any{}, "score": json.Number("0.5"), "done": true},
			{"data_source": nil, "prompt": []any{}, "responses": nil, "tokens": []any{}, "score": json.Number("27"), "done": false},
		}
		var got []map[string]any
		for _, r := range all {
			got = append(got, r.Fields)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
}

// Numbers whose types the library does not give as such.
func TestParquetNumbers(t *testing.T) {
	type row struct {
		Big   uint64   `parquet:"big"`
		Small uint8    `parquet:"small"`
		List  []uint64 `parquet:"list,list"`
		Price int64    `parquet:"price,decimal(2:10)"`
		None  float64  `parquet:"none"`
		Most  float32  `parquet:"most"`
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, []row{{1<<63 + 5, 200, []uint64{1<<64 - 1}, -150, math.NaN(), float32(math.Inf(1))}}); err != nil {
		t.Fatal(err)
	}
	all, err := All(write(t, "x.parquet", b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"big": json.Number("9223372036854775813"), "small": json.Number("200"), "list": []any{json.Number("18446744073709551615")},
		"price": json.Number("-1.50"), "none": nil, "most": "+Inf"}
	if d := cmp.Diff(want, all[0].Fields); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// Maps become objects, whatever their values are.
func TestParquetMaps(t *testing.T) {
	type message struct {
		Role  string  `parquet:"role"`
		Score *uint32 `parquet:"score,optional"`
	}
	type row struct {
		Texts    map[string]string   `parquet:"texts"`
		Counts   map[string]uint32   `parquet:"counts"`
		Lists    map[string][]string `parquet:"lists"`
		Messages map[string]message  `parquet:"messages"`
	}
	most := uint32(1<<32 - 1)
	in := []row{
		{Texts: map[string]string{"a": "\\frac{1}{2}", "é": ""}, Counts: map[string]uint32{"x": most}, Lists: map[string][]string{"l": {"a", ""}},
			Messages: map[string]message{"first": {"user", &most}, "second": {"é", nil}}},
		{},
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, in); err != nil {
		t.Fatal(err)
	}
	all, err := All(write(t, "x.parquet", b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}

	want := []map[string]any{
		{"texts": map[string]any{"a": "\\frac{1}{2}", "é": ""}, "counts": map[string]any{"x": json.Number("4294967295")}, "lists": map[string]any{"l": []any{"a", ""}},
			"messages": map[string]any{"first": map[string]any{"role": "user", "score": json.Number("4294967295")}, "second": map[string]any{"role": "é", "score": nil}}},
		{"texts": map[string]any{}, "counts": map[string]any{}, "lists": map[string]any{}, "messages": map[string]any{}},
	}
	if d := cmp.Diff(want, []map[string]any{all[0].Fields, all[1].Fields}); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// The library reads wrong values from such files.
func TestParquetRefuses(t *testing.T) {
	type row struct {
		Done bool `parquet:"done"`
	}
	type text struct {
		Text string `parquet:"text"`
	}
	var runs, lz4 bytes.Buffer
	inRuns := parquet.NewSchema("row", parquet.Group{"done": parquet.Encoded(parquet.Leaf(parquet.BooleanType), &parquet.RLE)})
	if err := parquet.Write(&runs, []row{{true}, {false}}, inRuns, parquet.DataPageVersion(2)); err != nil {
		t.Fatal(err)
	}
	if err := parquet.Write(&lz4, []text{{"a"}}, parquet.Compression(&parquet.Lz4Raw)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		file []byte
		want string
	}{
		{runs.Bytes(), `the booleans of column "done" are in run-length encoding, which is not supported`},
		{lz4.Bytes(), `column "text" is compressed with LZ4_RAW, which is not supported`},
	} {
		if _, err := All(write(t, "x.parquet", tt.file)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"broken line", "{\"a\":1}\n{\"a\":", ":2: not JSON: text ends inside a value"},
		{"two values on a line", "{\"a\":1}\n{\"a\":1} {}", `:2: not JSON: "{}" follows`},
		{"no object", "{\"a\":1}\n[1]", ":2: a list, not an object"},
		{"array of numbers", "[1]", ": item 1: a number, not an object"},
		{"array cut off", `[{"a":1},`, ":1: not JSON: text ends"},
		{"not UTF-8", "{\"a\":\"\xff\"}", ":1: not UTF-8"},
		{"UTF-16", "\xff\xfe{\x00}\x00", ":1: UTF-16, not UTF-8"},
		{"Python's NaN", "{\"a\": 1}\n{\"a\": NaN}", ":2: not JSON, which has no NaN: write null"},
		{"Python's infinity in an array", `[{"a": -Infinity}]`, ":1: not JSON, which has no Infinity: write null"},
		{"a web page", "<html>\n</html>", ": a web page, not data: fetch the file itself"},
		{"a web page of today", "\ufeff\n<!DOCTYPE html>\n<html></html>", ": a web page, not data"},
		{"a pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", ": a pointer of Git LFS, not the data: git lfs pull"},
		{"a zip archive", "PK\x03\x04\x14", ": a zip archive: unpack it"},
		{"Arrow", "ARROW1\x00\x00", ": an Arrow file: write it with to_parquet"},
		{"a comma after a line", "{\"a\":1}\n{\"a\":1},\n{\"a\":1}", ":2: not JSON: a comma follows the value"},
		{"commas after lines", "{\"a\":1},\n{\"a\":1}", ":1: not JSON: a comma follows the value"},
		{"a comma after the last item", `[{"a":1}, ]`, ":1: not JSON: a comma stands before the last ]; remove it"},
		{"a comma after the last field", `{"a":1, }`, ":1: not JSON: a comma stands before the last }; remove it"},
		{"a table", "a,b\n1,2\n", "the name of a table ends in .csv or .tsv"},
		{"damaged parquet", "PAR1 and so on PAR1", "parquet"},
		{"parquet with too much metadata", "PAR1abcd\xd2\xbd\x2f\x84PAR1", "metadata of 2217721298 bytes in a file of 16"},
		{"gzip without its head", "\x1f\x8b\x08", ": the file is cut off, its gzip data has no end"},
		{"gzip cut off", string(zipped(t, "{\"a\":1}\n")[:20]), "the file is cut off, its gzip data has no end"},
		{"zstd cut off", string(packed(t, "{\"a\":1}\n")[:12]), "the file is cut off, its zstd data has no end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, "x", []byte(tt.text))
			_, err := All(path)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), path) {
				t.Errorf("%v, want %s…%s", err, path, tt.want)
			}
		})
	}
	path := write(t, "x.parquet", []byte("PAR0"))
	if _, err := All(path); err == nil || !strings.HasPrefix(err.Error(), path+": not parquet, which begins with PAR1") {
		t.Errorf("no parquet: %v", err)
	}
	if all, err := All(write(t, "x.parquet", []byte(`{"a":1}`))); err != nil || len(all) != 1 {
		t.Errorf("JSON named as parquet: %v, %v", all, err)
	}
	if all, err := All(write(t, "x", nil)); err != nil || len(all) != 0 {
		t.Errorf("an empty file: %v, %v", all, err)
	}
}

func TestTables(t *testing.T) {
	const text = "\ufeff,question,answer\r\n0,\"What is\n2, or \"\"two\"\"?\",2\r\n\r\n1,\"b\",\r\n"
	want := []map[string]any{{"question": "What is\n2, or \"two\"?", "answer": "2"}, {"question": "b", "answer": nil}}
	for name, data := range map[string][]byte{"x.csv": []byte(text), "x.CSV.gz": zipped(t, text), "x.csv.zst": packed(t, text),
		"x.tsv": []byte(strings.ReplaceAll(strings.ReplaceAll(text, "2, or", "2; or"), ",", "\t"))} {
		if name == "x.tsv" {
			want[0]["question"] = "What is\n2; or \"two\"?"
		} else {
			want[0]["question"] = "What is\n2, or \"two\"?"
		}
		path := write(t, name, data)
		all, err := All(path)
		if err != nil {
			t.Fatal(name, err)
		}
		var got []map[string]any
		for _, r := range all {
			got = append(got, r.Fields)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", name, d)
		}
		if where := all[1].Where; where != path+":5" {
			t.Errorf("second row at %q, want …:5", where)
		}
	}
	for _, tt := range []struct{ text, want string }{
		{"a,b\n1,2\n3\n", ":3: 1 cells, but the first line names 2 columns"},
		{"a,b\n1,2,3\n", ":2: 3 cells, but the first line names 2 columns"},
		{"a,b\n1,say \"yes\"\n", ":2: a quote inside a cell"},
		{"a,b\n1,\"open\n", ":2: a quote inside a cell"},
		{"a,b\n1,\xff\n", ":2: not UTF-8"},
		{"a, a\n1,2\n", ":1: the first line names column \"a\" twice"},
		{",\n1,2\n", ":1: the first line must name the columns"},
	} {
		path := write(t, "x.csv", []byte(tt.text))
		if _, err := All(path); err == nil || !strings.HasPrefix(err.Error(), path+tt.want) {
			t.Errorf("%q: %v, want …%s", tt.text, err, tt.want)
		}
	}
	r := Reader{Paths: []string{write(t, "x.csv", []byte("a,b\n1,2\n12,\n1,2\n"))}, Distinct: true}
	n := 0
	for _, err := range r.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 2 || r.Total != 3 || r.Repeated != 1 {
		t.Errorf("%d rows of %d, %d repeated", n, r.Total, r.Repeated)
	}
	for cell, want := range map[string]string{"0.5": "0.5 <nil>", "-3": "-3 <nil>", "1e-3": "0.001 <nil>", "": "missing", "NaN": "a text, not a number",
		"Inf": "a text", "0x10": "a text", "half": "a text", " 1": "a text", "1e999": "a text"} {
		all, err := All(write(t, "n.csv", []byte("n,other\n"+cell+",x\n")))
		if err != nil || len(all) != 1 {
			t.Fatalf("%q: %v, %v", cell, all, err)
		}
		if x, err := all[0].Number("n"); !strings.Contains(fmt.Sprint(x, " ", err), want) {
			t.Errorf("%q: %v, %v, want %s", cell, x, err, want)
		}
	}
	all, err := All(write(t, "n.jsonl", []byte(`{"n": "0.5"}`+"\n")))
	if err != nil {
		t.Fatal(err)
	}
	if x, err := all[0].Number("n"); err == nil {
		t.Errorf("a text of JSON is the number %v", x)
	}
	if all, err := All(write(t, "x.csv", nil)); err != nil || len(all) != 0 {
		t.Errorf("an empty table: %v, %v", all, err)
	}
}

func TestDecimal(t *testing.T) {
	for in, want := range map[string]string{"27.0": "27", "-3": "-3", "0.5": "0.5", "1e3": "1000", "1e400": "1e400", "1e-999999999": "1e-999999999", "12345678901234567890": "12345678901234567890"} {
		if got := Decimal(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// No bytes make the reader panic or return a row without fields.
func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := parquet.Write(&b, []struct{ A []string }{{[]string{"x"}}}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("{\"a\":1}\n"))
	f.Add([]byte("[{}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for row, err := range Read(write(t, "x", data)) {
			if err == nil && row.Fields == nil {
				t.Error("a row without fields")
			}
		}
	})
}

// Raw keeps the order of keys and the text of numbers if the file has them.
func TestRaw(t *testing.T) {
	type row struct {
		M struct {
			Z int64  `parquet:"z"`
			A string `parquet:"a"`
		} `parquet:"m"`
		L []struct {
			Y *int64                `parquet:"y,optional"`
			X struct{ B, A string } `parquet:"x"`
		} `parquet:"l,list"`
		LL [][]struct{ Q, P string } `parquet:"ll,list"`
	}
	var in row
	in.M.Z, in.M.A = 1, "<b>"
	in.L = append(in.L, struct {
		Y *int64                `parquet:"y,optional"`
		X struct{ B, A string } `parquet:"x"`
	}{X: struct{ B, A string }{"b", "é"}})
	in.LL = [][]struct{ Q, P string }{{{"q", "p"}}, {}}
	var pq bytes.Buffer
	if err := parquet.Write(&pq, []row{in}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, path, want string
		data             []byte
	}{
		{"line", "m", `{"z":1.0,"a":"<b>"}`, []byte(`{"m":{"z":1.0,"a":"<b>"}}`)},
		{"nested", "m.z", `1.0`, []byte(`{"m":{"z":1.0,"a":"<b>"}}`)},
		{"a name with a point", "m.z", `2`, []byte(`{"m":{"z":1.0},"m.z":2}`)},
		{"array", "m", `{"z":1.0,"a":"<b>"}`, []byte("[\n{\"m\":{\"z\":1.0,\"a\":\"<b>\"}}]")},
		{"one object", "m", `{"z":1.0,"a":"<b>"}`, []byte("{\n\"m\":{\"z\":1.0,\"a\":\"<b>\"}}")},
		{"parquet", "m", `{"z":1,"a":"<b>"}`, pq.Bytes()},
		{"parquet, a number", "m.z", `1`, pq.Bytes()},
		{"parquet, a list", "l", `[{"y":null,"x":{"B":"b","A":"é"}}]`, pq.Bytes()},
		{"parquet, lists", "ll", `[[{"Q":"q","P":"p"}],[]]`, pq.Bytes()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all, err := All(write(t, "x", tt.data))
			if err != nil {
				t.Fatal(err)
			}
			got, err := all[0].Raw(tt.path)
			if err != nil || string(got) != tt.want {
				t.Errorf("%s, %v; want %s", got, err, tt.want)
			}
			if _, err := all[0].Raw("none"); err == nil || !strings.Contains(err.Error(), "missing") {
				t.Errorf("a field that is not there: error %v", err)
			}
		})
	}
}

// A row with a field of another name keeps what that one has.
func TestWithField(t *testing.T) {
	type row struct {
		In struct {
			Chat []struct{ Role, Content string } `parquet:"chat,list"`
		} `parquet:"in"`
	}
	var in row
	in.In.Chat = append(in.In.Chat, struct{ Role, Content string }{"user", "<q>"})
	var pq bytes.Buffer
	if err := parquet.Write(&pq, []row{in}); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"parquet": pq.Bytes(), "lines": []byte(`{"in":{"chat":[{"Role":"user","Content":"<q>"}]},"prompt":"p"}`)} {
		all, err := All(write(t, "x", data))
		if err != nil {
			t.Fatal(err)
		}
		got, err := all[0].WithField("prompt", "in.chat").Raw("prompt")
		if want := `[{"Role":"user","Content":"<q>"}]`; string(got) != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", name, got, err, want)
		}
		if before, err := all[0].Raw("prompt"); name == "lines" && string(before) != `"p"` {
			t.Errorf("the row itself changed: %s, %v", before, err)
		}
	}
}

// A pattern reads all files that it matches, one after the other, with rows counted through.
func TestPattern(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"b-1.jsonl": `{"a":3}`, "b-0.jsonl": "{\"a\":1}\n{\"a\":2}", "c.jsonl": `{"a":9}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all, err := All(filepath.Join(dir, "b-*.jsonl"))
	if err != nil || len(all) != 3 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	for i, row := range all {
		if got, _ := row.Number("a"); row.Index != i || got != float64(i+1) {
			t.Errorf("row %d: index %d, a %v", i, row.Index, got)
		}
	}
	if _, err := All(filepath.Join(dir, "x-*.jsonl")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a pattern that matches nothing: %v", err)
	}
}
