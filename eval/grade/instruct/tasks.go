package instruct

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// taskMakers are IFBench's instructions that are tasks of their own, with one prompt each.
func taskMakers() map[string]maker {
	all := map[string]maker{}
	for id, check := range map[string]Check{
		"custom:multiples":              multiplesOfSeven,
		"custom:mcq_count_length":       questions,
		"custom:reverse_newline":        reversedCountries,
		"custom:word_reverse":           reversedWords,
		"custom:character_reverse":      func(s string) bool { return strings.Contains(lowered(s), "elgae dlab") },
		"custom:sentence_alphabet":      alphabetOfSentences,
		"custom:european_capitals_sort": capitalsByLatitude,
		"custom:csv_city":               cityTable,
		"custom:csv_special_character":  productTable,
		"custom:csv_quotes":             quotedTable,
		"custom:date_format_list":       napoleonDates,
	} {
		all[id] = func(*arguments) Check { return check }
	}
	return all
}

// multiplesOfSeven wants these numbers and no other.
func multiplesOfSeven(s string) bool {
	found := regexp.MustCompile(digit+"+").FindAllString(s, -1)
	return slices.Equal(found, []string{"14", "21", "28", "35", "42", "49"})
}

// questions wants four questions with five options each, every question longer than the one before.
func questions(s string) bool {
	if !strings.HasPrefix(s, "Question") {
		return false
	}
	head := regexp.MustCompile(`\n*Question ` + digit + `+[.|):;]?` + space + `*`)
	choice := regexp.MustCompile(`\A[A-Ea-e][.|)]` + space + `*` + word)
	n, before := 0, -1
	for _, q := range head.Split(s, -1) {
		if q = strip(q); q == "" {
			continue
		}
		text, options := "", 0
		for line := range strings.SplitSeq(q, "\n") {
			line = strip(line)
			switch {
			case choice.MatchString(line):
				options++
			case options == 0:
				text += " " + line
			}
		}
		length := utf8.RuneCountInString(strip(text))
		if options != 5 || length <= before {
			return false
		}
		n, before = n+1, length
	}
	return n == 4
}

// ascii drops accents, and what ASCII does not have.
func ascii(s string) string {
	return strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII {
			return -1
		}
		return r
	}, norm.NFKD.String(s))
}

// reversedCountries wants the countries of Africa, one a line, from Zimbabwe on in reverse order; it counts 52 lines
// and reads no other name.
func reversedCountries(s string) bool {
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		if line = trimmed(line); line != "" && (len(lines) > 0 || strings.Contains(line, "Zimbabwe")) {
			lines = append(lines, ascii(line))
		}
	}
	return len(lines) >= 52 && slices.IsSortedFunc(lines, func(a, b string) int { return strings.Compare(b, a) })
}

// reversedWords wants "eagle bald" anywhere. The published program means a sentence, but cuts off the punctuation
// first, so any text is one.
func reversedWords(s string) bool {
	words := fields(bare(lowered(s)))
	slices.Reverse(words)
	return strings.Contains(strings.Join(words, " "), "bald eagle")
}

func alphabetOfSentences(s string) bool {
	list := english39().split(s)
	for i, sentence := range list {
		words := fields(sentence)
		if len(words) == 0 || initial(lowered(words[0])) != rune('a'+i) {
			return false
		}
	}
	return len(list) == 26
}

// capitalsByLatitude knows one order of 27 capitals, the published one.
func capitalsByLatitude(s string) bool {
	var list []string
	for capital := range strings.SplitSeq(ascii(s), ",") {
		if capital = strip(capital); capital != "" {
			list = append(list, capital)
		}
	}
	return slices.Equal(list, strings.Fields("Reykjavik Helsinki Oslo Tallinn Stockholm Riga Moscow Copenhagen "+
		"Vilnius Minsk Dublin Berlin Amsterdam Warsaw London Brussels Prague Luxembourg Paris Vienna Bratislava "+
		"Budapest Vaduz Chisinau Bern Ljubljana Zagreb"))
}

// cityTable wants a table with this header and 7 rows.
func cityTable(s string) bool {
	rows, ok := readCSV(s, ',')
	return ok && len(rows) == 8 && slices.Equal(rows[0], []string{"ID", "Country", "City", "Year", "Count"}) &&
		!slices.ContainsFunc(rows, func(row []string) bool { return len(row) != 5 })
}

// headed reports whether the first line has these columns, each bare or in quotation marks.
func headed(s, between string, columns ...string) bool {
	for i, c := range columns {
		columns[i] = `(` + c + `|"` + c + `")`
	}
	first, _, _ := strings.Cut(s, "\n")
	return regexp.MustCompile(`\A` + strings.Join(columns, between) + `\z`).MatchString(strip(first))
}

// productTable wants a table with a header and 14 rows, and a field in quotation marks with a special character. Rows
// after the first with such a field may have any number of fields, as in the published program.
func productTable(s string) bool {
	if !headed(s, `,[ \t]*`, "ProductID", "Category", "Brand", "Price", "Stock") {
		return false
	}
	rows, ok := readCSV(strings.ReplaceAll(s, `"`, `"""`), ',')
	if !ok || len(rows) != 15 {
		return false
	}
	special := regexp.MustCompile(`\A".*[^\p{L}\p{N}_` + space[1:len(space)-1] + `].*"`)
	for _, row := range rows[1:] {
		if len(row) != 5 {
			return false
		}
		if slices.ContainsFunc(row, special.MatchString) {
			return true
		}
	}
	return false
}

// quotedTable wants a header and 3 rows with tabs between fields, and quotation marks around each. The published
// program breaks off at an empty field, which fails here.
func quotedTable(s string) bool {
	if !headed(s, `\t *`, "StudentID", "Subject", "Grade", "Semester", "Score") {
		return false
	}
	rows, ok := readCSV(strings.ReplaceAll(s, `"`, `"""`), '\t')
	return ok && len(rows) == 4 && !slices.ContainsFunc(rows, func(row []string) bool {
		return len(row) != 5 || slices.ContainsFunc(row, func(field string) bool {
			field = strip(field)
			return !strings.HasPrefix(field, `"`) || !strings.HasSuffix(field, `"`)
		})
	})
}

// napoleonDates wants dates as YYYY-MM-DD, separated by commas, between the years of his birth and death. Months and
// days of 0 pass, and so does February 29 of any year, as in the published program.
func napoleonDates(s string) bool {
	form := regexp.MustCompile(`\A` + digit + `{4}-` + digit + `{2}-` + digit + `{2}\z`)
	for date := range strings.SplitSeq(strip(s), ",") {
		date = strip(date)
		if !form.MatchString(date) {
			return false
		}
		var n [3]int
		for i, part := range strings.Split(date, "-") {
			for _, r := range part {
				n[i] = 10*n[i] + decimal(r)
			}
		}
		most := 31
		switch n[1] {
		case 4, 6, 9, 11:
			most = 30
		case 2:
			most = 29
		}
		if n[0] < 1769 || n[0] > 1821 || n[1] > 12 || n[1] > 0 && n[2] > most {
			return false
		}
	}
	return true
}
