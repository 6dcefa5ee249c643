package form

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"exp/train/rollout"
)

// pieces is a vocabulary of given texts. An empty one is a special token.
type pieces []string

func (p pieces) Piece(id int32) []byte { return []byte(p[id]) }
func (p pieces) VocabSize() int        { return len(p) }

// bytewise has all bytes and more texts; some end within characters.
func bytewise(more ...string) pieces {
	p := pieces{""}
	for b := range 256 {
		p = append(p, string([]byte{byte(b)}))
	}
	return append(p, more...)
}

func formOf(t testing.TB, s Spec, p pieces) *Form {
	t.Helper()
	f, err := New(s, NewVocabulary(p))
	if err != nil {
		t.Fatalf("%+v: %v", s, err)
	}
	return f
}

// Matches reports whether a whole text has the form.
func (f *Form) Matches(text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.after(f.current(f.begin), []byte(text))
	return s != f.dead && s.ends
}

// allowed reports whether a mask has a token.
func allowed(mask []uint32, token int) bool { return mask[token/32]>>(token%32)&1 == 1 }

// randomRegex writes an expression over a few characters.
func randomRegex(r *rand.Rand, depth int) string {
	if depth == 0 || r.IntN(4) == 0 {
		return []string{"a", "b", "é", "[ab]", "[^a]", ".", `\d`, "ab", "(?i:a)", "€", "[à-ü]", `\x{1F600}`, "()"}[r.IntN(13)]
	}
	sub := func() string { return randomRegex(r, depth-1) }
	switch r.IntN(6) {
	case 0:
		return "(?:" + sub() + ")*"
	case 1:
		return "(?:" + sub() + ")?"
	case 2:
		return fmt.Sprintf("(?:%s){%d,%d}", sub(), r.IntN(2), 1+r.IntN(3))
	case 3:
		return "(?:" + sub() + "|" + sub() + ")"
	case 4:
		return "(" + sub() + ")+"
	}
	return sub() + sub()
}

// randomText draws from characters that the expressions have, and others.
func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(6) {
		b.WriteString([]string{"a", "b", "A", "é", "1", "\n", "€", "😀", "c"}[r.IntN(9)])
	}
	return b.String()
}

func TestRegexIsGos(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	matched := 0
	for range 300 {
		pattern := randomRegex(r, 3)
		re := regexp.MustCompile(`^(?:` + pattern + `)$`)
		f := formOf(t, Spec{Regex: pattern}, bytewise())
		for range 40 {
			text := randomText(r)
			want := re.MatchString(text)
			if got := f.Matches(text); got != want {
				t.Fatalf("%q matches %q: got %v, want %v", pattern, text, got, want)
			}
			if want {
				matched++
			}
		}
	}
	if matched < 500 {
		t.Errorf("only %d texts matched", matched)
	}
	for pattern, texts := range map[string][2]string{
		`^a+$`: {"aa", "b"}, `^(?:a$|^b$)`: {"b", "ab"}, `(?i)Straße`: {"STRAßE", "STRASSE"}, `(?s).`: {"\n", "ab"}, `a{2,}b??`: {"aaab", "ab"},
		`\pL\p{Lu}`: {"éÉ", "éé"}, `[^\n]*`: {"", "\n"}, `\Aa\z`: {"a", "aa"}, `(^a|^b)c$`: {"bc", "abc"},
	} {
		f := formOf(t, Spec{Regex: pattern}, bytewise())
		if !f.Matches(texts[0]) || f.Matches(texts[1]) {
			t.Errorf("%q matches %q: %v, %q: %v", pattern, texts[0], f.Matches(texts[0]), texts[1], f.Matches(texts[1]))
		}
	}
}

