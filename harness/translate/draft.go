package translate

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// draft is a recipe in the making.
type draft struct {
	out   map[string]string // our keys, values in YAML
	notes []string          // what a person should know
}

func (d *draft) note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// put sets a key of ours to a number, a name of our choices, true or false.
func (d *draft) put(key, value string) { d.out[key] = plain(value) }

// putText sets a key to a text.
func (d *draft) putText(key, value string) { d.out[key] = strconv.Quote(value) }

// putList sets a key to a list of them, putTexts to a list of texts.
func (d *draft) putList(key string, list ...string) { d.out[key] = listIn(list, plain) }

func (d *draft) putTexts(key string, list []string) { d.out[key] = listIn(list, strconv.Quote) }

func listIn(list []string, write func(string) string) string {
	var values []string
	for _, v := range list {
		values = append(values, write(v))
	}
	return "[" + strings.Join(values, ", ") + "]"
}

// putNumber sets a key to a number; one that is whole has no exponent.
func (d *draft) putNumber(key string, v float64) {
	format := byte('g')
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		format = 'f'
	}
	d.out[key] = strconv.FormatFloat(v, format, -1, 64)
}

// plain writes a scalar of Python's as YAML, in quotes if it is neither a word nor a number.
func plain(v string) string {
	if bare.MatchString(v) {
		return lowered(v)
	}
	return strconv.Quote(v)
}

var bare = regexp.MustCompile(`^[\w.+-]*[\w.+]$`)

// slug makes a run's name of a text.
func slug(name string) string {
	name = strings.Trim(regexp.MustCompile(`[^A-Za-z0-9_.-]+`).ReplaceAllString(name, "-"), "-_.")
	return cmp.Or(strings.ToLower(name[:min(len(name), 64)]), "verl")
}
