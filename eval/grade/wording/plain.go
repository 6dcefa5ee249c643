package wording

import (
	"strings"
	"unicode"
)

// Normal returns a text in lower case without punctuation, articles and repeated spaces.
func Normal(s string) string {
	var list []string
	all := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsDigit(r)
	})
	for i, w := range all {
		article := w == "the" || w == "on" && i == 0 && len(all) > 1 || (w == "a" || w == "an") && i+1 < len(all) &&
			len(all[i+1]) > 1
		if !article {
			list = append(list, w)
		}
	}
	if len(list) == 0 {
		return strings.ToLower(strings.TrimSpace(s))
	}
	return strings.Join(list, " ")
}

// textWrappers are commands that change only the font.
var textWrappers = strings.NewReplacer("\\textbf", "", "\\textit", "", "\\textrm", "", "\\textnormal", "", "\\text",
	"", "\\mathrm", "", "\\mathbf", "", "\\mbox", "", "\\rm", "", "{", " ", "}", " ", "\\ ", " ", "\\,", " ", "~",
	" ",
	"$", " ", "**", " ", "\\left", "", "\\right", "", "\\!", "")

// WithoutFonts strips fonts and delimiters.
func WithoutFonts(s string) string { return textWrappers.Replace(s) }

// Bare strips fonts, delimiters and superfluous spaces from an answer.
func Bare(s string) string { return strings.Join(strings.Fields(WithoutFonts(s)), " ") }
