package translate

import (
	"os"
	"regexp"
	"slices"
	"strings"
)

// rewardColumns returns the columns of the data that a reward function reads, beyond the columns of every problem:
// extra_info, and reward_model for the ground truth, which may be a list or an object. It returns both unless the
// source is here, defines the function once and undecorated, and names its parameters plainly.
func rewardColumns(path, name string) []string {
	all := []string{"extra_info", "reward_model"}
	text, err := os.ReadFile(path)
	if err != nil {
		return all
	}
	source := withoutComments(string(text))
	names, rest, ok := parametersOf(source, name)
	if !ok || strings.Contains(rest, "locals(") || strings.Contains(rest, "inspect") {
		return all
	}
	reads := func(parameter string) bool {
		return slices.ContainsFunc([]string{parameter, parameter + "s"}, func(p string) bool { // a batch has lists
			return slices.Contains(names, p) && regexp.MustCompile(`\b`+p+`\b`).MatchString(rest)
		})
	}
	var columns []string
	if reads("extra_info") {
		columns = append(columns, "extra_info")
	}
	if reads("ground_truth") {
		columns = append(columns, "reward_model")
	}
	return columns
}

// withoutComments drops the comments of a Python text, except those behind quotes, which may be in a string.
func withoutComments(source string) string {
	var b strings.Builder
	for line := range strings.Lines(source) {
		if code, _, found := strings.Cut(line, "#"); found && !strings.ContainsAny(code, `"'`) {
			line = code + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// parametersOf returns the names of the parameters of a Python function, and the source without their list. It reports
// false unless the function is defined once at the top level, without decorators, *args and **kwargs.
func parametersOf(source, name string) (names []string, rest string, ok bool) {
	places := regexp.MustCompile(`(?m)^(?:async +)?def +`+regexp.QuoteMeta(name)+` *\(`).FindAllStringIndex(source, -1)
	if len(places) != 1 {
		return nil, "", false
	}
	before := strings.Split(strings.TrimRight(source[:places[0][0]], " \t\n"), "\n")
	if strings.HasPrefix(before[len(before)-1], "@") {
		return nil, "", false
	}
	start := places[0][1]
	depth, from := 0, start
	for i := start; i < len(source); i++ {
		switch c := source[i]; {
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case c == '"', c == '\'': // a default or a type that may hold anything
			return nil, "", false
		case depth > 0 && strings.IndexByte(")]}", c) >= 0:
			depth--
		case depth == 0 && (c == ',' || c == ')'):
			parameter := strings.TrimSpace(source[from:i])
			word := regexp.MustCompile(`^\w*`).FindString(parameter)
			if parameter != "" && word == "" && parameter != "*" && parameter != "/" {
				return nil, "", false
			}
			names, from = append(names, word), i+1
			if c == ')' {
				return names, source[:start] + source[i:], true
			}
		}
	}
	return nil, "", false
}
