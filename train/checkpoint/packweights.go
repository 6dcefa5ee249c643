package checkpoint

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

// packedTensor is a tensor and its written type.
type packedTensor struct {
	from place
	as   DType
}

// tensor returns the description of x in its new file.
func (x packedTensor) tensor() Tensor {
	return Tensor{Name: x.from.Name, DType: x.as, Shape: x.from.Shape}
}

// source returns the description of the tensor that x is read from.
func (x packedTensor) source() Tensor { return x.from.Tensor }

// copyBytes is the size of a part that one goroutine copies at a time.
const copyBytes = 1 << 20

// copyPart is a part of a tensor and its place in the new file.
type copyPart struct {
	x       packedTensor
	from, n int64 // bytes of the source
	at      int64 // in the new file
}

// weights writes the files of weights. Several goroutines copy parts of a file at once,
// each with a small buffer.
func (p *packer) weights(ctx context.Context, s *staging, files []packedFile) error {
	var total int64
	for _, f := range files {
		for _, x := range f.tensors {
			total += x.tensor().Bytes()
		}
	}
	done := &copied{total: total, report: p.o.Progress}
	for _, f := range files {
		var sources []Source
		for _, x := range f.tensors {
			sources = append(sources, Source{Tensor: x.tensor()})
		}
		head := header(sources)
		parts, size := partsOf(f.tensors, int64(len(head)))
		if err := s.writeParts(ctx, f.name, head, parts, done); err != nil {
			return err
		}
		p.out.Files = append(p.out.Files, DescribedFile{Name: f.name, Bytes: size})
	}
	return nil
}

// partsOf cuts tensors that lie one after the other in a new file from at, and returns
// where they end.
func partsOf(tensors []packedTensor, at int64) (parts []copyPart, end int64) {
	for _, x := range tensors {
		bytes := x.from.Bytes()
		for lo := int64(0); lo < bytes; lo += copyBytes {
			n := min(copyBytes, bytes-lo)
			parts = append(parts, copyPart{x: x, from: lo, n: n, at: at + x.scaled(lo)})
		}
		at += x.scaled(bytes)
	}
	return parts, at
}

// scaled returns how many bytes of the new file n bytes of the source take.
func (x packedTensor) scaled(n int64) int64 {
	if x.as == x.from.DType {
		return n
	}
	return n / int64(x.from.DType.bits()/8) * int64(x.as.bits()/8)
}

// copied counts what was copied.
type copied struct {
	mu          sync.Mutex
	done, total int64
	report      func(done, total int64)
}

func (c *copied) add(n int64) {
	if c.report == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done += n
	c.report(c.done, c.total)
}

// writeParts writes and syncs a file of head and parts.
func (s *staging) writeParts(ctx context.Context, name string, head []byte, parts []copyPart, done *copied) error {
	path := s.tmp + string(os.PathSeparator) + name
	f, err := s.create(path)
	if err != nil {
		return fileError(s.op, path, err)
	}
	_, err = f.WriteAt(head, 0)
	if err == nil {
		err = copyParts(ctx, f, parts, done)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err != nil && ctx.Err() == nil {
		err = fileError(s.op, path, err)
	}
	return err
}

// copyParts copies parts, about in order, by several goroutines, until ctx ends.
func copyParts(ctx context.Context, f file, parts []copyPart, done *copied) error {
	const lead = aheadBytes / copyBytes // parts that the system is asked to fetch beforehand
	const behind = 16                   // parts that it is asked to write to disk at a time
	var next atomic.Int64
	var failed atomic.Bool
	var wg sync.WaitGroup
	errs := make([]error, min(max(runtime.GOMAXPROCS(0), 2), 8, max(len(parts), 1)))
	for w := range errs {
		wg.Go(func() {
			buf, wide := make([]byte, copyBytes), []byte(nil)
			var floats []float32
			for !failed.Load() && ctx.Err() == nil {
				i := int(next.Add(1) - 1)
				if i >= len(parts) {
					return
				}
				if i+lead < len(parts) {
					parts[i+lead].fetch()
				}
				p := parts[i]
				raw := buf[:p.n]
				_, err := p.x.from.data.ReadAt(raw, p.from)
				if err == nil && p.x.as != p.x.from.DType {
					if floats == nil {
						floats, wide = make([]float32, copyBytes/2), make([]byte, 2*copyBytes)
					}
					raw, err = p.x.convert(raw, floats, wide)
				}
				if err == nil {
					_, err = f.WriteAt(raw, p.at)
				}
				if err != nil {
					errs[w] = ofTensor(p.x.from.Name, err)
					failed.Store(true)
					return
				}
				if out, ok := f.(*os.File); ok && i%behind == behind-1 {
					writeOut(out, parts[i+1-behind].at, p.at+int64(len(raw))-parts[i+1-behind].at)
				}
				done.add(p.x.scaled(p.n))
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

// fetch asks the system to read the part from disk.
func (p copyPart) fetch() {
	p.x.from.data.Visit(p.from, p.n, func(f *os.File, at, n int64) bool {
		willNeed(f, at, n)
		return true
	})
}

// convert returns the elements of raw in the new type, in the memory of out.
func (x packedTensor) convert(raw []byte, floats []float32, out []byte) ([]byte, error) {
	n := len(raw) / (x.from.DType.bits() / 8)
	x.from.DType.float32s(floats[:n], raw)
	out = out[:n*x.as.bits()/8]
	return out, x.as.encodeFloats(out, floats[:n])
}
