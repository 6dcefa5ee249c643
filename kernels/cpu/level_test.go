package cpu

import (
	"errors"
	"strings"
	"testing"
)

func TestDefaultLevel(t *testing.T) {
	for _, tt := range []struct{ value, want, err string }{
		{"", BestLevel().String(), ""},
		{"portable", "portable", ""},
		{BestLevel().String(), BestLevel().String(), ""},
		{"avx1024", "", `EXP_CPU: unknown cpu level "avx1024": want amx, avx512bf16, avx512, avx2 or portable`},
		{"AVX2", "", `EXP_CPU: unknown cpu level "AVX2"`},
	} {
		t.Run(tt.value, func(t *testing.T) {
			t.Setenv(LevelVariable, tt.value)
			b, err := Open(Options{Threads: 1})
			if err != nil {
				if tt.err == "" || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %q, want %q", err, tt.err)
				}
				return
			}
			defer b.Close()
			if got := b.Level().String(); got != tt.want {
				t.Errorf("level %q, want %q", got, tt.want)
			}
		})
	}
	for l := Portable; l <= AMX; l++ {
		_, err := DefaultLevel(func(string) string { return l.String() })
		if errors.Is(err, ErrUnsupported) == l.Supported() {
			t.Errorf("%s: %v", l, err)
		}
	}
}

// A level that is asked for counts, whatever the environment says.
func TestOpenLevel(t *testing.T) {
	t.Setenv(LevelVariable, "avx1024")
	if b := open(t, Portable, 1); b.Level() != Portable {
		t.Errorf("level %s, want portable", b.Level())
	}
	none := AMX + 1
	if _, err := Open(Options{Level: &none}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("error %v, want ErrUnsupported", err)
	}
}
