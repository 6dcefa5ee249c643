package reports

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"regexp"
	"slices"
	"strings"

	"exp/experiments/blob"
	"exp/experiments/store"
)

// PromptImage is an image that a recorded prompt shows.
type PromptImage struct {
	Digits        string // the first of its digest
	Name          string // "image 448×336 sha256:ab12cd34"
	Width, Height string // pixels
}

// imageDigits are the digits of a digest in the name of an image.
const imageDigits = 8

// imageName is what a recorded prompt has in place of an image. A video has a name in its place alone.
var imageName = regexp.MustCompile(`<image (\d+)×(\d+) sha256:([0-9a-f]{8})>`)

// ImagesIn returns the images that a recorded prompt shows, in order.
func ImagesIn(prompt string) (list []PromptImage) {
	for _, m := range imageName.FindAllStringSubmatch(prompt, -1) {
		list = append(list, PromptImage{m[3], strings.Trim(m[0], "<>"), m[1], m[2]})
	}
	return list
}

// roleImages is the output of the prepare stage that holds the images of problems.
const roleImages = "images"

// ReadImage returns an image that a prompt of a run shows, by at least the first eight digits of its digest, and its
// format, a word such as png; nil if the run has none of that name.
func ReadImage(ctx context.Context, db *store.DB, run store.Run, digits string) (b []byte, format string, err error) {
	stages, err := db.Stages(ctx, run.ID)
	if err != nil || len(digits) < imageDigits {
		return nil, "", err
	}
	for _, x := range stages {
		d := store.DigestOf(x.Outputs, roleImages)
		if d.IsZero() {
			continue
		}
		if b, format, err = fromAlbum(db.Blobs.Path(d), digits); b != nil || err != nil {
			return b, format, err
		}
	}
	if b, format, err = fromAgents(ctx, db, run, digits); b != nil || err != nil {
		return b, format, err
	}
	return fromSuites(ctx, db, run, digits)
}

// fromAgents returns an image that an agent brought.
func fromAgents(ctx context.Context, db *store.DB, run store.Run, digits string) (b []byte, format string, err error) {
	im, err := db.FindImage(ctx, run.ID, digits)
	if err != nil || im.Digest.IsZero() || !imageFormat(im.Format) {
		return nil, "", err
	}
	b, err = db.Blobs.Bytes(im.Digest)
	return b, im.Format, err
}

// fromAlbum returns an image of an album.
func fromAlbum(path, digits string) (b []byte, format string, err error) {
	a, err := blob.OpenAlbum(path)
	if err != nil {
		return nil, "", err
	}
	defer a.Close() // only read
	digest, format, found := strings.Cut(a.Find(digits), ".")
	if !found || !imageFormat(format) {
		return nil, "", nil
	}
	b, err = a.Bytes(digest)
	return b, format, err
}

// imageFormat reports whether browsers show a format, and it has no scripts.
func imageFormat(name string) bool {
	return slices.Contains([]string{"png", "jpeg", "webp", "gif", "bmp"}, name)
}

// fromSuites returns an image of the suites that a run was scored on, which are in their problems.
func fromSuites(ctx context.Context, db *store.DB, run store.Run, digits string) (b []byte, format string, err error) {
	evals, err := db.Evals(ctx, run.ID)
	if err != nil {
		return nil, "", err
	}
	all, err := db.Suites(ctx)
	if err != nil {
		return nil, "", err
	}
	for _, x := range all {
		if x.Size == 0 || !slices.ContainsFunc(evals, func(e store.Eval) bool { return e.Suite == x.ID }) {
			continue
		}
		problems, err := db.Blobs.Bytes(x.Digest)
		if err == nil {
			b, format, err = fromProblems(problems, digits)
		}
		if b != nil || err != nil {
			return b, format, err
		}
	}
	return nil, "", nil
}

// fromProblems returns an image of problems, one a line.
func fromProblems(problems []byte, digits string) (b []byte, format string, err error) {
	mark := []byte(`"digest":"` + digits)
	for line := range bytes.Lines(problems) {
		if !bytes.Contains(line, mark) {
			continue
		}
		var p struct {
			Images []struct {
				Digest, Format string
				Encoded        []byte
			}
		}
		if err := json.Unmarshal(line, &p); err != nil {
			return nil, "", err
		}
		for _, im := range p.Images {
			if strings.HasPrefix(im.Digest, digits) && len(im.Encoded) > 0 && imageFormat(im.Format) {
				return im.Encoded, im.Format, nil
			}
		}
	}
	return nil, "", nil
}

// embedded is an image within a report's page.
type embedded struct {
	PromptImage
	Source template.URL
}

// mostEmbedded bounds an image in a report, in bytes: its name stands for a larger one.
const mostEmbedded = 512 << 10

// embed returns the images of a prompt that are not too large.
func (s *source) embed(ctx context.Context, run store.Run, prompt string) (list []embedded, err error) {
	for _, im := range ImagesIn(prompt) {
		b, format, err := ReadImage(ctx, s.db, run, im.Digits)
		if err != nil {
			return nil, err
		}
		if b == nil || len(b) > mostEmbedded {
			continue
		}
		url := "data:image/" + format + ";base64," + base64.StdEncoding.EncodeToString(b)
		list = append(list, embedded{im, template.URL(url)})
	}
	return list, nil
}
