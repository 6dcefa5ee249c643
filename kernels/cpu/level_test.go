package cpu

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"unsafe"
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

// complete fills gaps of the first table from the next ones, and keeps what the first one has.
func TestComplete(t *testing.T) {
	type table struct{ a, b, c, none uintptr }
	best, next, last := table{a: 1}, table{a: 2, b: 2}, table{a: 3, b: 3, c: 3}
	list := []unsafe.Pointer{unsafe.Pointer(&best), unsafe.Pointer(&next), unsafe.Pointer(&last)}
	if got, want := *complete[table](list), (table{a: 1, b: 2, c: 3}); got != want {
		t.Errorf("table %v, want %v", got, want)
	}
	if want := (table{a: 1}); best != want {
		t.Errorf("the first table became %v", best)
	}
}

// Every level has all kernels, whoever they come from, but for the peak of instructions that it lacks.
func TestTablesAreComplete(t *testing.T) {
	for l := Portable; l <= AMX; l++ {
		for _, matrix := range []bool{false, true} {
			fma, tiles := l.tables(matrix)
			noPeak := matrix || l < AVX512BF16
			for _, table := range []any{*fma, *tiles} {
				v, isTiles := reflect.ValueOf(table), reflect.TypeOf(table) == reflect.TypeOf(*tiles)
				for i := range v.NumField() {
					name := v.Type().Field(i).Name
					missing := isTiles && noPeak && strings.HasPrefix(name, "peak")
					if v.Field(i).IsZero() != missing {
						t.Errorf("level %s, matrix %t, %s: missing %t, want %t", l, matrix, name, !missing, missing)
					}
				}
			}
		}
	}
}
