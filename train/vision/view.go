package vision

import (
	"slices"

	"exp/kernels"
	"exp/train/model"
)

// View shows the images of a gallery to one language model, with features of a tower of the model's own
// (model.LearningImages). Safe for concurrent use, but for Refresh and Backward.
type View struct {
	gallery *Gallery
	tower   *Tower
	own     features
}

// View returns a view that keeps features of at most room bytes in the host's memory. Close closes the tower, too.
func (g *Gallery) View(t *Tower, room int) *View {
	v := &View{gallery: g, tower: t, own: newFeatures(room)}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.views = append(g.views, v)
	return v
}

// Close frees the tower and drops all features.
func (v *View) Close() {
	g := v.gallery
	g.mu.Lock()
	defer g.mu.Unlock()
	g.views = slices.DeleteFunc(g.views, func(x *View) bool { return x == v })
	v.own = newFeatures(0)
	v.tower.Close()
}

// Of returns the image that a token belongs to. It panics for other tokens.
func (v *View) Of(id int32) model.Image { return v.gallery.Of(id) }

// Features is Gallery.Features with the view's tower.
func (v *View) Features(be kernels.Backend, im model.Image) []float32 {
	return v.gallery.features(be, im, v.tower, &v.own)
}

// Refresh takes the tower's weights again, and drops the features of the old ones.
func (v *View) Refresh() {
	v.gallery.mu.Lock()
	defer v.gallery.mu.Unlock()
	own := newFeatures(v.own.room)
	own.changes = v.own.changes + 1
	v.own = own
	v.tower.Refresh()
}

// Backward adds to the gradients of the tower's weights. d is the gradient of what Features returns. It panics as
// Features does.
func (v *View) Backward(be kernels.Backend, im model.Image, d []float32) {
	v.tower.Backward(be, v.gallery.patches(v.gallery.known(im)), d)
}
