package layout

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/eval/rows"
	"exp/train/rollout"
)

// filmed is pictured with videos, whose files are the sizes of their frames and the rate.
func filmed(column string) *Images {
	x := pictured("images")
	take, begins := x.Take, x.Begins
	x.Take = func(b []byte) (rollout.Picture, error) {
		if bytes.HasPrefix(b, []byte("film ")) {
			return rollout.Picture{Digest: string(b), Format: rollout.VideoFormat, Frames: 2}, nil
		}
		return take(b)
	}
	x.Begins = func(b []byte) bool { return begins(b) || bytes.HasPrefix(b, []byte("GIF8")) }
	x.Films = &Films{Column: column, Frames: func(files [][]byte, rate float64, sampled bool) ([]byte, error) {
		widths := []int{}
		for _, f := range files {
			pic, err := take(f)
			if err != nil {
				return nil, err
			}
			widths = append(widths, pic.Width)
		}
		return fmt.Appendf(nil, "film %v at %v, %v", widths, rate, sampled), nil
	}, GIF: func(gif []byte) ([]byte, error) { return append([]byte("film "), gif...), nil }}
	return x
}

// filmDir is a folder with two frames, a GIF and a folder of frames.
func filmDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range map[string][]byte{"a.png": pngOf(t, 3, 10), "b.png": pngOf(t, 4, 20), "c.gif": []byte("GIF89a"),
		"shots/10.png": pngOf(t, 12, 1), "shots/9.png": pngOf(t, 11, 1), "shots/010a.png": pngOf(t, 13, 1),
		"shots/.hidden": []byte("x"), "d.mp4": []byte("\x00\x00\x00\x18ftypmp42"), "none/.hidden": nil} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// filmsOf returns the problem of a row in a folder.
