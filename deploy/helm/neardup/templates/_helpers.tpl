{{- define "neardup.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Room is left for the endings of jobs and of the admin Service. */}}
{{- define "neardup.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "neardup.name" .) .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name (include "neardup.name" .) | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "neardup.selector" -}}
app.kubernetes.io/name: {{ include "neardup.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "neardup.labels" -}}
{{ include "neardup.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{- end }}

{{- define "neardup.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "neardup.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end }}

{{- define "neardup.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "neardup.configMap" -}}
{{ .Values.existingConfigMap | default (include "neardup.fullname" .) }}
{{- end }}

{{- define "neardup.config" -}}
{{ toYaml (merge (dict "admin" (printf "%s:%d" .Values.admin.host (int .Values.admin.port))) (deepCopy .Values.config)) }}
{{- end }}

{{/* The listeners: a list of name and port as JSON. */}}
{{- define "neardup.ports" -}}
{{- $ports := list -}}
{{- if .Values.service.ports -}}
{{- $ports = .Values.service.ports -}}
{{- else if .Values.existingConfigMap -}}
{{- fail "service.ports: is empty: with existingConfigMap, name the ports of its listeners there" -}}
{{- else -}}
{{- range $i, $engine := .Values.config.engines -}}
{{- $scheme := ternary "http" "https" (empty $engine.listen_tls) -}}
{{- $name := ternary $scheme (printf "%s-%d" $scheme $i) (eq $i 0) -}}
{{- $ports = append $ports (dict "name" $name "port" ($engine.listen | splitList ":" | last | int)) -}}
{{- end -}}
{{- end -}}
{{- range $ports -}}
{{- if eq (int .port) (int $.Values.admin.port) -}}
{{- fail (printf "admin.port: %d is the port of a listener too: choose another" (int .port)) -}}
{{- end -}}
{{- end -}}
{{ toJson $ports }}
{{- end }}

{{/* What the sidecar's container and those of jobs have in common. */}}
{{- define "neardup.containerBase" -}}
image: {{ include "neardup.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
workingDir: /etc/neardup
env:
  - name: GOMEMLIMIT
    value: {{ .Values.goMemLimit | quote }}
  {{- with .Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
volumeMounts:
  # A folder, not a subPath: changes of the ConfigMap arrive in it.
  - name: config
    mountPath: /etc/neardup
    readOnly: true
  - name: tmp
    mountPath: /tmp
  {{- range $i, $mount := .Values.secretMounts }}
  - name: secret-{{ $i }}
    mountPath: {{ $mount.path }}
    readOnly: true
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "neardup.podBase" -}}
serviceAccountName: {{ include "neardup.serviceAccount" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
volumes:
  - name: config
    configMap:
      name: {{ include "neardup.configMap" . }}
  - name: tmp
    emptyDir: {}
  {{- range $i, $mount := .Values.secretMounts }}
  - name: secret-{{ $i }}
    secret:
      secretName: {{ $mount.secret }}
      defaultMode: 0440
  {{- end }}
  {{- with .Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
