package form

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// plainTag is the slow version of structural tags: where a format's texts that begin at a place of a text may end.
type plainTag func(s string, from int) (ends []int)

func plainText(t string) plainTag {
	return func(s string, from int) []int {
		if strings.HasPrefix(s[from:], t) {
			return []int{from + len(t)}
		}
		return nil
	}
}

func plainFree(most int, without []string) plainTag {
	return func(s string, from int) (ends []int) {
		for to := from; to <= len(s); to++ {
			part := s[from:to]
			if !slices.ContainsFunc(without, func(w string) bool { return w != "" && strings.Contains(part, w) }) &&
				(most < 0 || utf8.RuneCountInString(part) <= most) {
				ends = append(ends, to)
			}
		}
		return ends
	}
}

func plainSeq(list ...plainTag) plainTag {
	return func(s string, from int) []int {
		places := map[int]bool{from: true}
		for _, p := range list {
			next := map[int]bool{}
			for at := range places {
				for _, end := range p(s, at) {
					next[end] = true
				}
			}
			places = next
		}
		return slices.Sorted(maps.Keys(places))
	}
}

func plainOr(list ...plainTag) plainTag {
	return func(s string, from int) (ends []int) {
		for _, p := range list {
			ends = append(ends, p(s, from)...)
		}
		slices.Sort(ends)
		return slices.Compact(ends)
	}
}

// plainRepeat stands for least to most times p; most < 0: any number.
func plainRepeat(p plainTag, least, most int) plainTag {
	return func(s string, from int) []int {
		ends, places := map[int]bool{}, map[int]bool{from: true}
		for n := 0; n <= most || most < 0 && n <= least+len(s)+1; n++ {
			next := map[int]bool{}
			for at := range places {
				ends[at] = ends[at] || n >= least
				for _, end := range p(s, at) {
					next[end] = true
				}
			}
			places = next
		}
		maps.DeleteFunc(ends, func(_ int, is bool) bool { return !is })
		return slices.Sorted(maps.Keys(ends))
	}
}

// tagMaker writes random formats.
type tagMaker struct{ r *rand.Rand }

func (m tagMaker) either(list ...string) string { return list[m.r.IntN(len(list))] }

func (m tagMaker) texts(list ...string) (texts []string, raw string) {
	for range 1 + m.r.IntN(2) {
		texts = append(texts, m.either(list...))
	}
	b, _ := json.Marshal(texts)
	return texts, string(b)
}

// format returns a format in both writings. Free text in it has none of stops.
func (m tagMaker) format(depth int, stops []string) (string, plainTag) {
	n := m.r.IntN(10)
	if depth == 0 {
		n %= 4
	}
	switch n {
	case 0:
		s := m.either("a", "b", "<a", "é", "ab")
		return fmt.Sprintf(`{"type":"const_string","value":%q}`, s), plainText(s)
	case 1:
		most := m.r.IntN(4)
		without, raw := m.texts("b", "<a", "é>", "aa", "")
		return fmt.Sprintf(`{"type":"any_text","max_chars":%d,"excludes":%s}`, most, raw), plainFree(most, append(without, stops...))
	case 2:
		return `{"type":"any_text"}`, plainFree(-1, stops)
	case 3:
		return m.either(`{"type":"regex","pattern":"a|bé?"}`, `{"type":"grammar","grammar":"root ::= \"a\" | \"b\" [é]?"}`,
			`{"type":"or","elements":[{"type":"const_string","value":"bé"},{"type":"regex","pattern":"[ab]"}]}`), plainOr(plainText("a"), plainText("b"), plainText("bé"))
	case 4, 5:
		var raws []string
		var list []plainTag
		for range 1 + m.r.IntN(3) {
			raw, p := m.format(depth-1, stops)
			raws, list = append(raws, raw), append(list, p)
		}
		kind, p := "or", plainOr(list...)
		if n == 5 {
			kind, p = "sequence", plainSeq(list...)
		}
		return fmt.Sprintf(`{"type":%q,"elements":[%s]}`, kind, strings.Join(raws, ",")), p
	case 6:
		raw, p := m.format(depth-1, stops)
		switch kind := m.either("optional", "star", "plus"); kind {
		case "optional":
			return fmt.Sprintf(`{"type":%q,"content":%s}`, kind, raw), plainRepeat(p, 0, 1)
		case "star":
			return fmt.Sprintf(`{"type":%q,"content":%s}`, kind, raw), plainRepeat(p, 0, -1)
		default:
			return fmt.Sprintf(`{"type":%q,"content":%s}`, kind, raw), plainRepeat(p, 1, -1)
		}
	case 7:
		raw, p := m.format(depth-1, stops)
		least := m.r.IntN(3)
		most := least + m.r.IntN(3)
		if m.r.IntN(3) == 0 {
			most = -1
		}
		return fmt.Sprintf(`{"type":"repeat","min":%d,"max":%d,"content":%s}`, least, most, raw), plainRepeat(p, least, most)
	case 8:
		raw, p := m.tag(depth, m.either("<a>", "<b>", "", "a"))
		return raw, p
	}
	return m.tags(depth, stops)
}

