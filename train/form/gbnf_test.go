package form

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"exp/train/rollout"
)

func grammarForm(t testing.TB, text string, vocab pieces) *Form {
	t.Helper()
	return formOf(t, Spec{Grammar: text}, vocab)
}

// Random grammars are refused if and only if a rule has no text or begins with itself. Their texts, the beginnings of
// these, and the tokens that may come are those of Earley's recogniser.
func TestGrammarsAreEarleys(t *testing.T) {
	vocab := bytewise("ab", "aa", "bé", "\xc3\xa9\xc3", "\xa9a", "€", "\xe2\x82", "\x82\xac", "\n\n", `"]`, "😀a", "\xf0\x9f", "-b", "\xed\xa0", "\xe0\x80", "")
	v := NewVocabulary(vocab)
	r := rand.New(rand.NewPCG(7, 8))
	endless, recursive, good, whole, part := 0, 0, 0, 0, 0
	for good < 150 {
		text, g := randomGrammar(r)
		f, err := New(Spec{Grammar: text}, v)
		want := ""
		switch {
		case g.endless():
			want = "no text is a whole "
			endless++
		case g.leftRecursive():
			want = " begins with itself"
			recursive++
		}
		if want != "" || err != nil {
			if err == nil || want == "" || !strings.Contains(err.Error(), want) {
				t.Fatalf("%s\n%v, want %q", text, err, want)
			}
			continue
		}
		good++
		for range 3 {
			sets := g.after(nil, "")
			s, read := f.Begin(), ""
			for range 6 {
				list := g.next(sets)
				if s.Ends() != g.ends(sets) || s.More() != (len(list) > 0) {
					t.Fatalf("%s\n%q ends: %v, goes on: %v", text, read, s.Ends(), s.More())
				}
				if s.Ends() {
					whole++
				}
				checkMask(t, r, g, sets, s, vocab, text, read)
				c := []rune("abé€\n\"]😀c")[r.IntN(9)]
				if len(list) > 0 && r.IntN(8) > 0 {
					c = randomChar(r, list[r.IntN(len(list))])
				}
				read += string(c)
				sets = g.after(sets, string(c))
				for _, b := range []byte(string(c)) {
					if s = s.Next(int32(b) + 1); s == nil {
						break
					}
				}
				if (s != nil) != (len(sets[len(sets)-1]) > 0) {
					t.Fatalf("%s\n%q begins a text: %v", text, read, s != nil)
				}
				if s == nil {
					break
				}
				part++
			}
		}
	}
	if endless < 20 || recursive < 20 || whole < 300 || part < 1200 {
		t.Errorf("%d grammars without end, %d left recursive, %d whole texts, %d beginnings", endless, recursive, whole, part)
	}
}

// randomChar draws a character of a set.
func randomChar(r *rand.Rand, s symbol) rune {
	for {
		for i := 0; i < len(s.chars); i += 2 {
			lo, hi := s.chars[i], s.chars[i+1]
			for _, c := range []rune{'a', 'b', 'é', '€', '\n', '"', '😀', lo, hi} {
				if lo <= c && c <= hi && r.IntN(4) == 0 {
					return c
				}
			}
		}
	}
}

// checkMask compares a mask with the texts that begin with a token, for some bytes and all longer tokens.
func checkMask(t *testing.T, r *rand.Rand, g *plainGrammar, sets []map[item]bool, s rollout.FormState, vocab pieces,
	text, read string) {
	t.Helper()
	mask := s.Mask()
	ids := []int{'a' + 1, 'c' + 1, '"' + 1, '\n' + 1, 0xC3 + 1, 0xC0 + 1, 0xED + 1, 0xF4 + 1, 0x80 + 1, r.IntN(257)}
	for id := 257; id < len(vocab); id++ {
		ids = append(ids, id)
	}
	for _, id := range ids {
		if want := vocab[id] != "" && g.begins(sets, vocab[id]); allowed(mask, id) != want {
			t.Fatalf("%s\n%q then %q: %v", text, read, vocab[id], !want)
		}
	}
}

