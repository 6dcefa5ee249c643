package form

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func schemaOf(t testing.TB, schema string) *Form {
	t.Helper()
	return formOf(t, Spec{Schema: json.RawMessage(schema)}, bytewise())
}

// Texts that follow schemas, and texts that do not. Where a schema allows more than is written here, such as other orders
// of members, it is among the latter.
func TestSchemas(t *testing.T) {
	for _, tt := range []struct {
		schema   string
		yes, not []string
	}{
		{`{"type":"string"}`, []string{`""`, `"a\n\u00e9\ud83d\ude00é"`, `"\/"`},
			[]string{`"`, `"\ud83d"`, `"\udc00\udc00"`, `"\ud83da"`, `"\x"`, "\"\n\"", `x`, `"a" `}},
		{`{"type":"string","minLength":2,"maxLength":3}`, []string{`"ab"`, `"é\n€"`, `"\ud83d\ude00a"`}, []string{`"a"`, `"abcd"`, `"\ud83d\ude00"`}},
		{`{"type":"string","maxLength":0}`, []string{`""`}, []string{`"a"`}},
		{`{"type":"string","pattern":"^a+$"}`, []string{`"aaa"`}, []string{`""`, `"ab"`, `"\u0061"`}},
		{`{"type":"string","pattern":"b\""}`, []string{`"b\""`, `"ab\"c"`}, []string{`"b"`, `"b\\"`, `"b""`}},
		{`{"pattern":"\\n|x"}`, []string{`"\n"`, `"axb"`}, []string{`"a"`}},
		{`{"type":"integer"}`, []string{`0`, `-12`, `123456789012345678`}, []string{`01`, `1.0`, `1e3`, `+1`, `-`}},
		{`{"type":"number"}`, []string{`0.5`, `-1e9`, `1E-10`, `12`}, []string{`.5`, `1.`, `1e`, `NaN`, `1e999`}},
		{`{"enum":["a",1,null,{"x":[true]}]}`, []string{`"a"`, `1`, `null`, `{"x":[true]}`, `{ "x": [true] }`}, []string{`"b"`, `{"x":true}`, `1.0`}},
		{`{"type":"string","enum":["a",1]}`, []string{`"a"`}, []string{`1`}},
		{`{"const":2.50}`, []string{`2.50`}, []string{`2.5`}},
		{`{"type":["integer","null"]}`, []string{`3`, `null`}, []string{`true`}},
		{`{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":2}`,
			[]string{`[1]`, `[1, 2]`, "[\n  1,\n  2\n]"}, []string{`[]`, `[1,2,3]`, `[1 ,2]`, `[1,]`, `["a"]`}},
		{`{"type":"array"}`, []string{`[]`, `[[], {"a": 1}, "x"]`}, []string{`[`, `{}`}},
		{`{"type":"array","maxItems":0}`, []string{`[]`}, []string{`[1]`}},
		{`{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"null"},"minItems":1}`,
			[]string{`[1]`, `[1,"a"]`, `[1, "a", null, null]`}, []string{`[]`, `["a"]`, `[1,2]`, `[1,"a",3]`}},
		{`{"type":"array","prefixItems":[{"type":"integer"}],"items":false}`, []string{`[]`, `[1]`}, []string{`[1,2]`}},
		{`{"type":"array","prefixItems":[{"type":"integer"}],"maxItems":2,"items":{"type":"null"}}`, []string{`[1,null]`}, []string{`[1,null,null]`}},
		{`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"null"},"c":{"type":"boolean"}},"required":["b"]}`,
			[]string{`{"b":null}`, `{"a": 1, "b": null, "c": true}`, "{\n\t\"b\": null,\n\t\"c\": false\n}", `{ "a":1,"b":null }`},
			[]string{`{}`, `{"a":1}`, `{"b":null,"a":1}`, `{"b":null,}`, `{"b":null,"d":1}`, `{,"b":null}`, `{"b" :null}`}},
		{`{"type":"object","properties":{}}`, []string{`{}`}, []string{`{"a":1}`}},
		{`{"type":"object","properties":{"a":true},"additionalProperties":{"type":"integer"}}`,
			[]string{`{}`, `{"a":[]}`, `{"a":"x","b":1,"ab":2}`, `{"":1,"é":2}`}, []string{`{"b":"x"}`, `{"b":1,"a":"x"}`, `{"\u0061":1}`}},
		{`{"type":"object","additionalProperties":{"type":"integer"}}`, []string{`{}`, `{"a":1,"b":2}`}, []string{`{"a":"b"}`}},
		{`{"type":"object","additionalProperties":false}`, []string{`{}`}, []string{`{"a":1}`}},
		{`{"type":"object","properties":{"a":true},"required":["a"],"additionalProperties":true}`,
			[]string{`{"a":1,"b":{}}`}, []string{`{}`, `{"b":1}`}},
		{`{"anyOf":[{"type":"integer"},{"type":"array","items":{"$ref":"#"}}]}`, []string{`1`, `[1,[2,[]]]`}, []string{`"a"`, `[`}},
		{`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["v","next"]}}}`,
			[]string{`{"v":1,"next":{"v":2,"next":null}}`}, []string{`{"v":1}`, `{"v":1,"next":{"v":2}}`}},
		{`{"allOf":[{"type":"null"}],"description":"x"}`, []string{`null`}, []string{`1`}},
		{`{"properties":{"a/b~c":{"$ref":"#/properties/x~1y"},"x/y":{"type":"null"}}}`, []string{`{"a/b~c":null}`}, []string{`{"a/b~c":1}`}},
		{`{}`, []string{`{"a":[1]}`, `"x"`, `-1`, `true`}, []string{``, `x`}},
		{`true`, []string{`1`}, []string{``}},
		{`{"type":"string","format":"date"}`, []string{`"2024-02-28"`, `"1999-12-31"`}, []string{`"2024-02-30"`, `"2024-13-01"`, `"2024-1-1"`}},
		{`{"type":"string","format":"date-time"}`,
			[]string{`"2024-02-28T23:59:59Z"`, `"2024-02-28T23:59:59.5+02:00"`}, []string{`"2024-02-28"`,
				`"2024-02-28T24:00:00Z"`}},
		{`{"type":"string","format":"uuid"}`, []string{`"123e4567-e89b-12d3-a456-426614174000"`}, []string{`"123e4567"`}},
		{`{"type":"string","format":"ipv4"}`, []string{`"1.2.3.255"`}, []string{`"1.2.3.256"`, `"1.2.3"`}},
		{`{"type":"string","format":"email"}`, []string{`"a.b@c.de"`}, []string{`"a@b"`, `"@c.de"`}},
		{`{"type":"string","format":"ipv6"}`, []string{`"::"`, `"1:2:3:4:5:6:7:8"`, `"1::8"`, `"::ffff:1.2.3.4"`, `"1:2:3:4:5:6:7::"`, `"1:2:3:4:5::8"`},
			[]string{`"1:2:3:4:5:6:7"`, `"1::2::3"`, `"1:2:3:4:5:6:7:8:9"`, `"g::"`, `"1:2:3:4:5:6:7::8"`, `":"`}},
		{`{"type":"string","format":"duration"}`, []string{`"P1Y2M3D"`, `"PT1H30M"`, `"P2W"`, `"P1DT1S"`}, []string{`"P"`, `"PT"`, `"1D"`, `"P1S"`}},
		{`{"type":"string","format":"uri"}`, []string{`"https://u@a.b:80/c/d?e=f#g"`, `"mailto:a@b"`, `"urn:a:b"`}, []string{`"a b"`, `"/a"`, `"http://a b"`, `"a"`}},
		{`{"type":"string","format":"hostname"}`, []string{`"a-b.c"`, `"a"`}, []string{`"-a"`, `"a..b"`, `"a_b"`}},
		{`{"type":"string","format":"json-pointer"}`, []string{`""`, `"/a~0/~1"`}, []string{`"a"`, `"/~2"`}},
		{`{"type":"string","pattern":"b","minLength":2,"maxLength":3}`, []string{`"ab"`, `"bé€"`, `"b\""`}, []string{`"b"`, `"aa"`, `"abcd"`, `"\u0062a"`}},
		{`{"type":"number","multipleOf":0.25}`, []string{`0.5`, `-1.250`, `3`, `0`}, []string{`0.3`, `0.251`, `1e2`, `1.`}},
		{`{"type":"integer","multipleOf":7,"minimum":-14,"maximum":100}`, []string{`-14`, `98`, `0`}, []string{`-21`, `105`, `8`, `7.0`}},
		{`{"type":"string","not":{"const":"a"}}`, []string{`"b"`, `"\\"`, `"aa"`, `""`}, []string{`"a"`, `"\"`, `"\u00"`}},
		{`{"type":"integer","not":{"if":{"minimum":5},"then":{"maximum":7}}}`, []string{`8`}, []string{`3`, `6`}},
		{`{"type":"integer","not":{"if":{"minimum":5},"else":{"maximum":2}}}`, []string{`3`, `4`}, []string{`1`, `6`}},
		{`{"type":"object","properties":{"a":true,"b":true},"not":{"properties":{"a":{"type":"integer"}}}}`, []string{`{"a":"x"}`, `{"a":null,"b":1}`}, []string{`{}`, `{"b":1}`, `{"a":1}`}},
		{`{"type":"object","properties":{"a":true,"b":true},"not":{"dependentRequired":{"a":["b"]}}}`, []string{`{"a":1}`}, []string{`{}`, `{"b":1}`, `{"a":1,"b":1}`}},
		{`{"type":"number","not":{"type":"integer"}}`, []string{`0.5`, `-12.050`}, []string{`1`, `1.0`, `-0.00`}},
		{`{"not":{"enum":["a",1,null,true]}}`, []string{`"b"`, `""`, `2`, `1.01`, `false`, `{"a":1}`}, []string{`"a"`, `1`, `1.00`, `null`, `true`}},
		{`{"type":"array","items":{"enum":["a",1,null]},"uniqueItems":true,"minItems":1,"maxItems":2}`, []string{`["a"]`, `[1, "a"]`, `[null,1]`},
			[]string{`[]`, `[1,1]`, `["a",null,"a"]`, `["a",1,null]`}},
		{`{"type":"array","items":{"enum":[1,2,3]},"uniqueItems":true,"minItems":2}`, []string{`[1,2]`, `[3,1,2]`}, []string{`[]`, `[1]`, `[1,1]`}},
		{`{"type":"array","prefixItems":[{"type":"boolean"}],"items":{"const":true},"uniqueItems":true}`, []string{`[]`, `[false,true]`, `[true]`}, []string{`[true,true]`, `[false,false]`}},
		{`{"type":"object","patternProperties":{"^n":{"type":"integer"},"s$":{"type":"integer","minimum":5}}}`, []string{`{}`, `{"n1":1,"as":5,"ns":7}`}, []string{`{"x":1}`, `{"ns":1}`, `{"n":"a"}`}},
		{`{"type":"object","propertyNames":{"enum":["a","b"]},"additionalProperties":{"type":"integer"}}`, []string{`{}`, `{"a":1,"b":2}`, `{"b":1}`}, []string{`{"c":1}`, `{"a":1,"a":1}`}},
		{`{"type":"object","propertyNames":{"pattern":"^[a-z]+$","maxLength":2}}`, []string{`{"ab":1}`}, []string{`{"abc":1}`, `{"A":1}`, `{"":1}`}},
		{`{"type":"object","properties":{"a":true,"b":true,"c":true},"minProperties":2,"maxProperties":2}`, []string{`{"a":1,"c":2}`, `{"b":1,"c":1}`}, []string{`{}`, `{"a":1}`, `{"a":1,"b":1,"c":1}`}},
		{`{"type":"object","minProperties":1,"additionalProperties":{"type":"null"}}`, []string{`{"a":null}`, `{"a":null,"b":null,"c":null}`}, []string{`{}`}},
		{`{"type":"object","properties":{"a":true,"b":true},"dependentRequired":{"a":["b"]}}`, []string{`{}`, `{"b":1}`, `{"a":1,"b":1}`}, []string{`{"a":1}`}},
		{`{"type":"object","properties":{"k":{"enum":["x","y"]},"n":{"type":"integer"}},"required":["k"],"if":{"properties":{"k":{"const":"x"}}},"then":{"required":["n"]},"else":{"properties":{"n":false}}}`,
			[]string{`{"k":"x","n":1}`, `{"k":"y"}`}, []string{`{"k":"x"}`, `{"k":"y","n":1}`, `{}`}},
		{`{"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"null"},"a":{"minimum":3}}}]}`,
			[]string{`{"a":3,"b":null}`, `{"a":4}`}, []string{`{"a":2}`, `{"b":null}`, `{"a":3,"c":1}`}},
		{`{"$ref":"#/$defs/a","maxLength":2,"$defs":{"a":{"type":"string"}}}`, []string{`"ab"`}, []string{`"abc"`, `1`}},
		{`{"properties":{"a":{"items":{"not":{}}}}}`, []string{`{"a":[]}`, `{}`}, []string{`{"a":[1]}`}},
		{`{"$ref":"#/$defs/t","$defs":{"t":{"allOf":[{"type":"object","properties":{"t":{"$ref":"#/$defs/t"}}},{"maxProperties":1}]}}}`, []string{`{"t":{"t":{}}}`}, []string{`{"t":1}`}},
	} {
		f := schemaOf(t, tt.schema)
		for _, text := range tt.yes {
			if !f.Matches(text) {
				t.Errorf("%s: %s does not follow it", tt.schema, text)
			}
		}
		for _, text := range tt.not {
			if f.Matches(text) {
				t.Errorf("%s: %s follows it", tt.schema, text)
			}
		}
	}
}