// A token may come if and only if a text begins with what it leads to, whatever tokens the texts are cut into.
func TestMasksOfChoices(t *testing.T) {
	vocab := bytewise("ab", "abc", "b", "bc", "é", "\xc3", "\xa9t", "t\xc3", "été", "  ", "", "abcd")
	choices := []string{"abcd", "abé", "été", "bcbc", "a"}
	f := formOf(t, Spec{Choice: choices}, vocab)
	seen := 0
	var walk func(s rollout.FormState, text string)
	walk = func(s rollout.FormState, text string) {
		seen++
		if got, want := s.Ends(), slices.Contains(choices, text); got != want {
			t.Fatalf("%q ends: %v", text, got)
		}
		if got, want := s.More(), slices.ContainsFunc(choices,
			func(c string) bool { return len(c) > len(text) && strings.HasPrefix(c, text) }); got != want {
			t.Fatalf("%q goes on: %v", text, got)
		}
		mask := s.Mask()
		for id, piece := range vocab {
			want := piece != "" && slices.ContainsFunc(choices, func(c string) bool { return strings.HasPrefix(c, text+piece) })
			next := s.Next(int32(id))
			if got := allowed(mask, id); got != want || (next != nil) != want {
				t.Fatalf("%q then %q: mask %v, next %v, want %v", text, piece, got, next != nil, want)
			}
			if next != nil {
				walk(next, text+piece)
			}
		}
	}
	walk(f.Begin(), "")
	if seen < 20 {
		t.Errorf("%d states", seen)
	}
}

// draw draws a completion of a form, at most n tokens. It fails where nothing may come.
func draw(t testing.TB, r *rand.Rand, f *Form, vocab pieces, n int) (text string, ended bool) {
	t.Helper()
	s := f.Begin()
	var b strings.Builder
	for range n {
		if s.Ends() && (!s.More() || r.IntN(3) == 0) {
			return b.String(), true
		}
		var list []int32
		mask := s.Mask()
		for id := range vocab {
			if allowed(mask, id) {
				list = append(list, int32(id))
			}
		}
		if len(list) == 0 {
			t.Fatalf("nothing may come after %q", b.String())
		}
		token := list[r.IntN(len(list))]
		b.WriteString(vocab[token])
		if s = s.Next(token); s == nil {
			t.Fatalf("the mask after %q has %q, and it may not come", strings.TrimSuffix(b.String(), vocab[token]), vocab[token])
		}
	}
	return b.String(), s.Ends()
}

// Completions of random expressions match them, with tokens that have all bytes and with a few characters.
func TestDrawnTextsMatch(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	few := pieces{"", "a", "b", "é", "ab", "1", "bé1", "\xc3"}
	ended, impossible := 0, 0
	for range 200 {
		pattern := randomRegex(r, 3)
		re := regexp.MustCompile(`^(?:` + pattern + `)$`)
		for i, vocab := range []pieces{bytewise("aa", "ab", "é1", "\xc3\xa9\xc3", "\xac", "\x82\xac"), few} {
			f, err := New(Spec{Regex: pattern}, NewVocabulary(vocab))
			if err != nil {
				if impossible++; i == 0 {
					t.Fatalf("%q: %v", pattern, err)
				}
				continue
			}
			for range 3 {
				text, all := draw(t, r, f, vocab, 60)
				if all && !re.MatchString(text) {
					t.Fatalf("%q does not match %q", text, pattern)
				}
				if all {
					ended++
				}
			}
		}
	}
	if ended < 900 || impossible == 0 || impossible > 100 {
		t.Errorf("%d completions ended, %d expressions have no text of the tokens", ended, impossible)
	}
}

// The same states come out of a table that was emptied.
func TestFullTables(t *testing.T) {
	vocab := bytewise(`{"`, `": `, `[[`, `]]`, `}}`)
	f := formOf(t, Spec{Object: true}, vocab)
	walk := func(empties bool) (list []string) {
		r := rand.New(rand.NewPCG(5, 6))
		s := f.Begin()
		for i := 0; i < 60; i++ {
			if empties && i%7 == 3 {
				f.t = newTable(f)
			}
			mask := s.Mask()
			list = append(list, fmt.Sprint(s.Ends(), s.More(), mask))
			var fit, opens []int32
			for token, piece := range vocab {
				if allowed(mask, token) && utf8.ValidString(piece) {
					fit = append(fit, int32(token))
					if strings.ContainsAny(piece, `{["`) {
						opens = append(opens, int32(token))
					}
				}
			}
			if i < 30 && len(opens) > 0 {
				fit = opens
			}
			if s = s.Next(fit[r.IntN(len(fit))]); !s.More() {
				break
			}
		}
		return list
	}
	want := walk(false)
	if got := walk(true); !slices.Equal(got, want) || len(want) < 12 {
		t.Errorf("%d states and %d", len(got), len(want))
	}
}

