package grade

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkSample grades the labelled sample: gradings/s of one goroutine per core, and
// the 99th percentile and maximum of single gradings.
func BenchmarkSample(b *testing.B) {
	rows := readLabelled(b)
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				rows[i%len(rows)].grade()
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "gradings/s")
	})
	b.Run("latency", func(b *testing.B) {
		worst := make([]time.Duration, 0, b.N)
		for i := range b.N {
			start := time.Now()
			rows[i%len(rows)].grade()
			worst = append(worst, time.Since(start))
		}
		slices.Sort(worst)
		b.ReportMetric(worst[len(worst)*99/100].Seconds()*1e3, "p99-ms")
		b.ReportMetric(worst[len(worst)-1].Seconds()*1e3, "max-ms")
	})
}

// BenchmarkHostile grades the hostile inputs against some gold answers; max-ms is the slowest single
// grading, best of three tries each.
func BenchmarkHostile(b *testing.B) {
	list := hostile()
	var most time.Duration
	which := ""
	for b.Loop() {
		for i, s := range list {
			for _, gold := range []string{"5", "\\sqrt{x^2+1}", s + " ", list[(i+7)%len(list)], "(" + s +
				")\\cdot1.0"} {
				best := time.Hour
				for range 3 {
					start := time.Now()
					Answer(gold, s)
					best = min(best, time.Since(start))
				}
				if best > most {
					most, which = best, gold+" / "+s
				}
			}
		}
	}
	b.ReportMetric(most.Seconds()*1e3, "max-ms")
	b.Logf("slowest: %.120q", which)
}
