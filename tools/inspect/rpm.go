package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/sassoftware/go-rpmutils"
)

// rpmFile is one file of an rpm.
type rpmFile struct {
	Path  string `json:"path"`
	Mode  string `json:"mode"` // type and permissions, octal
	Owner string `json:"owner"`
	Group string `json:"group"`
	Size  int64  `json:"size"`
	Flags int    `json:"flags"` // 1 configuration, 16 noreplace
}

// rpmHeld is the content of an rpm.
type rpmHeld struct {
	Name     string            `json:"name"`
	License  string            `json:"license"`
	Requires []string          `json:"requires"`
	Scripts  map[string]string `json:"scripts"`
	Files    []rpmFile         `json:"files"`
}

// rpm prints an rpm's header as JSON, after its whole content has been unpacked once.
func rpm(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	archive, err := rpmutils.ReadRpm(f)
	if err != nil {
		return err
	}
	held := rpmHeld{Scripts: map[string]string{}}
	held.Name, _ = archive.Header.GetString(rpmutils.NAME)
	held.License, _ = archive.Header.GetString(rpmutils.LICENSE)
	held.Requires, _ = archive.Header.GetStrings(rpmutils.REQUIRENAME)
	for name, tag := range map[string]int{
		"pre": rpmutils.PREIN, "post": rpmutils.POSTIN, "preun": rpmutils.PREUN, "postun": rpmutils.POSTUN,
	} {
		if text, err := archive.Header.GetString(tag); err == nil {
			held.Scripts[name] = text
		}
	}
	files, err := archive.Header.GetFiles()
	if err != nil {
		return err
	}
	for _, f := range files {
		held.Files = append(held.Files, rpmFile{
			Path: f.Name(), Mode: fmt.Sprintf("%o", f.Mode()), Owner: f.UserName(), Group: f.GroupName(), Size: f.Size(), Flags: f.Flags(),
		})
	}
	scratch, err := os.MkdirTemp("", "inspect")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	if err := archive.ExpandPayload(scratch); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(held)
}