// Where a mask leads to more states than a table holds, it is the same.
func TestManyStates(t *testing.T) {
	vocab := bytewise("aa", "ab", "ba", "bb", "aaa", "abba", "babab", "aababb", "bbbbbbbb", "abcabc")
	f, full := formOf(t, Spec{Regex: `[ab]*a[ab]{12}c`}, vocab), formOf(t, Spec{Regex: `[ab]*a[ab]{12}c`}, vocab)
	full.room = 3000
	r, most := rand.New(rand.NewPCG(6, 6)), 0
	for range 20 {
		s, u := f.Begin(), full.Begin()
		for s.More() {
			a, b := s.Mask(), u.Mask()
			most = max(most, len(full.t.states))
			if !slices.Equal(a, b) || s.Ends() != u.Ends() {
				t.Fatal("masks differ")
			}
			token := r.IntN(len(vocab))
			for !allowed(a, token) {
				token = r.IntN(len(vocab))
			}
			s, u = s.Next(int32(token)), u.Next(int32(token))
		}
	}
	if len(f.t.states) < 3*most {
		t.Errorf("a small table has %d states, a large one %d", most, len(f.t.states))
	}
}

// Texts that can be read in very many ways take no more room than others.
func TestManyReadings(t *testing.T) {
	const deep = 16
	defs := ""
	for i := range deep {
		defs += fmt.Sprintf(`"n%d":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/n%d"}},{"type":"array","items":{"$ref":"#/$defs/n%[2]d"}}]},`, i, i+1)
	}
	f := schemaOf(t, fmt.Sprintf(`{"$ref":"#/$defs/n0","$defs":{%s"n%d":{"type":"null"}}}`, defs, deep))
	s := f.Begin()
	for range deep {
		if s = s.Next('[' + 1); len(s.(*state).configs) > 40 {
			t.Fatalf("%d configs", len(s.(*state).configs))
		}
	}
	open, shut := strings.Repeat("[", deep), strings.Repeat("]", deep)
	if !f.Matches(open+"null, null"+shut) || f.Matches(open+"[null]"+shut) || f.Matches(open+"null"+shut[1:]) {
		t.Error("deep lists are read wrongly")
	}
	f.t = newTable(f)
	if s = s.Next('n' + 1); s == nil || s.Next('u'+1) == nil || s.Next(']'+1) != nil {
		t.Error("a state that moves to another table is another one")
	}
}

