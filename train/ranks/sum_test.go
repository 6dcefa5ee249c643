package ranks

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"
	"testing"
	"time"

	"exp/kernels"
	"exp/kernels/ref"
)

// gradient stands for what the backward pass leaves of a slice: numbers of very different
// sizes, so that every order of adding shows.
func gradient(x []float32, slice int) {
	s := uint64(slice)*0x9e3779b97f4a7c15 + 1
	for i := range x {
		s ^= s << 13
		s ^= s >> 7
		s ^= s << 17
		x[i] = float32(int32(s)) * float32(math.Ldexp(1, int(s>>40&15)-40))
	}
}

// whole is the definition of the sum: of n slices from lo, absent ones left out.
func whole(x [][]float32, lo, n int) []float32 {
	if n == 1 {
		return x[lo]
	}
	a, b := whole(x, lo, n/2), whole(x, lo+n/2, n/2)
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	sum := make([]float32, len(a))
	for i := range sum {
		sum[i] = a[i] + b[i]
	}
	return sum
}

// together calls f for each rank of a group in its own goroutine.
func together(size int, f func(g Group)) {
	var done sync.WaitGroup
	for _, g := range InProcess(size) {
		done.Go(func() { f(g) })
	}
	done.Wait()
}

// waysOf lists the ways that so many ranks can sum.
func waysOf(size int) []way {
	if size > 1 && size&(size-1) == 0 {
		return []way{direct, halving}
	}
	return []way{direct}
}

// sumOf sums the slices of x, nil ones absent, on size ranks and returns the gathered sum, which
// all ways leave.
func sumOf(t *testing.T, x [][]float32, n, size int) (sum []float32) {
	t.Helper()
	for i, w := range waysOf(size) {
		got := sumBy(t, w, x, n, size)
		if i > 0 && !slices.Equal(got, sum) {
			t.Fatalf("%d slices, %d ranks: halving and the direct way differ", len(x), size)
		}
		sum = got
	}
	return sum
}

func sumBy(t *testing.T, w way, x [][]float32, n, size int) []float32 {
	t.Helper()
	present := make([]bool, len(x))
	for i := range x {
		present[i] = x[i] != nil
	}
	got := make([][]float32, size)
	together(size, func(g Group) {
		be := ref.New[float32]()
		grads, _ := be.Alloc(kernels.F32, n)
		s, err := newSum(be, g, w, len(x), grads)
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		if most := bits.Len(uint(len(x))) - 1; len(s.stack.room) > most {
			t.Errorf("%d slices, %d ranks: rank %d keeps %d vectors, want at most %d", len(x), size, g.Rank(),
				len(s.stack.room), most)
		}
		err = s.Of(present, func(i int) { be.Copy(grads, kernels.Host(x[i])) })
		if err == nil {
			err = Gather(g, grads, s.Ends())
		}
		if err != nil {
			t.Error(err)
		}
		got[g.Rank()] = slices.Clone(kernels.Elems[float32](grads))
	})
	for r := 1; r < size; r++ {
		if !slices.Equal(got[r], got[0]) {
			t.Errorf("%d slices, %d ranks: ranks 0 and %d differ after the gather", len(x), size, r)
		}
	}
	return got[0]
}

// empties are patterns of absent slices; none leaves out all.
var empties = map[string]func(i, slices int) bool{
	"all present": func(int, int) bool { return false },
	"first five":  func(i, _ int) bool { return i >= 5 },
	"two of three": func(i, _ int) bool {
		return i%3 == 1
	},
	"last alone": func(i, slices int) bool { return i != slices-1 },
}

// Any number of ranks, any slices empty: the sum has the bits of its definition.
func TestSum(t *testing.T) {
	for _, g := range []int{1, 2, 4, 8, 16, 32, 64} {
		for name, empty := range empties {
			const n = 37
			x := make([][]float32, g)
			for i := range x {
				if !empty(i, g) {
					x[i] = make([]float32, n)
					gradient(x[i], i)
				}
			}
			want := whole(x, 0, g)
			for size := 1; size <= g; size++ {
				if got := sumOf(t, x, n, size); !slices.Equal(got, want) {
					t.Fatalf("%d slices, %s, %d ranks: %v, want %v", g, name, size, got[:3], want[:3])
				}
			}
		}
	}
}

// Shards of several blocks, an incomplete last one, and more than one piece.
func TestSumOfShards(t *testing.T) {
	for _, n := range []int{2*kernels.SumBlock + 37, 3 * kernels.SumBlock, 2*pieceElements + 5} {
		x := make([][]float32, 8)
		for i := range x {
			if i != 3 {
				x[i] = make([]float32, n)
				gradient(x[i], i)
			}
		}
		want := whole(x, 0, 8)
		for _, size := range []int{2, 3, 8} {
			if got := sumOf(t, x, n, size); !slices.Equal(got, want) {
				t.Errorf("%d elements, %d ranks differ from the definition", n, size)
			}
		}
	}
}

