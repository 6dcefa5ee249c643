package store

import "testing"

func TestVerified(t *testing.T) {
	v := func(level string, ok bool) Verification { return Verification{Level: level, OK: ok} }
	for _, tt := range []struct {
		want string
		list []Verification
	}{
		{"", nil},
		{"blobs", []Verification{v("blobs", true)}},
		{"full", []Verification{v("full", true), v("blobs", true)}},
		{"failed", []Verification{v("full", true), v("blobs", false)}},
		{"full", []Verification{v("blobs", false), v("full", true)}},
		{"failed", []Verification{v("full", false), v("prefix", true)}},
		{"prefix", []Verification{v("prefix", false), v("prefix", true)}},
	} {
		for i := range tt.list {
			tt.list[i].ID = int64(i + 1)
		}
		if got := Verified(tt.list); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.list, got, tt.want)
		}
	}
}
