//! What `config show` prints and the README says about options: the table, rendered.

use serde_json::{Map, Value};

use super::Config;
use super::options::OPTIONS;
use crate::limits::{DETAIL_CHARS_MAX, DETAIL_ITEMS_MAX, PREVIEW_BYTES_MAX};

/// One option as it stands, for `config show` and the start of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub key: &'static str,
    /// `None`: off.
    pub value: Option<String>,
    /// `default`, `file <path>`, `environment <variable>` or `flag --<name>`.
    pub source: String,
}

impl Config {
    /// Every bound in force that a client can run into, by name, for `server_status`.
    #[must_use]
    pub fn limits(&self) -> Value {
        let number = |size: usize| Value::from(size);
        let milliseconds = |time: std::time::Duration| Value::from(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let members = [
            ("max_instances", number(self.max_instances)),
            ("max_result_bytes", number(self.max_result_bytes)),
            ("preview_bytes_max", number(PREVIEW_BYTES_MAX)),
            ("operation_timeout_ms", milliseconds(self.operation_timeout)),
            ("launch_timeout_ms", milliseconds(self.launch_timeout)),
            ("close_timeout_ms", milliseconds(self.close_timeout)),
            ("idle_ttl_ms", self.idle_ttl.map_or(Value::Null, milliseconds)),
            ("lane_depth", number(self.lane_depth)),
            ("body_bytes_max", self.body_bytes_max.into()),
            ("session_body_bytes_max", self.session_body_bytes_max.into()),
            ("download_bytes_max", self.download_bytes_max.into()),
            ("artifact_quota_bytes", self.artifact_quota_bytes.into()),
            ("disk_warn_percent", self.disk.watermarks.warn_percent.into()),
            ("disk_refuse_percent", self.disk.watermarks.refuse_percent.into()),
            ("disk_read_only_percent", self.disk.watermarks.read_only_percent.into()),
            ("ballast_bytes", self.disk.ballast_bytes.into()),
            ("retention_telemetry_ms", self.retention.telemetry.map_or(Value::Null, milliseconds)),
            ("retention_evidence_ms", self.retention.evidence.map_or(Value::Null, milliseconds)),
            ("retention_audit_ms", self.retention.audit.map_or(Value::Null, milliseconds)),
            ("log_bytes_max", self.retention.log_bytes_max.map_or(Value::Null, Value::from)),
            ("artifact_bytes_max", storage::limits::ARTIFACT_BYTES_MAX.into()),
            ("text_field_bytes_max", number(storage::limits::TEXT_FIELD_BYTES_MAX)),
            ("page_limit_max", number(storage::limits::PAGE_LIMIT_MAX)),
            ("page_limit_default", number(storage::limits::PAGE_LIMIT_DEFAULT)),
            ("log_queue_bytes_max", number(storage::limits::QUEUE_BYTES_MAX)),
            ("detail_chars_max", number(DETAIL_CHARS_MAX)),
            ("detail_items_max", number(DETAIL_ITEMS_MAX)),
        ];
        Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
    }
}

/// The table of options for the README.
#[must_use]
pub fn options_markdown() -> String {
    let mut out =
        String::from("| flag | variable | file key | values | default | meaning |\n|---|---|---|---|---|---|\n");
    for row in OPTIONS {
        let (kind, default) = (row.kind_text(), row.default_text());
        out.push_str(&format!(
            "| `--{}` | `{}` | `{}` | {kind} | {default} | {} |\n",
            row.flag, row.variable, row.key, row.text
        ));
    }
    out
}
