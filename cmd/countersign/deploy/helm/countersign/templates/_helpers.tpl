{{- define "countersign.name" -}}
{{- if contains "countersign" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-countersign" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "countersign.selector" -}}
app.kubernetes.io/name: countersign
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "countersign.labels" -}}
{{ include "countersign.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* The template of the pod is the same for both kinds of store. */ -}}
{{- define "countersign.pod" -}}
metadata:
  labels:
    {{- include "countersign.labels" . | nindent 4 }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "countersign.name" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ add (trimSuffix "s" .Values.stopWait | int) 45 }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: countersign
      image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      env:
        {{- if .Values.slack.tokenRotation }}
        - name: SLACK_CLIENT_ID_FILE
          value: /run/secrets/slack/client-id
        - name: SLACK_CLIENT_SECRET_FILE
          value: /run/secrets/slack/client-secret
        - name: SLACK_REFRESH_TOKEN_FILE
          value: /run/secrets/slack/refresh-token
        {{- else }}
        - name: SLACK_BOT_TOKEN_FILE
          value: /run/secrets/slack/bot-token
        {{- end }}
        {{- if eq .Values.slack.transport "http" }}
        - name: COUNTERSIGN_TRANSPORT
          value: http
        - name: COUNTERSIGN_HTTP_ADDR
          value: 0.0.0.0:8080
        - name: SLACK_SIGNING_SECRET_FILE
          value: /run/secrets/slack/signing-secret
        {{- else }}
        - name: SLACK_APP_TOKEN_FILE
          value: /run/secrets/slack/app-token
        {{- end }}
        - name: OPENAI_MODEL
          value: {{ .Values.model.name | quote }}
        {{- with .Values.model.baseURL }}
        - name: OPENAI_BASE_URL
          value: {{ . | quote }}
        {{- end }}
        {{- if .Values.model.secret }}
        - name: OPENAI_API_KEY_FILE
          value: /run/secrets/model/api-key
        {{- end }}
        {{- if eq .Values.store.kind "postgres" }}
        - name: COUNTERSIGN_STORE_FILE
          value: /run/secrets/database/address
        - name: COUNTERSIGN_AUDIT_KEY
          value: /run/secrets/signing/audit-key
        - name: COUNTERSIGN_AUDIT_HEADS
          value: none
        {{- with .Values.store.postgres.migrate }}
        - name: COUNTERSIGN_MIGRATE
          value: {{ . | quote }}
        {{- end }}
        {{- end }}
        - name: COUNTERSIGN_CONTROL # in a folder that the bot makes, because the pod's group can write to each volume itself
          value: /tmp/countersign/bot.sock
        - name: COUNTERSIGN_ADMIN_ADDR
          value: 0.0.0.0:9090
        {{- if .Values.gateway }}
        - name: COUNTERSIGN_GATEWAY_ADDR
          value: 0.0.0.0:8090
        {{- if eq .Values.store.kind "postgres" }}
        - name: COUNTERSIGN_GATEWAY_KEY
          value: /run/secrets/signing/receipt-key
        {{- end }}
        {{- end }}
        {{- with (.Values.traces).endpoint }}
        - name: OTEL_EXPORTER_OTLP_ENDPOINT
          value: {{ . | quote }}
        {{- end }}
        {{- if (.Values.traces).secret }}
        - name: OTEL_EXPORTER_OTLP_HEADERS_FILE
          value: /run/secrets/traces/headers
        {{- end }}
        - name: COUNTERSIGN_LOG
          value: {{ .Values.logLevel }}
        - name: COUNTERSIGN_STOP_WAIT
          value: {{ .Values.stopWait }}
        {{- with .Values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - name: admin
          containerPort: 9090
        {{- if eq .Values.slack.transport "http" }}
        - name: slack
          containerPort: 8080
        {{- end }}
        {{- if .Values.gateway }}
        - name: gateway
          containerPort: 8090
        {{- end }}
      startupProbe:
        httpGet: {path: /healthz, port: admin}
        periodSeconds: 5
        failureThreshold: 120
      livenessProbe:
        httpGet: {path: /healthz, port: admin}
        periodSeconds: 20
        timeoutSeconds: 10
        failureThreshold: 3
        terminationGracePeriodSeconds: 10 # a bot that does not respond does not finish its work either
      readinessProbe:
        httpGet: {path: /readyz, port: admin}
        periodSeconds: 10
        timeoutSeconds: 6
      {{- if or .Values.gateway (eq .Values.slack.transport "http") }}
      lifecycle:
        preStop:
          sleep: {seconds: 5}
      {{- end }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - {name: state, mountPath: /var/lib/countersign}
        - {name: policy, mountPath: /etc/countersign, readOnly: true}
        - {name: slack, mountPath: /run/secrets/slack, readOnly: true}
        {{- if .Values.model.secret }}
        - {name: model, mountPath: /run/secrets/model, readOnly: true}
        {{- end }}
        {{- if (.Values.traces).secret }}
        - {name: traces, mountPath: /run/secrets/traces, readOnly: true}
        {{- end }}
        {{- if eq .Values.store.kind "postgres" }}
        - {name: database, mountPath: /run/secrets/database, readOnly: true}
        - {name: signing, mountPath: /run/secrets/signing, readOnly: true}
        {{- end }}
        - {name: tmp, mountPath: /tmp}
  volumes:
    - name: tmp
      emptyDir: {}
    - name: policy
      configMap:
        name: {{ include "countersign.name" . }}-policy
    - name: slack
      secret:
        secretName: {{ .Values.slack.secret }}
        defaultMode: 0440
    {{- with .Values.model.secret }}
    - name: model
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- with (.Values.traces).secret }}
    - name: traces
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- if eq .Values.store.kind "postgres" }}
    - name: database
      secret:
        secretName: {{ .Values.store.postgres.secret }}
        defaultMode: 0440
    - name: signing
      secret:
        secretName: {{ .Values.store.postgres.signingKey }}
        defaultMode: 0440
    - name: state
      emptyDir: {}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if eq .Values.store.kind "postgres" }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "countersign.selector" . | nindent 10 }}
  {{- end }}
{{- end }}
