package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"exp/experiments/blob"
	"exp/experiments/store"
)

// roleImages is the output of the prepare stage that holds the images of problems.
const roleImages = "images"

// imageDigits are the digits of a digest in the name of an image.
const imageDigits = 8

// imageName is what a recorded prompt has in place of an image.
var imageName = regexp.MustCompile(`<image (\d+)×(\d+) sha256:([0-9a-f]{8})>`)

// shownImage is an image that a prompt shows.
type shownImage struct{ Address, Name, Width, Height string }

// imagesIn returns the images that a prompt of a run shows, in order.
func imagesIn(run store.Run, prompt string) (list []shownImage) {
	for _, m := range imageName.FindAllStringSubmatch(prompt, -1) {
		list = append(list, shownImage{fmt.Sprintf("/run/%s/image/%s", run.RID.String()[:selDigits], m[3]),
			strings.Trim(m[0], "<>"), m[1], m[2]})
	}
	return list
}

// sendImage answers with an image of a run's problems, by the first digits of its digest.
func (s *Server) sendImage(w http.ResponseWriter, r *http.Request) {
	run, err := s.oneRun(r.Context(), r.PathValue("run"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	b, format, err := s.image(r, run)
	switch {
	case err != nil:
		http.Error(w, "the image cannot be read: "+err.Error(), http.StatusInternalServerError)
		return
	case b == nil:
		http.NotFound(w, r)
		return
	}
	if !slices.Contains([]string{"png", "jpeg", "webp", "gif", "bmp"}, format) {
		http.NotFound(w, r) // nothing else is sent
		return
	}
	w.Header().Set("Content-Type", "image/"+format)
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.Header().Set("Cache-Control", fmt.Sprintf("private, max-age=%d", int((24*time.Hour).Seconds())))
	_, _ = w.Write(b) // nobody is left to tell
}

// image returns the image that a request asks for; nil if the run has none of that name.
func (s *Server) image(r *http.Request, run store.Run) (b []byte, format string, err error) {
	digits := r.PathValue("digest")
	stages, err := s.db.Stages(r.Context(), run.ID)
	if err != nil || len(digits) < imageDigits {
		return nil, "", err
	}
	for _, x := range stages {
		d := store.DigestOf(x.Outputs, roleImages)
		if d.IsZero() {
			continue
		}
		a, err := blob.OpenAlbum(s.db.Blobs.Path(d))
		if err != nil {
			return nil, "", err
		}
		defer a.Close() // only read
		digest, format, found := strings.Cut(a.Find(digits), ".")
		if !found {
			continue
		}
		b, err := a.Bytes(digest)
		return b, format, err
	}
	return s.suiteImage(r.Context(), run, digits)
}

// suiteImage returns an image of the suites that a run was scored on, which are in their problems.
func (s *Server) suiteImage(ctx context.Context, run store.Run, digits string) (b []byte, format string, err error) {
	evals, err := s.db.Evals(ctx, run.ID)
	if err != nil {
		return nil, "", err
	}
	all, err := s.db.Suites(ctx)
	if err != nil {
		return nil, "", err
	}
	mark := []byte(`"digest":"` + digits)
	for _, x := range all {
		if x.Size == 0 || !slices.ContainsFunc(evals, func(e store.Eval) bool { return e.Suite == x.ID }) {
			continue
		}
		problems, err := s.db.Blobs.Bytes(x.Digest)
		if err != nil {
			return nil, "", err
		}
		for line := range bytes.Lines(problems) {
			if !bytes.Contains(line, mark) {
				continue
			}
			var p struct {
				Images []struct {
					Digest, Format string
					Encoded        []byte
				}
			}
			if err := json.Unmarshal(line, &p); err != nil {
				return nil, "", err
			}
			for _, im := range p.Images {
				if strings.HasPrefix(im.Digest, digits) && len(im.Encoded) > 0 {
					return im.Encoded, im.Format, nil
				}
			}
		}
	}
	return nil, "", nil
}
