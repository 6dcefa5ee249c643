package config

import (
	"math"
	"testing"
)

func TestParseNumbers(t *testing.T) {
	ints := map[string]int64{"0": 0, "-3": -3, "+3": 3, "8_192": 8192, "9223372036854775807": math.MaxInt64}
	for text, want := range ints {
		if got, ok := parseInt(text); !ok || got != want {
			t.Errorf("parseInt(%q) = %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-", "010", "0x10", "1.0", "1e3", "1_", "_1", "1__0", " 1", "9223372036854775808", "٣"} {
		if got, ok := parseInt(text); ok {
			t.Errorf("parseInt(%q) = %d, want none", text, got)
		}
	}
	floats := map[string]float64{"1": 1, "1.": 1, ".5": 0.5, "1e-6": 1e-6, "1E+3": 1000, "-0.0": 0, "1_000.5": 1000.5}
	for text, want := range floats {
		got, ok := parseFloat(text)
		if !ok || got != want || math.Signbit(got) != math.Signbit(want) {
			t.Errorf("parseFloat(%q) = %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", ".", "e5", "1e", ".inf", "inf", "nan", ".nan", "1e999", "0x1p4", "1,5", "1 "} {
		if got, ok := parseFloat(text); ok {
			t.Errorf("parseFloat(%q) = %v, want none", text, got)
		}
	}
}

func TestParseUnits(t *testing.T) {
	sizes := map[string]int64{"4GiB": 4 << 30, "512MiB": 512 << 20, "0B": 0, "1KiB": 1024}
	for text, want := range sizes {
		if got, ok := parseSize(text); !ok || got != want {
			t.Errorf("parseSize(%q) = %d, %v, want %d", text, got, ok, want)
		}
		if got := formatSize(want); got != text {
			t.Errorf("formatSize(%d) = %q, want %q", want, got, text)
		}
	}
	for _, text := range []string{"4", "4GB", "-1B", "1.5GiB", "9000000000TiB", "GiB"} {
		if got, ok := parseSize(text); ok {
			t.Errorf("parseSize(%q) = %d, want none", text, got)
		}
	}
	durations := map[string]int64{"90s": 90e9, "2h": 7200e9, "1h30m": 5400e9, "250ms": 250e6}
	for text, want := range durations {
		if got, ok := parseDuration(text); !ok || got != want {
			t.Errorf("parseDuration(%q) = %d, %v, want %d", text, got, ok, want)
		}
	}
	for d, want := range map[int64]string{90e9: "1m30s", 3600e9: "1h", 600e9: "10m", 36000e9: "10h", 3601e9: "1h0m1s"} {
		if got := formatScalar(Duration, d); got != want {
			t.Errorf("format of %d ns: got %s, want %s", d, got, want)
		}
	}
	shares := map[string]float64{"all": 1, "none": 0, "sampled(0.02)": 0.02, "sampled(2%)": 0.02}
	for text, want := range shares {
		if got, ok := parseShare(text); !ok || got != want {
			t.Errorf("parseShare(%q) = %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"0.5", "sampled", "sampled()", "sampled(2)", "sampled(-1)"} {
		if got, ok := parseShare(text); ok {
			t.Errorf("parseShare(%q) = %v, want none", text, got)
		}
	}
	if got, ok := parseFraction("10%"); !ok || got != 0.1 {
		t.Errorf("parseFraction(10%%) = %v, %v, want 0.1", got, ok)
	}
}

func TestFormatFloat(t *testing.T) {
	for x, want := range map[float64]string{1e-6: "1e-6", 0.1: "0.1", 15: "15", 1e21: "1e21", 0.015625: "0.015625", -2.5e-10: "-2.5e-10", 1e100: "1e100"} {
		if got := formatFloat(x); got != want {
			t.Errorf("formatFloat(%v) = %s, want %s", x, got, want)
		}
	}
}