// Texts that a grammar reads in very many ways take polynomial time and room. The places that a state has at once say
// so: readings that go on alike share them.
func TestAmbiguousGrammars(t *testing.T) {
	doubling := func(n int) string {
		text := "root ::= r0\n"
		for i := range n {
			text += fmt.Sprintf("r%d ::= r%d r%d\n", i, i+1, i+1)
		}
		return text
	}
	wide, ring := "root ::= ", ""
	for i := range mostRules - 1 {
		wide += fmt.Sprintf("r%d | ", i)
		ring += fmt.Sprintf("r%d ::= [a-c] r%d?\n", i, (i+7)%(mostRules-1))
	}
	as := func(n int) string { return strings.Repeat("a", n) }
	for _, tt := range []struct {
		name, grammar, whole, not string
		places                    int
	}{
		{"two of itself", `root ::= "a" root root | "a"`, as(101), as(100), 1},
		{"nullable loops", "root ::= ((x*)* | (x?)+ y*){0,3}\nx ::= (y | \"a\"?)*\ny ::= \"a\"? (\"b\"? \"\")*", as(200) + "bbab", "ac", 3},
		{"2^200 optional ones", doubling(200) + `r200 ::= "a"?`, as(120), as(120) + "b", 1},
		{"2^40 lists", doubling(40) + `r40 ::= ("a" | "a" r0 "b")?`, as(12) + strings.Repeat("b", 11), as(3) + "bbbb", 13},
		{"all rules at once", wide + "\"d\"\n" + ring, "abcabcc", "dd", mostRules},
		{"palindromes", `root ::= "a" root "a" | "b" root "b" | ""`, as(90) + "bb" + as(90), as(90) + "b" + as(90), 50},
		{"deep", `root ::= "(" root ")" | "a"`, strings.Repeat("(", 5000) + "a" + strings.Repeat(")", 5000), "(((a))))", 2},
		{"nested stars", `root ::= ` + strings.Repeat("(", 90) + `"a"?` + strings.Repeat(")*", 90), as(50), "b", 1},
		{"counts in counts", `root ::= (("a"?){0,20}){0,30}`, as(600), as(601), 600},
	} {
		f := grammarForm(t, tt.grammar, bytewise())
		if f.Matches(tt.not) {
			t.Errorf("%s: matches %.20q", tt.name, tt.not)
		}
		s, most := f.begin, 0
		for _, b := range []byte(tt.whole) {
			s = f.after(f.current(s), []byte{b})
			most = max(most, len(s.configs))
		}
		if !s.ends || most > tt.places {
			t.Errorf("%s: %.20q ends: %v, %d places at once", tt.name, tt.whole, s.ends, most)
		}
	}
}

