package stage

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval/layout"
	"exp/experiments/blob"
	"exp/train/rollout"
)

func pngBytes(t *testing.T, width, height int, gray uint8) []byte {
	t.Helper()
	im := image.NewGray(image.Rect(0, 0, width, height))
	for i := range im.Pix {
		im.Pix[i] = gray + uint8(i)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, im); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// An album holds each image of the problems once, in their order, and none of problems that were left out.
func TestAlbum(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	w := &albumWriter{dir: dir, valid: func(b []byte) error {
		if c, err := png.DecodeConfig(bytes.NewReader(b)); err != nil || c.Width == 31 {
			return errors.New("too odd")
		}
		return nil
	}}
	defer func() {
		if w.close(); w.f == nil {
			t.Error("it has no file")
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}()
	files := [][]byte{pngBytes(t, 30, 20, 1), pngBytes(t, 31, 20, 2), pngBytes(t, 32, 21, 3)}
	var pics []rollout.Picture
	for _, b := range append(files, files[0]) {
		pic, err := w.take(b)
		if err != nil {
			t.Fatal(err)
		}
		pics = append(pics, pic)
	}
	if pics[3].Digest != pics[0].Digest || pics[2].Width != 32 || pics[2].Height != 21 || pics[2].Format != "png" {
		t.Errorf("pictures %v", pics)
	}
	odd := []rollout.Problem{{ID: "a", Images: pics[:1]}, {ID: "b", Images: pics[:2]}}
	if err := w.broken("problem", odd); err == nil || err.Error() != "problem b: image 2: too odd" {
		t.Errorf("broken: %v", err)
	}
	c := layout.Conversation{Problem: odd[1], Where: "talks.jsonl:7"}
	for _, list := range [][]rollout.Problem{talks([]layout.Conversation{c}), answersOf([]layout.Labelled{{Answer: c}}),
		compared([]layout.Pair{{Chosen: c}})} {
		if err := w.broken("row", list); err == nil || err.Error() != "row talks.jsonl:7: image 2: too odd" {
			t.Errorf("broken: %v", err)
		}
	}
	problems := []rollout.Problem{{Images: pics[2:3]}, {}, {Images: []rollout.Picture{pics[0], pics[2]}}}
	if err := w.broken("problem", problems); err != nil {
		t.Error(err)
	}
	if n := w.show(problems); n != 3 {
		t.Errorf("%d images shown, want 3", n)
	}
	var b bytes.Buffer
	if err := w.write(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "album")
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	a, err := blob.OpenAlbum(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if diff := cmp.Diff([]string{pics[2].Digest + ".png", pics[0].Digest + ".png"}, a.Names()); diff != "" {
		t.Errorf("names (-want +got)\n%s", diff)
	}
	for _, i := range []int{0, 2} {
		if got, err := a.Bytes(pics[i].Digest); err != nil || !bytes.Equal(got, files[i]) {
			t.Errorf("image %d: %d bytes, %v; want %d", i, len(got), err, len(files[i]))
		}
	}
	if got := a.Find(pics[0].Digest[:8]); got != pics[0].Digest+".png" || a.Find(pics[1].Digest[:8]) != "" {
		t.Errorf("found %q", got)
	}
	if _, err := a.Bytes(pics[1].Digest); err == nil {
		t.Error("an image that no problem shows is there")
	}
	broken := bytes.Replace(b.Bytes(), files[2], append([]byte("x"), files[2][1:]...), 1)
	if err := os.WriteFile(path, broken, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Bytes(pics[2].Digest); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("damaged: %v", err)
	}
}