// By hand: 2²⁴ + 1 is 2²⁴ in float32, so (2²⁴ + 1) + (1 + 1) = 2²⁴ + 2; from left to right
// the ones are lost. With slice 3 absent the right child is slice 2: (2²⁴ + 1) + 1 = 2²⁴.
func TestSumByHand(t *testing.T) {
	const big = 1 << 24
	tests := []struct {
		x    [][]float32
		want float32
	}{
		{[][]float32{{big}, {1}, {1}, {1}}, big + 2},
		{[][]float32{{big}, {1}, {1}, nil}, big},
		{[][]float32{nil, {big}, {1}, {1}}, big + 2},
		{[][]float32{{big}, nil, nil, {1}}, big},
		{[][]float32{nil, nil, nil, {7}}, 7},
	}
	for i, tt := range tests {
		for size := 1; size <= 4; size++ {
			if got := sumOf(t, tt.x, 1, size); got[0] != tt.want {
				t.Errorf("case %d, %d ranks: %v, want %v", i, size, got[0], tt.want)
			}
		}
	}
}

// A rank's nodes are the ones that its stack leaves, in order.
func TestOwned(t *testing.T) {
	tests := []struct {
		lo, hi int
		want   []node
	}{
		{0, 8, []node{{3, 0}}},
		{0, 3, []node{{1, 0}, {0, 2}}},
		{3, 8, []node{{0, 3}, {2, 1}}},
		{2, 5, []node{{1, 1}, {0, 4}}},
		{4, 4, nil},
	}
	for _, tt := range tests {
		if got := owned(tt.lo, tt.hi); !slices.Equal(got, tt.want) {
			t.Errorf("owned(%d, %d) = %v, want %v", tt.lo, tt.hi, got, tt.want)
		}
	}
}

func TestShards(t *testing.T) {
	const b = kernels.SumBlock
	for _, tt := range []struct {
		n, size int
		want    []int
	}{
		{10, 1, []int{10}},
		{10, 3, []int{10, 10, 10}},
		{3 * b, 2, []int{2 * b, 3 * b}},
		{5*b + 1, 3, []int{2 * b, 4 * b, 5*b + 1}},
	} {
		if got := Shards(tt.n, tt.size); !slices.Equal(got, tt.want) {
			t.Errorf("Shards(%d, %d) = %v, want %v", tt.n, tt.size, got, tt.want)
		}
	}
}

func TestShare(t *testing.T) {
	for _, size := range []int{1, 2, 5} {
		together(size, func(g Group) {
			for round := range 3 {
				mine := []byte(fmt.Sprint("rank ", g.Rank(), " says ", round))[:(g.Rank()*7+round*3)%12]
				all, err := Share(g, mine)
				if err != nil {
					t.Error(err)
				}
				for r, got := range all {
					want := fmt.Sprint("rank ", r, " says ", round)[:(r*7+round*3)%12]
					if string(got) != want {
						t.Errorf("%d ranks: rank %d got %q of rank %d, want %q", size, g.Rank(), got, r, want)
					}
				}
			}
		})
	}
}

// An error of one rank is an error of all, and a lost rank ends what waits for it.
func TestErrors(t *testing.T) {
	together(3, func(g Group) {
		var mine error
		want := "rank 1: no room"
		if g.Rank() == 1 {
			mine, want = fmt.Errorf("no room"), "no room"
		}
		if err := Agree(g, mine); err == nil || err.Error() != want {
			t.Errorf("rank %d: Agree = %v, want %s", g.Rank(), err, want)
		}
		coded := error(nil)
		if g.Rank() == 1 {
			coded = fmt.Errorf("step 3: %w", &RemoteError{Rank: 5, Text: "torn", Code: 8, Help: "mend it"})
		}
		var remote *RemoteError
		if err := Agree(g, coded); !errors.As(err, &remote) || remote.ExitCode() != 8 || remote.Hint() != "mend it" ||
			g.Rank() != 1 && err.Error() != "rank 1: step 3: rank 5: torn" {
			t.Errorf("rank %d: Agree = %v", g.Rank(), err)
		}
		for _, lack := range []error{&kernels.RoomError{Part: kernels.CacheRoom, Err: errors.New("out of memory")},
			&kernels.DeviceError{Device: "cuda:1", Op: "synchronize", Code: 719, Help: "start again"}} {
			var mine error
			if g.Rank() == 1 {
				mine = fmt.Errorf("step 3: %w", lack)
			}
			var known interface {
				ExitCode() int
				Hint() string
			}
			if err := Agree(g, mine); !errors.As(err, &known) || known.ExitCode() != 7 ||
				known.Hint() != lack.(interface{ Hint() string }).Hint() {
				t.Errorf("rank %d: Agree = %v", g.Rank(), err)
			}
		}
		if err := Agree(g, nil); err != nil {
			t.Errorf("rank %d: Agree = %v", g.Rank(), err)
		}
		if g.Rank() == 2 {
			g.(*Local).Close()
			return
		}
		lost := func() (err error) {
			defer Recover(&err)
			_, err = Share(g, nil)
			Must(err)
			return nil
		}()
		if lost == nil || lost.Error() != "a rank is lost" {
			t.Errorf("rank %d: after rank 2 has left, Share = %v", g.Rank(), lost)
		}
	})
}

