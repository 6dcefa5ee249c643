//go:build cuda

package cuda

import (
	"debug/elf"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"exp/kernels"
	"exp/kernels/kerneltest"
)

// fakeVariable configures the fake driver (fake/driver.c). Where it is set, even to nothing,
// the tests fail without a driver; elsewhere they skip.
const fakeVariable = "FAKECUDA"

func open(t testing.TB) *Backend { return openIn(t, "cpu/fma") }

func openIn(t testing.TB, class string) *Backend {
	t.Helper()
	// The result of a test depends on the library: read it, so that the cache knows.
	for _, dir := range filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")) {
		os.ReadFile(filepath.Join(dir, "libcuda.so.1"))
	}
	b, err := Open(0, class)
	if err != nil {
		if _, fake := os.LookupEnv(fakeVariable); fake {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Cleanup(b.Close)
	if os.Getenv(graphsVariable) != "" {
		b.queued.least, b.queued.sights = 1, 0
		opening := b.queued.counts.launches
		t.Cleanup(func() {
			if n := b.queued.counts.launches - opening; n > 0 {
				t.Errorf("%d launches were not in graphs", n)
			}
		})
	}
	if only := os.Getenv(tilesVariable); only != "" {
		if only == wgmmaTiles.family || only == thinTiles.family || only == slimTiles.family {
			needsWgmma(t, b)
			b.wgmmaAttention = func(int, int, int) bool { return only == wgmmaTiles.family }
		}
		b.pick = func(rows, columns int, forward bool) tiles {
			for _, t := range families {
				if t.family == only && (forward || t != fewTiles && t != thinTiles && t != slimTiles) {
					return t
				}
			}
			return matrixTiles
		}
	}
	return b
}

// tilesVariable names the family of tiles that products of class matrix/16x25 are on.
const tilesVariable = "EXP_CUDA_TEST_TILES"

// graphsVariable makes a graph of every launch.
const graphsVariable = "EXP_CUDA_TEST_GRAPHS"

// Products have the same bits on all tiles. EXP_TEST_ALL=1 adds the tiles for few rows, which small products
// take anyway, and the suite's attention by wgmma, which TestWgmmaAttention tests too.
func TestTiles(t *testing.T) {
	fake(t)
	t.Parallel()
	for _, x := range []tiles{matrixTiles, fewTiles, largeTiles, wgmmaTiles, thinTiles} {
		t.Run(x.family, func(t *testing.T) {
			t.Parallel()
			all := os.Getenv("EXP_TEST_ALL") != ""
			if x == fewTiles && !all {
				t.Skip("left out without EXP_TEST_ALL=1")
			}
			run := "TestConformance/matrix/(MatMul|Logits|LogProbBackward)"
			if x == wgmmaTiles && all {
				run += "|TestConformance/matrix/^Attention(Backward)?$"
			}
			again(t, run, "-test.short", tilesVariable+"="+x.family)
		})
	}
}

func TestPickTiles(t *testing.T) {
	for _, tt := range []struct {
		rows, columns int
		forward       bool
		want          tiles
	}{
		{64, 37888, true, fewTiles}, {256, 3584, true, fewTiles}, {256, 4608, true, matrixTiles}, {256, 3584, false, matrixTiles},
		{4096, 4608, true, largeTiles}, {4096, 3584, false, largeTiles}, {2048, 3584, true, matrixTiles}, {1, 1, true, fewTiles},
		{256, 37888, true, largeTiles}, {256, 152064, true, largeTiles}, {100, 3584, true, fewTiles}, {100, 3584, false, matrixTiles},
		{1024, 3584, false, matrixTiles},
	} {
		if got := pickTiles(tt.rows, tt.columns, tt.forward); got != tt.want {
			t.Errorf("%d rows and %d columns are on %v, want %v", tt.rows, tt.columns, got, tt.want)
		}
		want := tt.want
		switch {
		case tt.forward && tt.rows <= 64:
			want = slimTiles
		case tt.rows >= 1024, tt.rows == 256 && tt.columns > 4608:
			want = wgmmaTiles
		case tt.rows > 64 && tt.columns <= 4608 && tt.forward:
			want = thinTiles
		}
		if got := pickWithWgmma(tt.rows, tt.columns, tt.forward); got != want {
			t.Errorf("with wgmma %d rows and %d columns are on %v, want %v", tt.rows, tt.columns, got, want)
		}
	}
}

// beside runs a test in parallel with others on the fake driver. A GPU runs one test at a time.
func beside(t *testing.T) {
	t.Helper()
	if _, ok := os.LookupEnv(fakeVariable); ok {
		t.Parallel()
	}
}

// fake skips a test that makes the fake driver fail.
func fake(t *testing.T) {
	t.Helper()
	if _, ok := os.LookupEnv(fakeVariable); !ok {
		t.Skip("needs the fake driver: make test")
	}
}

// classes are the numerics classes by what tests call them.
func classes() map[string]string {
	return map[string]string{"f32": "cpu/fma", "bf16": "cpu/bf16", "matrix": "matrix/16x25"}
}

// TestConformance runs the suite in each numerics class. The fake driver is one thread, so all of it takes a process
// for each class, and leaves out large shapes; EXP_TEST_ALL=1 takes them.
func TestConformance(t *testing.T) {
	_, fake := os.LookupEnv(fakeVariable)
	side := fake && os.Getenv(againVariable) == "" && !strings.Contains(strings.Join(os.Args, " "), "-test.run")
	sampled := testing.Short() || os.Getenv("EXP_TEST_ALL") == ""
	if side {
		t.Parallel()
	}
	for name, class := range classes() {
		t.Run(name, func(t *testing.T) {
			if side {
				t.Parallel()
				again(t, "TestConformance/"+name, "-test.short="+strconv.FormatBool(sampled))
				return
			}
			kerneltest.NewSuite().Test(t, func() kernels.Backend { return openIn(t, class) })
		})
	}
}

// What the driver may do late, and threads in another order, change no bits; and nothing but
// kernels touches device memory. The suite leaves out large shapes, and one of the orders all kernels without shared
// memory; EXP_TEST_ALL=1 takes them, and does without the graphs of TestGraphs.
func TestOrders(t *testing.T) {
	fake(t)
	t.Parallel()
	all := os.Getenv("EXP_TEST_ALL") != ""
	sample := "-test.short=" + strconv.FormatBool(!all)
	for _, tt := range []struct{ settings, run, flag, with string }{
		{"lazy,order=1", "TestConformance/f32|TestCopies", sample, "graphs"},
		{"lazy,order=1", "TestConformance/bf16", sample, ""},
		{"lazy,order=1", "TestConformance/matrix", sample, ""},
		{"order=2", "TestConformance/matrix/(MatMul|Attention|PagedAttention|Sample|LogProb$|RMSNorm|SumSquares)", sample, ""},
		{"order=1", "TestWgmma(Bits|Attention)", "", ""},
		{"order=2", "TestWgmma(Bits|Attention)", "", ""},
		{"sealed,lazy", "TestConformance//(Alloc|Copy|Zero|Add|Empty|SumSquares|Rope)$|TestCopies", "", ""},
		{"order=2", "TestConformance", sample, "all"},
	} {
		t.Run(tt.settings, func(t *testing.T) {
			t.Parallel()
			if tt.with == "all" && !all {
				t.Skip("left out without EXP_TEST_ALL=1")
			}
			env := []string{fakeVariable + "=" + tt.settings}
			if tt.with == "graphs" && !all {
				env = append(env, graphsVariable+"=all")
			}
			again(t, tt.run, tt.flag, env...)
		})
	}
}

// Launches in graphs have the bits of others. Without EXP_TEST_ALL=1, TestOrders takes a class.
func TestGraphs(t *testing.T) {
	fake(t)
	t.Parallel()
	if os.Getenv("EXP_TEST_ALL") == "" {
		t.Skip("left out without EXP_TEST_ALL=1")
	}
	again(t, "TestConformance", "-test.short", graphsVariable+"=all")
}

// againVariable is set in processes of again.
const againVariable = "EXP_CUDA_TEST_AGAIN"

// again runs tests of this program in a new process, with a flag if any and changed variables.
func again(t *testing.T, run, flag string, env ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run="+run, "-test.v")
	if flag != "" {
		cmd.Args = append(cmd.Args, flag)
	}
	cmd.Env = append(append(os.Environ(), againVariable+"=1"), env...)
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "--- SKIP") && err == nil {
		t.Skip(string(out))
	}
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A program with this package starts without the driver's library, and tests without cuBLASLt.
func TestNeededLibraries(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil || len(libraries) == 0 {
		t.Fatal(libraries, err)
	}
	for _, l := range libraries {
		if strings.Contains(l, "cuda") || strings.Contains(l, "cublas") {
			t.Errorf("the program needs %s", l)
		}
	}
}

// A buffer larger than the staging memory goes in pieces; a host buffer may change right after
// Copy; types convert on the way.
func TestCopies(t *testing.T) {
	b := open(t)
	const n = stagingBytes/4*2 + 3
	x, back := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = float32(i)
	}
	dev, err := b.Alloc(kernels.F32, n)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Free(dev)
	b.Copy(dev, kernels.Host(x))
	clear(x)
	b.Copy(kernels.Host(back), dev)
	b.Sync()
	for i, v := range back {
		if v != float32(i) {
			t.Fatalf("element %d is %v after a round trip", i, v)
		}
	}

	wide := []float64{1, 1 + 0x1p-24, math.MaxFloat64, math.Copysign(0, -1), 0x1p-149}
	want := []float32{1, 1, float32(math.Inf(1)), float32(math.Copysign(0, -1)), 0x1p-149}
	half := []uint16{0x3f80, 0x3f80, 0x7f80, 0x8000, 0}
	part, got, wider, bits := dev.Slice(1, 1+len(wide)), make([]float32, len(wide)), make([]float64, len(wide)), make([]uint16, len(wide))
	b.Copy(part, kernels.Host(wide))
	b.Copy(kernels.Host(got), part)
	b.Copy(kernels.Host(wider), part)
	b.Copy(kernels.HostBits(bits), part)
	b.Sync()
	for i, w := range want {
		if math.Float32bits(got[i]) != math.Float32bits(w) || wider[i] != float64(w) || bits[i] != half[i] {
			t.Errorf("%v became %v, %v and %#x, want %v and %#x", wide[i], got[i], wider[i], bits[i], w, half[i])
		}
	}
	b.Copy(part, kernels.HostBits(half))
	b.Copy(kernels.Host(got), part)
	b.Sync()
	if got[0] != 1 || !math.IsInf(float64(got[2]), 1) || got[4] != 0 {
		t.Errorf("bf16 became %v", got)
	}
}

