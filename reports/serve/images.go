package serve

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"exp/experiments/store"
	"exp/reports"
)

// shownImage is an image on a page.
type shownImage struct {
	reports.PromptImage
	Address string
}

// imagesIn returns the images that a prompt of a run shows, in order.
func imagesIn(run store.Run, prompt string) (list []shownImage) {
	for _, im := range reports.ImagesIn(prompt) {
		list = append(list, shownImage{im, fmt.Sprintf("/run/%s/image/%s", run.RID.String()[:selDigits], im.Digits)})
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
	b, format, err := reports.ReadImage(r.Context(), s.db, run, r.PathValue("digest"))
	switch {
	case err != nil:
		http.Error(w, "the image cannot be read: "+err.Error(), http.StatusInternalServerError)
		return
	case b == nil:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "image/"+format)
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.Header().Set("Cache-Control", fmt.Sprintf("private, max-age=%d", int((24*time.Hour).Seconds())))
	_, _ = w.Write(b) // nobody is left to tell
}