func TestWay(t *testing.T) {
	for _, tt := range []struct {
		size, n int
		want    way
	}{{2, 1 << 30, direct}, {4, 4*pieceElements - 1, direct}, {4, 4 * pieceElements, halving}, {6, 1 << 30, direct},
		{8, 1000, direct}, {16, 1000, halving}, {24, 1 << 30, direct}} {
		if got := wayOf(tt.size, tt.n); got != tt.want {
			t.Errorf("%d ranks, %d elements: way %d, want %d", tt.size, tt.n, got, tt.want)
		}
	}
}

// Room is what the rank with the most room allocates.
func TestRoom(t *testing.T) {
	const n = 3*kernels.SumBlock + 5
	for _, tt := range []struct {
		size int
		way  way
	}{{1, direct}, {2, direct}, {3, direct}, {5, direct}, {8, direct}, {2, halving}, {8, halving}} {
		size := tt.size
		most := make([]int, size)
		together(size, func(g Group) {
			be := ref.New[float32]()
			x, err := be.Alloc(kernels.F32, n)
			if err != nil {
				t.Error(err)
				return
			}
			s, err := newSum(be, g, tt.way, 8, x)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			for _, b := range s.owned {
				most[g.Rank()] += b.Len()
			}
		})
		if got, want := room(tt.way, 8, size, n), slices.Max(most); got != want {
			t.Errorf("%d ranks, way %d: room = %d, the ranks have %v", size, tt.way, got, most)
		}
	}
	if got, want := Room(16, 16, n), room(halving, 16, 16, n); got != want {
		t.Errorf("16 ranks: Room = %d, want %d, of halving", got, want)
	}
}

// Waiting is how many vectors a sum of few slices writes to.
func TestWaiting(t *testing.T) {
	const n = 8
	for _, size := range []int{1, 2, 4, 8, 16} {
		for present := 1; present <= size; present++ {
			be := ref.New[float32]()
			x, err := be.Alloc(kernels.F32, n)
			if err != nil {
				t.Fatal(err)
			}
			s, err := NewSum(be, InProcess(1)[0], size, x)
			if err != nil {
				t.Fatal(err)
			}
			there := make([]bool, size)
			for i := range present {
				there[i] = true
			}
			if err := s.Of(there, func(i int) { gradient(kernels.Elems[float32](x), i) }); err != nil {
				t.Fatal(err)
			}
			written := 0
			for _, b := range s.owned {
				if slices.ContainsFunc(kernels.Elems[float32](b), func(v float32) bool { return v != 0 }) {
					written++
				}
			}
			if got := Waiting(size, present); got != written || Waiting(size, size) != len(s.owned) {
				t.Errorf("%d of %d slices: Waiting = %d, the sum has written to %d of %d vectors", present, size, got, written,
					len(s.owned))
			}
			s.Close()
		}
	}
}

func TestLateError(t *testing.T) {
	e := &LateError{Peers: []int{1, 3}, Limit: 30 * time.Minute}
	if got, want := e.Error(), "waited 30m0s for ranks 1 3"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// recorder is a Link that notes its messages.
type recorder struct{ parts []Part }

func (r *recorder) Exchange(parts []Part) error {
	r.parts = append(r.parts, parts...)
	return nil
}

// A Link carries the memory of devices and nothing else.
func TestLinked(t *testing.T) {
	together(2, func(g Group) {
		link := new(recorder)
		l := Linked{Group: g, Link: link}
		device, _ := ref.New[float32]().Alloc(kernels.F32, 3)
		other := 1 - g.Rank()
		got := []float32{0}
		err := l.Exchange([]Part{{Data: device, Peer: other, Send: true}, {Data: kernels.Host(got), Peer: other},
			{Data: kernels.Host([]float32{float32(1 + g.Rank())}), Peer: other, Send: true}})
		if err != nil || got[0] != float32(1+other) || len(link.parts) != 1 || link.parts[0].Data != device {
			t.Errorf("rank %d: %v, got %v by the group, %d parts by the link", g.Rank(), err, got, len(link.parts))
		}
	})
}
