package instruct

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// published are verdicts of the published programs, one character for each response.
type published struct {
	Responses []string
	Cases     []struct {
		ID            string
		Args          map[string]any
		Strict, Loose string
	}
}

// readPublished reads testdata/NAME. In the newer file a hexadecimal digit has four verdicts.
func readPublished(t *testing.T, name string) (p published) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	for i := range p.Cases {
		for _, verdicts := range []*string{&p.Cases[i].Strict, &p.Cases[i].Loose} {
			if len(*verdicts) == len(p.Responses) {
				continue
			}
			bits := ""
			for _, digit := range *verdicts {
				four, err := strconv.ParseUint(string(digit), 16, 4)
				if err != nil {
					t.Fatal(err)
				}
				bits += fmt.Sprintf("%04b", four)
			}
			*verdicts = bits[:len(p.Responses)]
		}
	}
	return p
}

// The published program guesses languages from n-grams and is wrong about a few short texts; language_test.go has
// those instructions.
func guessesLanguage(id string) bool {
	return slices.Contains([]string{"change_case:english_capital", "change_case:english_lowercase"}, id)
}

func TestPublishedVerdicts(t *testing.T) {
	seen := map[string]bool{ // tested on their own
		"language:response_language": true, "validate_response_language": true, "words:start_verb": true}
	for _, name := range []string{"ifeval.json", "ifbench.json", "tulu3.json"} {
		p := readPublished(t, name)
		for _, c := range p.Cases {
			seen[c.ID] = true
			if guessesLanguage(c.ID) {
				continue
			}
			check, err := Instruction{c.ID, c.Args}.Check()
			if err != nil {
				t.Error(err)
				continue
			}
			for rules, want := range map[Rules]string{Strict: c.Strict, Loose: c.Loose} {
				for i, r := range p.Responses {
					if got := Followed([]Check{check}, r, rules)[0]; got != (want[i] == '1') {
						t.Errorf("%s %v %s: %v for %q", c.ID, c.Args, rules, got, r)
					}
				}
			}
		}
	}
	for _, id := range IDs() {
		if !seen[id] {
			t.Errorf("%s has no published verdicts", id)
		}
	}
}

func TestFollowed(t *testing.T) {
	checks := []Check{
		func(s string) bool { return strings.HasPrefix(s, "b") },
		func(s string) bool { return !strings.Contains(s, "*") },
		func(string) bool { return true },
	}
	for _, tt := range []struct {
		response      string
		strict, loose []bool
	}{
		{"b", []bool{true, true, true}, []bool{true, true, true}},
		{"a\n*b*\nc", []bool{false, false, true}, []bool{true, true, true}}, // each in another reading
		{"a*", []bool{false, false, true}, []bool{false, true, true}},
		{"*", []bool{false, false, true}, []bool{false, false, true}},          // nothing is left without the asterisk
		{"\x1c\x1f", []bool{false, false, false}, []bool{false, false, false}}, // white space in Python
		{" \n\u00a0", []bool{false, false, false}, []bool{false, false, false}},
		{"", []bool{false, false, false}, []bool{false, false, false}},
	} {
		if diff := cmp.Diff(tt.strict, Followed(checks, tt.response, Strict)); diff != "" {
			t.Errorf("%q strictly: %s", tt.response, diff)
		}
		if diff := cmp.Diff(tt.loose, Followed(checks, tt.response, Loose)); diff != "" {
			t.Errorf("%q loosely: %s", tt.response, diff)
		}
	}
}

