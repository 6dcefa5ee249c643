package vision

// Kind is a family of towers, by the model_type of its models.
type Kind string

const (
	Qwen2VL  Kind = "qwen2_vl"
	Qwen25VL Kind = "qwen2_5_vl"
	Qwen3VL  Kind = "qwen3_vl"
	GLM4V    Kind = "glm4v"
	InternVL Kind = "internvl"
	Idefics3 Kind = "idefics3" // and SmolVLM
	Pixtral  Kind = "pixtral"  // of Mistral 3
	Gemma3   Kind = "gemma3"
)

// traits are what all towers of a kind have. names.go has their maps and norms.
type traits struct {
	activations []string // one of them is in feed-forward blocks
	layerNorms  bool     // norms of blocks are LayerNorms, with biases, not RMSNorms
	turned      bool     // rotary positions turn queries and keys by row and column
	between     bool     // columns turn with frequencies between the rows', not with the same ones
	windows     bool     // some layers attend within windows
	deep        bool     // features may leave the tower before its end
	learned     spread   // learned positions
	// tiled says that an image is square tiles of Side × Side patches, one below the other. A tile attends to itself
	// alone.
	tiled bool
	class bool // each tile has a row of its own that belongs to no patch
	mean  bool // a token is the mean of its patches, not all of them side by side
	eps   bool // Eps may be set
	free  bool // Bias, RMS, QKNorm and Last may be set, too
}

// spread is how learned positions lie on the patches of an image.
type spread int

const (
	nowhere spread = iota // none
	corners               // from corner to corner, bilinearly interpolated
	areas                 // over equal areas, bicubically interpolated
)

// traits returns the traits of a kind, false for an unknown one.
func (k Kind) traits() (traits, bool) {
	gelus := []string{QuickGELU, GELU, GELUTanh}
	x, ok := map[Kind]traits{
		Qwen2VL:  {activations: gelus, layerNorms: true, turned: true},
		Qwen25VL: {activations: []string{SiLU}, turned: true, windows: true},
		Qwen3VL:  {activations: gelus, layerNorms: true, turned: true, deep: true, learned: corners},
		GLM4V:    {activations: []string{SiLU}, turned: true, learned: areas, eps: true, free: true},
		InternVL: {activations: gelus, layerNorms: true, learned: areas, tiled: true, class: true, eps: true,
			free: true},
		Idefics3: {activations: gelus, layerNorms: true, learned: areas, tiled: true, eps: true},
		Pixtral:  {activations: []string{SiLU}, turned: true, between: true, eps: true},
		Gemma3:   {activations: gelus, layerNorms: true, learned: areas, tiled: true, mean: true, eps: true},
	}[k]
	return x, ok
}

// Tiled reports whether an image is square tiles of Side × Side patches, one below the other.
func (c Config) Tiled() bool { return c.has().tiled }

// has returns the traits of the tower's kind.
func (c Config) has() traits {
	x, _ := c.Kind.traits()
	return x
}
