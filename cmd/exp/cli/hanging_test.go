package cli

import "testing"

func TestHang(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"  missing  a\n", "  missing  a\n"},
		{"  missing  one two three four five six\nnext\n", "  missing  one two three four\n           five six\nnext\n"},
		{"no room to hang from in this line, which is long", "no room to hang from in this line, which is long"},
		{"           42.0 MiB  key/value cache of", "           42.0 MiB key/value\n           cache of"},
		{"  to do    exp hub get ORG/NAME with --include a\n", "  to do    exp hub get ORG/NAME with --include a\n"},
		{"  x        long/paths/are/copied/whole and stay", "  x        long/paths/are/copied/whole and stay"},
	} {
		if got := hang(tt.text, 31, 11); got != tt.want {
			t.Errorf("got\n%s\nwant\n%s", got, tt.want)
		}
	}
}
