package model

import (
	"fmt"
	"math"
	"slices"

	"exp/kernels"
)

// This file has what models of text and images add (Qwen2-VL, arXiv:2409.12191; Qwen2.5-VL, arXiv:2502.13923;
// Qwen3-VL, arXiv:2511.21631; GLM-4.1V, arXiv:2507.01006; InternVL, arXiv:2504.10479; Idefics3, arXiv:2408.12637;
// SmolVLM, arXiv:2504.05299; Gemma 3, arXiv:2503.19786 §2.1). A vision tower (package vision) turns an image into
// features, which stand for the embeddings of its tokens. It is frozen, or learns (tower.go). The tokens of an image
// have ids of their own beyond the vocabulary, so equal tokens always have equal features, in prefixes that sequences
// share, too.

// ImageSettings says how a language model reads images; the zero value: not at all.
type ImageSettings struct {
	// Sections are the rotary pairs that turn by time, by height and by width; together they are all pairs.
	Sections [3]int
	// Flat says that tokens of images have the positions of text instead, one after the other (InternVL, Idefics3).
	Flat bool `json:",omitempty"`
	// Module is the name of the language model within the whole, for the names of adapters; empty: language_model.
	Module string `json:",omitempty"`
	// Interleaved says that the pairs of the three take turns (Qwen3-VL), not one section after another.
	Interleaved bool `json:",omitempty"`
	// Deep is the number of first layers whose outputs get further features of the tokens added (DeepStack,
	// arXiv:2406.04334).
	Deep int `json:",omitempty"`
	// Block is the most tokens of an image where they see each other, in layers with a window, too (Gemma 3); 0: a
	// token sees those before it alone.
	Block int `json:",omitempty"`
}

// Image is an image as a language model reads it, or a part of a video: Rows·Columns tokens with the ids from First
// on, row by row.
type Image struct {
	First         int32
	Rows, Columns int
	// Part counts the parts of a video from 0 on, and Parts is their number, 0 for an image. The ids of the next part
	// follow. Time is how far the part's position in time is from the video's, if it follows the one before at once.
	Part, Parts int
	Time        int32
}

// Tokens returns the number of tokens.
func (im Image) Tokens() int { return im.Rows * im.Columns }

// AllTokens returns the number of tokens of all parts of the video.
func (im Image) AllTokens() int { return max(1, im.Parts) * im.Tokens() }

// Images gives a model the images that its sequences show.
type Images interface {
	// Of returns the image that a token belongs to. It panics if there is none.
	Of(id int32) Image
	// Features computes features [1+Deep][Rows·Columns][Width] on a backend: the embeddings of the image's tokens,
	// then the features that each of the first Deep layers adds. They depend on the image alone, and on the weights of
	// a vision tower that learns. Callers must not change them. Features panics with an *ImageError if it cannot read
	// the image.
	Features(be kernels.Backend, im Image) []float32
}

// ImageError reports an image that cannot be read.
type ImageError struct{ Err error }

func (e *ImageError) Error() string { return "image: " + e.Err.Error() }
func (e *ImageError) Unwrap() error { return e.Err }

// SetImages gives the model the images of its sequences. It panics if the model holds the weights of a vision tower,
// or adapters on one, and the images are not LearningImages: they would have features of other weights.
func (m *Model) SetImages(x Images) {
	m.images = x
	if !m.HoldsTower() && !m.AdaptsTower() {
		return
	}
	if m.learning() == nil {
		panic("model: the model holds a vision tower or its adapters, which its images do not come from")
	}
	m.learning().Refresh()
	if m.HoldsTower() && m.base != nil {
		m.base.images = append(m.base.images, m.learning())
	}
}

// ReadsImages reports whether models of configuration c read images.
func (c Config) ReadsImages() bool { return c.Images != ImageSettings{} }

