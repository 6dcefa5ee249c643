package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/eval/rows"
)

// Films says how videos of rows become videos of problems. A row has them in a column, a list or one of them:
//
//	["0.png", …]                    the frames, each as images are given
//	frames/17                       a folder with the frames, in the order of their names, numbers in them by size
//	cat.gif                         a GIF animation, as images are given
//	{"frames": …, "fps": 12}        either, with how many frames make a second: some of them are chosen
//	{"frames": …, "sample_fps": 2}  the same, and all of them are read
//
// A <video> in the text of a user's message stands for the next one, as in the files of verl and LLaMA-Factory; so
// does a content part {"type": "video"}, which may also bring its own, as Qwen's do: {"type": "video", "video": …,
// "fps": …}, or {"type": "video_url", "video_url": {"url": "data:…"}}.
type Films struct {
	Column string // verl's; empty: none, and <video> is text
	// Frames and GIF make one file of image files, or of an animation.
	Frames func(files [][]byte, rate float64, sampled bool) ([]byte, error)
	GIF    func(gif []byte) ([]byte, error)
}

// videoType is the type of a part that stands for the next video.
const videoType = "video"

// FilmHint tells what to do with a video file that nothing here decodes.
const FilmHint = "cut it into frames, such as with ffmpeg -i clip.mp4 -vf fps=2 frames/%05d.jpg, and name their folder"

// ownVideo returns the video that a part of content brings, with how many of its frames make a second.
func ownVideo(v map[string]any) (any, bool) {
	for _, name := range []string{"video", "video_url", "frames"} {
		if own, ok := v[name]; !ok || own == nil {
			continue
		}
		x := map[string]any{"frames": v[name]}
		for _, key := range rateKeys() {
			if v[key] != nil {
				x[key] = v[key]
			}
		}
		return x, true
	}
	return nil, false
}

// rateKeys are the fields that say how many frames make a second; of the second all frames are read.
func rateKeys() []string { return []string{"fps", "sample_fps"} }

// isVideo reports whether a part of content is a video. has: it brings one.
func isVideo(v map[string]any, has bool) bool {
	kind, _ := v["type"].(string)
	return kind == videoType || kind == "video_url" || kind == "input_video" || kind == "" && has
}

// film returns the file of a video; paths are relative to a folder.
func (x *Images) film(v any, folder string) ([]byte, error) {
	if x.Films == nil {
		return nil, errors.New("videos are not read here")
	}
	rate, sampled := 0.0, false
	for {
		fields, ok := v.(map[string]any)
		if !ok {
			break
		}
		var err error
		if rate, sampled, err = rateOf(fields, rate, sampled); err != nil {
			return nil, err
		}
		if v = fields["frames"]; v == nil {
			v = fields["url"]
		}
		if v == nil {
			return x.filmFile(fields, folder, rate)
		}
	}
	switch v := v.(type) {
	case []any:
		return x.frames(v, folder, rate, sampled)
	case string:
		path := strings.TrimPrefix(v, "file://")
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
		}
		if at, err := os.Stat(path); len(path) < mostPath && err == nil && at.IsDir() {
			list, err := framesIn(path)
			if err != nil {
				return nil, err
			}
			return x.frames(list, path, rate, sampled)
		}
		if strings.HasPrefix(v, "data:video/jpeg;base64,") { // vLLM's
			var list []any
			for _, s := range strings.Split(strings.TrimPrefix(v, "data:video/jpeg;base64,"), ",") {
				list = append(list, s)
			}
			return x.frames(list, folder, rate, sampled)
		}
		return x.filmFile(v, folder, rate)
	}
	return nil, errors.New("it is neither a list of frames nor a folder nor a GIF animation")
}

// mostPath is the length of a path, about; base64 is longer.
const mostPath = 4096

// rateOf returns how many frames make a second, as fields say it.
func rateOf(fields map[string]any, rate float64, sampled bool) (float64, bool, error) {
	for i, key := range rateKeys() {
		var n float64
		switch v := fields[key].(type) {
		case nil:
			continue
		case float64:
			n = v
		case int64:
			n = float64(v)
		case json.Number:
			n, _ = v.Float64()
		case string:
			n, _ = json.Number(v).Float64()
		}
		if !(n > 0) || n > mostRate {
			return 0, false, fmt.Errorf("its %s is %v, not a number of frames above 0 and up to %d", key, fields[key],
				mostRate)
		}
		rate, sampled = n, i > 0
	}
	return rate, sampled, nil
}

// mostRate bounds the frames of a second.
const mostRate = 100_000

