package calibrate

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

//go:embed calibrate.html
var reportPage string

var reportTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"percent": func(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) },
	"two":     func(value float64) string { return strconv.FormatFloat(value, 'f', 2, 64) },
	"three":   func(value float64) string { return strconv.FormatFloat(value, 'f', 3, 64) },
	"whole":   func(value float64) string { return strconv.FormatFloat(value, 'f', 0, 64) },
	"from": func(bin int) string {
		return fmt.Sprintf("%.2f–%.2f", float64(bin)/Bins, float64(bin+1)/Bins)
	},
	"shown":     func(text string) string { return plain(text, 400) },
	"way":       wayText,
	"scheme":    schemeText,
	"histogram": plotHistogram,
	"shares":    plotShares,
	"curve":     plotCurve,
	"errors":    plotErrors,
}).Parse(reportPage))

// WriteHTML writes the page of a report. What stood in the file stays until the new one is whole.
func WriteHTML(file string, list []Result) error {
	return replaceFile(file, func(w io.Writer) error { return reportTemplate.Execute(w, list) })
}

// replaceFile writes a file beside the one it is to replace, and puts it in its place when it is whole.
func replaceFile(file string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), ".sidecar-*")
	if err != nil {
		return fmt.Errorf("write %s: %w: name a file in a folder that you may write to", file, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
			err = fmt.Errorf("write %s: %w", file, err)
		}
	}()
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	return err
}
