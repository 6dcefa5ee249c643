package figure

import (
	"fmt"
	"image/color"
	"math"
	"testing"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
)

// lightness is CIE L* of an opaque colour, from its luminance.
func lightness(c color.NRGBA) float64 {
	y := luminance(c)
	if y <= 216.0/24389 {
		return y * 24389 / 27
	}
	return 116*math.Cbrt(y) - 16
}

func TestLightness(t *testing.T) {
	for _, tt := range []struct {
		c    color.NRGBA
		want float64
	}{
		{color.NRGBA{0, 0, 0, 255}, 0},
		{color.NRGBA{255, 255, 255, 255}, 100},
		{color.NRGBA{119, 119, 119, 255}, 50.0}, // sRGB #777777 is L* = 50.03
	} {
		if got := lightness(tt.c); math.Abs(got-tt.want) > 0.05 {
			t.Errorf("lightness(%v) = %v, want %v", tt.c, got, tt.want)
		}
	}
}

// The first four arms stay apart without colour.
func TestPaletteInGreyscale(t *testing.T) {
	for i := range 4 {
		for j := range i {
			if d := math.Abs(lightness(palette[i]) - lightness(palette[j])); d < 10 {
				t.Errorf("colours %d and %d differ by %.1f in L*, want 10", i, j, d)
			}
		}
	}
}

// Every colour is visible on white as a line, the light ones of Okabe and Ito at
// 2.2 : 1 or more, and readable as text at 4.5 : 1.
func TestContrast(t *testing.T) {
	for i, c := range palette {
		if got := 1.05 / (luminance(c) + 0.05); got < 2.2 {
			t.Errorf("colour %d has a contrast of %.2f with white", i, got)
		}
		if got := 1.05 / (luminance(readable(c)) + 0.05); got < 4.5 {
			t.Errorf("text of colour %d has a contrast of %.2f with white, want 4.5", i, got)
		}
		for _, k := range []color.NRGBA{phaseColor(i), phaseColor(i + len(palette))} {
			if got := (luminance(k) + 0.05) / (luminance(inkColor) + 0.05); got < 4.5 {
				t.Errorf("text on phase colour %d has a contrast of %.2f, want 4.5", i, got)
			}
		}
	}
}

// No two of 39 arms, and no two of 28 phases, share a colour.
func TestColorsDiffer(t *testing.T) {
	arms, phases := map[color.NRGBA]int{}, map[color.NRGBA]int{}
	for i := range 39 {
		if j, ok := arms[colorAt(i)]; ok {
			t.Errorf("arms %d and %d share a colour", j, i)
		}
		arms[colorAt(i)] = i
	}
	for i := range 28 {
		if j, ok := phases[phaseColor(i)]; ok {
			t.Errorf("phases %d and %d share a colour", j, i)
		}
		phases[phaseColor(i)] = i
	}
}

// No two of 42 arms have the same colour and shape, and no two neighbours the same
// dashes or hatch.
func TestLooksDiffer(t *testing.T) {
	seen := map[string]int{}
	for i := range 42 {
		k := lookAt(i)
		key := fmt.Sprint(k.color, k.shape)
		if j, ok := seen[key]; ok {
			t.Errorf("arms %d and %d look alike", j, i)
		}
		seen[key] = i
		next := lookAt(i + 1)
		if fmt.Sprint(k.dash) == fmt.Sprint(next.dash) || k.hatch == next.hatch || k.shape == next.shape {
			t.Errorf("arms %d and %d share dashes, hatch or shape", i, i+1)
		}
	}
}

// An arm looks the same in a figure that lacks the others.
func TestOrder(t *testing.T) {
	order := []string{"FlowRL", "PPO", "GRPO"}
	whole := looks(order, order)
	part := looks(order, []string{"new", "PPO", "FlowRL"})
	for _, tt := range []struct {
		what      string
		got, want look
	}{
		{"PPO", part[1], whole[1]},
		{"FlowRL", part[2], whole[0]},
		{"an arm that is not in order", part[0], lookAt(3)},
		{"without order", looks(nil, []string{"PPO"})[0], lookAt(0)},
	} {
		if fmt.Sprint(tt.got) != fmt.Sprint(tt.want) {
			t.Errorf("%s: got %v, want %v", tt.what, tt.got, tt.want)
		}
	}
}

// The embedded fonts are there under the names that text.go asks for; gonum falls
// back on another face in silence otherwise.
func TestFonts(t *testing.T) {
	s := newSheet(nil, 0, 0, font.NewCache(liberation.Collection()))
	for _, tt := range []struct {
		ink  ink
		want string
	}{
		{ink{size: 10}, "Liberation Sans"},
		{ink{size: 10, bold: true}, "Liberation Sans Bold"},
	} {
		face := s.face(tt.ink)
		got, err := face.Face.Name(nil, 4) // the full name
		if err != nil || got != tt.want {
			t.Errorf("face is %q (%v), want %q", got, err, tt.want)
		}
	}
	// Signs that the package writes itself have glyphs.
	face := s.face(ink{size: 10})
	for _, r := range "−‖π→←…∞%" {
		if i, err := face.Face.GlyphIndex(nil, r); err != nil || i == 0 {
			t.Errorf("%q has no glyph (%v)", r, err)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		" a\tb\n":    "a b",
		"a\x00b":     "a b",
		"a\xffb":     "a\uFFFDb",
		"β\uFFFE<&>": "β <&>",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestClipAndWrap(t *testing.T) {
	s := newSheet(nil, 0, 0, font.NewCache(liberation.Collection()))
	k := ink{size: 10}
	whole := "a few words that are wrapped"
	if got := s.clip(k, whole, s.width(k, whole)); got != whole {
		t.Errorf("clip to its own width gives %q", got)
	}
	if got := s.clip(k, whole, s.width(k, "a few…")); got != "a few…" {
		t.Errorf("clip = %q, want %q", got, "a few…")
	}
	if got := s.clip(k, whole, 1); got != "" {
		t.Errorf("clip to one point = %q, want nothing", got)
	}
	got := fmt.Sprintf("%q", s.wrap(k, whole, s.width(k, "a few words"), 2))
	if want := `["a few words" "that are…"]`; got != want {
		t.Errorf("wrap = %s, want %s", got, want)
	}
	if got := s.wrap(k, " ", 100, 2); got != nil {
		t.Errorf("wrap of nothing = %q", got)
	}
}
