// Package peers installs the programs of others that the benchmarks compare with, in the versions that the folder peers pins.
package peers

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"

	"github.com/neardup/sidecar/bench/internal/corpora"
)

// Rust builds the crates in peers/rust for this very processor, which gains them a quarter to a half, and returns the folder of the programs.
func Rust(cache string) (string, error) {
	target := filepath.Join(cache, "rust")
	environment := []string{"CARGO_TARGET_DIR=" + target, "RUSTFLAGS=-C target-cpu=native"}
	err := corpora.Command(filepath.Join("peers", "rust"), environment, "cargo", "build", "--release", "--locked")
	return filepath.Join(target, "release"), err
}

// Python installs the packages in a file of peers into an environment of their own, and returns its interpreter. The file lists all that
// they need.
func Python(cache, requirements string) (string, error) {
	requirements = filepath.Join("peers", requirements)
	folder, err := Once(cache, "python", requirements, func(folder string) error {
		if err := corpora.Command("", nil, "python3", "-m", "venv", folder); err != nil {
			return err
		}
		return corpora.Command("", nil, filepath.Join(folder, "bin", "pip"), "install", "--quiet", "--no-deps", "-r", requirements)
	})
	return filepath.Join(folder, "bin", "python"), err
}

// Once makes a folder of the cache whose content follows from a file, unless an earlier run has made it whole.
func Once(cache, name, file string, make func(folder string) error) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	folder := filepath.Join(cache, name+"-"+hex.EncodeToString(sum[:4]))
	done := filepath.Join(folder, "done")
	if _, err := os.Stat(done); err == nil || !errors.Is(err, os.ErrNotExist) {
		return folder, err
	}
	if err := os.RemoveAll(folder); err != nil {
		return "", err
	}
	if err := make(folder); err != nil {
		return "", err
	}
	return folder, os.WriteFile(done, nil, 0o644)
}