func TestRefusedSchemas(t *testing.T) {
	for schema, want := range map[string]string{
		`{"properties":{"a":{"contains":{}}}}`: `the schema.properties.a has "contains", which is not supported`,
		`{"unevaluatedProperties":false}`:      `the schema has "unevaluatedProperties", which is not supported`,
		`{"must have":["a"]}`:                  `the schema has "must have", which is not supported`,
		`{"not":{"items":{}}}`:                 `the schema.not.items is not supported under "not" or in an "if"`,
		`{"not":{"properties":{"a":{"not":{"items":{}}}},"additionalProperties":false}}`: `the schema.not.additionalProperties is not supported under "not"`,
		`{"not":{"const":{"a":1}}}`:                            `the schema.not.const with an object or a list is not supported under "not"`,
		`{"not":{}}`:                                           `no text has the form`,
		`{"not":{"minItems":0}}`:                               `no text has the form`,
		`{"type":"number","multipleOf":0}`:                     `the schema.multipleOf must be above 0`,
		`{"type":"number","multipleOf":123456.789}`:            `the schema.multipleOf has too many digits: without its point, the number is at most 3276`,
		`{"type":"array","uniqueItems":true}`:                  `the schema.uniqueItems is supported for items of at most 10 values`,
		`{"type":"object","patternProperties":{"(?=a)":true}}`: `the schema.patternProperties: error parsing regexp`,
		`{"type":"object","patternProperties":{"a":true,"b":true,"c":true,"d":true,"e":true,"f":true,"g":true}}`: `more than 6 patterns`,
		`{"type":"object","dependentRequired":{"a":["b"]}}`:                                                      `the schema: "a" is required, and properties has no schema for it`,
		`{"type":"number","minimum":2,"maximum":1}`:                                                              `no text has the form`,
		`{"allOf":[]}`:         `the schema.allOf must be a list with something in it`,
		`{"$ref":"http://x"}`:  `the schema.$ref must be a text that begins with #`,
		`{"$ref":"#/$defs/x"}`: `the schema has no #/$defs/x`,
		`{"$ref":"#"}`:         `the schema refers to itself without anything between`,
		`{"anyOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},{"type":"null"}]},"b":{"$ref":"#/$defs/a"}}}`: `refers to itself without anything between`,
		`{"type":"text"}`:                                             `the schema.type is text, must be one of array, boolean, integer, null, number, object, string`,
		`{"type":"string","format":"iri"}`:                            `the schema.format is "iri"; supported are date, date-time, duration, email, hostname, ipv4, ipv6, json-pointer, time, uri, uuid`,
		`{"type":"string","pattern":"(?=a)"}`:                         `the schema.pattern: invalid or unsupported Perl syntax`,
		`{"type":"object","required":["a"]}`:                          `the schema.required: "a" is required, and properties has no schema for it`,
		`{"items":[{}]}`:                                              `prefixItems has those`,
		`{"minItems":-1}`:                                             `the schema.minItems must be an integer from 0`,
		`{"minLength":1,"minItems":1}`:                                `has keywords of several types and no "type"`,
		`{"type":"number","minimum":1e-30}`:                           `a bound has at most 18 digits`,
		`{"type":"integer","minimum":1e9999999}`:                      `the schema.minimum must be a number`,
		`{"type":"integer","minimum":2,"maximum":1}`:                  `no text has the form`,
		`{"type":"object","properties":{"a":false},"required":["a"]}`: `no text has the form`,
		`{"enum":[]}`:                                                 `must be a list with something in it`,
		`[]`:                                                          `the schema must be an object`,
		`{"a":1,"a":2}`:                                               `has two members "a"`,
		`{`:                                                           `the schema is not JSON`,
		`{} {}`:                                                       `has more than one JSON value`,
		`{"type":"array","minItems":200000,"items":{"type":"string","minLength":9}}`: `the form is too large`,
	} {
		if err := (Spec{Schema: json.RawMessage(schema)}).Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", schema, err, want)
		}
	}
}