func filmsOf(t *testing.T, x *Images, dir, row string) (rollout.Problem, error) {
	t.Helper()
	path := filepath.Join(dir, "rows.jsonl")
	if err := os.WriteFile(path, []byte(row+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	list, _, err := Problems(rows.Read(path), nil, x)
	if err != nil {
		return rollout.Problem{}, err
	}
	return list[0], nil
}

// Each form of a video, and each way to place it.
func TestVideos(t *testing.T) {
	dir := filmDir(t)
	a64 := base64.StdEncoding.EncodeToString(pngOf(t, 3, 10))
	gif64 := base64.StdEncoding.EncodeToString([]byte("GIF89a"))
	const own = `{"prompt":[{"role":"user","content":[{"type":"text","text":"is"},%s]}],"answer":"1"}`
	const inText, behind = `[{"type":"video"},{"type":"text","text":"?"}]`, `[{"type":"text","text":"is"},{"type":"video"}]`
	for _, tt := range []struct{ name, row, parts, film string }{
		{"frames", `{"problem":"<video>?","answer":"1","videos":[["a.png","b.png"]]}`, inText, "film [3 4] at 0, false"},
		{"base64", `{"problem":"<video>?","answer":"1","videos":[["` + a64 + `",{"path":"b.png"}]]}`, inText, "film [3 4] at 0, false"},
		{"a folder", `{"problem":"<video>?","answer":"1","videos":["shots"]}`, inText, "film [11 12 13] at 0, false"},
		{"alone", `{"problem":"<video>?","answer":"1","videos":"` + dir + `/shots"}`, inText, "film [11 12 13] at 0, false"},
		{"with a rate", `{"problem":"<video>?","answer":"1","videos":[{"frames":"shots","fps":12}]}`, inText, "film [11 12 13] at 12, false"},
		{"chosen before", `{"problem":"<video>?","answer":"1","videos":[{"frames":["b.png","a.png"],"sample_fps":1.5}]}`, inText, "film [4 3] at 1.5, true"},
		{"a GIF", `{"problem":"<video>?","answer":"1","videos":["c.gif"]}`, inText, "film GIF89a"},
		{"a GIF's path", `{"problem":"<video>?","answer":"1","videos":[{"bytes":null,"path":"c.gif"}]}`, inText, "film GIF89a"},
		{"a part", `{"prompt":[{"role":"user","content":[{"type":"video"},{"type":"text","text":"?"}]}],"answer":"1","videos":["c.gif"]}`, inText, "film GIF89a"},
		{"Qwen", fmt.Sprintf(own, `{"type":"video","video":["a.png","file://`+dir+`/b.png"],"fps":2}`), behind, "film [3 4] at 2, false"},
		{"vLLM", fmt.Sprintf(own, `{"type":"video_url","video_url":{"url":"data:image/gif;base64,`+gif64+`"}}`), behind, "film GIF89a"},
		{"vLLM's frames", fmt.Sprintf(own, `{"type":"video_url","video_url":{"url":"data:video/jpeg;base64,`+a64+`,`+a64+`"}}`), behind, "film [3 3] at 0, false"},
		{"with fields of others", fmt.Sprintf(own, `{"type":"video","video":"shots","sample_fps":"4","text":null,"image":null}`), behind, "film [11 12 13] at 4, true"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := filmsOf(t, filmed("videos"), dir, tt.row)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Images) != 1 || p.Images[0].Digest != tt.film || string(p.Messages[0].Parts) != tt.parts {
				t.Errorf("%v in %s, want %s in %s", p.Images, p.Messages[0].Parts, tt.film, tt.parts)
			}
		})
	}
	// Images and videos stand in the order of their marks.
	p, err := filmsOf(t, filmed("clips"), dir, `{"problem":"<image>and <video>","answer":"1","images":["b.png"],"clips":["c.gif"],"videos":["z"]}`)
	if err != nil || len(p.Images) != 2 || p.Images[0].Width != 4 || !p.Images[1].Video() || p.Prompt != "<image>and <video>" {
		t.Errorf("%+v, %v", p, err)
	}
	// Without a column for them, <video> is a word, and videos are left out.
	if p, err := filmsOf(t, filmed(""), dir, `{"problem":"<video>?","answer":"1","videos":["c.gif"]}`); err != nil || p.Messages != nil || p.Prompt != "<video>?" {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestVideoErrors(t *testing.T) {
	dir := filmDir(t)
	row := func(videos string) string {
		return `{"problem":"<video>?","answer":"1","videos":` + videos + `}`
	}
	for name, tt := range map[string]struct{ row, want string }{
		"mp4":               {row(`["d.mp4"]`), "ffmpeg -i clip.mp4 -vf fps=2 frames/%05d.jpg"},
		"mp4 in a data URL": {row(`["data:video/mp4;base64,AAAA"]`), "ffmpeg"},
		"an image":          {row(`["a.png"]`), "it is an image: a video is a list of frames"},
		"no file":           {row(`["e.gif"]`), "no such file"},
		"an empty folder":   {row(`["none"]`), "has no files"},
		"a bad frame":       {row(`[["a.png","e.png"]]`), "videos, video 1: frame 2:"},
		"no mark":           {`{"problem":"?","answer":"1","videos":["c.gif"]}`, "the row has 1 video, and its prompt shows 0"},
		"a mark too many":   {`{"problem":"<video><video>","answer":"1","videos":["c.gif"]}`, "the row has 1 video, and its prompt shows 2"},
		"a rate of nothing": {row(`[{"frames":"shots","fps":0}]`), "its fps is 0"},
		"a rate of a GIF":   {row(`[{"frames":"c.gif","fps":3}]`), "leave fps out"},
		"a number":          {row(`[7]`), "neither a list of frames nor a folder"},
		"on the network":    {row(`["https://x/y.gif"]`), "download it"},
		"of an assistant": {`{"prompt":[{"role":"user","content":"?"},{"role":"assistant","content":[{"type":"video","video":"c.gif"}]},` +
			`{"role":"user","content":"?"}],"answer":"1"}`, "in a message of role assistant"},
	} {
		if _, err := filmsOf(t, filmed("videos"), dir, tt.row); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

// FilmOf reads parts with videos as clients send them, from what they bring alone, and FilmPart writes such parts.
func TestCarriedVideos(t *testing.T) {
	x, a := filmed(""), "data:image/png;base64,"+base64.StdEncoding.EncodeToString(pngOf(t, 3, 10))
	gif := "data:image/gif;base64," + base64.StdEncoding.EncodeToString([]byte("GIF89a"))
	for _, tt := range []struct {
		part json.RawMessage
		want string
	}{
		{FilmPart([]string{a, a}, false, 0, false), "film [3 3] at 0, false"},
		{FilmPart([]string{a, a}, false, 12.5, false), "film [3 3] at 12.5, false"},
		{FilmPart([]string{a, a}, false, 2, true), "film [3 3] at 2, true"},
		{FilmPart([]string{gif}, true, 25, false), "film GIF89a"},
		{json.RawMessage(`{"type":"video","video":[{"type":"image_url","image_url":{"url":"` + a + `"}},"` + a + `"]}`), "film [3 3] at 0, false"},
	} {
		if got, err := x.FilmOf(tt.part); err != nil || string(got) != tt.want {
			t.Errorf("%.60s: %q, %v, want %q", tt.part, got, err, tt.want)
		}
	}
	dir := filmDir(t)
	for part, want := range map[string]string{`{"type":"video","video":"` + dir + `/shots"}`: "no video is fetched from there",
		`{"type":"video","video":["` + dir + `/a.png"]}`:                        "no video is fetched from there",
		`{"type":"video","video":[{"path":"` + dir + `/a.png"}]}`:               "no video is fetched from there",
		`{"type":"video_url","video_url":{"url":"http://x/c.gif"}}`:             "no video is fetched from there",
		`{"type":"video_url","video_url":{"url":"data:video/mp4;base64,AAAA"}}`: "ffmpeg",
		`{"type":"video"}`: "it brings no video"} {
		if _, err := x.FilmOf(json.RawMessage(part)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", part, err, want)
		}
	}
	if got, err := x.Film(dir + "/shots"); err != nil || string(got) != "film [11 12 13] at 0, false" {
		t.Errorf("%q, %v", got, err)
	}
}
