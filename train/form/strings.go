package form

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// text returns texts that follow keywords and are none of some values.
func (x *schemaReader) text(words []part, differ []any) (expr, error) {
	var failed error
	e := x.json.quoted(func(q quote) expr {
		e, err := textIn(q, words, differ, nil)
		if err != nil {
			failed = err
		}
		return e
	})
	return e, failed
}

// textIn returns what stands between quotes, where further limits hold.
func textIn(q quote, words []part, differ []any, limits []limit) (expr, error) {
	least, most := 0, -1
	free := len(limits) == 0
	for _, p := range words {
		switch p.word {
		case "minLength", "maxLength":
			n, err := p.count()
			if err != nil {
				return nil, err
			}
			if p.word == "minLength" {
				least = max(least, int(n))
			} else if most < 0 || int(n) < most {
				most = int(n)
			}
		case "pattern", "format":
			e, err := p.search(q.char)
			if err != nil {
				return nil, err
			}
			limits = append(limits, limit{e, p.not})
		}
	}
	for _, v := range differ {
		if s, ok := v.(string); ok {
			limits = append(limits, limit{q.write(s), true})
		}
	}
	switch {
	case most >= 0 && least > most:
		return never, nil
	case len(limits) == 0:
		return repeat(q.any, least, most), nil
	case len(limits) == 1 && free && !limits[0].not && least == 0 && most < 0:
		return limits[0].e, nil
	}
	return meet(limits, &measure{q.char(0, utf8.MaxRune), least, most}), nil
}

// search returns the texts that a pattern or format finds something in.
func (p part) search(char func(lo, hi rune) expr) (expr, error) {
	pattern, err := p.pattern()
	if err != nil {
		return nil, err
	}
	e, err := search(pattern, char)
	if err != nil {
		err = fmt.Errorf("%s: %w", p.where(), err)
	}
	return e, err
}

// pattern returns the regular expression of a pattern or format.
func (p part) pattern() (string, error) {
	text, ok := p.value().(string)
	if !ok {
		return "", fmt.Errorf("%s must be a text", p.where())
	}
	if p.word == "pattern" {
		return text, nil
	}
	pattern, ok := formats[text]
	if !ok {
		return "", fmt.Errorf("%s is %q; supported are %s", p.where(), text, strings.Join(sortedKeys(formats), ", "))
	}
	return pattern, nil
}

// Parts of formats. A month has the days that it has in every year.
const (
	dates = `[1-9]\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))`
	times = `([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)`
	octet = `(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	label = `[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?`
	four  = `(` + octet + `\.){3}` + octet
	group = `[0-9A-Fa-f]{1,4}`

	// Of addresses on the web (RFC 3986).
	hexed = `%[0-9A-Fa-f]{2}`
	step  = `([A-Za-z0-9._~!$&'()*+,;=:@-]|` + hexed + `)`
	owner = `([A-Za-z0-9._~!$&'()*+,;=:-]|` + hexed + `)*@`
	host  = label + `(\.` + label + `)*`
	tail  = `(\?(` + step + `|[/?])*)?(#(` + step + `|[/?])*)?`
)

// sixGroups are the ways to write IPv6 addresses: eight groups, or fewer around one "::".
func sixGroups() string {
	list := []string{`(` + group + `:){7}` + group, `(` + group + `:){6}` + four}
	for before := range 7 {
		rest := `::`
		if before > 0 {
			rest = fmt.Sprintf(`%s(:%s){%d}::`, group, group, before-1)
		}
		list = append(list, fmt.Sprintf(`%s(%s(:%s){0,%d})?`, rest, group, group, 6-before))
	}
	list = append(list, group+`(:`+group+`){6}::`, `::(`+group+`:){0,5}`+four)
	return `(` + strings.Join(list, `|`) + `)`
}

// formats are the formats of strings, as regular expressions. Each allows some texts of the format, no others.
var formats = map[string]string{
	"date": "^" + dates + "$", "time": "^" + times + "$", "date-time": "^" + dates + "T" + times + "$",
	"duration": `^P(\d{1,9}W|(\d{1,9}Y(\d{1,9}M(\d{1,9}D)?)?|\d{1,9}M(\d{1,9}D)?|\d{1,9}D)(` + clock + `)?|` + clock + `)$`,
	"uuid":     `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`,
	"ipv4":     `^` + four + `$`, "ipv6": `^` + sixGroups() + `$`,
	"hostname":     `^` + host + `$`,
	"email":        `^[A-Za-z0-9_+-]+(\.[A-Za-z0-9_+-]+)*@` + label + `(\.` + label + `)+$`,
	"uri":          `^[A-Za-z][A-Za-z0-9+.-]*:(//(` + owner + `)?` + host + `(:\d{1,5})?(/` + step + `*)*|/?` + step + `+(/` + step + `*)*)` + tail + `$`,
	"json-pointer": `^(/([^/~]|~[01])*)*$`,
}

// clock are the hours, minutes and seconds of a duration.
const clock = `T(\d{1,9}H(\d{1,9}M(\d{1,9}S)?)?|\d{1,9}M(\d{1,9}S)?|\d{1,9}S)`
