package instruct

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// formatMakers are the instructions about marks within a response.
func formatMakers() map[string]maker {
	return map[string]maker{
		"detectable_content:number_placeholders":        placeholders,
		"detectable_content:postscript":                 postscript,
		"detectable_format:number_bullet_lists":         bullets,
		"detectable_format:constrained_response":        constrained,
		"detectable_format:number_highlighted_sections": highlights,
		"detectable_format:multiple_sections":           sections,
		"detectable_format:json_format":                 jsonFormat,
		"detectable_format:title":                       title,
	}
}

// placeholders counts [words in brackets].
func placeholders(a *arguments) Check {
	want := a.count("num_placeholders", 0)
	one := regexp.MustCompile(`\[.*?\]`)
	return func(s string) bool { return len(one.FindAllStringIndex(s, -1)) >= want }
}

// postscript looks for the marker of a postscript, such as P.S., anywhere.
func postscript(a *arguments) Check {
	marker := a.text("postscript_marker")
	var one *regexp.Regexp
	switch marker {
	case "P.P.S":
		one = regexp.MustCompile(`p\.` + space + `?p\.` + space + `?s`)
	case "P.S.":
		one = regexp.MustCompile(`p\.` + space + `?s\.`)
	default:
		one = pattern(strings.ToLower(marker))
	}
	return func(s string) bool { return one.MatchString(strings.ToLower(s)) }
}

// bullets counts the lines that begin with * (but not **) or -.
func bullets(a *arguments) Check {
	want := a.count("num_bullets", 0)
	star := regexp.MustCompile(`(?m)^` + space + `*\*[^\*].*$`)
	dash := regexp.MustCompile(`(?m)^` + space + `*-.*$`)
	return func(s string) bool {
		return len(star.FindAllStringIndex(s, -1))+len(dash.FindAllStringIndex(s, -1)) == want
	}
}

func constrained(*arguments) Check {
	options := []string{"My answer is yes.", "My answer is no.", "My answer is maybe."}
	return func(s string) bool {
		return slices.ContainsFunc(options, func(o string) bool { return strings.Contains(s, o) })
	}
}

// highlights counts *this* and **this**. As in the published program, the latter may count twice.
func highlights(a *arguments) Check {
	want := a.count("num_highlights", 0)
	one, two := regexp.MustCompile(`\*[^\n\*]*\*`), regexp.MustCompile(`\*\*[^\n\*]*\*\*`)
	return func(s string) bool {
		n := 0
		for _, h := range one.FindAllString(s, -1) {
			if strip(strings.Trim(h, "*")) != "" {
				n++
			}
		}
		for _, h := range two.FindAllString(s, -1) {
			if strip(h[2:len(h)-2]) != "" {
				n++
			}
		}
		return n >= want
	}
}

// sections counts the headings of numbered sections, such as "Section 1".
func sections(a *arguments) Check {
	want, splitter := a.count("num_sections", 0), a.text("section_spliter")
	one, err := regexp.Compile(splitter + space + "?" + digit + "+")
	if err != nil {
		one = regexp.MustCompile(regexp.QuoteMeta(splitter) + space + "?" + digit + "+")
	}
	return func(s string) bool { return len(one.FindAllStringIndex(s, -1)) >= want }
}

// jsonFormat wants all of the text to be JSON, bare or in a fence of ```.
func jsonFormat(*arguments) Check {
	return func(s string) bool {
		s = strip(s)
		for _, open := range []string{"```json", "```Json", "```JSON", "```"} {
			s = strings.TrimPrefix(s, open)
		}
		return isJSON(strip(strings.TrimSuffix(s, "```")))
	}
}

// isJSON reports whether Python's json reads a text: NaN and Infinity count.
func isJSON(s string) bool {
	onlyPython := regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?Infinity|NaN`) // or a text, where they mean nothing
	return json.Valid([]byte(s)) || json.Valid([]byte(onlyPython.ReplaceAllStringFunc(s, func(t string) string {
		if t[0] == '"' {
			return t
		}
		return "0"
	})))
}

// title looks for <<a title>> on one line.
func title(*arguments) Check {
	one := regexp.MustCompile(`<<[^\n]+>>`)
	return func(s string) bool {
		return slices.ContainsFunc(one.FindAllString(s, -1), func(t string) bool {
			return strip(strings.TrimRight(strings.TrimLeft(t, "<"), ">")) != ""
		})
	}
}
