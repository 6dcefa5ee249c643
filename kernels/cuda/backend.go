//go:build cuda

package cuda

/*
#include "device.h"
#include "queue.h"
*/
import "C"

import (
	"embed"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"gorgonia.org/cu"

	"exp/kernels"
)

// modules are the compiled kernels, one file for each .cu.
//
//go:embed *.ptx
var modules embed.FS

// Backend computes on one device. Work is queued on one stream; Sync waits for it.
//
// Operations return nothing, so a failure is kept: later calls do nothing, and Sync panics with
// the first *kernels.DeviceError.
type Backend struct {
	about   Device
	name    string // "cuda:0"
	dev     cu.Device
	context cu.CUContext
	stream  cu.Stream
	modules []cu.Module
	loaded  []string // their files
	kernels map[string]kernel
	queued  *C.struct_queue      // work for the device
	names   [C.QUEUE_WORK]string // of the operations that queued it

	staging  unsafe.Pointer // pinned, stagingBytes
	used     int            // bytes of it in flight
	arrivals []arrival      // copies to the host that wait for Sync

	class           class
	pick            func(rows, columns int, forward bool) tiles // pickTiles, pickWithWgmma, or what a test wants
	wgmmaAttention  func(M, sequences, window int) bool         // never, long, or what a test wants
	multiprocessors int
	noWgmma         string // why products and attention are not by wgmma

	workspace kernels.Buffer // float32, for operations with intermediate results
	// Factors for tensor cores, bf16, where an operation's own are not laid out for them.
	left, right, weights kernels.Buffer

	allocated, peak int64  // bytes
	pinned          []span // what AllocHost returned
	deltaKept       int    // deltaKeptRoom

	err error
}

var _ kernels.Backend = (*Backend)(nil)

// class is a numerics class that the kernels compute.
type class struct {
	name    string
	operand kernels.DType
	tile    C.int // 1: products on plain cores are tile sums, not chains
	matrix  bool  // products are on tensor cores
}

// classOf describes a class.
func classOf(name string) class {
	for _, c := range []class{{"cpu/fma", kernels.F32, 0, false}, {"cpu/bf16", kernels.BF16, 1, false},
		{"matrix/16x25", kernels.BF16, 1, true}} {
		if c.name == name {
			return c
		}
	}
	panic("cuda: no class " + name)
}

