package rl

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Golden vectors are inputs and outputs recorded from the public
// implementations, one JSON file per family. The folder is EXP_GOLDEN or, by
// default, shared/data/golden next to the repository; its README describes the
// schema. Tests skip where it is absent.

// goldenFamily runs every case of a family whose function is in checks, and logs
// how many that were and which functions have no check yet.
func goldenFamily(t *testing.T, family string, checks map[string]goldenCheck) {
	dir := os.Getenv("EXP_GOLDEN")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data", "golden")
	}
	data, err := os.ReadFile(filepath.Join(dir, family+".json"))
	if err != nil {
		t.Skipf("no golden vectors: %v", err)
	}
	var file goldenFile
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if file.Family != family || file.SchemaVersion != 1 {
		t.Fatalf("family %q, schema %d, want %q, 1", file.Family, file.SchemaVersion, family)
	}
	checked := 0
	missing, later := make(map[string]int), make(map[string]int)
	for i := range file.Cases {
		c := &file.Cases[i]
		c.resolve(t, file.Shared)
		check, ok := checks[c.Function]
		if !ok {
			t.Errorf("%s: no check for %s", c.Name, c.Function)
			continue
		}
		got := check(c)
		if got.notYet != "" {
			missing[c.Function+" ("+got.notYet+")"]++
			continue
		}
		checked++
		t.Run(c.Name, func(t *testing.T) { c.compare(t, got, later) })
	}
	t.Logf("%s: %d of %d cases checked", family, checked, len(file.Cases))
	logCounts(t, "not here", missing)
	for name, n := range later {
		t.Errorf("%s: not compared in %d checked cases", name, n)
	}
}

func logCounts(t *testing.T, what string, counts map[string]int) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("  %s: %d %s", what, counts[name], name)
	}
}

// goldenCheck computes what a case records.
type goldenCheck func(c *goldenCase) goldenResult

// goldenResult holds what our code makes of a case. Every output, metric and
// gradient that the case records must be here or, for a stated reason, in later.
type goldenResult struct {
	outputs map[string][]float64
	metrics []Metric
	grads   map[string][]float64
	err     error    // the case is refused; right if it records an exception
	later   []string // recorded names that have no counterpart yet
	notYet  string   // the function is covered, but not as this case wants it
}

type goldenFile struct {
	Family        string
	SchemaVersion int `json:"schema_version"`
	Shared        map[string]map[string]json.RawMessage
	Cases         []goldenCase
}

type goldenCase struct {
	Name, Function  string
	DType           string
	Inputs          map[string]json.RawMessage
	Params          map[string]any
	Outputs         map[string]json.RawMessage
	Metrics         map[string]number
	Grads           map[string]tensor
	RTol, ATol      float64
	MetricsRTol     float64 `json:"metrics_rtol"`
	MetricsATol     float64 `json:"metrics_atol"`
	IgnoreWhereZero string  `json:"ignore_where_zero"`
}

// resolve replaces references "@name/field" by what they name.
func (c *goldenCase) resolve(t *testing.T, shared map[string]map[string]json.RawMessage) {
	for field, raw := range c.Inputs {
		var ref string
		if json.Unmarshal(raw, &ref) != nil || !strings.HasPrefix(ref, "@") {
			continue
		}
		name, key, _ := strings.Cut(ref[1:], "/")
		value, ok := shared[name][key]
		if !ok {
			t.Fatalf("%s: input %s refers to %s, which is not there", c.Name, field, ref)
		}
		c.Inputs[field] = value
	}
}

// compare checks a result against everything that the case records.
func (c *goldenCase) compare(t *testing.T, got goldenResult, later map[string]int) {
	if _, raises := c.Outputs["raises"]; raises {
		var class *string
		c.decode("raises", c.Outputs["raises"], &class)
		if (got.err != nil) != (class != nil) {
			t.Errorf("error %v, want one: %t", got.err, class != nil)
		}
		return
	}
	if got.err != nil {
		t.Fatal(got.err)
	}
	metrics := make(map[string][]float64)
	for _, m := range got.metrics {
		metrics[m.Name] = []float64{m.Value}
	}
	one := func(what, name string, got map[string][]float64, late []string, want []float64, rtol, atol float64) {
		values, ok := got[name]
		switch {
		case ok:
			c.compareNumbers(t, what+" "+name, values, want, rtol, atol)
		case slices.Contains(late, name):
			later[what+" "+name]++
		default:
			t.Errorf("%s %s is recorded, but not computed", what, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Outputs)) {
		one("output", name, got.outputs, got.later, c.numbers(c.Outputs[name]), c.RTol, c.ATol)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Metrics)) {
		one("metric", name, metrics, got.later, []float64{float64(c.Metrics[name])}, c.MetricsRTol, c.MetricsATol)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Grads)) {
		one("gradient", name, got.grads, got.later, c.Grads[name].floats(), c.RTol, c.ATol)
	}
}