// valid reports whether a value follows a schema: an independent reading of the keywords that forms support.
func valid(root, schema, v any) bool {
	s, ok := schema.(map[string]any)
	if !ok {
		return schema == true
	}
	number := func(name string) (*big.Rat, bool) {
		n, ok := s[name].(json.Number)
		x, _ := new(big.Rat).SetString(string(n))
		return x, ok
	}
	least := func(n int, lo, hi string) bool {
		x, low := number(lo)
		y, high := number(hi)
		return !(low && x.Cmp(big.NewRat(int64(n), 1)) > 0) && !(high && y.Cmp(big.NewRat(int64(n), 1)) < 0)
	}
	if ref, ok := s["$ref"].(string); ok {
		to := root
		for _, part := range strings.Split(ref, "/")[1:] {
			to = to.(map[string]any)[part]
		}
		return valid(root, to, v)
	}
	if list, ok := s["anyOf"].([]any); ok && !slices.ContainsFunc(list, func(x any) bool { return valid(root, x, v) }) {
		return false
	}
	if list, ok := s["enum"].([]any); ok && !slices.ContainsFunc(list, func(x any) bool { return fmt.Sprint(x) == fmt.Sprint(v) }) {
		return false
	}
	kind := map[string]bool{"object": false}
	switch v := v.(type) {
	case map[string]any:
		kind["object"] = true
		props, _ := s["properties"].(map[string]any)
		for _, name := range asList(s["required"]) {
			if _, ok := v[name.(string)]; !ok {
				return false
			}
		}
		for name, x := range v {
			of, ok := props[name]
			if !ok {
				of, ok = s["additionalProperties"], s["additionalProperties"] != nil || len(props) == 0
				if of == nil {
					of = true
				}
			}
			if !ok || !valid(root, of, x) {
				return false
			}
		}
	case []any:
		kind["array"] = true
		if !least(len(v), "minItems", "maxItems") {
			return false
		}
		for _, x := range v {
			if of, ok := s["items"]; ok && !valid(root, of, x) {
				return false
			}
		}
	case string:
		kind["string"] = true
		p, ok := s["pattern"].(string)
		if !least(utf8.RuneCountInString(v), "minLength", "maxLength") || ok && !regexp.MustCompile(p).MatchString(v) {
			return false
		}
	case json.Number:
		x, _ := new(big.Rat).SetString(string(v))
		kind["number"], kind["integer"] = true, x.IsInt()
		lo, low := number("minimum")
		hi, high := number("exclusiveMaximum")
		if low && x.Cmp(lo) < 0 || high && x.Cmp(hi) >= 0 {
			return false
		}
	case bool:
		kind["boolean"] = true
	case nil:
		kind["null"] = true
	}
	types := asList(s["type"])
	return s["type"] == nil || slices.ContainsFunc(types, func(x any) bool { return kind[x.(string)] })
}

