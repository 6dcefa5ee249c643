package bench

import (
	"context"
	"os"
	"strconv"
	"testing"

	"exp/kernels/cpu"
	"exp/train/checkpoint"
)

// quiet is a Watcher that tells nobody.
type quiet struct{}

func (quiet) PartStart(Part, string, int) {}
func (quiet) PartRepeat(int)              {}
func (quiet) PartDone(float64, string)    {}

// BenchmarkTrainFolder measures training steps of FOLDER's architecture from random weights: BATCH
// sequences of LENGTH tokens, of the operand type DTYPE, on THREADS threads. It is for
// kernels/peers/linear.sh, and skipped without FOLDER.
func BenchmarkTrainFolder(b *testing.B) {
	folder := os.Getenv("FOLDER")
	if folder == "" {
		b.Skip("FOLDER names no model")
	}
	number := func(key string) int {
		n, err := strconv.Atoi(os.Getenv(key))
		if err != nil {
			b.Fatalf("%s: %v", key, err)
		}
		return n
	}
	dtype, err := ParseDType(os.Getenv("DTYPE"))
	if err != nil {
		b.Fatal(err)
	}
	c, err := checkpoint.ReadConfig(folder)
	if err != nil {
		b.Fatal(err)
	}
	be, err := cpu.Open(cpu.Options{Threads: number("THREADS"), Operand: dtype})
	if err != nil {
		b.Fatal(err)
	}
	defer be.Close()
	s := newSuite(context.Background(), be, be, quiet{})
	s.o = Options{Batch: number("BATCH"), Length: number("LENGTH"), Repeat: b.N, Time: 1e7}
	c.MaxPositions = s.o.Length + 1
	t, err := s.train(folder, c)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(t.TokensPer.Median, "tok/s")
	for _, p := range t.Phases {
		b.ReportMetric(p.Seconds.Median, p.Name+"-s")
	}
}