// inside names the case of TestFailures that a process runs.
const inside = "EXP_CUDA_TEST_CASE"

// Each failure is a *kernels.DeviceError that says what to do. A process opens the driver once, so each case has one.
func TestFailures(t *testing.T) {
	fake(t)
	if name := os.Getenv(inside); name != "" {
		failures()[name].run(t)
		return
	}
	for name, f := range failures() {
		t.Run(name, func(t *testing.T) { again(t, "TestFailures$", "", append(f.env, inside+"="+name)...) })
	}
}

type failure struct {
	env []string
	run func(t *testing.T)
}

func failures() map[string]failure {
	opens := func(code int, hint string) func(t *testing.T) {
		return func(t *testing.T) {
			_, err := Open(0, "cpu/fma")
			wantError(t, err, code, hint)
		}
	}
	set := func(s string) []string { return []string{fakeVariable + "=" + s} }
	return map[string]failure{
		"no library": {[]string{"LD_LIBRARY_PATH="}, func(t *testing.T) {
			_, err := Open(0, "cpu/fma")
			if err == nil {
				t.Skip("this machine has a driver")
			}
			if !errors.Is(err, ErrNoDriver) || !strings.Contains(err.Error(), "libcuda.so.1") {
				t.Error(err)
			}
		}},
		"no device":   {set("devices=0"), opens(noDevice, "CUDA_VISIBLE_DEVICES")},
		"mismatch":    {set("init=803"), opens(803, "reboot")},
		"unknown":     {set("init=888"), opens(888, "CUresult")},
		"old driver":  {set("version=11040"), opens(oldPTX, "driver 525")},
		"old device":  {set("capability=75"), opens(notSupported, "the CPU")},
		"few devices": {nil, func(t *testing.T) { _, err := Open(1, "cpu/fma"); wantError(t, err, 101, "exp doctor") }},
		"memory":      {set("memory=64"), failAlloc},
		"launch":      {set("fail=2:719"), failLaunch},
		"address":     {set("lazy"), failAddress},
		"no wgmma":    {set("capability=100"), failWgmma("10.0")},
		"no maps":     {set("maps=0"), failWgmma("map a factor of matmul")},
		"other bits":  {set("differs"), failWgmma("by mma.sync")},
		"lost wgmma": {set("fail=3:719"), func(t *testing.T) {
			_, err := Open(0, "matrix/16x25")
			wantError(t, err, 719, wgmmaVariable+"=0")
		}},
		"replay":    {set("refuse=246:701"), failReplay}, // 80 launches a step
		"no graphs": {set("refuse=246:701,graphs=0"), failReplay},
	}
}