func (c *goldenCase) compareNumbers(t *testing.T, what string, got, want []float64, rtol, atol float64) {
	if len(got) != len(want) {
		t.Errorf("%s: %d numbers, want %d", what, len(got), len(want))
		return
	}
	var mask []bool
	if c.IgnoreWhereZero != "" {
		mask = c.mask(c.IgnoreWhereZero)
	}
	for i, w := range want {
		if len(mask) == len(want) && !mask[i] {
			continue
		}
		if !same(got[i], w) && !(math.Abs(got[i]-w) <= atol+rtol*math.Abs(w)) {
			t.Errorf("%s [%d] = %.17g, want %.17g", what, i, got[i], w)
		}
	}
}

// decode unmarshals a field; bad data is an error of the program.
func (c *goldenCase) decode(field string, raw json.RawMessage, into any) {
	if err := json.Unmarshal(raw, into); err != nil {
		panic(fmt.Sprintf("%s: %s: %v", c.Name, field, err))
	}
}

// numbers returns the numbers of a tensor, a list or a scalar, in order.
func (c *goldenCase) numbers(raw json.RawMessage) []float64 {
	var x tensor
	switch raw[0] {
	case '{':
		c.decode("output", raw, &x)
	case '[':
		c.decode("output", raw, &x.Data)
	default:
		x.Data = make([]number, 1)
		c.decode("output", raw, &x.Data[0])
	}
	return x.floats()
}

// tensor returns an input tensor.
func (c *goldenCase) tensor(field string) tensor {
	raw, ok := c.Inputs[field]
	if !ok {
		panic(c.Name + ": no input " + field)
	}
	var x tensor
	c.decode(field, raw, &x)
	return x
}

func (c *goldenCase) has(field string) bool { _, ok := c.Inputs[field]; return ok }

// mask returns an input of zeros and ones.
func (c *goldenCase) mask(field string) []bool {
	x := c.tensor(field)
	mask := make([]bool, len(x.Data))
	for i, v := range x.Data {
		mask[i] = v != 0
	}
	return mask
}

// rows returns the rows of an input of shape (B, T).
func (c *goldenCase) rows(field string) Rows {
	shape := c.tensor(field).Shape
	rows := make(Rows, shape[0]+1)
	for i := range rows {
		rows[i] = i * shape[1]
	}
	return rows
}

// groups numbers the labels of an input.
func (c *goldenCase) groups(field string) []int {
	var labels []string
	c.decode(field, c.Inputs[field], &labels)
	seen := make(map[string]int)
	group := make([]int, len(labels))
	for i, l := range labels {
		if _, ok := seen[l]; !ok {
			seen[l] = len(seen)
		}
		group[i] = seen[l]
	}
	return group
}

// param returns a numeric option, or otherwise if it is absent or null.
func (c *goldenCase) param(name string, otherwise float64) float64 {
	if v, ok := c.Params[name].(float64); ok {
		return v
	}
	return otherwise
}

// setting returns the option that is a setting of ours, or otherwise if the case has
// none.
func (c *goldenCase) setting(s Setting, otherwise float64) float64 {
	for _, name := range s.Verl {
		otherwise = c.param(name, otherwise)
	}
	return otherwise
}

func (c *goldenCase) flag(name string) bool { v, _ := c.Params[name].(bool); return v }

func (c *goldenCase) text(name string) string { v, _ := c.Params[name].(string); return v }

// input returns an input array as elements of type T.
func input[T Float](c *goldenCase, field string) []T {
	data := c.tensor(field).Data
	out := make([]T, len(data))
	for i, v := range data {
		out[i] = T(v)
	}
	return out
}

// both returns a check that runs a case in the type it was recorded in.
func both(f32 func(c *goldenCase) goldenResult, f64 func(c *goldenCase) goldenResult) goldenCheck {
	return func(c *goldenCase) goldenResult {
		if c.DType == "float32" {
			return f32(c)
		}
		return f64(c)
	}
}

// tensor is an array of numbers, row-major.
type tensor struct {
	Shape []int
	Data  []number
}

func (x tensor) floats() []float64 {
	out := make([]float64, len(x.Data))
	for i, v := range x.Data {
		out[i] = float64(v)
	}
	return out
}

// number is a float64 that may be written "NaN", "Infinity" or "-Infinity".
type number float64

func (n *number) UnmarshalJSON(data []byte) error {
	switch s := strings.Trim(string(data), `"`); s {
	case "NaN":
		*n = number(math.NaN())
	case "Infinity":
		*n = number(math.Inf(1))
	case "-Infinity":
		*n = number(math.Inf(-1))
	default:
		return json.Unmarshal(data, (*float64)(n))
	}
	return nil
}
