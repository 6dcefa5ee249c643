package quantity

import (
	"math"
	"testing"
	"time"
)

func TestFixed(t *testing.T) {
	tests := []struct {
		v      float64
		digits int
		want   string
	}{
		{0.6414, 3, "0.641"}, {-0.0004, 3, "0.000"}, {-0.0006, 3, "-0.001"},
		{2, 0, "2"}, {math.Copysign(0, -1), 1, "0.0"},
		{math.NaN(), 3, "NaN"}, {math.Inf(1), 3, "+Inf"}, {math.Inf(-1), 3, "-Inf"},
	}
	for _, tt := range tests {
		if got := Fixed(tt.v, tt.digits); got != tt.want {
			t.Errorf("Fixed(%v, %d) = %q, want %q", tt.v, tt.digits, got, tt.want)
		}
	}
}

func TestShort(t *testing.T) {
	tests := []struct {
		v    float64
		want string
	}{
		{0, "0.000"}, {0.62, "0.620"}, {-0.62, "-0.620"}, {4.1, "4.10"}, {15.34, "15.3"},
		{128.4, "128"}, {12345, "12345"}, {1.5e7, "1.5e+07"}, {0.000012, "1.2e-05"},
		{math.NaN(), "NaN"}, {math.Inf(-1), "-Inf"},
	}
	for _, tt := range tests {
		if got := Short(tt.v); got != tt.want {
			t.Errorf("Short(%v) = %q, want %q", tt.v, got, tt.want)
		}
	}
}

func TestCountAndBytes(t *testing.T) {
	counts := []struct {
		n    int64
		want string
	}{
		{0, "0"}, {99_999, "99999"}, {123_456, "123k"}, {1_234_567, "1.23M"},
		{999_600, "1.00M"}, // 999.6k would read 1000k
		{-2_500_000, "-2.50M"}, {math.MaxInt64, "9.22E"},
	}
	for _, tt := range counts {
		if got := Count(tt.n); got != tt.want {
			t.Errorf("Count(%d) = %q, want %q", tt.n, got, tt.want)
		}
	}
	sizes := []struct {
		n    int64
		want string
	}{
		{1023, "1023 B"}, {1024, "1.00 KiB"}, {4 << 30, "4.00 GiB"}, {1000 << 10, "0.98 MiB"},
	}
	for _, tt := range sizes {
		if got := Bytes(tt.n); got != tt.want {
			t.Errorf("Bytes(%d) = %q, want %q", tt.n, got, tt.want)
		}
	}
}

func TestDuration(t *testing.T) {
	tests := []struct {
		d               time.Duration
		want, remaining string
	}{
		{0, "0.0s", "0s"},
		{16300 * time.Millisecond, "16.3s", "16s"},
		{59960 * time.Millisecond, "1m00s", "1m00s"}, // 60.0s would follow 59.9s
		{125 * time.Second, "2m05s", "2m05s"},
		{3*time.Hour + 12*time.Minute, "3h12m", "3h12m"},
		{51 * time.Hour, "2d03h", "2d03h"},
		{-2 * time.Second, "-2.0s", "0s"},
	}
	for _, tt := range tests {
		if got := Duration(tt.d); got != tt.want {
			t.Errorf("Duration(%v) = %q, want %q", tt.d, got, tt.want)
		}
		if got := Remaining(tt.d); got != tt.remaining {
			t.Errorf("Remaining(%v) = %q, want %q", tt.d, got, tt.remaining)
		}
	}
}

func TestPercent(t *testing.T) {
	if got := Percent(0.1234, 1); got != "12.3%" {
		t.Errorf("got %q", got)
	}
}

func TestParameters(t *testing.T) {
	for n, want := range map[int64]string{19232: "19232", 494_032_768: "494M", 7_615_616_512: "7.62B", 1_040_000_000_000: "1.04T"} {
		if got := Parameters(n); got != want {
			t.Errorf("Parameters(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestSigned(t *testing.T) {
	for v, want := range map[float64]string{0.25: "+0.25", 0.001: "0.00", -1: "-1.00", 0: "0.00", math.Inf(1): "+Inf"} {
		if got := Signed(v, 2); got != want {
			t.Errorf("Signed(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 12 * time.Second: "12s", 59999 * time.Millisecond: "59s", 5 * time.Minute: "5m", 3*time.Hour + 59*time.Minute: "3h", 970 * time.Hour: "40d",
	} {
		if got := Age(d); got != want {
			t.Errorf("Age(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestPlural(t *testing.T) {
	if got := Plural(1, "seed") + ", " + Plural(0, "run") + ", " + Plural(3, "seed"); got != "1 seed, 0 runs, 3 seeds" {
		t.Error(got)
	}
}