// Open starts a backend on device n in a numerics class that Classes lists.
func Open(n int, numerics string) (*Backend, error) {
	if err := load(); err != nil {
		return nil, err
	}
	d, err := describe(n)
	if err != nil {
		return nil, wrap(deviceName(n), "find the device", err)
	}
	if needed := minCapability(numerics); d.Major < needed {
		return nil, &kernels.DeviceError{Device: deviceName(n), Op: "open the device", Code: notSupported,
			Help: "use another device, or the CPU", Text: fmt.Sprintf("%s has compute capability %d.%d; %s needs %d.0",
				d.Name, d.Major, d.Minor, numerics, needed)}
	}
	b := &Backend{about: d, name: deviceName(n), dev: cu.Device(n), kernels: map[string]kernel{},
		class: classOf(numerics), pick: pickTiles, wgmmaAttention: never,
		deltaKept: deltaKeptRoom}
	if err := b.open(); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func (b *Backend) open() (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// A device address never equals a host address then, which lets kernels.Buffer hold either.
	if ok, err := b.dev.Attribute(cu.UnifiedAddressing); err != nil || ok == 0 {
		return errorOf(b.name, "unified addressing", notSupported)
	}
	if b.context, err = b.dev.RetainPrimaryCtx(); err != nil {
		return wrap(b.name, "open the device", err)
	}
	if err := cu.SetCurrentContext(b.context); err != nil {
		return wrap(b.name, "open the device", err)
	}
	if b.stream, err = cu.MakeStream(cu.NonBlocking); err != nil {
		return wrap(b.name, "make a stream", err)
	}
	if b.multiprocessors, err = b.dev.Attribute(cu.MultiprocessorCount); err != nil {
		return wrap(b.name, "count the multiprocessors", err)
	}
	b.queued = C.device_open_queue(b.ctx(), b.queue())
	if err := errorOf(b.name, "pin host memory", int(C.device_pin(b.ctx(), &b.staging, stagingBytes))); err != nil {
		return err
	}
	if err := b.loadKernels(); err != nil {
		return err
	}
	return b.openWgmma()
}

// loadKernels loads every module but those of wgmma, of linear attention and of rows that see others behind them, and
// those for tensor cores in their class alone: a driver takes seconds to compile them.
func (b *Backend) loadKernels() error {
	files, err := modules.ReadDir(".")
	if err != nil {
		return err
	}
	for _, f := range files {
		if slices.Contains(wgmmaModules[:], f.Name()) || strings.HasPrefix(f.Name(), "matrix") && !b.class.matrix ||
			slices.Contains(recurrenceModules, f.Name()) || slices.Contains(fullPanels, f.Name()) ||
			strings.Contains(f.Name(), "ahead") {
			continue
		}
		if err := b.loadModule(f.Name()); err != nil {
			return err
		}
	}
	return nil
}

// loadOnce loads modules, unless they are loaded already. A failure is kept.
func (b *Backend) loadOnce(modules []string) {
	if slices.Contains(b.loaded, modules[0]) || b.err != nil {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cu.SetCurrentContext(b.context); err != nil {
		b.err = wrap(b.name, "enter the device", err)
		return
	}
	for _, m := range modules {
		if err := b.loadModule(m); err != nil {
			b.err = err
			return
		}
	}
}

// loadModule loads a module and finds its entries.
func (b *Backend) loadModule(file string) error {
	text, err := modules.ReadFile(file)
	if err != nil {
		return err
	}
	m, err := cu.LoadData(string(text))
	if err != nil {
		return wrap(b.name, "load "+file, err)
	}
	b.modules, b.loaded = append(b.modules, m), append(b.loaded, file)
	for name, bytes := range entries(string(text)) {
		f, err := m.Function(name)
		if err != nil {
			return wrap(b.name, "find kernel "+name, err)
		}
		if bytes > C.QUEUE_ARGS {
			panic("cuda: QUEUE_ARGS is too small for " + name)
		}
		b.kernels[name] = kernel{*(*C.CUfunction)(unsafe.Pointer(&f)), bytes} // package cu keeps it in a structure
		if err := b.allowShared(name); err != nil {
			return err
		}
	}
	return nil
}

// allowShared lets launches of a kernel give its blocks more memory than blocks may have otherwise.
func (b *Backend) allowShared(name string) error {
	shared := 0
	for _, t := range families {
		if strings.HasPrefix(name, t.family) {
			shared = t.shared
		}
	}
	any := strings.HasPrefix(name, "delta_rule") && strings.HasSuffix(name, "_any")
	if any || strings.HasPrefix(name, "scan_rule") {
		shared = 4 * deltaShared
	}
	all := []panels{panelPagedAttention}
	for _, h := range append(wgmmaHeads[:], panelHeads) {
		all = append(all, h.forward, h.dq, h.dkv)
	}
	for _, p := range all {
		if name == p.name || name == fullName(p.name) {
			shared = p.shared
		}
	}
	if shared == 0 {
		return nil
	}
	return errorOf(b.name, "give memory to "+name,
		int(C.device_share(b.ctx(), b.kernels[name].function, C.int(shared))))
}

// kernel is an entry of a module; bytes is the size of its structure of arguments.
type kernel struct {
	function C.CUfunction
	bytes    int
}

// entries returns the kernels of a module, and the sizes of their arguments.
func entries(ptx string) map[string]int {
	sizes := map[string]int{}
	for _, text := range strings.Split(ptx, ".visible .entry ")[1:] {
		name, text, _ := strings.Cut(text, "(")
		_, text, _ = strings.Cut(text, "[")
		size, _, _ := strings.Cut(text, "]")
		n, err := strconv.Atoi(size)
		if err != nil {
			panic("cuda: " + name + " takes no structure")
		}
		sizes[name] = n
	}
	return sizes
}

// Close frees what Open took. The caller frees its buffers first.
func (b *Backend) Close() {
	if b.context == (cu.CUContext{}) {
		return
	}
	for _, x := range []kernels.Buffer{b.workspace, b.left, b.right, b.weights} {
		b.Free(x)
	}
	if b.queued != nil {
		C.device_close_queue(b.queued)
	}
	if b.staging != nil {
		C.device_unpin(b.ctx(), b.staging)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, m := range b.modules {
		m.Unload()
	}
	if b.stream != (cu.Stream{}) {
		b.stream.Destroy()
	}
	b.dev.ReleasePrimaryCtx()
	*b = Backend{}
}

// Name implements kernels.Backend.
func (b *Backend) Name() string { return "cuda/" + b.about.Name }

// Driver returns the version of CUDA that the driver supports: "13.0".
func (*Backend) Driver() string { return version(cu.Version()) }

// Class implements kernels.Backend.
func (b *Backend) Class() string { return b.class.name }

// Float implements kernels.Backend.
func (b *Backend) Float() kernels.DType { return kernels.F32 }

// Operand implements kernels.Backend.
func (b *Backend) Operand() kernels.DType { return b.class.operand }

// RowsPerRead is what kernels.RowsPerRead tells, on paper: products of up to 64 rows on tensor cores are bound by
// memory (DESIGN.md, few_); plain cores do 14 to 20 operations for a byte, a quarter of a tile's 64 rows of float32.
func (b *Backend) RowsPerRead(int) int {
	if b.class.matrix {
		return 64
	}
	return 16
}

// ctx and queue are the context and the stream for calls of C. Package cu keeps each in a
// structure of one pointer.
func (b *Backend) ctx() C.CUcontext  { return *(*C.CUcontext)(unsafe.Pointer(&b.context)) }
func (b *Backend) queue() C.CUstream { return *(*C.CUstream)(unsafe.Pointer(&b.stream)) }

// keep records the first failure.
func (b *Backend) keep(op string, code C.CUresult) {
	if b.err == nil {
		b.err = errorOf(b.name, op, int(code))
	}
}

// check panics unless x has n elements.
func check(x kernels.Buffer, n int) {
	if x.Len() != n {
		panic("cuda: length mismatch")
	}
}

// rowsOf returns the number of rows of x, width elements each.
func rowsOf(x kernels.Buffer, width int) int {
	if width < 1 || x.Len()%width != 0 {
		panic("cuda: not a whole number of rows")
	}
	return x.Len() / width
}

// flag returns 1 for true.
func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// address returns the device address of b.
func address(b kernels.Buffer) C.CUdeviceptr {
	if b.IsHost() {
		panic("cuda: a host buffer in a device operation")
	}
	return C.CUdeviceptr(uintptr(b.Addr()))
}