func (m tagMaker) tag(depth int, begin string) (string, plainTag) {
	ends, raw := m.texts("</a>", ">", "a", "b<", "")
	if m.r.IntN(3) > 0 {
		ends = ends[:1]
		raw = fmt.Sprintf("%q", ends[0])
	}
	content, p := m.format(depth-1, ends)
	var list []plainTag
	for _, e := range ends {
		list = append(list, plainText(e))
	}
	return fmt.Sprintf(`{"type":"tag","begin":%q,"content":%s,"end":%s}`, begin, content, raw), plainSeq(plainText(begin), p, plainOr(list...))
}

func (m tagMaker) tags(depth int, stops []string) (string, plainTag) {
	var raws []string
	var list []plainTag
	for range 1 + m.r.IntN(2) {
		raw, p := m.tag(depth, m.either("<a>", "<b>", "<", "ab"))
		raws, list = append(raws, raw), append(list, p)
	}
	one, least, stop := plainOr(list...), m.r.IntN(2) == 0, m.r.IntN(2) == 0
	rest := fmt.Sprintf(`"tags":[%s],"at_least_one":%v,"stop_after_first":%v`, strings.Join(raws, ","), least, stop)
	from, most := 0, -1
	if least {
		from = 1
	}
	if stop {
		most = 1
	}
	if m.r.IntN(2) == 0 {
		sep := m.either(",", "", "a")
		all := plainSeq(one, plainRepeat(plainSeq(plainText(sep), one), 0, -1))
		if stop {
			all = one
		}
		return fmt.Sprintf(`{"type":"tags_with_separator","separator":%q,%s}`, sep, rest), plainRepeat(all, from, 1)
	}
	without, raw := m.texts("é", ",,")
	free := plainFree(-1, slices.Concat([]string{"<", "ab"}, without, stops))
	all := plainSeq(free, plainRepeat(plainSeq(one, free), 0, most))
	switch {
	case least && stop:
		all = one
	case stop:
		all = plainSeq(free, plainRepeat(one, 0, 1))
	case least:
		all = plainSeq(one, free, plainRepeat(plainSeq(one, free), 0, -1))
	}
	return fmt.Sprintf(`{"type":"triggered_tags","triggers":["<","ab"],"excludes":%s,%s}`, raw, rest), all
}

