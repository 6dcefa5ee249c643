package latex

import (
	"slices"
	"strings"

	"exp/eval/grade/pattern"
	"exp/eval/grade/wording"
)

// Words in an answer: \text{…}, and runs of letters that are words rather than variables.

// functionWords are short words that are not products of variables when they stand alone.
var functionWords = []string{"is", "not", "the", "of", "if", "for", "are", "but", "was", "then", "than", "when", "all",
	"each", "per", "has", "had", "its", "isn", "nor", "yes", "one", "two", "six", "ten", "way", "men", "our", "xor"}

// textCommand reads \text{…}: words, or mathematics in an upright font.
func (l *lexer) textCommand(name string) error {
	content, ok := l.group()
	if !ok {
		l.spaced = true // \rm cm, \text cut off
		return nil
	}
	inner := strings.TrimSpace(content)
	if t, ok := plainNames[strings.ToLower(strings.Trim(inner, " ,"))]; ok && (t.kind == tokOp && t.text != "in" ||
		name == "operatorname" || t.text == "cis" || (name == "mathrm" || name == "text" && t.kind == tokFunc) &&
		!l.afterNumber()) {
		l.emit(t.kind, t.text)
		return nil
	}
	switch {
	case inner == "":
		l.spaced = true
	case (inner == "Re" || inner == "Im") && !l.afterNumber() &&
		strings.HasPrefix(strings.TrimLeft(l.s[l.i:], " "), "("):
		l.emit(tokFunc, functions[inner])
	case inner == "to" && l.afterNumber():
		l.emit(tokOp, ":")
	case inner == "\\$":
		l.emit(tokText, "$")
	case strings.HasSuffix(inner, ".") && wording.Currencies[inner[:len(inner)-1]] != "": // Rs.
		l.emit(tokText, inner[:len(inner)-1])
	case (name == "mathrm" || name == "mathit" || name == "operatorname") && (inner == "e" || inner == "i" ||
		inner == "d"):
		l.emit(tokSym, inner)
	case name != "text" && l.afterNumber() && uprightUnit(inner) != "":
		l.emit(tokText, uprightUnit(inner))
	case strings.Trim(inner, "0123456789.,+-()[] ") == "" || strings.ContainsAny(inner, "=\\^$") && name != "text" ||
		strings.Contains(inner, "\\ge ") || strings.Contains(inner, "\\le ") || strings.ContainsAny(inner, "<>"):
		return l.formula(inner)
	default:
		return l.prose(inner)
	}
	return nil
}

// unitSigns are the spaces and products of LaTeX between the units of a product.
var unitSigns = strings.NewReplacer("\\,", " ", "\\;", " ", "\\:", " ", "\\ ", " ", "~", " ",
	"\\cdot", " ", "\\times", " ")

// uprightUnit returns a unit of measure with exponents as words, or "": kg\,m/s^2.
func uprightUnit(s string) string {
	if s = unitSigns.Replace(s); !strings.ContainsAny(s, "^/ ") || strings.ContainsAny(s, "\\=$<>+") {
		return ""
	}
	if q := wording.QuantityOf(s); !q.Known || !q.Measured {
		return ""
	}
	return s
}

// formula reads the tokens of a part.
func (l *lexer) formula(s string) error {
	tokens, err := tokenize(s, l.thousands && l.brackets == 0)
	if err != nil {
		return err
	}
	if len(tokens) > 0 && l.spaced {
		tokens[0].spaced = true
	}
	l.tokens = append(l.tokens, tokens...)
	return nil
}

// compoundWord matches words with the signs that units and names have: km/h, cm^2, two-digit, 4th.
var compoundWord = pattern.New(`^(\(?[A-Za-z\x{80}-\x{10ffff}.,;:)'’$%-]+([\^/*][A-Za-z0-9.-]+)*|` +
	`[0-9]+(st|nd|rd|th)|[0-9]+-[A-Za-z-]+)$`)

// prose reads words with numbers and formulas among them: "12 or 13", "15 students". "or" and "and" join values
// at an end of the text, or if it has a value.
func (l *lexer) prose(s string) error {
	if !strings.ContainsAny(s, "0123456789+=[]\\$") && !startsOrEnds(s) {
		l.emit(tokText, s)
		return nil
	}
	fields := strings.Fields(s)
	isWord := make([]bool, len(fields))
	values := false
	for i, f := range fields {
		isWord[i] = compoundWord.MatchString(f)
		values = values || !isWord[i]
	}
	for i := 0; i < len(fields); {
		f := fields[i]
		switch {
		case (f == "or" || f == "and") && (values || i == 0 || i == len(fields)-1):
			l.spaced = true
			l.emit(tokOp, f)
			i++
		case f == "to" && values && l.afterNumber():
			l.emit(tokOp, ":")
			i++
		default:
			from := i
			for i++; i < len(fields) && isWord[i] == isWord[from] && fields[i] != "or" && fields[i] != "and" &&
				fields[i] != "to"; i++ {
			}
			part := strings.Join(fields[from:i], " ")
			if isWord[from] {
				l.emit(tokText, part)
				continue
			}
			l.spaced = true
			if err := l.formula(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// startsOrEnds reports whether the first or last word is a conjunction.
func startsOrEnds(s string) bool {
	for _, w := range [...]string{"or", "and"} {
		if strings.HasPrefix(s, w+" ") || strings.HasSuffix(s, " "+w) {
			return true
		}
	}
	return false
}

// afterNumber reports whether what comes next is a unit rather than a function.
func (l *lexer) afterNumber() bool {
	return len(l.tokens) > 0 && l.tokens[len(l.tokens)-1].kind == tokNum
}

// isWord reports whether a run of letters that ends at l.i is a word by itself.
func (l *lexer) isWord(start int, run string) bool {
	lower := strings.ToLower(run)
	alone := (start == 0 || l.s[start-1] == ' ' || l.s[start-1] == '-') &&
		(l.i == len(l.s) || strings.IndexByte(" .,;?!)-$", l.s[l.i]) >= 0)
	_, unit := wording.Units[wording.Singular(lower)]
	if t, ok := plainNames[lower]; ok && t.kind == tokOp {
		return false
	}
	if wording.Currencies[run] != "" {
		return alone || l.i < len(l.s) && wording.IsDigit(l.s[l.i])
	}
	switch {
	case len(run) == 1:
		// 2 h 15 min
		return alone && l.afterNumber() && strings.Contains("hmsg", run) && l.i+1 < len(l.s) &&
			wording.IsDigit(l.s[l.i+1])
	case lower == "min":
		return alone && l.afterNumber() && (l.i == len(l.s) || l.s[l.i] != ' ' || l.i+1 < len(l.s) &&
			wording.IsDigit(l.s[l.i+1]))
	case unit && len(run) > 1 && lower != "in" && len(l.tokens) > 0:
		_, exact := wording.Units[run]
		return len(run) > 2 || run == lower || exact || l.afterNumber() // the masses of GMm
	}
	return alone && (slices.Contains(functionWords, lower) || len(run) > 2 && len(l.tokens) > 0 &&
		(wording.IsCounted(lower) || wording.Adjectives[lower] || wording.IsNumeral(lower)))
}
