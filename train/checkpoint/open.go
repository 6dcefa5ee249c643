package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"

	"exp/train/checkpoint/fault"
)

// openRegular opens a file for reading, or a link to one.
func openRegular(path string) (*os.File, error) { return fault.OpenRegular(path) }

// standIn returns the error for a placeholder file, recognized by its first bytes: a
// git-lfs pointer, or a web page that a server sent instead. It is nil for other files.
func standIn(path string, head []byte) error {
	switch trimmed := bytes.TrimLeft(head, " \t\r\n"); {
	case bytes.HasPrefix(head, []byte("version https://git-lfs")):
		return &Error{Op: "read", Path: path, Err: errors.New("is a pointer of git-lfs, not the file"),
			Hint: "run git lfs pull in its folder"}
	case bytes.HasPrefix(trimmed, []byte("<!DOCTYPE")), bytes.HasPrefix(trimmed, []byte("<!doctype")),
		bytes.HasPrefix(trimmed, []byte("<html")):
		return &Error{Op: "read", Path: path, Err: errors.New("is a web page, not the file"),
			Hint: "it was fetched from the wrong address; fetch it again"}
	case bytes.HasPrefix(head, []byte("GGUF")):
		return &Error{Op: "read", Path: path, Err: errors.New("is a GGUF file, which exp writes but does not read"),
			Hint: "name the Hugging Face folder that it was made from"}
	}
	return nil
}

// jsonWords says in plain words why a JSON value does not fit.
func jsonWords(err error) string {
	var e *json.UnmarshalTypeError
	if !errors.As(err, &e) {
		return err.Error()
	}
	words := "an object"
	switch e.Type.Kind() {
	case reflect.Bool:
		words = "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		words = "a whole number"
	case reflect.Float32, reflect.Float64:
		words = "a number"
	case reflect.String:
		words = "a text"
	case reflect.Slice:
		words = "a list"
	}
	return "want " + words + ", got " + e.Value
}