func asList(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	if v == nil {
		return nil
	}
	return []any{v}
}

func decoded(t testing.TB, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil || !json.Valid([]byte(text)) {
		t.Fatalf("%s is not JSON: %v", text, err)
	}
	return v
}

const tree = `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":["integer","string"],"minimum":-3,"maxLength":4},
	"kids":{"type":"array","items":{"$ref":"#/$defs/n"},"maxItems":2}},"required":["v","kids"]}}}`

// Drawn texts follow their schemas.
func TestDrawnJSONIsValid(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	vocab := bytewise(`{"`, `":`, `": `, `, "`, `",`, `"}`, `]}`, "[]", "{}", "true", "null", "\n  ", "12", `\u00`, "é", `"a"`, `]}]}`)
	ended := 0
	for _, schema := range []string{tree, `{}`, `{"type":"object"}`,
		`{"type":"object","properties":{"name":{"type":"string","pattern":"^[A-Z][a-z]*( [A-Z]\\.)?$"},"age":{"type":"integer","minimum":0,"exclusiveMaximum":150},
			"tags":{"type":"array","items":{"enum":["a","b c",{"d":1}]},"minItems":1,"maxItems":3},"x":{"type":"number","minimum":-0.25,"exclusiveMaximum":12.5}},
			"required":["name","tags"],"additionalProperties":{"anyOf":[{"type":"null"},{"type":"boolean"}]}}`,
		`{"type":"array","items":{"type":"string","minLength":1,"maxLength":3},"minItems":2}`,
	} {
		f := formOf(t, Spec{Schema: json.RawMessage(schema)}, vocab)
		root := decoded(t, schema)
		for range 60 {
			text, all := draw(t, r, f, vocab, 400)
			if !all {
				continue
			}
			ended++
			if !valid(root, root, decoded(t, text)) {
				t.Errorf("%s does not follow %s", text, schema)
			}
		}
	}
	if ended < 100 {
		t.Errorf("%d texts ended", ended)
	}
}

