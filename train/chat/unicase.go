package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Case mapping as in Python: Unicode's full mappings, where one character may become
// several. Go only has one-to-one mappings.

// specialCase returns the upper and title case of characters whose upper case is longer
// than one character (SpecialCasing.txt): each word is the character, its upper case and,
// after a slash, its title case if different.
func specialCase(r rune) (upper, title string) {
	switch {
	case r == 0xdf, r == 0x149, r == 0x1f0, r == 0x390, r == 0x3b0, r == 0x587, r >= 0x1e96 && r <= 0x1e9e,
		r >= 0x1f50 && r <= 0x1fff, r >= 0xfb00 && r <= 0xfb17:
	default:
		return "", ""
	}
	i := strings.Index(specialCases, " "+string(r))
	if i < 0 {
		return "", ""
	}
	word, _, _ := strings.Cut(specialCases[i+1:], " ")
	upper, title, _ = strings.Cut(word[utf8.RuneLen(r):], "/")
	if title == "" {
		title = upper
	}
	return upper, title
}

const specialCases = " " +
	"\u00dfSS/Ss \u0149\u02bcN \u01f0J\u030c \u0390\u0399\u0308\u0301 \u03b0\u03a5\u0308\u0301 " +
	"\u0587\u0535\u0552/\u0535\u0582 \u1e96H\u0331 \u1e97T\u0308 \u1e98W\u030a \u1e99Y\u030a " +
	"\u1e9aA\u02be \u1f50\u03a5\u0313 \u1f52\u03a5\u0313\u0300 \u1f54\u03a5\u0313\u0301 " +
	"\u1f56\u03a5\u0313\u0342 \u1f80\u1f08\u0399/\u1f88 \u1f81\u1f09\u0399/\u1f89 " +
	"\u1f82\u1f0a\u0399/\u1f8a \u1f83\u1f0b\u0399/\u1f8b \u1f84\u1f0c\u0399/\u1f8c " +
	"\u1f85\u1f0d\u0399/\u1f8d \u1f86\u1f0e\u0399/\u1f8e \u1f87\u1f0f\u0399/\u1f8f " +
	"\u1f88\u1f08\u0399/\u1f88 \u1f89\u1f09\u0399/\u1f89 \u1f8a\u1f0a\u0399/\u1f8a " +
	"\u1f8b\u1f0b\u0399/\u1f8b \u1f8c\u1f0c\u0399/\u1f8c \u1f8d\u1f0d\u0399/\u1f8d " +
	"\u1f8e\u1f0e\u0399/\u1f8e \u1f8f\u1f0f\u0399/\u1f8f \u1f90\u1f28\u0399/\u1f98 " +
	"\u1f91\u1f29\u0399/\u1f99 \u1f92\u1f2a\u0399/\u1f9a \u1f93\u1f2b\u0399/\u1f9b " +
	"\u1f94\u1f2c\u0399/\u1f9c \u1f95\u1f2d\u0399/\u1f9d \u1f96\u1f2e\u0399/\u1f9e " +
	"\u1f97\u1f2f\u0399/\u1f9f \u1f98\u1f28\u0399/\u1f98 \u1f99\u1f29\u0399/\u1f99 " +
	"\u1f9a\u1f2a\u0399/\u1f9a \u1f9b\u1f2b\u0399/\u1f9b \u1f9c\u1f2c\u0399/\u1f9c " +
	"\u1f9d\u1f2d\u0399/\u1f9d \u1f9e\u1f2e\u0399/\u1f9e \u1f9f\u1f2f\u0399/\u1f9f " +
	"\u1fa0\u1f68\u0399/\u1fa8 \u1fa1\u1f69\u0399/\u1fa9 \u1fa2\u1f6a\u0399/\u1faa " +
	"\u1fa3\u1f6b\u0399/\u1fab \u1fa4\u1f6c\u0399/\u1fac \u1fa5\u1f6d\u0399/\u1fad " +
	"\u1fa6\u1f6e\u0399/\u1fae \u1fa7\u1f6f\u0399/\u1faf \u1fa8\u1f68\u0399/\u1fa8 " +
	"\u1fa9\u1f69\u0399/\u1fa9 \u1faa\u1f6a\u0399/\u1faa \u1fab\u1f6b\u0399/\u1fab " +
	"\u1fac\u1f6c\u0399/\u1fac \u1fad\u1f6d\u0399/\u1fad \u1fae\u1f6e\u0399/\u1fae " +
	"\u1faf\u1f6f\u0399/\u1faf \u1fb2\u1fba\u0399/\u1fba\u0345 \u1fb3\u0391\u0399/\u1fbc " +
	"\u1fb4\u0386\u0399/\u0386\u0345 \u1fb6\u0391\u0342 \u1fb7\u0391\u0342\u0399/\u0391\u0342\u0345 " +
	"\u1fbc\u0391\u0399/\u1fbc \u1fc2\u1fca\u0399/\u1fca\u0345 \u1fc3\u0397\u0399/\u1fcc " +
	"\u1fc4\u0389\u0399/\u0389\u0345 \u1fc6\u0397\u0342 \u1fc7\u0397\u0342\u0399/\u0397\u0342\u0345 " +
	"\u1fcc\u0397\u0399/\u1fcc \u1fd2\u0399\u0308\u0300 \u1fd3\u0399\u0308\u0301 \u1fd6\u0399\u0342 " +
	"\u1fd7\u0399\u0308\u0342 \u1fe2\u03a5\u0308\u0300 \u1fe3\u03a5\u0308\u0301 \u1fe4\u03a1\u0313 " +
	"\u1fe6\u03a5\u0342 \u1fe7\u03a5\u0308\u0342 \u1ff2\u1ffa\u0399/\u1ffa\u0345 " +
	"\u1ff3\u03a9\u0399/\u1ffc \u1ff4\u038f\u0399/\u038f\u0345 \u1ff6\u03a9\u0342 " +
	"\u1ff7\u03a9\u0342\u0399/\u03a9\u0342\u0345 \u1ffc\u03a9\u0399/\u1ffc \ufb00FF/Ff \ufb01FI/Fi " +
	"\ufb02FL/Fl \ufb03FFI/Ffi \ufb04FFL/Ffl \ufb05ST/St \ufb06ST/St \ufb13\u0544\u0546/\u0544\u0576 " +
	"\ufb14\u0544\u0535/\u0544\u0565 \ufb15\u0544\u053b/\u0544\u056b \ufb16\u054e\u0546/\u054e\u0576 " +
	"\ufb17\u0544\u053d/\u0544\u056d "

