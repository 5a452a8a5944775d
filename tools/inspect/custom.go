package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"gopkg.in/yaml.v3"
	strict "sigs.k8s.io/yaml"
)

// custom decodes the objects of the Prometheus operator in a file of many. Any other kind is passed over.
func custom(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var errs []error
	for documents := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document map[string]any
		if err := documents.Decode(&document); errors.Is(err, io.EOF) {
			return errors.Join(errs...)
		} else if err != nil {
			return err
		}
		var into any
		switch document["kind"] {
		case "ServiceMonitor":
			into = &monitoring.ServiceMonitor{}
		case "PrometheusRule":
			into = &monitoring.PrometheusRule{}
		default:
			continue
		}
		one, err := yaml.Marshal(document)
		if err != nil {
			return err
		}
		if err := strict.UnmarshalStrict(one, into); err != nil {
			errs = append(errs, fmt.Errorf("%v: %w", document["kind"], err))
		}
		fmt.Println(document["kind"])
	}
}