// validate reports invalid settings.
func (s ImageSettings) validate(c Config) (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("model: images: "+format, args...)) }
	if s == (ImageSettings{}) {
		return nil
	}
	sum := 0
	for _, n := range s.Sections {
		if n < 0 {
			bad("a section of %d rotary pairs", n)
		}
		sum += n
	}
	switch {
	case s.Flat && (sum > 0 || s.Interleaved):
		bad("sections %v of rotary pairs and positions of text", s.Sections)
	case !s.Flat && sum != c.rotated()/2:
		bad("sections %v are %d rotary pairs, a head has %d", s.Sections, sum, c.rotated()/2)
	}
	if s.Deep < 0 || s.Deep > c.Layers {
		bad("features are added after %d of %d layers", s.Deep, c.Layers)
	}
	if s.Block < 0 || s.Block > c.Window && slices.Contains(c.Windowed, true) {
		bad("%d tokens of an image see each other, in windows of %d", s.Block, c.Window)
	}
	if s.Block > 0 && c.hasLinear() {
		bad("tokens of an image see each other, but linear attention goes forward alone")
	}
	return errs
}

// section returns which of time, height and width turns a rotary pair.
func (s ImageSettings) section(pair int) int {
	if s.Interleaved {
		if axis := pair % 3; axis > 0 && pair < 3*s.Sections[axis] {
			return axis
		}
		return 0
	}
	for axis, n := range s.Sections {
		if pair < n {
			return axis
		}
		pair -= n
	}
	panic("model: a rotary pair beyond the sections")
}

// Place is the rotary position of a token: of time, height and width, which are equal for text.
type Place [3]int32

// placer finds the places of the tokens of a sequence, one after the other. The tokens of an image at position p are
// at (p, p+row, p+column), those of a part of a video at (p+time, p+row, p+column), and text goes on behind the
// largest of these (Qwen2-VL §2.1). Parts of a video between which text stands are placed as images.
//
// transformers before 5.6, vLLM and Qwen's own code place text so. Since then transformers lets it go on at
// p + max(rows, columns), among the positions of a longer video, but not in decoding, which goes on behind the
// largest.
type placer struct {
	m     *Model
	next  int32 // position of text that comes next
	image Image // of the last token, or of an earlier one
	start int32 // position of the image
	last  int32 // the last token
}

func (x *placer) place(id int32) Place {
	if int(id) < x.m.Config.Vocab {
		p := x.next
		x.next, x.last = p+1, id
		return Place{p, p, p}
	}
	if first := x.image.First; id != x.last+1 || id <= first || int(id-first) >= x.image.Tokens() {
		im := x.m.images.Of(id)
		if follows := id == x.last+1 && im.Part > 0 && x.image.Part == im.Part-1; !follows {
			x.start = x.next
		}
		x.image = im
		x.next = max(x.next, x.start+max(im.Time+1, int32(im.Rows), int32(im.Columns)))
	}
	x.last = id
	n, columns := id-x.image.First, int32(x.image.Columns)
	return Place{x.start + x.image.Time, x.start + n/columns, x.start + n%columns}
}

// Places returns the places of the tokens of a sequence, and the position of text behind them; nil if no token is of
// an image, or images have positions of text.
func (m *Model) Places(tokens []int32) (list []Place, next int32) {
	if m.Config.Images.Flat || !m.shows(tokens) {
		return nil, int32(len(tokens))
	}
	x := placer{m: m}
	list = make([]Place, len(tokens))
	for i, id := range tokens {
		list[i] = x.place(id)
	}
	return list, x.next
}

// shows reports whether any of tokens is of an image.
func (m *Model) shows(tokens []int32) bool {
	if !m.Config.ReadsImages() {
		return false
	}
	return slices.ContainsFunc(tokens, func(id int32) bool { return int(id) >= m.Config.Vocab })
}

