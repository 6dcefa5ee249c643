package task

import "testing"

func TestProgramForm(t *testing.T) {
	for _, tt := range []struct{ a, b string }{
		{"return a+2*b", "return b*2+a"},
		{"return a+2*b", "x=2*b\nreturn x+a"},
		{"return a+b+b", "x=a+b\nreturn b+x"},
		{"return a-b+c", "return c-(b-a)"},
		{"return -a*b+3", "return 3-b*a"},
		{"return (a-b)*3", "return 3*(-b+a)"},
		{"return a*(b*c)", "return (c*a)*b"},
		{"return a//b+1", "return 1+a//b"},
		{"return(a)", "return a"},
		{"return -(a-b)", "return b-a"},
		{"print(1)\n return a", "print(1) return a"}, // no straight-line program: white space alone
	} {
		if x, y := programForm(tt.a), programForm(tt.b); x != y {
			t.Errorf("%q has the form %q, %q has %q", tt.a, x, tt.b, y)
		}
	}
	for _, tt := range []struct{ a, b string }{
		{"return a+2*b", "return a+b+b"},
		{"return a*b//2", "return a*(b//2)"},
		{"return a//b//c", "return a//(b//c)"},
		{"return a%b", "return b%a"},
		{"return a-b", "return b-a"},
		{"return 2*(a+b)", "return 2*a+2*b"},
		{"return a**2", "return a*2"},
		{"return a/2", "return a//2"},
		{"x=a\nx=x+b\nreturn x", "x=a\nreturn x"},
	} {
		if x, y := programForm(tt.a), programForm(tt.b); x == y {
			t.Errorf("%q and %q have both the form %q", tt.a, tt.b, x)
		}
	}
	if got, want := programForm("x=b*(3+a)\nreturn a-x"), "a-(3+a)*b"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Lines that double do not make a form that doubles without bounds.
func TestProgramFormIsBounded(t *testing.T) {
	text := "x=a+a\n"
	for range 40 {
		text += "x=x+x\n"
	}
	if got := programForm(text + "return x"); len(got) > 2*len(text) {
		t.Errorf("%d bytes", len(got))
	}
}

// FuzzProgramForm: a form is a program again, with the same form, or the text itself.
func FuzzProgramForm(f *testing.F) {
	f.Add("x=2*b\nreturn x+a")
	f.Add("return -(a-b)*-3//c%7")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseProgram(text)
		if err != nil {
			return
		}
		form := n.form()
		if len(form) > maxProgram/2 {
			return
		}
		if again := programForm("return " + form); again != form {
			t.Errorf("%q: form %q, and its form %q", text, form, again)
		}
	})
}