func TestBadInstructions(t *testing.T) {
	type args = map[string]any
	for _, tt := range []struct {
		id   string
		args args
		want string
	}{
		{"length_constraints:words", nil, `unknown instruction "length_constraints:words"; known: ` +
			"length_constraints:nth_paragraph_first_word, length_constraints:number_paragraphs, "},
		{"count:", nil, `unknown instruction "count:"; known: count:conjunctions, count:count_increment_word, `},
		{"words", nil, `unknown instruction "words"; known: words:alphabet, `},
		{"length:words", nil, `unknown instruction "length:words"; known: change_case:…, combination:…, copy:…, count:…, `},
		{"length_constraints:number_words", args{"num_words": 3.5, "relation": "at least"},
			"instruction length_constraints:number_words: num_words must be a whole number from 0, not 3.5"},
		{"length_constraints:number_words", args{"num_words": -1, "relation": "at least"}, "from 0, not -1"},
		{"length_constraints:number_words", args{"num_words": json.Number("1e99"), "relation": "at least"}, "not 1e99"},
		{"length_constraints:number_words", args{"relation": "at least"}, "not nothing"},
		{"length_constraints:number_words", args{"num_words": 3, "relation": "around"},
			`relation must be "at least" or "less than", not "around"`},
		{"keywords:existence", args{"keywords": []any{}}, "keywords must be a list of texts, not []"},
		{"keywords:existence", args{"keywords": []any{"a", 7}}, "keywords has 7, which is not a text"},
		{"keywords:existence", args{"keywords": []any{""}}, "must be a list of texts"},
		{"keywords:frequency", args{"keyword": " ", "frequency": 1, "relation": "at least"}, "keyword must be a text"},
		{"keywords:letter_frequency", args{"letter": "ab", "let_frequency": 1, "let_relation": "at least"},
			`letter must be one letter, not "ab"`},
		{"language:response_language", args{"language": "tlh"}, `language "tlh": known are af, ar, bg`},
		{"startend:end_checker", args{"end_phrase": strings.Repeat("x", 99) + "\n", "other": 1}, ""},
		{"length_constraints:nth_paragraph_first_word", args{"num_paragraphs": 2, "nth_paragraph": 0, "first_word": "a"},
			"nth_paragraph must be a whole number from 1, not 0"},
		{"count:word_count_range", args{"min_words": 3.0}, "max_words must be a whole number from 0, not nothing"},
		{"count:word_count_range", args{"min_words": -3, "max_words": 5}, "min_words must be a whole number from 0, not -3"},
		{"count:word_count_range", args{"min_words": 6, "max_words": 5}, "max_words is 5, below min_words, 6"},
		{"count:numbers", nil, "instruction count:numbers: N must be a whole number from 0, not nothing"},
		{"count:words_japanese", args{"N": 0}, "N must be a whole number from 1, not 0"},
		{"ratio:stop_words", args{"percentage": 101}, "percentage must be a number of percent from 0 to 100, not 101"},
		{"ratio:overlap", args{"percentage": "5", "reference_text": "a"}, `from 0 to 100, not "5"`},
		{"ratio:overlap", args{"percentage": 5.5}, "reference_text must be a text with something in it, not nothing"},
		{"sentence:keyword", args{"word": "a", "N": 0}, "N must be a whole number from 1, not 0"},
		{"count:keywords_multiple", args{"keyword1": "a", "keyword2": "b", "keyword3": "c", "keyword4": "d"}, "keyword5 must"},
		{"repeat:repeat_span", args{"prompt_to_repeat": "abc", "n_start": -1, "n_end": 2}, "n_start must be a whole number"},
		{"repeat:repeat_span", args{"prompt_to_repeat": "abc", "n_start": 2, "n_end": 99}, ""},
		{"repeat:repeat_span", args{"prompt_to_repeat": "abc", "n_start": 3, "n_end": 1},
			"n_end is 1, below n_start, 3"},
		{"copy:repeat_phrase", args{"phrase": " ", "small_n": 2}, "phrase must be a text with something in it"},
		{"copy:repeat_phrase", args{"phrase": "a b", "small_n": 0}, "small_n must be a whole number from 1, not 0"},
		{"copy:copying_multiple", args{"prompt_to_repeat": "a"}, "N must be a whole number from 1, not nothing"},
		{"first_word:first_word_sent", args{"first_word": []any{7}}, "first_word must be a text with something in it, not 7"},
		{"first_word:first_word_answer", args{"first_word": []any{"a"}}, `first_word must be a text with something in it, not ["a"]`},
		{"letters:letter_counting", args{"N": 3, "relation": "exactly"}, `relation must be "at least" or "less than"`},
		{"format:options", args{}, "options must be a text"},
		{"keywords:exclude_word_harder", args{"instruction": "a b"}, "keyword must be a text with something in it, not nothing"},
		{"validate_word_constraint", args{"N": 3, "quantifier": "exactly"},
			`quantifier must be "at least", "at most" or "around", not "exactly"`},
		{"validate_paragraphs", args{"N": 3, "i": 4, "first_word": "a"}, "i is 4, above N, 3"},
		{"verify_letter_frequency", args{"N": 3, "letter": "ab"}, `letter must be one letter, not "ab"`},
	} {
		_, err := Instruction{tt.id, tt.args}.Check()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %v: %v, want %q", tt.id, tt.args, err, tt.want)
		}
	}
}

// Files in Parquet have numbers with a fraction, and keywords that Go's regexp cannot read are plain texts.
func TestLenientArguments(t *testing.T) {
	for _, i := range []Instruction{
		{"length_constraints:number_words", map[string]any{"num_words": 2.0, "relation": "at least"}},
		{" length_constraints:number_words ", map[string]any{"num_words": json.Number("2"), "relation": "at least"}},
		{"keywords:existence", map[string]any{"keywords": []string{"(two", "words"}}},
		{"keywords:frequency", map[string]any{"keyword": "(?<=x)", "frequency": 1, "relation": "less than"}},
		{"keywords:forbidden_words", map[string]any{"forbidden_words": []any{"[other", "ords"}}},
		{"detectable_format:multiple_sections", map[string]any{"section_spliter": "(two", "num_sections": 0}},
	} {
		check, err := i.Check()
		if err != nil {
			t.Error(err)
		} else if !check("(two words)") {
			t.Errorf("%s %v does not hold", i.ID, i.Args)
		}
	}
}

