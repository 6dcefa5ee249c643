package picture

// Patches are an image's patches, as a vision tower reads them. Nobody changes Values.
type Patches struct {
	Rows, Columns int // of patches
	// Values is [Rows·Columns][3][Frames][Patch][Patch]. The patches of a token follow each other: the order is
	// [Rows/Merge][Columns/Merge][Merge][Merge]. Tiles follow each other, too.
	Values []float32
}

// Patches decodes an image file and makes its patches. A still image is repeated Frames times.
func (s Settings) Patches(encoded []byte) (Patches, error) {
	if err := s.Check(); err != nil {
		return Patches{}, err
	}
	m, err := decode(encoded)
	if err != nil {
		return Patches{}, err
	}
	return s.patches(m)
}

// patches makes the patches of an image.
func (s Settings) patches(m bitmap) (Patches, error) {
	if s.Tile > 0 {
		if err := s.readable(m.width, m.height); err != nil {
			return Patches{}, err
		}
		return s.cut(s.stack(m)), nil
	}
	h, w, err := s.resized(m.height, m.width)
	if err != nil {
		return Patches{}, err
	}
	return s.cut(m.resize(w, h)), nil
}

// cut makes the patches of a resized image, or of Frames of one size.
func (s Settings) cut(images ...bitmap) Patches {
	m := images[0]
	table := s.levels()
	rows, columns := m.height/s.Patch, m.width/s.Patch
	area := s.Patch * s.Patch
	values := make([]float32, 3*s.Frames*area*rows*columns)
	at := 0
	for i := range rows * columns {
		token, part := i/(s.Merge*s.Merge), i%(s.Merge*s.Merge)
		y := s.Patch * (token/(columns/s.Merge)*s.Merge + part/s.Merge)
		x := s.Patch * (token%(columns/s.Merge)*s.Merge + part%s.Merge)
		for c := range 3 {
			for f := range s.Frames {
				to := values[at+f*area:][:area]
				if f >= len(images) {
					copy(to, values[at:])
					continue
				}
				for j := range s.Patch {
					row := images[f].row(y + j)[3*x+c:]
					for k := range s.Patch {
						to[j*s.Patch+k] = table[c][row[3*k]]
					}
				}
			}
			at += s.Frames * area
		}
	}
	return Patches{rows, columns, values}
}

// levels returns the value of each channel's 256 levels v, (v·Rescale - Mean)/Std in float32, rounded where
// transformers rounds: it folds Rescale into the others, (v - Mean/Rescale)/(Std/Rescale).
func (s Settings) levels() (table [3][256]float32) {
	inverse := float32(1 / s.Rescale)
	for c := range table {
		mean, std := float32(float32(s.Mean[c])*inverse), float32(float32(s.Std[c])*inverse)
		for v := range 256 {
			table[c][v] = float32(float32(v)-mean) / std
		}
	}
	return table
}