func TestGrammars(t *testing.T) {
	const arithmetic = "# sums\nroot ::= sum \"=\" num\nsum ::= product ([-+] product)*\nproduct ::= atom ([*/] atom)*\n" +
		"atom ::= num | \"(\" sum \")\"\nnum ::= [1-9] [0-9]{0,2}"
	for _, tt := range []struct{ grammar, yes, no string }{
		{arithmetic, "(1+22)*3/(4-5)=69 12=12 1+2+3=6", "1+=2 01=1 1=1234 (1=1 =1"},
		{"a ::= x\n\n\nroot::=a|b # |\nx ::= \"x\"\r\nb ::=\n  \"b\"\n  | \"c\" |\n\n \"d\"", "x b c d", "a xb"},
		{"root ::= (\"a\"\n\"b\" # end\n)* \"c\"", "c ababc", "ab abac"},
		{`root ::= "a" * + "b"{ 2 } [c]{2,} . ?`, "bbcc abbccX", "abcc abbc abbccXX"},
		{"root ::= ([ab]{\n 1 ,\n3 }\n) \"c\"{2}", "acc babcc", "cc ababcc ac"},
		{`root ::= "\x41\u00e9\U0001F600\"\\\[\]\^\-"`, `Aé😀"\[]^-`, "A"},
		{`root ::= [\x41-C\]\\^-] [^\-a-c] [-]`, `A!- B^- ]é- ^é- -]- \x-`, "D!- Aa- A-- A!b"},
		{`root ::= [^a-yb-cx-z]`, "A é", "d y z"},
		{`root ::= "a"{0} ([b]{1,1} | "c"{0,0} "d")`, "b d", "ab cd bb"},
		{`root ::= "x" (""{0,3} "a")+ ("b"+){2,}`, "xabb xaabbb", "xbb xab"},
		{"root ::= |\"a\"| unused-not \"z\"\nunused-not ::= \"n\"\nunused ::= \"u\" unused?", "a nz", "u z"},
	} {
		f := grammarForm(t, tt.grammar, bytewise())
		for i, texts := range []string{tt.yes, tt.no} {
			for _, text := range strings.Fields(texts) {
				if f.Matches(text) != (i == 0) {
					t.Errorf("%s\n%q matches: %v", tt.grammar, text, i != 0)
				}
			}
		}
	}
	if !grammarForm(t, "root ::= |\"a\"", bytewise()).Matches("") {
		t.Error("an empty alternative does not match the empty text")
	}
	// Tokens that write few characters, and what stands before a grammar.
	few := pieces{"", "1", "2", "+", "=", "12", "+1", "é"}
	f := grammarForm(t, arithmetic, few)
	r, ended := rand.New(rand.NewPCG(9, 9)), 0
	for range 20 {
		text, all := draw(t, r, f, few, 30)
		if all && strings.Count(text, "=") != 1 {
			t.Errorf("%q", text)
		}
		if all {
			ended++
		}
	}
	if ended < 10 {
		t.Errorf("%d completions ended", ended)
	}
	f = formOf(t, Spec{Grammar: `root ::= "a" root? "b"`, Thoughts: "</t>"}, bytewise())
	if !f.Matches("hm </t>\naabb") || f.Matches("aabb") {
		t.Error("thoughts before a grammar")
	}
	f = formOf(t, Spec{Grammar: `root ::= [ab]`, Calls: &Calls{Frames: []Frame{{Open: "<", Between: ">"}}, Tools: []Tool{{Name: "f"}}}}, bytewise())
	if !f.Matches("b") || !f.Matches("<f>{}") || f.Matches("<f>b") {
		t.Error("a grammar or calls")
	}
	c := NewCache(bytewise())
	x, _ := c.Form(Spec{Grammar: `root ::= "a"`})
	y, _ := c.Form(Spec{Grammar: `root ::= "b"`})
	if x == y || slices.Equal(x.Begin().Mask(), y.Begin().Mask()) {
		t.Error("a cache mixes up grammars")
	}
}

