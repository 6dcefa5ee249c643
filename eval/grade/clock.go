package grade

import (
	"strconv"
	"strings"

	"exp/eval/grade/pattern"
	"exp/eval/grade/wording"
)

// clock reads a time of day: 8:34, 08:34 PM, 20:34. It returns minutes since midnight, and the half of the
// day if a.m. or p.m. was given.
func clock(s string) (minutes int, half, ok bool) {
	s = strings.ToLower(strings.NewReplacer(".", "", " ", "").Replace(wording.Bare(s)))
	switch s {
	case "noon", "12noon", "12:00noon":
		return 12 * 60, true, true
	case "midnight", "12midnight", "12:00midnight":
		return 0, true, true
	}
	noon := 0
	if t, found := strings.CutSuffix(s, "pm"); found {
		s, half, noon = t, true, 12
	} else if t, found := strings.CutSuffix(s, "am"); found {
		s, half = t, true
	}
	hs, ms, found := strings.Cut(s, ":")
	if !found && !half {
		return 0, false, false
	}
	h, err := strconv.Atoi(hs)
	m := 0
	if found && err == nil {
		if len(ms) != 2 {
			return 0, false, false
		}
		m, err = strconv.Atoi(ms)
	}
	if err != nil || h < 0 || h > 23 || m < 0 || m > 59 || half && (h < 1 || h > 12) {
		return 0, false, false
	}
	if half {
		h = h%12 + noon
	}
	return 60*h + m, half || h > 12, true
}

var (
	// withZero matches a time that cannot be a ratio.
	withZero = pattern.New(`^[0-9]{1,2}:0[0-9]$`)
	// shortRatio matches a ratio that cannot be a time.
	shortRatio = pattern.New(`^[0-9]{1,2}:[0-9]$`)
)

// clocks compares times of day if at least one says a.m. or p.m.
func clocks(gold, prediction string) (result, bool) {
	if len(gold) > 40 || len(prediction) > 40 ||
		!strings.ContainsAny(gold+prediction, "mM") && !strings.Contains(gold+prediction, "noon") {
		if withZero.MatchString(gold) && shortRatio.MatchString(prediction) {
			return no("a time of day against a ratio"), true // 2:05 is not 2:5
		}
		return result{}, false
	}
	g, gh, ok := clock(gold)
	p, ph, ok2 := clock(prediction)
	switch {
	case !ok || !ok2 || !gh && !ph:
		return result{}, false
	case g == p:
		return yes("the same time of day"), true
	case gh != ph && g%720 == p%720:
		return likely("the same time; one side does not say a.m. or p.m."), true
	}
	return no("another time of day"), true
}
