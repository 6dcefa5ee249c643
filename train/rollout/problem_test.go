package rollout

import "testing"

func TestField(t *testing.T) {
	p := Problem{Data: []byte(`{"source":"s","columns":{"ability":"math","a.b":"whole","extra_info":{"level":3,"big":12345678901234567890,
		"hard":true,"task":{"name":"x"},"list":[1],"none":null}}}`)}
	for path, want := range map[string]string{
		"ability": "math", "extra_info.level": "3", "extra_info.big": "12345678901234567890", "extra_info.hard": "true",
		"extra_info.task.name": "x", "a.b": "whole", "extra_info.list": "", "extra_info.none": "", "extra_info": "",
		"extra_info.task": "", "no": "", "no.such": "", "ability.more": "", "source": "", "": "",
	} {
		if got := p.Field(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := (&Problem{}).Field("ability"); got != "" {
		t.Errorf("without data: %q", got)
	}
}