// Bounds of integers and of numbers hold for all numbers near them.
func TestBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	for range 60 {
		lo := r.IntN(2500) - 1250
		hi := lo + r.IntN(1500)
		names := [2]string{"minimum", "maximum"}
		if r.IntN(2) == 0 {
			names = [2]string{"exclusiveMinimum", "exclusiveMaximum"}
		}
		strict := names[0] != "minimum"
		fits := func(x, lo, hi float64) bool {
			return !strict && lo <= x && x <= hi || strict && lo < x && x < hi
		}
		spec := Spec{Schema: json.RawMessage(fmt.Sprintf(`{"type":"integer","%s":%d,"%s":%d}`, names[0], lo, names[1], hi))}
		f, err := New(spec, &Vocabulary{})
		for n := lo - 30; n <= hi+30 && err == nil; n++ {
			if got, want := f.Matches(fmt.Sprint(n)), fits(float64(n), float64(lo), float64(hi)); got != want {
				t.Fatalf("%s: %d: %v", spec.Schema, n, got)
			}
		}
		spec.Schema = json.RawMessage(fmt.Sprintf(`{"type":"number","%s":%d.%02de-1,"%s":%d.%02d}`, names[0], lo,
			r.IntN(100), names[1], hi/10+1, r.IntN(100)))
		s := decoded(t, string(spec.Schema)).(map[string]any)
		low, _ := s[names[0]].(json.Number).Float64()
		high, _ := s[names[1]].(json.Number).Float64()
		if f, err = New(spec, &Vocabulary{}); err != nil {
			if low < high {
				t.Errorf("%s: %v", spec.Schema, err)
			}
			continue
		}
		for range 300 {
			n := int(1000*low) + r.IntN(int(1000*(high-low))+200) - 100
			text := fmt.Sprintf("%.3f", float64(n)/1000)
			if r.IntN(4) == 0 {
				text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
			}
			if x := float64(n) / 1000; x != low && x != high && text != "-0" && f.Matches(text) != fits(x, low, high) {
				t.Fatalf("%s: %s: %v", spec.Schema, text, f.Matches(text))
			}
		}
	}
	f := schemaOf(t, `{"type":"number","minimum":0.5,"exclusiveMaximum":2}`)
	for text, want := range map[string]bool{"0.5": true, "0.50": true, "0.49999": false, "0.5000001": true, "1": true,
		"1.99": true, "2": false, "2.0": false, "-1": false, "5e-1": false} {
		if f.Matches(text) != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
}

