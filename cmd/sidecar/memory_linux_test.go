package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUnwritten picks the mappings out of what the kernel says.
func TestUnwritten(t *testing.T) {
	const text = `00400000-011a6000 r-xp 00000000 fe:00 9994778      /usr/bin/side car
Size:              13976 kB
Anonymous:             0 kB
AnonHugePages:         0 kB
VmFlags: rd ex mr mw me
011a6000-0205a000 r--p 00da6000 fe:00 9994778      /usr/bin/side car
Anonymous:             4 kB
0205a000-0205b000 r--p 01c5a000 fe:00 9994778      /usr/bin/side car
Anonymous:             0 kB
0205b000-02220000 rw-p 01c5a000 fe:00 9994778      /usr/bin/side car
Anonymous:             0 kB
7f0000000000-7f0000001000 r-xp 00000000 fe:00 1     /usr/lib/other side car
Anonymous:             0 kB
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0     [stack]
Anonymous:             0 kB
`
	got := unwritten(bufio.NewScanner(strings.NewReader(text)), "/usr/bin/side car")
	if diff := cmp.Diff([]mapping{{0x400000, 0x11a6000}, {0x205a000, 0x205b000}}, got, cmp.AllowUnexported(mapping{})); diff != "" {
		t.Error(diff)
	}
}

// TestDropProgram: the process goes on, with less of the program in it.
func TestDropProgram(t *testing.T) {
	held := func() (pages int) {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Skip(err)
		}
		_, after, found := strings.Cut(string(status), "RssFile:")
		if !found {
			t.Skip("this kernel does not tell")
		}
		if _, err := fmt.Sscan(after, &pages); err != nil {
			t.Fatal(err)
		}
		return pages
	}
	before := held()
	dropProgram()
	if after := held(); after > before*3/4 {
		t.Errorf("%d kB of files are held, %d before", after, before)
	}
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"version"}, strings.NewReader(""), &out, &errs); code != 0 || out.Len() == 0 {
		t.Errorf("it does not run any more: %d, %s", code, errs.String())
	}
}
