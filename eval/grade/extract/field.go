package extract

import (
	"encoding/json"
	"strings"
)

// Answers in JSON.

const (
	jsonScalar = `"(?:[^"\\\n]|\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null`
	jsonList   = `\[[^\[\]{}]*\]`
	jsonObject = `\{\s*"[^"]*"\s*:\s*(?:` + jsonScalar + `)\s*\}`
)

var (
	// fields matches the answer: a value, a list of values, or an object of one field.
	fields = lazy(`"(?:final[_ ]?)?(?:answer|result)"\s*:\s*(` + jsonScalar + `|` + jsonList + `|` +
		jsonObject + `)\s*[,}]`)
	scalars  = lazy(jsonScalar)
	onlyName = lazy(`^\{\s*"[^"]*"\s*:\s*`)
)

// answerField returns the last {"answer": …} of a text; empty and true if it is null.
func answerField(s string) (string, bool) {
	if !strings.Contains(s, "answer\"") && !strings.Contains(s, "result\"") {
		return "", false
	}
	all := fields.FindAllStringSubmatch(tail(s, maxStatement), -1)
	if len(all) == 0 {
		return "", false
	}
	value := all[len(all)-1][1]
	if value == "null" {
		return "", true
	}
	if value[0] == '{' {
		value = onlyName.ReplaceAllString(value, "")
	}
	if value[0] != '[' {
		value = reduce(unquoted(scalars.FindString(value)))
		return value, value != ""
	}
	var list []string
	for _, v := range scalars.FindAllString(value, -1) {
		list = append(list, unquoted(v))
	}
	return strings.Join(list, ", "), len(list) > 0
}

// unquoted decodes a JSON value. The backslashes of commands are LaTeX's, because JSON's are undoubled already; before
// signs (\\$, \\%) they are not.
func unquoted(s string) string {
	var text string
	if !strings.Contains(strings.ReplaceAll(s, `\\`, ""), `\`) && json.Unmarshal([]byte(s), &text) == nil {
		return text
	}
	return escapedSign.ReplaceAllString(strings.TrimSuffix(strings.TrimPrefix(s, `"`), `"`), `\$1`)
}

// escapedSign matches a sign of LaTeX behind a backslash that JSON doubled.
var escapedSign = lazy(`\\\\([$%{}_&#])`)