// imageRoom holds what a pass over rows of sequences with images needs; it is empty for models that read none.
type imageRoom struct {
	placed      bool             // the rows have places of their own
	shown       int              // rows of images
	table       rotary           // [N,R/2] cosines and sines of each row
	own         indexBuffer      // [N] 0, 1, 2, …: the rows of table
	ids, rows   indexBuffer      // [T] the tokens of text and their rows
	order       indexBuffer      // [N] the row's embedding, text's first, then images'
	deepOrder   indexBuffer      // [N] the row's features in deep
	shownRows   indexBuffer      // [shown] rows of images, if a vision tower learns
	ahead       indexBuffer      // [N] rows behind each that it sees, if tokens of an image see each other
	parts       []imagePart      // of images, in the order of rows
	features    kernels.Buffer   // [N,C]
	deep        []kernels.Buffer // [Deep][1+N,C]; the first row is -0, which changes nothing that it is added to
	cosines     []float64        // of table, on the host
	sines       []float64
	minusZeroes []float32 // [C]
	places      []Place   // [N]
	axes        []int     // [R/2] section of each rotary pair
}

func (x *imageRoom) alloc(c Config, N int, f func(n int) kernels.Buffer) {
	if !c.ReadsImages() {
		return
	}
	if !c.Images.Flat {
		x.table = rotary{f(N * c.rotated() / 2), f(N * c.rotated() / 2)}
	}
	x.features = f(N * c.Width)
	x.deep = nil
	for range c.Images.Deep {
		x.deep = append(x.deep, f((1+N)*c.Width))
	}
}

func (x *imageRoom) allocIndex(c Config, N int, learns bool, index func(n int) indexBuffer) {
	if !c.ReadsImages() {
		return
	}
	x.own, x.ids, x.rows, x.order = index(N), index(N), index(N), index(N)
	if c.Images.Deep > 0 {
		x.deepOrder = index(N)
	}
	if learns {
		x.shownRows = index(N)
	}
	if c.Images.Block > 0 {
		x.ahead = index(N)
	}
}

// showImages prepares the loaded batch's rows, if any is of an image.
func (m *Model) showImages(ws *Workspace) {
	if !m.shows(ws.ids.host) {
		ws.images.placed, ws.images.shown = false, 0
		return
	}
	if m.Config.Images.Flat {
		m.placeRows(&ws.images, ws.ids.host, nil)
		m.be.Sync()
		return
	}
	places := ws.images.places[:0]
	var at, behind placer // behind the prompt
	for i, id := range ws.ids.host {
		prompt := ws.batch.Prompt[ws.owner[i]]
		switch ws.pos.host[i] {
		case 0:
			at = placer{m: m}
		case prompt:
			at = behind
		}
		places = append(places, at.place(id))
		if ws.pos.host[i] == prompt-1 {
			behind = at
		}
	}
	ws.images.places = places
	m.placeRows(&ws.images, ws.ids.host, places)
	m.be.Sync()
}

// placeRows prepares rows with tokens at places, for tokens of images and rows behind them; without places all rows
// have the positions of text.
func (m *Model) placeRows(x *imageRoom, tokens []int32, places []Place) {
	x.placed, x.shown = len(places) > 0, 0
	if x.placed {
		m.turnRows(x, places)
	}
	if m.shows(tokens) {
		m.takeFeatures(x, tokens)
		m.lookAhead(x, tokens)
	}
}

// Ahead returns how many tokens behind a token of a sequence it sees: all that come of its image, if tokens of an
// image see each other.
func (m *Model) Ahead(id int32) int {
	if m.Config.Images.Block == 0 || int(id) < m.Config.Vocab {
		return 0
	}
	im := m.images.Of(id)
	return im.Tokens() - 1 - int(id-im.First)
}

// lookAhead says how many rows behind it each row sees. The rows of an image must all be there.
func (m *Model) lookAhead(x *imageRoom, tokens []int32) {
	if x.ahead.dev.Empty() {
		return
	}
	x.ahead.host = x.ahead.host[:0]
	for i := 0; i < len(tokens); {
		first, n := tokens[i], m.Ahead(tokens[i])
		for k := range n + 1 {
			if i+k == len(tokens) || tokens[i+k] != first+int32(k) {
				panic("model: part of an image is missing, and its tokens see each other")
			}
			x.ahead.host = append(x.ahead.host, int32(n-k))
		}
		i += n + 1
	}
	x.ahead.upload(m.be)
}

