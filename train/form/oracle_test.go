package form

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// Values are accepted if and only if they follow schemas. testdata/schemas.json has lists of a random schema, values
// that follow it, and values that do not, by python's jsonschema 4.26 with its format checker. The schemas say where
// objects may have further members, and of which type values are, as forms read less into those that do not. The
// order of members is free here.
func TestSchemasOfOracle(t *testing.T) {
	raw, err := os.ReadFile("testdata/schemas.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases [][3]json.RawMessage
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	checked := 0
	vocab := NewVocabulary(bytewise())
	for _, c := range cases {
		f, err := New(Spec{Schema: c[0]}, vocab)
		if err != nil {
			t.Errorf("%s: %v", c[0], err)
			continue
		}
		for i, list := range c[1:] {
			v, err := readValue(list)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range v.([]any) {
				checked++
				texts := orders(v)
				if got := slices.ContainsFunc(texts, f.Matches); got != (i == 0) {
					t.Errorf("%s: %s: %v", c[0], texts[0], got)
				}
			}
		}
	}
	if len(cases) < 100 || checked < 5*len(cases) {
		t.Errorf("%d values of %d schemas", checked, len(cases))
	}
}

// orders returns a value's texts with its members in all orders.
func orders(v any) (list []string) {
	switch v := v.(type) {
	case object:
		list = []string{}
		for i, m := range v {
			rest := orders(slices.Delete(slices.Clone(v), i, i+1))
			name, _ := json.Marshal(m.name)
			for _, first := range orders(m.value) {
				for _, r := range rest {
					sep := ","
					if r == "{}" {
						sep = ""
					}
					list = append(list, "{"+string(name)+":"+first+sep+r[1:])
				}
			}
		}
		if len(v) == 0 {
			list = append(list, "{}")
		}
		return list
	case []any:
		list = []string{"["}
		for i, e := range v {
			var next []string
			for _, before := range list {
				for _, text := range orders(e) {
					if i > 0 {
						text = "," + text
					}
					next = append(next, before+text)
				}
			}
			list = next
		}
		for i := range list {
			list[i] += "]"
		}
		return list
	}
	b, _ := json.Marshal(v)
	return []string{string(b)}
}