func upperText(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteString(upperRune(r))
	}
	return b.String()
}

func upperRune(r rune) string {
	if up, _ := specialCase(r); up != "" {
		return up
	}
	return string(unicode.ToUpper(r))
}

// foldText is the text without differences of case (CaseFolding.txt, C and F).
func foldText(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteString(foldRune(r))
	}
	return b.String()
}

// foldRune returns the lower case of r's upper case, except where Unicode folds otherwise: ı is a letter of its own,
// and Cherokee folds to the older upper case.
func foldRune(r rune) string {
	switch {
	case r == 'ı', r >= 0x13a0 && r <= 0x13f5:
		return string(r)
	case r == 'ẞ':
		return "ss"
	case r >= 0x13f8 && r <= 0x13fd, r >= 0xab70 && r <= 0xabbf:
		return string(unicode.ToUpper(r))
	}
	var b strings.Builder
	for _, u := range upperRune(r) {
		b.WriteString(lowerAt([]rune{u}, 0))
	}
	return b.String()
}

func titleRune(r rune) string {
	if _, title := specialCase(r); title != "" {
		return title
	}
	return string(unicode.ToTitle(r))
}

func lowerText(s string) string {
	ascii := true
	for i := range len(s) {
		ascii = ascii && s[i] < utf8.RuneSelf
	}
	if ascii {
		return strings.ToLower(s)
	}
	rs := []rune(s)
	var b strings.Builder
	for i := range rs {
		b.WriteString(lowerAt(rs, i))
	}
	return b.String()
}

// lowerAt returns the lower case of rs[i]; a sigma at the end of a word is ς.
func lowerAt(rs []rune, i int) string {
	switch rs[i] {
	case 'İ':
		return "i̇"
	case 'Σ':
		if finalSigma(rs, i) {
			return "ς"
		}
	}
	return string(unicode.ToLower(rs[i]))
}

