package grade

import (
	"strconv"
	"strings"

	"exp/eval/grade/wording"
)

// clock reads a time of day: 8:34, 08:34 PM, 20:34. It returns minutes since midnight, and the half of the
// day if a.m. or p.m. was given.
func clock(s string) (minutes int, half, ok bool) {
	s = strings.ToLower(strings.NewReplacer(".", "", " ", "").Replace(wording.Bare(s)))
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

// clocks compares times of day if at least one says a.m. or p.m.
func clocks(gold, prediction string) (result, bool) {
	if len(gold) > 40 || len(prediction) > 40 || !strings.ContainsAny(gold+prediction, "mM") {
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
