package layout

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval/rows"
	"exp/train/rollout"
)

// pngOf returns a PNG of some width, all of one gray.
func pngOf(t *testing.T, width int, gray uint8) []byte {
	t.Helper()
	im := image.NewGray(image.Rect(0, 0, width, 2))
	for i := range im.Pix {
		im.Pix[i] = gray
	}
	im.SetGray(0, 0, color.Gray{Y: 255 - gray})
	var b bytes.Buffer
	if err := png.Encode(&b, im); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pictured is Images of PNG files, whose pictures have only digest, width and format.
func pictured(column string) *Images {
	take := func(b []byte) (rollout.Picture, error) {
		c, err := png.DecodeConfig(bytes.NewReader(b))
		sum := sha256.Sum256(b)
		return rollout.Picture{Digest: hex.EncodeToString(sum[:]), Width: c.Width, Format: "png"}, err
	}
	return &Images{Column: column, Take: take, Begins: func(b []byte) bool { return bytes.HasPrefix(b, []byte("\x89PNG")) }}
}

// Each form of an image, and each way to place it, gives the same problem.
func TestImages(t *testing.T) {
	a, b := pngOf(t, 3, 10), pngOf(t, 4, 20)
	a64, b64 := base64.StdEncoding.EncodeToString(a), base64.StdEncoding.EncodeToString(b)
	dir := t.TempDir()
	for name, data := range map[string][]byte{"a.png": a, "shapes/b.png": b} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	url := "data:image/png;base64,"
	const both = `[{"type":"image"},{"type":"text","text":"is "},{"type":"image"},{"type":"text","text":"<b>?"}]`
	for _, tt := range []struct{ name, row, parts string }{
		{"bytes", `{"problem":"<image>is <image><b>?","answer":"1","images":[{"bytes":"` + a64 + `","path":null},{"bytes":"` + b64 + `"}]}`, both},
		{"paths", `{"problem":"<image>is <image><b>?","answer":"1","images":["a.png","` + dir + `/shapes/b.png"]}`, both},
		{"path of a struct", `{"problem":"<image>is <image><b>?","answer":"1","images":[{"bytes":null,"path":"a.png"},{"path":"shapes/b.png"}]}`, both},
		{"texts", `{"problem":"<image>is <image><b>?","answer":"1","images":["` + url + a64 + `","` + b64 + `"]}`, both},
		{"verl", `{"data_source":"geo","prompt":[{"role":"user","content":"<image>is <image><b>?"}],"images":["a.png","shapes/b.png"],"reward_model":{"ground_truth":"1"}}`, both},
		{"parts", `{"prompt":[{"role":"user","content":[{"type":"image"},{"type":"text","text":"is "},{"type":"image"},{"type":"text","text":"<b>?"}]}],"images":["a.png","shapes/b.png"],"answer":"1"}`, both},
		{"parts with a mark", `{"prompt":[{"role":"user","content":[{"type":"image","text":null},{"type":"text","text":"is <image><b>?","image":null}]}],"images":["a.png","shapes/b.png"],"answer":"1"}`, both},
		{"OpenAI", `{"prompt":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + url + a64 + `"}},{"type":"text","text":"is "},{"type":"image_url","image_url":{"url":"` + url + b64 + `"}},{"type":"text","text":"<b>?"}]}],"answer":"1"}`, both},
		{"its own and the column's", `{"prompt":[{"role":"user","content":[{"type":"image","image":"file://` + dir + `/a.png"},{"type":"text","text":"is "},{"type":"image"},{"type":"text","text":"<b>?"}]}],"images":["shapes/b.png"],"answer":"1"}`, both},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(dir, "rows.jsonl")
			if err := os.WriteFile(path, []byte(tt.row+"\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			list, _, err := ProblemsAt(rows.Read(path), Columns{Images: pictured("images")})
			if err != nil {
				t.Fatal(err)
			}
			p := list[0]
			want := []rollout.Message{{Role: "user", Parts: json.RawMessage(tt.parts)}}
			if diff := cmp.Diff(want, p.Messages); diff != "" {
				t.Errorf("messages (-want +got)\n%s", diff)
			}
			if len(p.Images) != 2 || p.Images[0].Width != 3 || p.Images[1].Width != 4 || p.Images[0].Format != "png" {
				t.Errorf("images %v", p.Images)
			}
			if p.Prompt != "<image>is <image><b>?" {
				t.Errorf("prompt %q", p.Prompt)
			}
			if _, _, err := ProblemsAt(rows.Read(path), Columns{}); err == nil || !strings.Contains(err.Error(), "text alone") {
				t.Errorf("read as text: %v", err)
			}
		})
	}
}

// Parquet files hold images as bytes, as Hugging Face's datasets write them.
func TestImagesInParquet(t *testing.T) {
	type file struct {
		Bytes []byte  `parquet:"bytes"`
		Path  *string `parquet:"path,optional"`
	}
	type message struct {
		Role    string `parquet:"role"`
		Content string `parquet:"content"`
	}
	type graded struct {
		Truth string `parquet:"ground_truth"`
	}
	type row struct {
		Source string    `parquet:"data_source"`
		Prompt []message `parquet:"prompt,list"`
		Images []file    `parquet:"images,list"`
		Reward graded    `parquet:"reward_model"`
	}
	var list []row
	for i := range 3 {
		list = append(list, row{"geo", []message{{"system", "Think."}, {"user", "<image>Find x."}},
			[]file{{Bytes: pngOf(t, 3+i%2, 9)}}, graded{"7"}})
	}
	path := filepath.Join(t.TempDir(), "geo.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := rows.WriteParquet(f, list); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	problems, copies, err := ProblemsAt(rows.Read(path), Columns{Images: pictured("images")})
	if err != nil {
		t.Fatal(err)
	}
	// Rows 1 and 3 are the same; row 2 differs only in its image.
	if copies.Unique != 2 || problems[0].Images[0].Width != 3 || problems[1].Images[0].Width != 4 {
		t.Errorf("%+v, %v", copies, problems)
	}
	if m := problems[0].Messages; len(m) != 2 || m[0].Content != "Think." || string(m[1].Parts) != `[{"type":"image"},{"type":"text","text":"Find x."}]` {
		t.Errorf("messages %+v", m)
	}
	_, _, err = ProblemsAt(rows.Read(path), Columns{Images: pictured("images"), Keep: []string{"images"}})
	if err == nil || !strings.Contains(err.Error(), `field "images": it holds bytes`) {
		t.Errorf("keeping bytes: %v", err)
	}
}

func TestImageErrors(t *testing.T) {
	a64 := base64.StdEncoding.EncodeToString(pngOf(t, 3, 10))
	one := `"images":["` + a64 + `"]`
	for _, tt := range []struct{ name, row, want string }{
		{"too few", `{"problem":"<image> and <image>","answer":"1",` + one + `}`, "the row has 1 image, but its prompt has 2 <image>"},
		{"too many", `{"problem":"<image>","answer":"1","images":["` + a64 + `","` + a64 + `"]}`, "the row has 2 images, but its prompt has 1 <image>"},
		{"none shown", `{"problem":"Find x.","answer":"1",` + one + `}`, "write <image> where each belongs, in a user's message"},
		{"a part without", `{"prompt":[{"role":"user","content":[{"type":"image"}]}],"answer":"1"}`, "the row has 0 images, but its prompt has 1 <image>"},
		{"videos", `{"problem":"<video>","answer":"1","videos":["a.mp4"]}`, "has videos"},
		{"a video part", `{"prompt":[{"role":"user","content":[{"type":"video"},{"type":"text","text":"Q"}]}],"answer":"1"}`, `message 1: part 1: it is of type "video"`},
		{"no file", `{"problem":"<image>","answer":"1","images":["gone.png"]}`, "images, image 1: open"},
		{"no image", `{"problem":"<image>","answer":"1","images":[{"bytes":"QUJD"}]}`, "are not an image file"},
		{"null", `{"problem":"<image>","answer":"1","images":[null]}`, "image 1: it is null"},
		{"a bad URL", `{"problem":"<image>","answer":"1","images":["data:text/plain;base64,QUJD"]}`, "data URL"},
		{"on the network", `{"problem":"<image>","answer":"1","images":["https://x.test/a.png"]}`, "download it"},
		{"a system's", `{"prompt":[{"role":"system","content":[{"type":"image"}]},{"role":"user","content":"Q"}],"answer":"1",` + one + `}`, "of role system"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := `{"problem":"Q","answer":"1"}` + "\n" + tt.row + "\n"
			if strings.HasPrefix(tt.row, `{"prompt"`) {
				text = `{"prompt":"Q","answer":"1"}` + "\n" + tt.row + "\n"
			}
			path := file(t, text)
			_, _, err := ProblemsAt(rows.Read(path), Columns{Images: pictured("images")})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), ":2: ") {
				t.Errorf("%v, want %q in line 2", err, tt.want)
			}
		})
	}
}

// Without images, <image> is a word like others; data.image_key: none leaves images out.
func TestImageMarkInText(t *testing.T) {
	a64 := base64.StdEncoding.EncodeToString(pngOf(t, 3, 10))
	for name, row := range map[string]string{"no column": "", "an empty list": `,"images":[]`, "another column": fmt.Sprintf(`,"photo":["%s"]`, a64)} {
		path := file(t, `{"problem":"Write <image> in HTML.","answer":"1"`+row+"}\n")
		list, _, err := ProblemsAt(rows.Read(path), Columns{Images: pictured("images")})
		if err != nil || list[0].Messages != nil || list[0].Images != nil || list[0].Prompt != "Write <image> in HTML." {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
	path := file(t, `{"problem":"<image>?","answer":"1","images":["`+a64+`"]}`+"\n")
	list, _, err := ProblemsAt(rows.Read(path), Columns{Images: pictured("")})
	if err != nil || list[0].Images != nil || list[0].Prompt != "<image>?" {
		t.Errorf("left out: %+v, %v", list, err)
	}
}
