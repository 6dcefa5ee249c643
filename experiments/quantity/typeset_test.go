package quantity

import (
	"math"
	"testing"
)

func TestTypeset(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Typeset(Fixed(-0.0004, 3)), "0.000"},
		{Typeset(Fixed(-0.5, 2)), "−0.50"},
		{Typeset(Fixed(math.NaN(), 3)), "–"},
		{Typeset(Fixed(math.Inf(-1), 3)), "−∞"},
		{Typeset(Fixed(math.Inf(1), 3)), "+∞"},
		{Typeset(Signed(-1, 1)), "−1.0"},
		{TypesetShort(0), "0"},
		{TypesetShort(0.00001234), "1.23e−05"},
		{TypesetShort(12), "12"},
		{TypesetShort(12.345), "12.35"},
		{TypesetShort(0.5), "0.5000"},
		{TypesetShort(123.45), "123.5"},
		{TypesetShort(-4.1), "−4.100"},
		{TypesetShort(2e7), "2.00e+07"},
		{TypesetShort(math.NaN()), "–"},
		{TypesetCount(1234567), "1\u202f234\u202f567"},
		{TypesetCount(-1234), "−1\u202f234"},
		{TypesetCount(999), "999"},
		{TypesetSeconds(0.214), "0.21 s"},
		{TypesetSeconds(65.04), "65.0 s"},
		{TypesetSeconds(245), "4 min 05 s"},
		{TypesetSeconds(7800), "2 h 10 min"}, // 130 min
		{TypesetSeconds(math.NaN()), "–"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