// filmFile returns the video of a file, which must be a GIF animation.
func (x *Images) filmFile(v any, folder string, rate float64) ([]byte, error) {
	raw, err := x.encoded(v, folder)
	switch {
	case err != nil && strings.HasPrefix(fmt.Sprint(v), "data:video/"), err == nil && !x.Begins(raw):
		return nil, errors.New("it is a video file, which exp does not decode: " + FilmHint)
	case err != nil:
		return nil, err
	case !strings.HasPrefix(string(raw), "GIF8"):
		return nil, errors.New("it is an image: a video is a list of frames, their folder, or a GIF animation")
	case rate > 0:
		return nil, errors.New("it is a GIF animation, which says itself how long each frame stays; leave fps out")
	}
	return x.Films.GIF(raw)
}

// frames returns the video of frames.
func (x *Images) frames(list []any, folder string, rate float64, sampled bool) ([]byte, error) {
	files := make([][]byte, len(list))
	for i, v := range list {
		if fields, ok := v.(map[string]any); ok { // a part of content
			if own, has := ownImage(fields); has && fields["bytes"] == nil && fields["path"] == nil {
				v = own
			}
		}
		var err error
		if files[i], err = x.encoded(v, folder); err != nil {
			return nil, fmt.Errorf("frame %d: %w", i+1, err)
		}
	}
	return x.Films.Frames(files, rate, sampled)
}

// framesIn returns the names of the files in a folder, in the order of the frames. Hidden ones do not count.
func framesIn(dir string) (list []any, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("the folder %s has no files: it must have the frames of the video", dir)
	}
	slices.SortFunc(names, byNumber)
	for _, name := range names {
		list = append(list, name)
	}
	return list, nil
}

// byNumber compares names, and numbers in them by size: 2.png goes before 10.png.
func byNumber(a, b string) int {
	for x, y := a, b; x != "" && y != ""; {
		n, m := digits(x), digits(y)
		if n == 0 || m == 0 {
			if x[0] != y[0] {
				return strings.Compare(x, y)
			}
			x, y = x[1:], y[1:]
			continue
		}
		p, q := strings.TrimLeft(x[:n], "0"), strings.TrimLeft(y[:m], "0")
		if len(p) != len(q) {
			return len(p) - len(q)
		}
		if p != q {
			return strings.Compare(p, q)
		}
		x, y = x[n:], y[m:]
	}
	return strings.Compare(a, b)
}

// digits returns how many digits a text begins with.
func digits(s string) (n int) {
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// Film returns the file of a video that a path names: a folder of frames, or a GIF animation.
func (x *Images) Film(path string) ([]byte, error) { return x.film(path, "") }

// FilmOf returns the file of the video in a part of content, as JSON, with all its frames in it: data: URLs.
func (x *Images) FilmOf(part json.RawMessage) ([]byte, error) {
	var fields map[string]any
	if err := json.Unmarshal(part, &fields); err != nil {
		return nil, err
	}
	own, ok := ownVideo(fields)
	if !ok {
		return nil, errors.New("it brings no video")
	}
	if err := carried(own); err != nil {
		return nil, err
	}
	return x.film(own, "")
}

// carried returns an error unless all texts of a video are data: URLs.
func carried(v any) error {
	switch v := v.(type) {
	case string:
		if !strings.HasPrefix(v, "data:") {
			const shown = 60
			return fmt.Errorf("%.*q: no video is fetched from there; send data: URLs of its frames, or of a GIF "+
				"animation (data:image/gif;base64,…)", shown, v)
		}
	case []any:
		for _, x := range v {
			if err := carried(x); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, x := range v {
			if !slices.Contains(rateKeys(), key) && key != "type" && key != "detail" {
				if err := carried(x); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// FilmPart returns a video as a part of content that FilmOf reads: its frames as data: URLs, or one GIF
// animation.
func FilmPart(urls []string, gif bool, rate float64, sampled bool) json.RawMessage {
	if gif {
		return fmt.Appendf(nil, `{"type":"video_url","video_url":{"url":%q}}`, urls[0])
	}
	list, err := json.Marshal(urls)
	if err != nil {
		panic("layout: " + err.Error()) // texts can be written
	}
	key := rateKeys()[0]
	if sampled {
		key = rateKeys()[1]
	}
	fps := ""
	if rate > 0 {
		fps = fmt.Sprintf(`,%q:%v`, key, rate)
	}
	return fmt.Appendf(nil, `{"type":"video","video":%s%s}`, list, fps)
}

// column returns the values of a column of pictures, a list or one of them.
func column(r rows.Row, name string) (list []any) {
	v, ok := r.Value(name)
	if !ok || name == "" {
		return nil
	}
	if list, ok = v.([]any); !ok {
		return []any{v}
	}
	return list
}
