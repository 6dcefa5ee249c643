package serve

import (
	"archive/tar"
	"bytes"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// A completion shows the images of its prompt, which the run's album holds.
func TestImagesOfPrompts(t *testing.T) {
	s := newStudy(t)
	run, at, st := s.begin("pictures", "grpo", 0, 1)
	var b bytes.Buffer
	s.must(png.Encode(&b, image.NewGray(image.Rect(0, 0, 30, 20))))
	digest := ident.Sum(b.Bytes()).String()
	album, size, err := s.db.Blobs.PutWritten(func(w io.Writer) error {
		tw := tar.NewWriter(w)
		s.must(tw.WriteHeader(&tar.Header{Name: digest + ".png", Mode: 0o644, Size: int64(b.Len())}))
		if _, err := tw.Write(b.Bytes()); err != nil {
			return err
		}
		return tw.Close()
	})
	s.must(err)
	prepare, err := s.db.BeginStage(t.Context(), store.Stage{SID: digestOf("prepare"), Run: run.ID, Attempt: at.ID, Kind: "prepare", Code: digestOf("code")})
	s.must(err)
	s.must(s.db.FinishStage(t.Context(), prepare.ID, []store.IO{{Role: "images", Digest: album, Size: size, Kind: "images"}}, store.StageResult{Result: []byte("{}")}, nil))
	w := s.db.Blobs.NewPackWriter()
	s.must(w.Add(map[string]any{"prompt": fmt.Sprintf("Look: <image 30×20 sha256:%s>", digest[:8]), "text": "7"}))
	refs, packs, err := w.Close()
	s.must(err)
	s.must(s.db.AddSamples(t.Context(), []store.Sample{{Stage: st.Home, Scope: "train", Step: 1, Item: "a", Finish: "stop", Ref: refs[0], Reward: math.NaN(), LogProbSum: -1}}, packs))

	site := newSite(t, s)
	rid := run.RID.String()[:selDigits]
	address := "/run/" + rid + "/image/" + digest[:8]
	if text := site.get("/run/" + rid + "/completions?suite=train"); !strings.Contains(text, `<img src="`+address+`" alt="image 30×20 sha256:`+digest[:8]+`"`) {
		t.Errorf("the page lacks the image:\n%s", text)
	}
	answer, body := site.do("GET", address, nil)
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "image/png" || body != b.String() {
		t.Errorf("status %d, %s, %d bytes; want %d", answer.StatusCode, answer.Header.Get("Content-Type"), len(body), b.Len())
	}
	for _, other := range []string{"/run/" + rid + "/image/" + digest[:4], "/run/" + rid + "/image/00000000", "/run/ffffffff/image/" + digest[:8]} {
		if answer, _ := site.do("GET", other, nil); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d", other, answer.StatusCode)
		}
	}
}