// Compact JSON has white space in texts only.
func TestCompactJSON(t *testing.T) {
	vocab := pieces{"", "{", "}", "[", "]", `"`, ",", ":", " ", "\n", "a", "b", "1", "2", "-", ".", "e", "true", "null", `": "`, `, "`, `":[`}
	r := rand.New(rand.NewPCG(5, 5))
	for _, s := range []string{
		`{}`, `{"type":"object"}`, `{"type":"array","items":{"type":"array"},"maxItems":3}`,
		`{"type":"array","prefixItems":[{"type":"integer"},{"type":"null"}],"minItems":1,"maxItems":3}`,
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"enum":[1,[1,{"a b":null}],{"a":1,"b":2}]}},"required":["b"]}`,
		`{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":{"type":"null"},"minProperties":1,"maxProperties":2}`,
		`{"type":"array","items":{"enum":[1,2,12]},"uniqueItems":true,"minItems":2}`,
	} {
		compact := formOf(t, Spec{Schema: json.RawMessage(s), Compact: true}, vocab)
		loose := formOf(t, Spec{Schema: json.RawMessage(s)}, vocab)
		ended, spaced := 0, false
		for range 60 {
			text, all := draw(t, r, compact, vocab, 60)
			if all {
				var b bytes.Buffer
				if err := json.Compact(&b, []byte(text)); err != nil || b.String() != text || !loose.Matches(text) {
					t.Errorf("%s: %q, %v", s, text, err)
				}
				ended++
			}
			text, all = draw(t, r, loose, vocab, 60)
			var b bytes.Buffer
			if all && json.Compact(&b, []byte(text)) == nil {
				spaced = spaced || b.String() != text
				if !compact.Matches(b.String()) || b.String() != text && compact.Matches(text) {
					t.Errorf("%s: %q", s, text)
				}
			}
		}
		if ended < 5 || !spaced {
			t.Errorf("%s: %d texts ended, some have spaces: %v", s, ended, spaced)
		}
	}
}
