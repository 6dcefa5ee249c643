package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestKeysGolden freezes the key set: a new key, a changed default or a changed
// meaning is a diff that somebody has to review.
func TestKeysGolden(t *testing.T) {
	var b strings.Builder
	for _, k := range Keys() {
		fmt.Fprintf(&b, "%s\n  %s\n  default %s\n", k.Path, k.Type(), k.Default.text(k))
		fmt.Fprintf(&b, "  %s; read by %s", k.Role, stageList(k.Stages))
		if k.Unit != "" {
			fmt.Fprintf(&b, "; in %s", k.Unit)
		}
		if e := k.effect(); e != "" {
			fmt.Fprintf(&b, "; %s", e)
		}
		fmt.Fprintf(&b, "\n  %s\n", k.Help)
	}
	golden(t, "keys.golden", b.String())
}

// fieldType is the Go type that Run must have for a key; nil for lists of blocks,
// whose fields are looked at one by one.
func fieldType(k *Key) reflect.Type {
	t := map[Kind]reflect.Type{
		Int: reflect.TypeFor[int](), Float: reflect.TypeFor[float64](), Bool: reflect.TypeFor[bool](),
		String: reflect.TypeFor[string](), Enum: reflect.TypeFor[string](),
		Duration: reflect.TypeFor[time.Duration](), Size: reflect.TypeFor[int64](), Share: reflect.TypeFor[float64](),
	}[k.Kind]
	switch {
	case t == nil:
		return nil
	case k.Name() == "seed":
		t = reflect.TypeFor[int64]()
	}
	if k.Null {
		t = reflect.PointerTo(t)
	}
	if k.List {
		t = reflect.SliceOf(t)
	}
	return t
}

