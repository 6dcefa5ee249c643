package tokenizer

import (
	"strings"
	"testing"
)

// Pieces as tokenizers.pre_tokenizers.Split(Regex(…), "isolated") of Hugging Face's
// library cuts them.
func TestOnig(t *testing.T) {
	for _, tt := range []struct{ pattern, text, want string }{
		{`[^\r\n\p{L}\p{N}]?+\p{L}+`, "ab cd", "ab| cd"},
		{`a++a`, "aaa", "aaa"}, // possessive: gives nothing back
		{`a+a`, "aaab", "aaa|b"},
		{`\p{N}{1,3}`, "12345", "123|45"},
		{`(?i:'s)`, "x'ſy", "x|'ſ|y"},
		{`(?i)k`, "aKb", "a|K|b"},
		{`^.`, "ab\ncd", "a|b\n|c|d"}, // ^ is at every line
		{`(?m:a.b)`, "a\nbc", "a\nb|c"},
		{`a(?#comment)b|\x{63}\u0064`, "abcd", "ab|cd"},
		{`\w+`, "é²½!", "é²½|!"},
		{`[\w]+`, "é²!", "é|²!"},
		{`\h+`, "xAfg", "x|Af|g"},
		{`(?=[A-Z])`, "aBcD", "a|Bc|D"},
		{`[^\S\n]+`, "a \t\nb", "a| \t|\nb"},
		{`\P{L}`, "a1b", "a|1|b"},
		{`\p{^L}+|[\P{N}]`, "a\U000135a5.b\U00010D40c", "a|\U000135a5|.|b|\U00010D40|c"}, // letter, digit of Unicode 16
		{`(?i:f)(?i:i)`, "xfi", "x|fi"},
		{`[a-c[x-z]]+`, "maxn", "m|ax|n"},
		{`(?<!a)b`, "abb", "ab|b"},
		{`x{,2}y`, "xxxy", "x|xxy"},
		{`a{2}+b`, "aaaab", "aaaab"}, // braces and plus: repeated, not possessive
		{`\p{Mn}+|\p{Mc}|\p{Sm}+|\p{So}`, "\u0897\U000113b8=\U00010d8e\U0001fae9",
			"\u0897|\U000113b8|=\U00010d8e|\U0001fae9"},
		{`[\p{L}&&[^\p{Han}]]+`, "ab漢c，d", "ab|漢|c|，|d"},
		{`[\p{L}&&[\p{Han}\p{Hiragana}]]+`, "aあ漢b", "a|あ漢|b"},
		{`[\w&&[^\d_]]+`, "a1_bé²", "a|1_|bé|²"},
		{`[a-z&&[^b]&&[^d]]+`, "abcde", "a|b|c|d|e"},
		{`[a-z&&[^b[c-d]]]+`, "abcde", "a|bcd|e"},
		{`[\S&&[^\p{L}]]+`, "a1! ，b", "a|1!| |，|b"},
		{`[[a-z]&&[^[:space:]b]]+`, "ab c", "a|b |c"},
		{`[\-\[&&[^\[]]+`, "a-[b", "a|-|[b"},
		{`(?i:[a-z&&[^k]])+`, "abKkx\u212a", "ab|Kk|x|\u212a"},
	} {
		m, err := newRegex(tt.pattern)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		var got []string
		err = splitAt{pattern: m, how: isolated}.split(stretch{text: tt.text}, func(p stretch) error {
			got = append(got, p.text)
			return nil
		})
		if err != nil || strings.Join(got, "|") != tt.want {
			t.Errorf("%s on %q: %q, %v, want %q", tt.pattern, tt.text, strings.Join(got, "|"), err, tt.want)
		}
	}
}

func TestOnigRefuses(t *testing.T) {
	for pattern, want := range map[string]string{
		"(":              "unterminated group",
		"a)":             "unmatched closing",
		"[a":             "unterminated class",
		"*a":             "nothing before",
		`\K`:             `\K`,
		`(a)\1`:          `\1`,
		`[a&&b]`:         "&&",
		`[^a&&[b]]`:      "&&",
		`[&&[b]]`:        "&&",
		`[a&&[b]c]`:      "&&",
		`[a&&[b`:         "unterminated class",
		`[a&&[^b]`:       "&&",
		`[x[a&&[b]]]`:    "&&",
		`[x&&[a&&[b]]]`:  "&&",
		`[a&&[b]&&[c]]`:  "more than one",
		`[a&&[^b]&&[c]]`: "more than one",
		`[x[^a]]`:        "negated class",
		`\p{Nonsens}`:    "Nonsens",
		`(?~a)`:          "(?~",
		`[z-a]`:          "range",
		`\x{110000}`:     "not a character",
		`(?i)ß`:          "several letters", // matches ss too
		`(?i)[ß-ÿ]`:      "several letters",
		`(?i)[\p{Lu}]`:   "letters of one case", // matches a too
		`(?i)a[ﬁ]`:       "several letters",
		`(?i)eSS`:        "one letter", // matches eß too
	} {
		if _, err := newRegex(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", pattern, err, want)
		}
	}
	if _, err := newRegex(strings.Repeat("(", 500)); err == nil {
		t.Error("500 open groups: no error")
	}
}

// A pattern that backtracks without end is an error, not a hang.
func TestRegexTimeout(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	m, err := newRegex(`(a|aa|aaa)+$`)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.matches(strings.Repeat("a", 60)+"b", func(int, int) {}); err == nil {
		t.Error("2^60 ways to match, and no error")
	}
}
