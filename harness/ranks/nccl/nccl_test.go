//go:build cuda

package nccl

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"exp/kernels"
	"exp/kernels/cuda"
	"exp/train/ranks"
)

// Load's errors name the missing part and what to install.
func TestLoad(t *testing.T) {
	var e *LibraryError
	if _, err := Load("/none/libnccl.so.2"); !errors.As(err, &e) || !strings.Contains(err.Error(), "/none/libnccl.so.2") ||
		e.ExitCode() != 7 || !strings.Contains(e.Hint(), "EXP_NCCL=") {
		t.Errorf("Load of a missing file = %v", err)
	}
	if _, err := Load("libc.so.6"); !errors.As(err, &e) || !strings.Contains(err.Error(), "libc.so.6 has no ncclGetVersion") {
		t.Errorf("Load of the C library = %v", err)
	}
	for v, want := range map[int]string{22304: "2.23.4", 21205: "2.12.5", 2708: "2.7.8"} {
		if got := version(v); got != want {
			t.Errorf("version(%d) = %s, want %s", v, got, want)
		}
	}
}

// needsFake skips a test without the fake driver and the fake NCCL.
func needsFake(t *testing.T) {
	t.Helper()
	if _, ok := os.LookupEnv("FAKECUDA"); !ok {
		t.Skip("needs the fake driver and the fake NCCL: make cuda")
	}
	for _, dir := range filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")) { // so that the cache of tests knows
		os.ReadFile(filepath.Join(dir, "libcuda.so.1"))
		os.ReadFile(filepath.Join(dir, "libnccl.so.2"))
	}
}

// onDevices calls f for each of some ranks, with a device each, and returns their errors.
func onDevices(t *testing.T, size int, limit time.Duration, f func(c *Comm, be *cuda.Backend, rank int) error) []error {
	t.Helper()
	if _, err := Load(""); err != nil {
		t.Fatal(err)
	}
	id, err := NewID()
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, size)
	var done sync.WaitGroup
	for r := range size {
		done.Go(func() {
			be, err := cuda.Open(0, "cpu/fma")
			if err != nil {
				errs[r] = err
				return
			}
			defer be.Close()
			c, err := Join(be, id, r, size, limit)
			if err != nil {
				errs[r] = err
				return
			}
			defer c.Close()
			errs[r] = f(c, be, r)
		})
	}
	done.Wait()
	return errs
}

// vector returns x on the device.
func vector(be *cuda.Backend, x ...float32) kernels.Buffer {
	b, err := be.Alloc(kernels.F32, len(x))
	if err != nil {
		panic(err)
	}
	be.Copy(b, kernels.Host(x))
	return b
}