// Cases by hand that no published verdict has.
func TestHardCases(t *testing.T) {
	type args = map[string]any
	for _, tt := range []struct {
		id   string
		args args
		text string
		want bool
	}{
		{"detectable_format:multiple_sections", args{"section_spliter": "Section", "num_sections": 1}, "Section 1", true},
		{"detectable_format:multiple_sections", args{"section_spliter": "Section", "num_sections": 1}, "Section1", true},
		{"detectable_format:multiple_sections", args{"section_spliter": "Section", "num_sections": 1}, "Section  1", false},
		{"length_constraints:nth_paragraph_first_word",
			args{"num_paragraphs": 1, "nth_paragraph": 2, "first_word": "a"}, "a", false},
		{"length_constraints:nth_paragraph_first_word",
			args{"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "b"}, "a\n\n\n\nb", false}, // the second is blank
		{"keywords:forbidden_words", args{"forbidden_words": []any{"art"}}, "party art", false},
		{"keywords:forbidden_words", args{"forbidden_words": []any{"aa"}}, "aaa aa", false},
		{"keywords:forbidden_words", args{"forbidden_words": []any{"é"}}, "éé", true},
		{"keywords:forbidden_words", args{"forbidden_words": []any{"a a"}}, "ba a a", false}, // behind one that overlaps
		{"keywords:letter_frequency", args{"letter": "#", "let_frequency": 2, "let_relation": "at least"}, "#a #b", true},
		{"verify_paragraph_count", args{"N": 2}, "a * * * \n", false},
		{"validate_sections", args{"N": 1, "section_splitter": "Section"}, " Section 1", false}, // the blank is one
		{"verify_sentence_constraint", args{"N": 1, "quantifier": "at most"}, "It was Mr. X at 3.5 p.m. today.", true},
	} {
		check, err := Instruction{tt.id, tt.args}.Check()
		if err != nil {
			t.Error(err)
		} else if got := check(tt.text); got != tt.want {
			t.Errorf("%s %v of %q: %v", tt.id, tt.args, tt.text, got)
		}
	}
}

func FuzzChecks(f *testing.F) {
	for _, text := range []string{"", "a", "*a*\n- b\n***\n", "\xff. A", "P.S. «x.» . . . a--b ..."} {
		f.Add(text, "k")
	}
	f.Add("a", "\x88")
	f.Fuzz(func(t *testing.T, response, word string) {
		args := map[string]any{"keywords": []any{word}, "keyword": word, "forbidden_words": []any{word}, "letter": word,
			"frequency": 1, "relation": "at least", "let_frequency": 1, "let_relation": "less than", "num_words": 1,
			"num_sentences": 1, "num_paragraphs": 1, "nth_paragraph": 1, "first_word": word, "num_placeholders": 1,
			"postscript_marker": word, "num_bullets": 1, "num_highlights": 1, "num_sections": 1, "section_spliter": word,
			"prompt_to_repeat": word, "end_phrase": word, "language": "en", "capital_frequency": 1,
			"capital_relation": "at least", "min_words": 1, "max_words": 9, "N": 1, "small_n": 1, "percentage": 9,
			"reference_text": word, "word": word, "n": 1, "m": 1, "options": word, "sep": word, "keyword1": word,
			"keyword2": word, "keyword3": word, "keyword4": word, "keyword5": word, "phrase": word, "n_start": 0, "n_end": 1,
			"n_sent": 1, "n_words": 1, "last_word": word, "keyword_list": []any{word}, "quantifier": "around", "i": 1,
			"section_splitter": word, "original_prompt": word}
		for _, id := range IDs() {
			if check, err := (Instruction{id, args}).Check(); err == nil {
				Followed([]Check{check}, response, Loose)
			}
		}
	})
}

func BenchmarkFollowed(b *testing.B) {
	text := strings.Repeat("The boat left at noon. Nobody waved, and nobody wept.\n", 40)
	for _, id := range []string{"length_constraints:number_sentences", "change_case:capital_word_frequency",
		"language:response_language", "keywords:forbidden_words", "count:pronouns", "sentence:increment",
		"keywords:start_end", "last_word:last_word_sent"} {
		check, err := Instruction{id, map[string]any{"num_sentences": 1, "relation": "less than", "capital_frequency": 99,
			"capital_relation": "at least", "language": "de", "forbidden_words": []any{"boat"}, "N": 9, "small_n": 0,
			"last_word": "wept"}}.Check()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(id, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Followed([]Check{check}, text, Strict)
			}
		})
	}
}
