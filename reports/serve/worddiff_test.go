package serve

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWordDiff(t *testing.T) {
	marked := func(list []wordSpan) string {
		var b strings.Builder
		for _, s := range list {
			if s.Own {
				b.WriteString("[" + s.Text + "]")
			} else {
				b.WriteString(s.Text)
			}
		}
		return b.String()
	}
	for _, tt := range []struct{ a, b, left, right string }{
		{"3+4*2", "3+4*5", "3+4*[2]", "3+4*[5]"},
		{"so the answer is 12.", "the answer is 13.", "[so ]the answer is [12].", "the answer is [13]."},
		{"a b", "a  b", "a[ ]b", "a[  ]b"},
		{"x = 1\ny = 2", "y = 2", "[x = 1\n]y = 2", "y = 2"},
		{"größer", "größer!", "größer", "größer[!]"},
		{"same", "same", "", ""},
		{"a", "b", "", ""},
		{"", "b", "", ""},
		{strings.Repeat("a ", mostWords), "a", "", ""},
	} {
		left, right := wordDiff(tt.a, tt.b)
		if d := cmp.Diff([]string{tt.left, tt.right}, []string{marked(left), marked(right)}); d != "" {
			t.Errorf("%q and %q (-want +got):\n%s", tt.a, tt.b, d)
		}
	}
}
