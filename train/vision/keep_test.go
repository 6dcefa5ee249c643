package vision

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"exp/kernels"
	"exp/train/model"
)

// A gallery that is shown many images keeps those that are held, and of the others those let go last. No two images
// ever have the same ids.
func TestGalleryDropsWhatNobodyHolds(t *testing.T) {
	const files, size, rounds = 8, 10, 3000
	g := NewGallery(100, small(), nil, 0)
	g.Keep(files, files*size)
	rng := rand.New(rand.NewPCG(1, 2))
	var held, idle []string               // idle: the one let go last at the end
	images := map[string]model.Image{}    // that the gallery must know
	owner := map[int32]string{}           // of every id that was handed out
	handed := map[string]map[int32]bool{} // first ids of a digest
	for range rounds {
		if len(held) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(held))
			digest := held[i]
			held = slices.Delete(held, i, i+1)
			g.Release(digest)
			if !slices.Contains(held, digest) {
				idle = append(idle, digest)
			}
		} else {
			digest := fmt.Sprint(rng.IntN(40))
			im, err := g.Hold(digest, 8, 4*(1+len(digest)), make([]byte, size))
			if err != nil {
				t.Fatal(err)
			}
			if old, known := images[digest]; known && im != old {
				t.Fatalf("image %s is %+v and was %+v", digest, im, old)
			}
			if handed[digest] == nil {
				handed[digest] = map[int32]bool{}
			}
			if _, known := images[digest]; !known && handed[digest][im.First] {
				t.Fatalf("image %s was dropped and has its old ids", digest)
			}
			handed[digest][im.First] = true
			for id := im.First; id < im.First+int32(im.Tokens()); id++ {
				if other, taken := owner[id]; taken && other != digest {
					t.Fatalf("id %d of image %s was of %s", id, digest, other)
				}
				owner[id] = digest
			}
			images[digest] = im
			held, idle = append(held, digest), slices.DeleteFunc(idle, func(x string) bool { return x == digest })
		}
		for len(images) > files && len(idle) > 0 {
			gone := images[idle[0]]
			if got := caught(func() { g.Of(gone.First) }); got == nil {
				t.Fatalf("image %s was not dropped", idle[0])
			}
			delete(images, idle[0])
			idle = idle[1:]
		}
		for digest, im := range images {
			if g.Of(im.First) != im || g.Of(im.First+int32(im.Tokens())-1) != im {
				t.Fatalf("image %s is not known any more", digest)
			}
		}
		if g.files != len(images) || g.bytes != size*len(images) || len(g.images) != len(images) || len(g.byDigest) != len(images) {
			t.Fatalf("%d files of %d bytes, %d images; want %d", g.files, g.bytes, len(g.images), len(images))
		}
	}
	if len(handed["7"]) < 3 {
		t.Errorf("image 7 came with %d ids: too few drops for a test", len(handed["7"]))
	}
	if got := caught(func() { g.Release("none") }); got == nil {
		t.Error("an image that nobody holds is let go")
	}
}

// Large files are dropped when fewer than the most are there; an image that Add is told of stays.
func TestGalleryBoundsBytes(t *testing.T) {
	g := NewGallery(100, small(), nil, 0)
	show := func(digest string, size int) model.Image {
		t.Helper()
		im, err := g.Hold(digest, 8, 8, make([]byte, size))
		if err != nil {
			t.Fatal(err)
		}
		g.Release(digest)
		return im
	}
	g.Keep(100, 50)
	a, b := show("a", 20), show("b", 20)
	if again := show("a", 20); again != a {
		t.Errorf("a is %+v, then %+v", a, again)
	}
	show("c", 20) // for which b must go, which was let go before a
	if caught(func() { g.Of(b.First) }) == nil || g.Of(a.First) != a {
		t.Error("b is there, or a is not")
	}
	if im, err := g.Add("a", 8, 8, nil); err != nil || im != a {
		t.Error(im, err)
	}
	show("d", 60) // which goes, too, as it is too large
	if g.Of(a.First) != a || g.files != 0 || g.bytes != 0 || len(g.images) != 1 {
		t.Errorf("%d files of %d bytes, %d images", g.files, g.bytes, len(g.images))
	}
}

// A dropped image takes its features along.
func TestGalleryDropsFeatures(t *testing.T) {
	be := openCPU(t, 1, kernels.F32)
	g := NewGallery(100, small(), open(t, be, tiny(Qwen3VL), kernels.F32), 1<<20)
	g.Keep(1, 1<<20)
	var before []float32
	for i := range 20 {
		digest, raw := fmt.Sprint(i%2), drawing(t, 8, 8, i%2)
		im, err := g.Hold(digest, 8, 8, raw)
		if err != nil {
			t.Fatal(err)
		}
		f := g.Features(be, im)
		if i == 0 {
			before = f
		} else if i%2 == 0 && !slices.Equal(f, before) {
			t.Error("an image that comes again has other features")
		}
		g.Release(digest)
		if g.own.held != featureBytes(f) || len(g.own.kept) != 1 {
			t.Fatalf("%d images, %d bytes of features", len(g.own.kept), g.own.held)
		}
	}
}
