package rollout

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The places of inserted parts fit the text that JSON keeps, whose broken bytes have become U+FFFD.
func TestStored(t *testing.T) {
	const whole = "äa\xe2\x82[b\ufffd]\xffc[d]e"
	parts := []Span{{Start: 1, End: 2, TextStart: 5, TextEnd: 11}, {Start: 3, End: 4, TextStart: 13, TextEnd: 16}}
	for _, tt := range []struct {
		name, text string
		parts      []Span
		want       []string // of the text, part by part
	}{
		{"broken bytes", whole, parts, []string{"äa\ufffd\ufffd", "[b\ufffd]", "\ufffdc", "[d]", "e"}},
		{"none broken", "ä[b]c", []Span{{TextStart: 2, TextEnd: 5}}, []string{"ä", "[b]", "c"}},
		{"none inserted", "\xff", nil, []string{"\ufffd"}},
	} {
		b, err := json.Marshal(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			t.Fatal(err)
		}
		c := Completion{Text: tt.text, Inserted: tt.parts}
		var got []string
		at := 0
		for _, s := range c.Stored() {
			got = append(got, text[at:s.TextStart], text[s.TextStart:s.TextEnd])
			at = s.TextEnd
		}
		if diff := cmp.Diff(tt.want, append(got, text[at:])); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.parts, c.Inserted); diff != "" {
			t.Errorf("%s: it changes the completion (-want +got)\n%s", tt.name, diff)
		}
	}
}
