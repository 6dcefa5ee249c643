// Package sweep makes the arms of an experiment that varies settings of one configuration.
package sweep

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Axis is a configuration key and its values, as written after --set.
type Axis struct {
	Key    string
	Values []string
}

// ParseAxis reads "key=value,value". A comma inside brackets, braces or quotes belongs to its
// value.
func ParseAxis(text string) (Axis, error) {
	key, list, ok := strings.Cut(text, "=")
	key = strings.TrimSpace(key)
	if !ok || key == "" {
		return Axis{}, fmt.Errorf("%q is not of the form KEY=VALUE,VALUE", text)
	}
	if strings.HasSuffix(key, "+") {
		return Axis{}, fmt.Errorf("%s= appends: write %s=[whole, list],[other, list]", key,
			strings.TrimSuffix(key, "+"))
	}
	switch key {
	case "seed":
		return Axis{}, fmt.Errorf("seeds are not an axis: they repeat every arm (--seeds %s)", list)
	case "name":
		return Axis{}, fmt.Errorf("an axis varies a setting; the arms are named by their values")
	}
	values, err := splitValues(list)
	if err != nil {
		return Axis{}, fmt.Errorf("%s: %w", key, err)
	}
	for i, v := range values {
		if v == "" {
			return Axis{}, fmt.Errorf("%s: value %d is empty; write null to clear the key, \"\" for empty text",
				key, i+1)
		}
		if slices.Contains(values[:i], v) {
			return Axis{}, fmt.Errorf("%s: the value %s stands twice", key, v)
		}
	}
	return Axis{key, values}, nil
}

// splitValues splits at the commas outside brackets, braces and quotes.
func splitValues(text string) ([]string, error) {
	var values []string
	var open []byte // the closing brackets that are due
	var quote byte
	start := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == '\\' && quote == '"' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '[':
			open = append(open, ']')
		case c == '{':
			open = append(open, '}')
		case c == ']' || c == '}':
			if len(open) == 0 || open[len(open)-1] != c {
				return nil, fmt.Errorf("%q has a %c too many", text, c)
			}
			open = open[:len(open)-1]
		case c == ',' && len(open) == 0:
			values = append(values, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("%q lacks a closing %c", text, quote)
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("%q lacks a %c", text, open[len(open)-1])
	}
	return append(values, strings.TrimSpace(text[start:])), nil
}

// Arm is one point of a grid.
type Arm struct {
	Sets  []string // expressions KEY=VALUE, one per axis, and what compare.vary needs
	Label string   // what differs, such as "beta-5_lr-1e-6"; fit for a run's name
}

// MostArms is more than anyone trains, and still quick to list.
const MostArms = 1000

// Grid returns the product of axes. The last axis changes fastest. Comparisons of the arms
// take the axes' keys for the treatment.
func Grid(axes []Axis) ([]Arm, error) {
	arms := []Arm{{}}
	for i, a := range axes {
		if slices.ContainsFunc(axes[:i], func(b Axis) bool { return a.Key == b.Key }) {
			return nil, fmt.Errorf("%s is an axis twice", a.Key)
		}
		if len(arms)*len(a.Values) > MostArms {
			return nil, fmt.Errorf("the grid has more than %d arms", MostArms)
		}
		var next []Arm
		for _, arm := range arms {
			for _, v := range a.Values {
				one := Arm{Sets: slices.Clone(arm.Sets), Label: arm.Label}
				one.add(axes, i, v)
				next = append(next, one)
			}
		}
		arms = next
	}
	distinguish(arms)
	return arms, nil
}

// add sets the key of axis i to a value.
func (a *Arm) add(axes []Axis, i int, value string) {
	key := axes[i].Key
	a.Sets = append(a.Sets, key+"="+value, "compare.vary+="+key)
	a.Label = strings.TrimPrefix(a.Label+"_"+shortKey(axes, i)+"-"+nameOf(value), "_")
}

// shortKey returns the fewest last parts of a key that tell it from the keys of other axes. A
// last part "kind" says nothing alone.
func shortKey(axes []Axis, i int) string {
	parts := strings.Split(axes[i].Key, ".")
	for n := 1; n < len(parts); n++ {
		short := strings.Join(parts[len(parts)-n:], ".")
		unique := !slices.ContainsFunc(axes, func(b Axis) bool {
			return b.Key != axes[i].Key && strings.HasSuffix("."+b.Key, "."+short)
		})
		if unique && short != "kind" {
			return short
		}
	}
	return axes[i].Key
}

// nameOf makes a value fit for a run's name: other characters than letters, digits, '.', '_'
// and '-' become '-'. A number keeps its sign, and an exponent has only a negative one: 1e+6 is 1e6.
func nameOf(value string) string {
	sign := ""
	if x, err := strconv.ParseFloat(value, 64); err == nil {
		value = strings.ReplaceAll(value, "+", "")
		if x < 0 {
			sign = "-"
		}
	}
	text := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
			strings.ContainsRune("._-", r)) {
			return r
		}
		return '-'
	}, value)
	if text = strings.Trim(text, "-"); text == "" {
		return "none"
	}
	return sign + text
}

// distinguish numbers labels that stand for several arms.
func distinguish(arms []Arm) {
	taken := map[string]bool{}
	for i, a := range arms {
		for n := 2; taken[arms[i].Label]; n++ {
			arms[i].Label = fmt.Sprintf("%s.%d", a.Label, n)
		}
		taken[arms[i].Label] = true
	}
}