// seen returns s for the rows that x holds.
func (x *imageRoom) seen(s kernels.AttentionShape) kernels.AttentionShape {
	if x.shown > 0 && !x.ahead.dev.Empty() {
		s.Ahead = x.ahead.dev.Slice(0, len(x.ahead.host))
	}
	return s
}

// turnRows fills the table of rows at places.
func (m *Model) turnRows(x *imageRoom, places []Place) {
	c := m.Config
	half := c.rotated() / 2
	longest := int32(0)
	for _, p := range places {
		longest = max(longest, p[0], p[1], p[2])
	}
	m.turnTo(int(longest) + 1)
	x.cosines, x.sines, x.own.host = x.cosines[:0], x.sines[:0], x.own.host[:0]
	for pair := len(x.axes); pair < half; pair++ {
		x.axes = append(x.axes, c.Images.section(pair))
	}
	for i, p := range places {
		for pair, axis := range x.axes {
			at := int(p[axis])*half + pair
			x.cosines, x.sines = append(x.cosines, m.cosines[at]), append(x.sines, m.sines[at])
		}
		x.own.host = append(x.own.host, int32(i))
	}
	m.be.Copy(x.table.cos.Slice(0, len(x.cosines)), kernels.Host(x.cosines))
	m.be.Copy(x.table.sin.Slice(0, len(x.sines)), kernels.Host(x.sines))
	x.own.upload(m.be)
}

// turnTo computes the cosines and sines of at least n positions on the host.
func (m *Model) turnTo(n int) {
	c := m.Config
	half := c.rotated() / 2
	if len(m.cosines) >= n*half {
		return
	}
	freq, scale := c.Frequencies(c.RopeTheta, c.Rope, m.length)
	n = (n + ropeStep - 1) / ropeStep * ropeStep
	// Not in place: another model may have the old ones.
	m.cosines, m.sines = make([]float64, n*half), make([]float64, n*half)
	for p := range n {
		for i, f := range freq {
			angle := float64(p) * f
			m.cosines[p*half+i], m.sines[p*half+i] = math.Cos(angle)*scale, math.Sin(angle)*scale
		}
	}
}

// takeFeatures copies the features of the rows of images to the device, and says where each row's embedding is.
func (m *Model) takeFeatures(x *imageRoom, tokens []int32) {
	C := m.Config.Width
	x.ids.host, x.rows.host, x.order.host, x.deepOrder.host = x.ids.host[:0], x.rows.host[:0], x.order.host[:0],
		x.deepOrder.host[:0]
	x.shownRows.host, x.parts = x.shownRows.host[:0], x.parts[:0]
	for i, id := range tokens {
		if int(id) < m.Config.Vocab {
			x.ids.host, x.rows.host = append(x.ids.host, id), append(x.rows.host, int32(i))
		}
	}
	text := len(x.ids.host)
	x.minusZeroes = x.minusZeroes[:0]
	for range C {
		x.minusZeroes = append(x.minusZeroes, float32(math.Copysign(0, -1)))
	}
	for _, deep := range x.deep {
		m.be.Copy(deep.Slice(0, C), kernels.Host(x.minusZeroes))
	}
	for i := 0; i < len(tokens); {
		if int(tokens[i]) < m.Config.Vocab {
			x.order.host = append(x.order.host, int32(i-x.shown))
			x.deepOrder.host = append(x.deepOrder.host, 0)
			i++
			continue
		}
		im := m.images.Of(tokens[i])
		from, n := int(tokens[i]-im.First), 1
		for i+n < len(tokens) && from+n < im.Tokens() && tokens[i+n] == tokens[i]+int32(n) {
			n++
		}
		f := m.images.Features(m.be, im)
		if len(f) != int((1+len(x.deep))*im.Tokens()*C) {
			panic("model: features of another shape than the image's")
		}
		m.be.Copy(x.features.Slice(x.shown*C, (x.shown+n)*C), kernels.Host(f[from*C:(from+n)*C]))
		for l, deep := range x.deep {
			at := (1+l)*im.Tokens() + from
			m.be.Copy(deep.Slice((1+x.shown)*C, (1+x.shown+n)*C), kernels.Host(f[at*C:(at+n)*C]))
		}
		for k := range n {
			x.order.host = append(x.order.host, int32(text+x.shown+k))
			x.deepOrder.host = append(x.deepOrder.host, int32(1+x.shown+k))
			x.shownRows.host = append(x.shownRows.host, int32(i+k))
		}
		x.parts = append(x.parts, imagePart{im, from, n})
		x.shown, i = x.shown+n, i+n
	}
	for _, b := range []*indexBuffer{&x.ids, &x.rows, &x.order} {
		b.upload(m.be)
	}
	if len(x.deep) > 0 {
		x.deepOrder.upload(m.be)
	}
	if !x.shownRows.dev.Empty() {
		x.shownRows.upload(m.be)
	}
}

