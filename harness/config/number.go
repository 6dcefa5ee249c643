package config

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	intText   = regexp.MustCompile(`^[+-]?(0|[1-9][0-9]*(_[0-9]+)*)$`)
	floatText = regexp.MustCompile(`^[+-]?([0-9]+(_[0-9]+)*(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
	shareText = regexp.MustCompile(`^sampled\((.*)\)$`)
	sizeText  = regexp.MustCompile(`^([0-9]+)(B|KiB|MiB|GiB|TiB)$`)
)

// parseInt reads a decimal integer; 8_192 is allowed, 010 and 0x10 are not.
func parseInt(s string) (int64, bool) {
	if !intText.MatchString(s) {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	return n, err == nil
}

// parseFloat reads a finite decimal number: 15, 15.0, .5, 1e-6.
func parseFloat(s string) (float64, bool) {
	if !floatText.MatchString(s) {
		return 0, false
	}
	x, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil || math.IsInf(x, 0) {
		return 0, false
	}
	return x + 0, true // -0 becomes 0: the identity does not distinguish them
}

// parseFraction reads a number or a percentage, 0.1 or 10%.
func parseFraction(s string) (float64, bool) {
	percent, ok := strings.CutSuffix(s, "%")
	x, valid := parseFloat(strings.TrimSpace(percent))
	if ok {
		x /= 100
	}
	return x, valid
}

// parseDuration reads 90s, 2h, 1h30m, 250ms.
func parseDuration(s string) (int64, bool) {
	d, err := time.ParseDuration(s)
	return int64(d), err == nil && s != "0"
}

// parseSize reads 4GiB, 512MiB.
func parseSize(s string) (int64, bool) {
	m := sizeText.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	for _, u := range sizeUnits() {
		if u.name == m[2] && err == nil && n <= math.MaxInt64/u.bytes {
			return n * u.bytes, true
		}
	}
	return 0, false
}

// parseShare reads all, none or sampled(p).
func parseShare(s string) (float64, bool) {
	switch s {
	case "all":
		return 1, true
	case "none":
		return 0, true
	}
	m := shareText.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	p, ok := parseFraction(m[1])
	return p, ok && p >= 0 && p <= 1
}

// looksNumeric reports whether YAML reads bare text as a number, so that a text value
// needs quotes.
func looksNumeric(s string) bool {
	_, ok := parseFloat(s)
	return ok
}

// ParseSize reads a number of bytes as configurations write it: 4GiB, 512MiB.
func ParseSize(text string) (int64, bool) { return parseSize(text) }