func TestRunAndTableAgree(t *testing.T) {
	fields := map[string]reflect.Type{}
	for _, f := range fieldsOf(reflect.TypeFor[Run](), "", nil) {
		if fields[f.path] != nil {
			t.Errorf("two fields for %s", f.path)
		}
		if lookup(f.path) == nil {
			t.Errorf("the field for %q has no key", f.path)
		}
		fields[f.path] = f.typ
	}
	for _, k := range Keys() {
		got := fields[k.Path]
		switch want := fieldType(k); {
		case schema().settings[k.Path] && got == nil: // Run.Algo.Settings
		case schema().settings[k.Path]:
			t.Errorf("%s is declared in package rl and has a field", k.Path)
		case got == nil:
			t.Errorf("%s has no field", k.Path)
		case want != nil && got != want:
			t.Errorf("%s: field is a %v, want %v", k.Path, got, want)
		case k.Kind == Objects:
			element := map[string]reflect.Type{}
			for _, f := range fieldsOf(got.Elem(), "", nil) {
				element[f.path] = f.typ
			}
			for i := range k.Fields {
				f := &k.Fields[i]
				if element[f.Path] != fieldType(f) {
					t.Errorf("%s.%s: field is a %v, want %v", k.Path, f.Path, element[f.Path], fieldType(f))
				}
			}
			if len(element) != len(k.Fields) {
				t.Errorf("%s: %d fields, %d keys", k.Path, len(element), len(k.Fields))
			}
		}
	}
}

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys() {
		if seen[k.Path] {
			t.Errorf("%s stands twice in the table", k.Path)
		}
		seen[k.Path] = true
		if !regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$`).MatchString(k.Path) {
			t.Errorf("path %q", k.Path)
		}
		if schema().group(k.Path) != nil {
			t.Errorf("%s is a key and a block", k.Path)
		}
		if k.Help == "" || strings.HasSuffix(k.Help, ".") || strings.Contains(k.Help, "\n") {
			t.Errorf("%s: help %q must be one line without a full stop", k.Path, k.Help)
		}
		if (k.Kind == Enum) != (len(k.Words) > 0) || (k.Kind == Objects) != (len(k.Fields) > 0) || k.Kind == Objects && !k.List {
			t.Errorf("%s: words and fields do not fit the kind", k.Path)
		}
		if k.Role != Nonsemantic && len(k.Stages) == 0 {
			t.Errorf("%s can change results but no stage reads it", k.Path)
		}
		for _, c := range k.When {
			for _, term := range c {
				checkTerm(t, k, term)
			}
		}
		if k.Default.same == "" && k.Default.by == "" && slices.Contains(k.Default.reads(), k.Path) {
			t.Errorf("%s: default reads the key itself", k.Path)
		}
	}
}

// checkTerm reports a condition that can never hold or never fail.
func checkTerm(t *testing.T, k *Key, term Term) {
	t.Helper()
	other := lookup(term.Path)
	switch {
	case other == nil:
		t.Errorf("%s depends on %q, which is not a key", k.Path, term.Path)
	case term.Above && other.Kind != Int && other.Kind != Float && other.Kind != Bool && !other.List &&
		other.Kind != Values:
		t.Errorf("%s: %s is not a number", k.Path, term.Path)
	case term.Names && other.Kind != Values:
		t.Errorf("%s: %s has no names", k.Path, term.Path)
	case other.Kind == Enum:
		for _, w := range term.Words {
			if !slices.Contains(other.Words, w) {
				t.Errorf("%s: %s is never %q", k.Path, term.Path, w)
			}
		}
	}
}

// TestDefaultsAreValues decodes every constant that a default can take as if a
// person had written it.
func TestDefaultsAreValues(t *testing.T) {
	for _, k := range Keys() {
		for _, v := range k.Default.constants() {
			src, text, fault := newSource("default", []byte("x: "+Format(k, v)))
			if fault != nil {
				t.Fatal(fault)
			}
			root, errs := parseYAML(src, text, 0)
			if len(errs) > 0 {
				t.Fatalf("%s: %v", k.Path, errs)
			}
			got, ok, errs := decode(k, root.fields[0].value, root.pos)
			if !ok || len(errs) > 0 || !reflect.DeepEqual(got, v) {
				t.Errorf("%s: default %#v reads back as %#v, %v", k.Path, v, got, errs)
			}
		}
		for _, c := range k.Default.cases {
			if other := lookup(k.Default.by); other.Kind == Enum && !slices.Contains(other.Words, c.Word) {
				t.Errorf("%s: default for %s=%s, which cannot be", k.Path, k.Default.by, c.Word)
			}
		}
	}
}

// TestNoCycles follows what conditions and defaults read.
func TestNoCycles(t *testing.T) {
	state := map[string]int{} // 1 on the way, 2 done
	var visit func(path string, trail []string)
	visit = func(path string, trail []string) {
		if state[path] == 2 {
			return
		}
		if state[path] == 1 {
			t.Fatalf("cycle: %v -> %s", trail, path)
		}
		state[path] = 1
		k := lookup(path)
		if k == nil {
			t.Fatalf("%v reads %q, which is not a key", trail, path)
		}
		next := k.Default.reads()
		for _, c := range k.When {
			for _, term := range c {
				next = append(next, term.Path)
			}
		}
		for _, p := range next {
			visit(p, append(trail, path))
		}
		state[path] = 2
	}
	for _, k := range Keys() {
		visit(k.Path, nil)
	}
}

func TestChecksNameKeys(t *testing.T) {
	for i, c := range checks() {
		for _, path := range c.keys {
			if lookup(path) == nil {
				t.Errorf("check %d reads %q, which is not a key", i, path)
			}
		}
	}
}

func TestForeignNames(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range foreignNames() {
		if seen[n.name] {
			t.Errorf("%s stands twice", n.name)
		}
		seen[n.name] = true
		if n.now != "" && lookup(n.now) == nil && schema().group(n.now) == nil {
			t.Errorf("%s is said to be %q, which is not a key", n.name, n.now)
		}
		if n.now == "" && n.why == "" {
			t.Errorf("%s: nothing to say", n.name)
		}
		for _, k := range Keys() {
			if slices.Contains(strings.Split(k.Path, "."), n.name) {
				t.Errorf("%s is foreign and part of our key %s", n.name, k.Path)
			}
		}
	}
}

func TestRange(t *testing.T) {
	cases := []struct {
		r    Range
		x    float64
		want bool
	}{
		{Range{}, -1e300, true},
		{atLeast(1), 1, true}, {atLeast(1), 0.999, false},
		{above(0), 0, false}, {above(0), 5e-324, true},
		{above(0).below(1), 1, false}, {above(0).upTo(1), 1, true},
		{between(2, 6), 6, true}, {between(2, 6), 6.5, false},
	}
	for _, c := range cases {
		if got := c.r.Has(c.x); got != c.want {
			t.Errorf("%+v has %v: got %v, want %v", c.r, c.x, got, c.want)
		}
	}
}

// constants lists the fixed values that the default can take.
func (d Default) constants() []any {
	var values []any
	if d.hasFixed && !d.null {
		values = append(values, d.fixed)
	}
	for _, c := range d.cases {
		values = append(values, c.constants()...)
	}
	if d.otherwise != nil {
		values = append(values, d.otherwise.constants()...)
	}
	return values
}
