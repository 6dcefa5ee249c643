package quantity

import (
	"fmt"
	"strconv"
	"time"
)

// Seconds converts seconds to a duration.
func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Duration formats a time span in its two largest units: 0.0s, 16.3s, 2m05s, 3h12m,
// 2d03h. A negative span starts with a sign.
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-d)
	}
	if d < 59950*time.Millisecond {
		return Fixed(d.Seconds(), 1) + "s"
	}
	return coarse(d)
}

// Remaining formats a remaining time without tenths, which would only flicker: 3s, 2m05s,
// 3h12m.
func Remaining(d time.Duration) string {
	d = max(d, 0)
	if d < 59500*time.Millisecond {
		return Fixed(d.Seconds(), 0) + "s"
	}
	return coarse(d)
}

// Age formats an age in one unit: 12s, 5m, 3h, 40d.
func Age(d time.Duration) string {
	d = max(d, 0)
	for _, u := range []struct {
		below, unit time.Duration
		name        string
	}{{time.Minute, time.Second, "s"}, {time.Hour, time.Minute, "m"}, {24 * time.Hour, time.Hour, "h"}} {
		if d < u.below {
			return strconv.FormatInt(int64(d/u.unit), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(d/(24*time.Hour)), 10) + "d"
}

// Ago formats how long ago t was; "" for no time.
func Ago(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Age(now.Sub(t))
}

func coarse(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 24*3600:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd%02dh", s/86400, s/3600%24)
}