// Random structural tags have the texts that plain loops find, and what is drawn of them is theirs.
func TestTagsArePlain(t *testing.T) {
	var vocab pieces
	for _, s := range []string{"", "a", "b", "é", "<", ">", "/", ",", "</a>", "<a>", "ab", "é>", "<b", "aa", ",a"} {
		vocab = append(vocab, s)
	}
	v := NewVocabulary(vocab)
	r := rand.New(rand.NewPCG(3, 4))
	m := tagMaker{r}
	yes, no, drawn, empty := 0, 0, 0, 0
	for range 400 {
		raw, plain := m.format(3, nil)
		f, err := New(Spec{Tags: json.RawMessage(`{"type":"structural_tag","format":` + raw + `}`)}, v)
		if err != nil && strings.HasPrefix(err.Error(), "structural_tag: no text has the form") {
			empty++
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		for i := range 12 {
			text := ""
			if i < 4 {
				s, all := draw(t, r, f, vocab, 12)
				if text = s; all {
					drawn++
				}
				if all && !slices.Contains(plain(s, 0), len(s)) {
					t.Fatalf("%s\n%q was drawn", raw, s)
				}
			}
			for range r.IntN(4) {
				text += vocab[1+r.IntN(len(vocab)-1)]
			}
			if i%2 == 0 && text != "" {
				list := []rune(text)
				j := r.IntN(len(list))
				text = string(slices.Delete(list, j, j+1))
			}
			want := slices.Contains(plain(text, 0), len(text))
			if f.Matches(text) != want {
				t.Fatalf("%s\n%q matches: %v", raw, text, !want)
			}
			if want {
				yes++
			} else {
				no++
			}
		}
	}
	if yes < 400 || no < 1000 || drawn < 300 || empty > 100 {
		t.Errorf("%d texts match, %d do not, %d were drawn, %d formats without text", yes, no, drawn, empty)
	}
}

func TestStructuralTags(t *testing.T) {
	const city = `{"type":"object","properties":{"city":{"enum":["Rome","Oslo"]}},"required":["city"]}`
	call := `{"type":"triggered_tags","triggers":["<function="],"tags":[{"type":"tag","begin":"<function=f>",` +
		`"content":{"type":"json_schema","json_schema":` + city + `},"end":"</function>"}]}`
	thoughts := `{"type":"tag","begin":"<think>","content":{"type":"any_text"},"end":["</think>","</t>\n"]}`
	for _, tt := range []struct {
		raw     string
		yes, no []string
	}{
		{`{"type":"structural_tag","structures":[{"begin":"<function=f>","schema":` + city + `,"end":"</function>"}],"triggers":["<function="]}`,
			[]string{"", "hi <fun", `<function=f>{"city":"Oslo"}</function>`, `I ask. <function=f>{"city":"Rome"}</function>x<function=f>{"city":"Oslo"}</function>`},
			[]string{"<function=", `<function=g>{"city":"Oslo"}</function>`, `<function=f>{"city":"Bonn"}</function>`, `a<function=f>{"city":"Rome"}`}},
		{`{"type":"structural_tag","format":{"type":"sequence","elements":[` + thoughts + `,` + call + `]}}`,
			[]string{"<think></think>", "<think>a <function= b</t>c</t>\nd<function=f>{\"city\":\"Rome\"}</function>", "<think></think></think>"},
			[]string{"", "x<think></think>", "<think>a</t>", "<think></think><function=f>{}</function>"}},
		{`{"format":{"type":"tag","begin":"","content":{"type":"json_schema","json_schema":` + city + `,"style":"json"},"end":"."}}`,
			[]string{`{"city":"Rome"}.`}, []string{`{"city":"Rome"}`}},
		{`{"format":{"type":"sequence","elements":[{"type":"grammar","grammar":"root ::= a b\na ::= \"1\"\nb ::= \"2\" b?"},` +
			`{"type":"grammar","grammar":"root ::= a\na ::= \"x\" a? \"y\""}]}}`, []string{"122xxyy"}, []string{"12", "xy", "11xy"}},
	} {
		f := formOf(t, Spec{Tags: json.RawMessage(tt.raw)}, bytewise())
		for i, list := range [][]string{tt.yes, tt.no} {
			for _, text := range list {
				if f.Matches(text) != (i == 0) {
					t.Errorf("%s\n%q matches: %v", tt.raw, text, i != 0)
				}
			}
		}
	}
	wide := strings.Repeat(`{"type":"const_string","value":"a"},`, 2*mostTags)
	if f := formOf(t, Spec{Tags: json.RawMessage(`{"format":{"type":"sequence","elements":[` + wide[:len(wide)-1] + `]}}`)}, bytewise()); !f.Matches(strings.Repeat("a", 2*mostTags)) {
		t.Error("a long sequence")
	}
	f := formOf(t, Spec{Tags: json.RawMessage(`{"format":{"type":"const_string","value":"b"}}`), Thoughts: "</t>",
		Calls: &Calls{Frames: []Frame{{Open: "<", Between: ">"}}, Tools: []Tool{{Name: "f"}}}}, bytewise())
	if !f.Matches("a</t>b") || !f.Matches("</t><f>{}") || f.Matches("b") {
		t.Error("a structural tag behind thoughts, or calls")
	}
}

func TestRefusedTags(t *testing.T) {
	of := func(format string) string { return `{"format":` + format + `}` }
	tag := func(more string) string {
		return of(`{"type":"triggered_tags","triggers":["<"],"tags":[{"type":"tag","begin":"<a","content":{"type":"any_text"},"end":">"` + more)
	}
	for raw, want := range map[string]string{
		`{`: "the structural tag: ", `{}`: `the structural tag needs "format": {"type": …}`, `{"form":1}`: `the structural tag: unknown field "form"`,
		`{"type":"x","format":{}}`: `has the type "x", must be structural_tag`, `{"format":3}`: "format has a value of the type number, which does not fit", `{"format":{},"structures":[]}`: "needs",
		of(`{}`):                                                                                                `format has the type "", which is not supported: const_string,`,
		of(`{"type":"token","token":3}`):                                                                        `format: unknown field "token"`,
		of(`{"type":"dispatch"}`):                                                                               `format has the type "dispatch", which is not supported`,
		of(`{"type":"const_string"}`):                                                                           "format needs value",
		of(`{"type":"const_string","value":3}`):                                                                 "format: its value may not be of the type number",
		of(`{"type":"any_text","max_tokens":3}`):                                                                `format: unknown field "max_tokens"`,
		of(`{"type":"any_text","max_chars":-1}`):                                                                "format has max_chars -1, must be 0 or more",
		of(`{"type":"json_schema"}`):                                                                            "format: json_schema is missing",
		of(`{"type":"json_schema","json_schema":{"contains":{}}}`):                                              `format: the schema has "contains", which is not supported`,
		of(`{"type":"json_schema","json_schema":{},"style":"qwen_xml"}`):                                        `format: the style "qwen_xml" is not supported: json is`,
		of(`{"type":"json_schema","json_schema":{},"any_order":true}`):                                          `unknown field "any_order"`,
		of(`{"type":"regex"}`):                                                                                  "format: pattern is missing",
		of(`{"type":"regex","pattern":"(?=a)"}`):                                                                "format: invalid or unsupported Perl syntax",
		of(`{"type":"grammar","grammar":"root ::= x"}`):                                                         "format: line 1, column 10: the rule x is not defined",
		of(`{"type":"or","elements":[]}`):                                                                       "format needs elements",
		of(`{"type":"or","elements":[{"type":"any_text"},{"type":"star"}]}`):                                    "format.elements[1].content is missing",
		of(`{"type":"repeat","min":1,"content":{"type":"any_text"}}`):                                           "format needs min and max",
		of(`{"type":"repeat","min":2,"max":1,"content":{"type":"any_text"}}`):                                   "format needs min and max",
		of(`{"type":"repeat","min":-1,"max":1,"content":{"type":"any_text"}}`):                                  "format needs min and max",
		of(`{"type":"tag","begin":"a","content":{"type":"any_text"}}`):                                          "format needs end",
		of(`{"type":"tag","begin":"a","content":{"type":"any_text"},"end":null}`):                               "format needs end",
		of(`{"type":"tag","begin":"a","content":{"type":"any_text"},"end":{}}`):                                 "format: its end may not be of the type object",
		of(`{"type":"tag","begin":"a","end":"b"}`):                                                              "format.content is missing",
		of(`{"type":"tag","begin":{"type":"token"},"end":"b"}`):                                                 "format: its begin may not be of the type object",
		of(`{"type":"tags_with_separator","tags":[]}`):                                                          "format needs at least one tag",
		of(`{"type":"tags_with_separator","tags":[{"type":"or"}]}`):                                             `format.tags[0] has the type "or", must be tag`,
		of(`{"type":"triggered_tags","tags":[]}`):                                                               "format needs triggers",
		of(`{"type":"triggered_tags","triggers":[""]}`):                                                         "format needs triggers, none of them empty",
		tag(`},{"type":"tag","begin":"a","content":{"type":"any_text"},"end":">"}]}`):                           `a tag that begins with "a", and so with none of its triggers`,
		`{"structures":[{"begin":"<","schema":{},"end":">"}]}`:                                                  "structures needs triggers",
		`{"structures":[{"begin":"<","end":">"}],"triggers":["<"]}`:                                             "structures[0].schema: the schema is not JSON",
		of(strings.Repeat(`{"type":"star","content":`, 200) + `{"type":"any_text"}` + strings.Repeat("}", 200)): "formats nest deeper than 100",
		of(`{"type":"repeat","min":0,"max":1000,"content":{"type":"repeat","min":0,"max":1000,"content":{"type":"any_text"}}}`): "too large",
	} {
		_, err := New(Spec{Tags: json.RawMessage(raw)}, &Vocabulary{})
		if err == nil || !strings.HasPrefix(err.Error(), "structural_tag: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200s: %v, want %q", raw, err, want)
		}
	}
}
