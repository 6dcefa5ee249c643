package run

import "testing"

// A peak that ended before restartPeak does not count.
func TestRestartPeak(t *testing.T) {
	const room = 256 << 20
	if peakMemory() == 0 {
		t.Fatal("no peak is known")
	}
	block := make([]byte, room)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	high := peakMemory()
	block = nil
	forgetHeap()
	if low := peakMemory(); high-low < room/2 {
		t.Errorf("peak %d MiB after restartPeak, %d before; %d MiB were freed", low>>20, high>>20, room>>20)
	}
}