func wantError(t *testing.T, err error, code int, hint string) {
	t.Helper()
	var e *kernels.DeviceError
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Hint(), hint) || e.Text == "" || e.Op == "" || !strings.HasPrefix(e.Error(), "cuda") {
		t.Errorf("%#v, want code %d and a hint with %q", err, code, hint)
	}
}

func failAlloc(t *testing.T) {
	b := open(t)
	_, err := b.Alloc(kernels.F32, 100<<20/4)
	wantError(t, err, outOfMemory, "--dry-run")
	if !strings.Contains(err.Error(), "allocate 100 MiB") {
		t.Error(err)
	}
	x, err := b.Alloc(kernels.F32, 1<<20) // the device still works
	if err != nil {
		t.Fatal(err)
	}
	b.Sync()
	b.Free(x)
	if left, peak := b.Allocated(), b.TakePeak(); left != 0 || peak != 4<<20 {
		t.Errorf("%d bytes are left, and the peak was %d", left, peak)
	}
	b.scratch(100 << 20 / 4)
	var room *kernels.RoomError
	if err := syncError(b); !errors.As(err, &room) || room.Part != kernels.ScratchRoom {
		t.Errorf("no room for an operation: %v", err)
	}
}

// syncError returns the error that Sync panics with.
func syncError(b *Backend) (err error) {
	defer func() { err, _ = recover().(error) }()
	b.Sync()
	return nil
}