// finalSigma reports whether a cased letter comes before rs[i] and none after, skipping at
// most 64 characters without case.
func finalSigma(rs []rune, i int) bool {
	const far = 64
	j := i - 1
	for j >= 0 && i-j < far && caseIgnorable(rs[j]) {
		j--
	}
	if j < 0 || !isCased(rs[j]) {
		return false
	}
	for j = i + 1; j < len(rs) && j-i < far && caseIgnorable(rs[j]); j++ {
	}
	return j == len(rs) || !isCased(rs[j])
}

func isLowerRune(r rune) bool { return unicode.IsLower(r) || unicode.Is(unicode.Other_Lowercase, r) }
func isUpperRune(r rune) bool { return unicode.IsUpper(r) || unicode.Is(unicode.Other_Uppercase, r) }

func isCased(r rune) bool { return isLowerRune(r) || isUpperRune(r) || unicode.IsTitle(r) }

func caseIgnorable(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) ||
		strings.ContainsRune("'.:·\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a", r)
}

func capitalizeText(s string) string {
	rs := []rune(s)
	var b strings.Builder
	for i, r := range rs {
		if i == 0 {
			b.WriteString(titleRune(r))
		} else {
			b.WriteString(lowerAt(rs, i))
		}
	}
	return b.String()
}

// titleText is str.title: letters after a letter become lower case, others upper case.
func titleText(s string) string {
	rs := []rune(s)
	var b strings.Builder
	after := false
	for i, r := range rs {
		if after {
			b.WriteString(lowerAt(rs, i))
		} else {
			b.WriteString(titleRune(r))
		}
		after = isCased(r)
	}
	return b.String()
}

func swapText(s string) string {
	rs := []rune(s)
	var b strings.Builder
	for i, r := range rs {
		switch {
		case isUpperRune(r):
			b.WriteString(lowerAt(rs, i))
		case isLowerRune(r):
			b.WriteString(upperRune(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// textIs is str.isNAME for the named class of characters.
func textIs(name, s string) bool {
	switch name {
	case "isascii":
		return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
	case "isprintable":
		return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
	case "islower", "isupper":
		return oneCase(name == "isupper", s)
	case "istitle":
		return isTitleText(s)
	case "isidentifier":
		for i, r := range s {
			if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r) && !unicode.IsMark(r)) {
				return false
			}
		}
		return s != ""
	}
	is := isSpace
	switch name {
	case "isalpha":
		is = unicode.IsLetter
	case "isdigit":
		is = isDigitRune
	case "isdecimal":
		is = unicode.IsDigit
	case "isnumeric":
		is = unicode.IsNumber
	case "isalnum":
		is = func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }
	}
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !is(r) }) < 0
}

// isDigitRune accepts decimal digits and digits in another position or a circle.
func isDigitRune(r rune) bool {
	switch {
	case unicode.IsDigit(r), r == 0xb2, r == 0xb3, r == 0xb9, r >= 0x1369 && r <= 0x1371, r == 0x19da,
		r == 0x2070, r >= 0x2074 && r <= 0x2079, r >= 0x2080 && r <= 0x2089, r >= 0x2460 && r <= 0x2468,
		r >= 0x2474 && r <= 0x247c, r >= 0x2488 && r <= 0x2490, r == 0x24ea, r >= 0x24f5 && r <= 0x24fd, r == 0x24ff,
		r >= 0x2776 && r <= 0x277e, r >= 0x2780 && r <= 0x2788, r >= 0x278a && r <= 0x2792,
		r >= 0x10a40 && r <= 0x10a43, r >= 0x10e60 && r <= 0x10e68, r >= 0x11052 && r <= 0x1105a, r >= 0x1f100 &&
			r <= 0x1f10a:
		return true
	}
	return false
}

func oneCase(upper bool, s string) bool {
	any := false
	for _, r := range s {
		if unicode.IsTitle(r) || isUpperRune(r) != upper && isCased(r) {
			return false
		}
		any = any || isCased(r)
	}
	return any
}

func isTitleText(s string) bool {
	any, after := false, false
	for _, r := range s {
		switch {
		case isUpperRune(r) || unicode.IsTitle(r):
			if after {
				return false
			}
			any, after = true, true
		case isLowerRune(r):
			if !after {
				return false
			}
			any = true
		default:
			after = false
		}
	}
	return any
}