// Errors say where they are: lines and characters count from 1.
func TestRefusedGrammars(t *testing.T) {
	many := "root ::= \"a\"\n"
	for i := range mostRules {
		many += fmt.Sprintf("r%d ::= \"a\"\n", i)
	}
	for grammar, want := range map[string]string{
		"# none": "the grammar has no rule root", "a ::= \"a\"": "the grammar has no rule root",
		"root ::= \"é\" x":                      `line 1, column 14: the rule x is not defined: add x ::= parts, or write "x"`,
		"root ::= \"a\"\n  a ::= [b] |\n (c)\n": "line 3, column 3: the rule c is not defined",
		"root ::= \"a\n\"":                      `line 1, column 10: the literal does not end in its line`, `root ::= "a\"`: "line 1, column 10: the literal does",
		"root ::= [a": "line 1, column 10: the class does not end", "root ::= [a-\n]": "line 1, column 10: the class does not end",
		"root ::= [c-a]": "line 1, column 11: c-a has its later character first", `root ::= [\x63-b]`: `line 1, column 11: \x63-b has its`,
		"root ::= []": "line 1, column 10: the class has no characters", "root ::= [^]": "the class has no characters",
		`root ::= [^\x00-\U0010FFFF]`: "line 1, column 10: the class leaves no character",
		`root ::= "\q"`:               `line 1, column 11: \ begins no escape: those are \n,`, `root ::= "\x4"`: `column 11: \ begins no escape`,
		`root ::= "\uD800"`:       `line 1, column 11: \uD800 is the code of no character: those go to 10FFFF, without D800`,
		`root ::= "\UFFFFFFFF"`:   `line 1, column 11: \UFFFFFFFF is the code of no character`,
		`root ::= [a-\U00110000]`: `line 1, column 13: \U00110000 is the code of no character`, `root ::= "\`: "begins no escape", `root ::= "\x+4"`: "begins no escape",
		"root ::= * \"a\"": "line 1, column 10: * has nothing before it to repeat", "root ::= (|{2})": "column 12: { has nothing before it",
		"root ::= \"a\"{}":   "line 1, column 13: { does not count: write {3}, {2,} or {2,5}, with numbers up to 262144",
		"root ::= \"a\"{,2}": "column 13: { does not count", "root ::= \"a\"{1 2}": "{ does not count", "root ::= \"a\"{1,b}": "{ does not count",
		"root ::= \"a\"{2": "{ does not count", "root ::= \"a\"{99999999999999999999}": "{ does not count", "root ::= \"a\"{\n2}": "{ does not count",
		"root ::= \"a\"{262145}": "{ does not count", "root ::= \"a\"{3,2}": "line 1, column 13: {3,2} has its larger number first",
		"root ::= (\"a\"": "line 1, column 10: ( has no ) behind it", "root ::= (\"a\"\nb ::= \"b\"": "line 1, column 10: ( has no ) behind it",
		"root ::= \"a\")": "line 1, column 13: ) has no ( before it", "root ::= 'a'": "column 10: literals stand between double quotes",
		"root ::= <think>": "column 10: tokens are not supported", "root ::= /a+/": "column 10: regular expressions are not supported",
		"root ::= a, b": `line 1, column 11: ',' begins no part of a rule`, "root ::= \"a\" x ::= \"b\"": "line 1, column 16: a rule begins within another one",
		"root = \"a\"": "line 1, column 6: ::= must follow the rule's name root", "?start: x": "line 1, column 1: a rule must begin here, as name ::= parts",
		"root ::= \"a\"\n\"b\"": "line 2, column 1: a rule must begin here", "root ::= \"a\"\nb \"c\"": "line 2, column 3: ::= must follow the rule's name b; a rule goes on",
		"root ::= \"a\"\nroot ::= \"b\"": "line 2, column 1: the rule root is defined again: join both with |",
		"root ::= \"\xff\"":              "line 1, column 11: the grammar is not UTF-8",
		"root ::= " + strings.Repeat("(", 101) + strings.Repeat(")", 101): "line 1, column 110: groups nest deeper than 100",
		many: "line 10001, column 1: the grammar has more than 10000 rules",
		"root ::= ((\"a\"{0,1000}){0,1000}){0,1000}": "the grammar is too large: its parts are repeated too often; make a rule",
		// Few places, but between them 20 million bytes, ends of alternatives and rules.
		"root ::= [" + strings.Repeat("a", 1000) + "]{20000}":               "the grammar is too large",
		"root ::= (" + strings.Repeat("|", 1000) + " [a]){20000}":           "the grammar is too large",
		"root ::= (" + strings.Repeat("x|", 1000) + "){20000}\nx ::= \"x\"": "the grammar is too large",
		// No end.
		"root ::= \"a\" root": "line 1, column 1: no text is a whole root: each way to write it has a part that needs root again",
		"root ::= \"a\"\n b ::= c | b \"x\"\nc ::= (\"y\" b)+": "line 2, column 2: no text is a whole b",
		// Left recursion.
		"root ::= root \"a\" | \"a\"": "line 1, column 10: root begins with itself (root → root), so that it cannot be read from the left; write what is repeated behind it",
		"root ::= \"a\"? root?":       "line 1, column 15: root begins with itself, behind parts that may be empty (root → root)",
		"root ::= \"x\" a\na ::= b \"c\" | \"d\"\nb ::= e* (\"f\" | a)\ne ::= \"e\"": "line 2, column 7: a begins with itself, behind parts that may be empty (a → b → a)",
		"root ::= a | \"x\"\na ::= (root)":                                           "line 1, column 10: root begins with itself (root → a → root)",
		"root ::= \"a\" | b\nb ::= b \"c\" | \"d\"":                                  "line 2, column 7: b begins with itself (b → b)",
		"root ::= \"a\"\nu ::= u{0,2}":                                               "line 2, column 7: u begins with itself (u → u)",
	} {
		_, err := New(Spec{Grammar: grammar}, &Vocabulary{})
		if err == nil || !strings.HasPrefix(err.Error(), "grammar: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200q: %v, want %q", grammar, err, want)
		}
	}
	if _, err := New(Spec{Grammar: `root ::= "c"`}, NewVocabulary(pieces{"a"})); err == nil ||
		err.Error() != "grammar: no text has the form, or the model's tokens can write none that does" {
		t.Error(err)
	}
}