func failLaunch(t *testing.T) {
	b := open(t)
	x, err := b.Alloc(kernels.F32, 10)
	if err != nil {
		t.Fatal(err)
	}
	b.Add(x, x)
	if err := syncError(b); err != nil {
		t.Error(err)
	}
	b.Add(x, x)
	for range 2 { // a lost device stays lost
		err := syncError(b)
		wantError(t, err, 719, "continue")
		if e := (*kernels.DeviceError)(nil); errors.As(err, &e) && !e.Lasting {
			t.Error("the device is lost, but the error is not lasting")
		}
	}
}

func failAddress(t *testing.T) {
	b := open(t)
	x, err := b.Alloc(kernels.F32, 4096)
	if err != nil {
		t.Fatal(err)
	}
	beyond := kernels.NewBuffer(unsafe.Add(x.Addr(), 4096*4), 64, kernels.F32)
	b.Add(x.Slice(0, 64), beyond)
	wantError(t, syncError(b), 700, "continue")
}

func TestDevices(t *testing.T) {
	fake(t)
	open(t)
	list, version, err := Devices()
	if err != nil || len(list) != 1 || version != "13.0" {
		t.Fatal(list, version, err)
	}
	if want := (Device{Name: "emulated device", Memory: 1 << 30, Major: 9}); list[0] != want {
		t.Errorf("%+v, want %+v", list[0], want)
	}
}

func TestClasses(t *testing.T) {
	for _, tt := range []struct {
		major int
		want  string
	}{{7, ""}, {8, "cpu/fma cpu/bf16"}, {9, "cpu/fma cpu/bf16 matrix/16x25"}, {12, "cpu/fma cpu/bf16 matrix/16x25"}} {
		if got := strings.Join(Device{Major: tt.major}.Classes(), " "); got != tt.want {
			t.Errorf("%d.0: %q, want %q", tt.major, got, tt.want)
		}
	}
}
