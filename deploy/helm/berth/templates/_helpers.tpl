{{- define "berth.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "berth.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end }}

{{- define "berth.postgres" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: postgres
{{- end }}

{{- define "berth.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "berth.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "berth.account" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "berth.name" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "berth.namespace" -}}
{{ .Values.workloads.namespace | default .Release.Namespace }}
{{- end }}

{{/* Tells the objects of this release from those of others in the namespace of the workloads. */}}
{{- define "berth.instance" -}}
{{ .Values.workloads.instance | default (include "berth.name" . | trunc 20 | trimSuffix "-") }}
{{- end }}

{{- define "berth.secret" -}}
{{ .Values.secrets.existingSecret | default (include "berth.name" .) }}
{{- end }}

{{/* Host names that lead to the servers, without ports and without a name twice; a JSON list. */}}
{{- define "berth.hosts" -}}
{{- $hosts := list }}
{{- range $url := list .Values.publicUrl .Values.consoleUrl }}
{{- if $url }}{{ $hosts = append $hosts (regexReplaceAll ":[0-9]+$" (urlParse $url).host "") }}{{ end }}
{{- end }}
{{- if .Values.domain }}{{ $hosts = append $hosts (printf "*.%s" .Values.domain) }}{{ end }}
{{- $hosts | uniq | toJson }}
{{- end }}

{{/*
A value that is made once: the given one, else that of the secret in the cluster, else a new one.
A dict with given, secret (the name), key, length and root.
*/}}
{{- define "berth.kept" -}}
{{- if .given }}{{ .given | b64enc }}
{{- else }}
{{- $there := lookup "v1" "Secret" .root.Release.Namespace .secret }}
{{- if and $there (hasKey $there.data .key) }}{{ index $there.data .key }}
{{- else if .root.Release.IsUpgrade }}{{ fail (printf "The secret %s has no %s any more. Restore the secret, or give the value: a new one would not open what the old one sealed." .secret .key) }}
{{- else }}{{ randAlphaNum .length | b64enc }}
{{- end }}
{{- end }}
{{- end }}
