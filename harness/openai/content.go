package openai

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"exp/train/rollout"
)

// Images says which images a request may show.
type Images struct {
	// Take returns the image of a file, or an error if the model cannot read it.
	Take func(encoded []byte) (rollout.Picture, error)
	// Film returns the file of the video that a part of content brings, which Take takes; nil: videos are not read.
	Film func(part json.RawMessage) ([]byte, error)
}

// mostImages bounds the images of a request.
const mostImages = 64

// contentPart is a part of a message's content.
type contentPart struct {
	Type string          `json:"type"`
	Text *string         `json:"text"`
	URL  json.RawMessage `json:"image_url"` // a text, or {"url": …, "detail": …}
}

// readMessages sets the messages of a chat and the images that they show. The texts of a content in parts become one,
// unless images are among them.
func readMessages(r *Request, list []rollout.Message, images *Images) error {
	for i := range list {
		m := &list[i]
		if len(m.Parts) == 0 || string(m.Parts) == "null" {
			continue
		}
		var parts []contentPart
		var raw []json.RawMessage
		if json.Unmarshal(m.Parts, &parts) != nil || json.Unmarshal(m.Parts, &raw) != nil {
			return fmt.Errorf("[%d]: content must be a text, or a list of parts", i)
		}
		before := len(r.Images)
		var texts []string
		var mixed []json.RawMessage
		for k, p := range parts {
			switch {
			case p.Type == "text" && p.Text != nil:
				texts, mixed = append(texts, *p.Text), append(mixed, rollout.TextPart(*p.Text))
			case p.Type == "image_url":
				if err := r.show(m.Role, p.URL, images); err != nil {
					return fmt.Errorf("[%d]: content[%d]: %w", i, k, err)
				}
				mixed = append(mixed, json.RawMessage(rollout.ImagePart))
			case p.Type == "video_url" || p.Type == "video":
				if err := r.play(m.Role, raw[k], images); err != nil {
					return fmt.Errorf("[%d]: content[%d]: %w", i, k, err)
				}
				mixed = append(mixed, json.RawMessage(rollout.VideoPart))
			default:
				return fmt.Errorf("[%d]: content[%d] is of type %q: only text, image_url, video_url and video are "+
					"supported", i, k, p.Type)
			}
		}
		if len(r.Images) > before {
			m.Parts = rollout.PartList(mixed)
		} else {
			m.Content, m.Parts = strings.Join(texts, "\n"), nil
		}
	}
	r.Messages = list
	return nil
}

// may returns an error if a message of a role may not show an image or a video, as what says.
func (r *Request) may(what, role string, images *Images) error {
	switch {
	case images == nil:
		return fmt.Errorf("it shows %s, and the model reads text alone", what)
	case role != "user" && role != "tool":
		return fmt.Errorf("%s in a message of role %s: only users and tools show images", what, role)
	case len(r.Images) == mostImages:
		return fmt.Errorf("the request has more than %d images", mostImages)
	}
	return nil
}

// play adds the video of a part of a message.
func (r *Request) play(role string, part json.RawMessage, images *Images) error {
	if err := r.may("a video", role, images); err != nil {
		return err
	}
	if images.Film == nil {
		return errors.New("it shows a video, and the model reads images alone")
	}
	encoded, err := images.Film(part)
	if err != nil {
		return fmt.Errorf("the video cannot be read: %w", err)
	}
	pic, err := images.Take(encoded)
	if err != nil {
		return fmt.Errorf("the video cannot be read: %w", err)
	}
	r.Images = append(r.Images, pic)
	return nil
}

// show adds the image of a part of a message.
func (r *Request) show(role string, part json.RawMessage, images *Images) error {
	if err := r.may("an image", role, images); err != nil {
		return err
	}
	url, err := imageURL(part)
	if err != nil {
		return err
	}
	encoded, err := dataURL(url)
	if err != nil {
		return err
	}
	pic, err := images.Take(encoded)
	if err != nil {
		return fmt.Errorf("the image cannot be read: %w", err)
	}
	r.Images = append(r.Images, pic)
	return nil
}

// WithImages returns messages as clients send them: with the images and videos that their parts stand for, in order,
// as data: URLs. file returns the file of one, and film makes a part of a video's.
func WithImages(list []rollout.Message, images []rollout.Picture, file func(p rollout.Picture) ([]byte, error),
	film func(encoded []byte) (json.RawMessage, error)) ([]rollout.Message, error) {
	out, next := slices.Clone(list), 0
	for i := range out {
		n := out[i].Images()
		if n == 0 {
			continue
		}
		var parts []json.RawMessage
		if err := json.Unmarshal(out[i].Parts, &parts); err != nil {
			return nil, err
		}
		for k, part := range parts {
			if string(part) != rollout.ImagePart && string(part) != rollout.VideoPart {
				continue
			}
			if next == len(images) {
				return nil, fmt.Errorf("the messages show more than %d images", len(images))
			}
			p := images[next]
			encoded, err := file(p)
			if err != nil {
				return nil, fmt.Errorf("image %d: %w", next+1, err)
			}
			if next++; p.Video() {
				if parts[k], err = film(encoded); err != nil {
					return nil, fmt.Errorf("image %d: %w", next, err)
				}
				continue
			}
			parts[k] = fmt.Appendf(nil, `{"type":"image_url","image_url":{"url":"data:image/%s;base64,%s"}}`, p.Format,
				base64.StdEncoding.EncodeToString(encoded))
		}
		out[i].Parts = rollout.PartList(parts)
	}
	return out, nil
}

// imageURL returns the address in a part that shows an image. Its detail, by which OpenAI's models size images,
// changes nothing: each image has the size that the model's files say.
func imageURL(raw json.RawMessage) (url string, err error) {
	if json.Unmarshal(raw, &url) == nil && url != "" {
		return url, nil
	}
	var o struct {
		URL    string `json:"url"`
		Detail string `json:"detail"`
	}
	if json.Unmarshal(raw, &o) != nil || o.URL == "" {
		return "", errors.New(`image_url must be {"url": "data:image/png;base64,…"}`)
	}
	return o.URL, nil
}

// dataURL returns the file in a data: URL.
func dataURL(url string) ([]byte, error) {
	b, err := rollout.DataURL(url)
	switch {
	case errors.Is(err, rollout.ErrNotDataURL):
		return nil, fmt.Errorf("image_url is %s: no image is fetched from there; send a data: URL "+
			"(data:image/png;base64,…)", short([]byte(url)))
	case errors.Is(err, rollout.ErrNotBase64):
		return nil, fmt.Errorf("image_url is %w", err)
	case err != nil:
		return nil, fmt.Errorf("image_url: %w", err)
	}
	return b, nil
}
