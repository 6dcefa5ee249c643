package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A digest covers the elements one by one, whatever the container.
func TestDigests(t *testing.T) {
	dir := shards(t, rightMap)
	x, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	got, err := x.Digests(nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range got {
		names = append(names, d.Name)
		if want := sha256.Sum256([]byte(contents(t, x)[d.Name+" "+d.kind()])); d.SHA256 != want {
			t.Errorf("%s: %x, want %x", d.Name, d.SHA256, want)
		}
	}
	if want := []string{"x", "y", "z"}; !slices.Equal(names, want) {
		t.Errorf("order %q, want %q", names, want)
	}
}

// A cached digest counts only while the file is the same.
func TestDigestCache(t *testing.T) {
	dir, place := t.TempDir(), filepath.Join(t.TempDir(), "new", "digests.json")
	path := writeTensors(t, filepath.Join(dir, weightsFile), source("a", "U8", []int{2}, "aa"), source("b", "U8", []int{1}, "b"))
	digest := func(c *DigestCache) []TensorDigest {
		t.Helper()
		x, err := OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		got, err := x.Digests(c)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	fresh := OpenDigestCache(place)
	digest(fresh)
	if err := fresh.Save(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(place); err == nil {
		t.Fatal("a file that changed a moment ago was remembered")
	}
	if s, ok := stampOfPath(t, path); !ok {
		t.Skip("no inodes on this system")
	} else {
		time.Sleep(time.Until(time.Unix(0, s.Changed).Add(restless + 10*time.Millisecond)))
	}
	want := digest(fresh)
	if err := fresh.Save(); err != nil {
		t.Fatal(err)
	}
	// A digest that nobody could compute shows where an answer comes from.
	const never = "00000000000000000000000000000000000000000000000000000000000000ff"
	text := strings.Replace(string(readFile(t, place)), hex.EncodeToString(want[0].SHA256[:]), never, 1)
	writeFile(t, place, []byte(text))
	if got := digest(OpenDigestCache(place)); got[0].SHA256[31] != 0xff || got[1].SHA256 != want[1].SHA256 {
		t.Errorf("the cache was not used: %x", got[0].SHA256)
	}
	if got := digest(nil); got[0].SHA256 != want[0].SHA256 {
		t.Error("without a cache the file was not read")
	}
	// The same size and time, other content: the inode knows.
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	b := readFile(t, path)
	b[len(b)-1] ^= 1
	writeFile(t, path, b)
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if got := digest(OpenDigestCache(place)); got[0].SHA256 != want[0].SHA256 || got[1].SHA256 == want[1].SHA256 {
		t.Error("a changed file was taken from the cache")
	}
	for _, damaged := range []string{"", "{", `{"version":9}`, `{"version":1,"files":{"x":3}}`, `{"version":1,"files":null}`} {
		writeFile(t, place, []byte(damaged))
		if got := digest(OpenDigestCache(place)); got[0].SHA256 != want[0].SHA256 {
			t.Errorf("with the cache %q: %x", damaged, got[0].SHA256)
		}
	}
}

func stampOfPath(t *testing.T, path string) (fileStamp, bool) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, s, ok := OpenDigestCache("").stampsOf([]*os.File{f})
	return append(s, fileStamp{})[0], ok
}

// The error is that of the lowest number, whichever call fails first.
func TestOnAllCoresFails(t *testing.T) {
	for range 2000 {
		err := onAllCores(64, func(i int, _ []byte) error { return fmt.Errorf("%d", i) })
		if err == nil || err.Error() != "0" {
			t.Fatalf("the error is %v, want 0's", err)
		}
	}
}
