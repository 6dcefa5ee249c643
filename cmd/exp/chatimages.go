package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/quantity"
	"exp/harness/endpoint"
)

// mostImageFile bounds an image file, in bytes.
const mostImageFile = 64 << 20

// readImages reads image files that a question shows, and says what the model sees of them.
func (a *app) readImages(x askedModel, files []string) (list []endpoint.Image, err error) {
	for _, name := range files {
		switch {
		case !x.ReadsImages():
			return nil, cli.Usagef("%s: %s reads text alone, and no images", name, x.name)
		case !x.Chats():
			return nil, cli.Usagef("%s: %s has no chat template, which says where images stand", name, x.name)
		}
		b, err := a.imageFile(name)
		if err != nil {
			return nil, cli.Failf(cli.ExitUsage, "%w", err)
		}
		image, err := x.Image(b)
		if err != nil {
			return nil, cli.Failf(cli.ExitUsage, "%s: %w", name, err)
		}
		list = append(list, image)
	}
	a.noteShown(files, list)
	return list, nil
}

// noteShown says what the model sees of files.
func (a *app) noteShown(files []string, list []endpoint.Image) {
	for i, image := range list {
		a.Note("%s: %s, %s, goes with the next question", files[i], image.Name, quantity.Plural(image.Tokens, "token"))
	}
}

// readVideos is readImages for videos: folders of frames, and GIF animations.
func (a *app) readVideos(x askedModel, names []string) (list []endpoint.Image, err error) {
	for _, name := range names {
		switch {
		case !x.ReadsVideos():
			return nil, cli.Usagef("%s: %s reads no videos", name, x.name)
		case !x.Chats():
			return nil, cli.Usagef("%s: %s has no chat template, which says where videos stand", name, x.name)
		}
		video, err := x.Video(a.homePath(name))
		if err != nil {
			return nil, cli.Failf(cli.ExitUsage, "%s: %w", name, err)
		}
		list = append(list, video)
	}
	a.noteShown(names, list)
	return list, nil
}

// homePath returns a path in which ~/ stands for the home folder.
func (a *app) homePath(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		return filepath.Join(a.Getenv("HOME"), rest)
	}
	return name
}

// imageFile reads a file; ~/ stands for the home folder.
func (a *app) imageFile(name string) ([]byte, error) {
	f, err := os.Open(a.homePath(name))
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read: an error on closing loses nothing
	b, err := io.ReadAll(io.LimitReader(f, mostImageFile+1))
	if err == nil && len(b) > mostImageFile {
		err = fmt.Errorf("%s has more than %s", name, quantity.Bytes(mostImageFile))
	}
	return b, err
}

// namedFiles returns the files that the rest of a line names: one, or several with spaces between them.
func namedFiles(arg string) []string {
	if _, err := os.Stat(arg); err == nil {
		return []string{arg}
	}
	return strings.Fields(arg)
}

// addVideos is addImages for videos.
func (s *chatSession) addVideos(arg string) error {
	if arg == "" {
		return cli.Usagef("/video FOLDER shows the video whose frames are in FOLDER with the next question, and " +
			"/video FILE a GIF animation; /image takes it away")
	}
	list, err := s.readVideos(s.model, namedFiles(arg))
	s.images = append(s.images, list...)
	return err
}

// addImages shows files with the next question; without any it takes those and the videos away that would go with it.
func (s *chatSession) addImages(arg string) error {
	if arg == "" {
		if len(s.images) == 0 {
			return cli.Usagef("/image FILE shows an image with the next question")
		}
		s.images = nil
		s.Note("the next question shows no image")
		return nil
	}
	list, err := s.readImages(s.model, namedFiles(arg))
	s.images = append(s.images, list...)
	return err
}
