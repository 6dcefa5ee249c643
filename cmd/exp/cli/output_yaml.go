package cli

import (
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// writeYAML writes a tree as block YAML.
func writeYAML(w io.Writer, tree any) error {
	text, err := yaml.MarshalWithOptions(yamlTree(tree), yaml.Indent(2), yaml.IndentSequence(true))
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// yamlTree is a tree in the library's types.
func yamlTree(v any) any {
	switch v := v.(type) {
	case Object:
		members := make(yaml.MapSlice, len(v))
		for i, m := range v {
			members[i] = yaml.MapItem{Key: m.Key, Value: yamlTree(m.Value)}
		}
		return members
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = yamlTree(item)
		}
		return list
	case string:
		return yamlString(v)
	}
	return v
}

// yamlString quotes more than the library does: whatever YAML 1.1 or 1.2 might read as
// something other than a string.
type yamlString string

// plainYAML matches texts that every YAML reader takes for a string, except for the
// reserved words.
var plainYAML = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$`)

// MarshalYAML quotes with Go's escapes; YAML has them all. Bytes that are not UTF-8
// become U+FFFD.
func (s yamlString) MarshalYAML() ([]byte, error) {
	text := string(s)
	if plainYAML.MatchString(text) && !isYAMLWord(text) {
		return []byte(text), nil
	}
	return []byte(strconv.Quote(string([]rune(text)))), nil
}

// MarshalYAML writes a point in every float with an exponent: YAML 1.1 reads 1e-07 as a
// string.
func (n Number) MarshalYAML() ([]byte, error) {
	text := string(n)
	if mantissa, exponent, ok := strings.Cut(text, "e"); ok && !strings.Contains(mantissa, ".") {
		text = mantissa + ".0e" + exponent
	}
	return []byte(text), nil
}

// isYAMLWord reports whether a word means a boolean or null in YAML 1.1 or 1.2.
func isYAMLWord(s string) bool {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return true
	}
	return false
}