// Where a rule goes on at places that several callers share, it goes on at these alone.
func TestSharedPlaces(t *testing.T) {
	f := schemaOf(t, `{"anyOf": [{"type":"array","items":{"$ref":"#/$defs/b"}}, {"type":"array","items":{"$ref":"#/$defs/c"}},
		{"type":"array","items":{"anyOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/c"}]}}], "$defs": {"b":{"anyOf":[{"$ref":"#/$defs/d"},{"const":1}]},
		"c":{"anyOf":[{"$ref":"#/$defs/d"},{"const":2}]}, "d":{"type":"array","items":{"const":3}}}}`)
	for text, want := range map[string]bool{"[[3]]": true, "[[3],1,1]": true, "[2,[3,3]]": true, "[1,[3],2]": true, "[[3]": false, "[[3]3": false} {
		if f.Matches(text) != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
}

func TestThoughts(t *testing.T) {
	f := formOf(t, Spec{Choice: []string{"yes", "no"}, Thoughts: "</think>"}, bytewise())
	for text, want := range map[string]bool{"hm <</think>yes": true, "</think>\n\nno": true, "yes": false, "a</think>b</think>yes": false,
		"é</think>yes": true, "</think>\n\n\nno": false, "</think": false} {
		if got := f.Matches(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestRefusedForms(t *testing.T) {
	few := NewVocabulary(pieces{"a", "b"})
	for _, tt := range []struct {
		s    Spec
		v    *Vocabulary
		want string
	}{
		{Spec{Regex: `a(?=b)`}, nil, "regex: invalid or unsupported Perl syntax: \"(?=\""},
		{Spec{Regex: `(a)\1`}, nil, `regex: invalid escape sequence`},
		{Spec{Regex: `a\b`}, nil, `regex: "\\b" is not supported where it stands`},
		{Spec{Regex: `a^b`}, nil, `is not supported where it stands`},
		{Spec{Regex: `(?m)^a`}, nil, `"(?m:^)" is not supported where it stands`},
		{Spec{Regex: `[^\x00-\x{10FFFF}]`}, nil, "no text has the form"},
		{Spec{Regex: `c`}, few, "the model's tokens can write none that does"},
		{Spec{Object: true}, few, "json: no text has the form"},
		{Spec{Choice: []string{}}, nil, "choice: must have at least one text"},
		{Spec{Regex: `((\pL{900}){20}){30}`}, nil, "regex: "},
		{Spec{}, nil, "form: says nothing"},
	} {
		v := tt.v
		if v == nil {
			v = &Vocabulary{}
		}
		if _, err := New(tt.s, v); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.s, err, tt.want)
		}
	}
}

func TestCalls(t *testing.T) {
	vocab := bytewise("", "", "\xff\x00") // 257 and 258 are special tokens
	marks := map[int32]string{257: "[CALLS]", 258: "[ARGS]"}
	c := Calls{Frames: []Frame{{Begin: "[CALLS][", End: "]", Open: `{"name": "`, Between: `", "arguments": `, Close: "}", Separator: ", "}}, Many: true,
		Tools: []Tool{{Name: "f", Parameters: []byte(`{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}`)}, {Name: "g"}}}
	read := func(f *Form, tokens ...any) (ok bool) {
		s := f.Begin()
		for _, x := range tokens {
			list := []int32{}
			switch x := x.(type) {
			case int:
				list = append(list, int32(x))
			case string:
				for _, b := range []byte(x) {
					list = append(list, int32(b)+1)
				}
			}
			for _, token := range list {
				next := s.Next(token)
				if allowed(s.Mask(), int(token)) != (next != nil) {
					t.Fatalf("token %d: mask and next differ", token)
				}
				if next == nil {
					return false
				}
				s = next
			}
		}
		return s.Ends()
	}
	f := formOf(t, Spec{Calls: &c, Marks: marks}, vocab)
	const one, two = `[{"name": "f", "arguments": {"x": 3}}]`, `[{"name": "g", "arguments": {"a":[1]}}, {"name": "f", "arguments": {"x":-0}}]`
	for _, tt := range []struct {
		tokens []any
		want   bool
	}{
		{[]any{257, one}, true}, {[]any{257, two}, true}, {[]any{"[CALLS]", one}, false}, {[]any{258, one}, false}, {[]any{257, 257}, false},
		{[]any{"\xff\x00", one}, false}, {[]any{259, one}, false}, // bytes as the grammar has them for a token without a text
		{[]any{257, `[{"name": "f", "arguments": {"x": "3"}}]`}, false}, {[]any{257, `[{"name": "f", "arguments": {}}]`}, false}, {[]any{one}, false},
	} {
		if got := read(f, tt.tokens...); got != tt.want {
			t.Errorf("%v: %v", tt.tokens, got)
		}
	}
	c.Many = false
	if f := formOf(t, Spec{Calls: &c, Marks: marks}, vocab); read(f, 257, two) || !read(f, 257, one) {
		t.Error("one call")
	}
	plain := Calls{Frames: []Frame{{Open: "[CALLS]", Between: "[ARGS]"}}, Many: true, Tools: c.Tools}
	f = formOf(t, Spec{Calls: &plain, Marks: marks, Choice: []string{"no call"}}, vocab)
	for _, tokens := range [][]any{{257, "f", 258, `{"x": 1}`}, {257, "f", 258, `{"x": 1}`, 257, "g", 258, `{}`}, {"no call"}} {
		if !read(f, tokens...) {
			t.Errorf("%v is not read", tokens)
		}
	}
	c.Tools[0].Parameters = []byte(`{"contains": {}}`)
	if _, err := New(Spec{Calls: &c}, &Vocabulary{}); err == nil ||
		err.Error() != `tools: the parameters of f: the schema has "contains", which is not supported` {
		t.Error(err)
	}
}

func TestCache(t *testing.T) {
	c := NewCache(bytewise())
	form := func(s Spec) *Form {
		f, err := c.Form(s)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if form(Spec{Regex: "a"}) != form(Spec{Regex: "a"}) || form(Spec{Regex: "a"}) == form(Spec{Choice: []string{"a"}}) {
		t.Error("forms are mixed up")
	}
	calls := func(name string) Spec { return Spec{Calls: &Calls{Frames: []Frame{{}}, Tools: []Tool{{Name: name}}}} }
	if form(calls("f")) != form(calls("f")) || form(calls("f")) == form(calls("g")) {
		t.Error("calls are mixed up")
	}
	for i := range 2 * mostForms {
		form(Spec{Regex: fmt.Sprint(i)})
	}
	if len(c.forms) > mostForms {
		t.Errorf("%d forms are kept", len(c.forms))
	}
}
