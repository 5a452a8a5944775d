//go:build !linux

package main

// dropProgram does nothing where the kernel has no way to do it.
func dropProgram() {}