// Messages follow the queued work, and match by their tags whatever their order in the list.
func TestExchange(t *testing.T) {
	needsFake(t)
	const size = 3
	errs := onDevices(t, size, time.Minute, func(c *Comm, be *cuda.Backend, rank int) error {
		out := vector(be, float32(rank), 10, float32(rank))
		be.Add(out, vector(be, 100, 100, 100)) // not waited for
		in, _ := be.Alloc(kernels.F32, size*3)
		var parts []ranks.Part
		for p := range size {
			if p == rank {
				continue
			}
			at := in.Slice(3*p, 3*p+3)
			parts = append(parts, ranks.Part{Data: out.Slice(2, 3), Peer: p, Tag: 7, Send: true},
				ranks.Part{Data: at.Slice(0, 2), Peer: p, Tag: 1}, ranks.Part{Data: out.Slice(0, 2), Peer: p, Tag: 1, Send: true},
				ranks.Part{Data: at.Slice(2, 3), Peer: p, Tag: 7}, ranks.Part{Data: in.Slice(0, 0), Peer: p, Tag: 2})
		}
		if err := c.Exchange(parts); err != nil {
			return err
		}
		got := make([]float32, size*3)
		be.Copy(kernels.Host(got), in)
		be.Sync()
		for p := range size {
			want := []float32{100 + float32(p), 110, 100 + float32(p)}
			if p == rank {
				want = []float32{0, 0, 0}
			}
			if !slices.Equal(got[3*p:3*p+3], want) {
				t.Errorf("rank %d got %v of rank %d, want %v", rank, got[3*p:3*p+3], p, want)
			}
		}
		return c.Exchange(nil)
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// A rank that does not answer fails the exchange after the limit, by number; so does a
// communicator that a rank does not join. Later exchanges fail at once.
func TestLate(t *testing.T) {
	needsFake(t)
	const limit = 200 * time.Millisecond
	send := func(c *Comm, be *cuda.Backend, peer int) error {
		return c.Exchange([]ranks.Part{{Data: vector(be, 1), Peer: peer}})
	}
	hold := make(chan struct{})
	errs := onDevices(t, 2, limit, func(c *Comm, be *cuda.Backend, rank int) error {
		if rank == 1 {
			<-hold
			return nil
		}
		defer close(hold)
		err := send(c, be, 1)
		if again := send(c, be, 1); again != err {
			t.Errorf("after a failure Exchange = %v", again)
		}
		return err
	})
	var late *ranks.LateError
	if !errors.As(errs[0], &late) || !slices.Equal(late.Peers, []int{1}) || late.Limit != limit || errs[1] != nil {
		t.Errorf("%v", errs)
	}
	id, _ := NewID()
	be, err := cuda.Open(0, "cpu/fma")
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	if _, err := Join(be, id, 1, 3, limit); !errors.As(err, &late) || !slices.Equal(late.Peers, []int{0, 2}) {
		t.Errorf("Join alone = %v", err)
	}
}

// The sum of a mini-batch's slices has the bits of one device, on any number of them.
func TestSumOnDevices(t *testing.T) {
	needsFake(t)
	const n, slicesOf = 2*kernels.SumBlock + 5, 16
	slice := func(i int) []float32 {
		x := make([]float32, n)
		for k := range x {
			x[k] = float32(1+(i*7919+k*104729)%1000) / float32(1+(i+k)%37)
		}
		return x
	}
	present := slices.Repeat([]bool{true}, slicesOf)
	present[3] = false
	sum := func(g ranks.Group, be *cuda.Backend) ([]float32, error) {
		grads, _ := be.Alloc(kernels.F32, n)
		s, err := ranks.NewSum(be, g, slicesOf, grads)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		if err := s.Of(present, func(i int) { be.Copy(grads, kernels.Host(slice(i))) }); err != nil {
			return nil, err
		}
		if err := ranks.Gather(g, grads, s.Ends()); err != nil {
			return nil, err
		}
		out := make([]float32, n)
		be.Copy(kernels.Host(out), grads)
		be.Sync()
		return out, nil
	}
	be, err := cuda.Open(0, "cpu/fma")
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	want, err := sum(ranks.Alone{}, be)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{2, 3, 16} { // 16 sum by halving
		host := ranks.InProcess(size)
		errs := onDevices(t, size, time.Minute, func(c *Comm, be *cuda.Backend, rank int) error {
			got, err := sum(ranks.Linked{Group: host[rank], Link: c}, be)
			if err == nil && !slices.Equal(got, want) {
				t.Errorf("rank %d of %d has another sum than one device", rank, size)
			}
			return err
		})
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
	}
}

// Failures of the library are errors with the name of the function and NCCL's words. Each case
// is a process, because the library reads its settings once.
func TestFailures(t *testing.T) {
	needsFake(t)
	if os.Getenv("NCCL_TEST_FAILS") != "" {
		_, err := Load("")
		if err == nil {
			err = errors.Join(onDevices(t, 2, time.Minute, func(c *Comm, be *cuda.Backend, rank int) error {
				return c.Exchange([]ranks.Part{{Data: vector(be, 1), Peer: 1 - rank, Send: rank == 0}})
			})...)
		}
		t.Log(err)
		return
	}
	for settings, want := range map[string]string{
		"version=21003": "libnccl.so.2 is version 2.10.3, and 2.14 or newer is needed",
		"join=5":        "NCCL: CommInitRankConfig: invalid usage: FAKENCCL says so (code 5)",
		"fail=1:3":      "NCCL: Send and Recv: internal error: FAKENCCL says so (code 3)",
	} {
		cmd := exec.Command(os.Args[0], "-test.run=TestFailures", "-test.v")
		cmd.Env = append(os.Environ(), "NCCL_TEST_FAILS=1", "FAKENCCL="+settings)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s\nwant %q", settings, err, out, want)
		}
	}
}