// embedTokens sets out [N,C] to the embeddings of ids [N], or of the rows that x holds if some are of images. t [N,C]
// is scratch.
func (m *Model) embedTokens(x *imageRoom, out, ids, t kernels.Buffer) {
	c, be := m.Config, m.be
	if x.shown == 0 {
		be.Embed(out, m.embed, ids, c.embedScale())
		return
	}
	text := len(x.ids.host) * c.Width
	be.Embed(t.Slice(0, text), m.embed, x.ids.dev.Slice(0, len(x.ids.host)), c.embedScale())
	be.Copy(t.Slice(text, out.Len()), x.features.Slice(0, x.shown*c.Width))
	be.GatherRows(out, t, x.order.dev.Slice(0, ids.Len()), c.Width)
}

// embedBackward adds dx, the gradient of embeddings, to the table's gradient and, if it learns, to the vision tower's
// (addFeatureGradients). t [N,C] is scratch.
func (m *Model) embedBackward(ws *Workspace, dx, t kernels.Buffer) {
	c, x, ids := m.Config, &ws.images, ws.ids.dev.Slice(0, ws.n)
	if x.shown > 0 {
		m.addFeatureGradients(ws, dx)
		n := len(x.ids.host)
		ids, t = x.ids.dev.Slice(0, n), t.Slice(0, n*c.Width)
		m.be.GatherRows(t, dx, x.rows.dev.Slice(0, n), c.Width)
		dx = t
	}
	m.be.EmbedBackward(m.dEmbed, dx, ids, c.Width, c.embedScale())
}

// deepen adds the features of images to delta [N,C], what layer l adds to the residual stream, if it is one of the
// first layers that get some. t [N,C] is scratch.
func (m *Model) deepen(x *imageRoom, l int, delta, t kernels.Buffer) {
	if x.shown == 0 || l >= len(x.deep) {
		return
	}
	C := m.Config.Width
	m.be.GatherRows(t, x.deep[l], x.deepOrder.dev.Slice(0, delta.Len()/C), C)
	m.be.Add(delta, t)
}

// turns says how rotary positions turn the rows of a pass: row i by row pos[i] of a table, the layer's own unless
// there is another.
type turns struct {
	pos   kernels.Buffer
	table rotary
}

// of returns the table for a layer.
func (t turns) of(y *layer) rotary {
	if t.table.cos.Empty() {
		return y.rope
	}
	return t.table
}

// turns returns the turns of n rows, at pos unless they have places.
func (x *imageRoom) turns(pos kernels.Buffer, n int) turns {
	if !x.placed {
		return turns{pos: pos}
	}
	return turns{x.own.dev.Slice(0, n), x.table}
}

func (ws *Workspace) turns() turns { return ws.images.turns(ws.pos.dev.Slice(0, ws.n), ws.n) }
